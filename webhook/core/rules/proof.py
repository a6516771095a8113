"""Which edits help: after them their finding is gone, and no rule says anything new."""

from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec.structs import replace

from webhook.core.decoding import DecodeError
from webhook.core.kinds import parsed
from webhook.core.rules.edits import applied
from webhook.core.rules.finding import Finding

# Each is an evaluation of the whole object.
_MOST_PROVEN = 8

_Keys = frozenset[tuple[str, str]]


def only_helpful(
    findings: Sequence[Finding],
    rules: Collection[str],
    raw: bytes | Mapping[str, object],
    again: Callable[[Mapping[str, object]], _Keys],
) -> tuple[Finding, ...]:
    """The findings, those of these rules without edits that do not help or that nobody had the time to try.

    Shape: ``again`` tells the rules and keys of all findings of a changed object.
    """
    tried = [each for each in findings if each.rule in rules and each.edits]
    if not tried:
        return tuple(findings)
    value = parsed(raw)
    before = frozenset((each.rule, each.key) for each in findings)
    helpful = []
    for finding in tried[:_MOST_PROVEN]:
        try:
            left = again(applied(value, finding.edits))
        except (DecodeError, LookupError):
            continue
        if left < before and (finding.rule, finding.key) not in left:
            helpful.append(finding)
    return tuple(replace(each, edits=()) if each.rule in rules and each not in helpful else each for each in findings)
