"""What kube-apiserver does not say of a constraint, and what it does: one family of rules a file.

`RULES` is the whole, in the order in which findings are reported.
"""

from collections.abc import Mapping

from webhook.core.kinds import DecodeError
from webhook.core.policy import Mode
from webhook.core.rules import selector
from webhook.core.rules.finding import Finding, Rule, Severity

RULES: tuple[Rule, ...] = (
    Rule(
        id="wrong-type",
        title="a field has a value that kube-apiserver cannot decode",
        severity=Severity.HIGH,
        mode=Mode.DENY,
        evaluate=lambda _subject: (),  # answered while the object is read; nothing is left to ask afterwards
        api=True,
    ),
    Rule(
        id="selector-null",
        title="a constraint without labelSelector counts no pod",
        severity=Severity.HIGH,
        mode=Mode.WARN,
        evaluate=selector.selector_null,
    ),
)

BY_ID: Mapping[str, Rule] = {rule.id: rule for rule in RULES}


def wrong_type(error: DecodeError) -> Finding:
    """A template that does not fit the API's types, in kube-apiserver's words."""
    return Finding(rule="wrong-type", path=error.path, summary=error.text, detail=error.message, key=error.text)
