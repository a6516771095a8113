"""The entry of a rule in ``rule -o json``."""

from msgspec import UNSET, UnsetType

from webhook.answers.document import Document
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.rule import Severity


class RuleEntry(Document, frozen=True, kw_only=True):
    """A rule. ``page`` is the Markdown of its page, absent in the list."""

    id: str
    title: str
    severity: Severity
    mode: Mode
    since: str
    url: str
    page: str | UnsetType = UNSET
