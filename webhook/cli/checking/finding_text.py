"""Texts of a finding in all output formats: its message, its fix and its consequence."""

from webhook.cli.checking.results import Row
from webhook.core.policy.policy import Mode
from webhook.core.rules.constraint.unknown_fields import UNKNOWN_FIELD
from webhook.core.rules.rule_set import API_RULES, OFFLINE
from webhook.core.text import one_line
from webhook.core.workloads.kinds import BUILT_IN_KINDS, group_kind
from webhook.manifests.reading.files import STDIN_NAME
from webhook.manifests.reading.manifest import FieldPosition

_MAX_CHARS = 4096  # of a text, since it can quote a field of any size


DOCS_URL = "https://evenspread.io/rules"


def rule_url(rule: str, docs_url: str = "") -> str:
    """The address of a rule's page. ``docs_url`` is `messages.docsURL` of the policy."""
    return f"{(docs_url or DOCS_URL).rstrip('/')}/{rule}"


def message(row: Row) -> str:
    """The text of the finding, with its numbers. An error of kube-apiserver keeps kube-apiserver's text."""
    suffix = f"; {row.more:,} more like it in this run" if row.more else ""
    return one_line(row.judged.finding.summary, _MAX_CHARS) + suffix


def fix(row: Row) -> str:
    """The smallest fix."""
    return one_line(row.judged.finding.fix or row.judged.finding.remedy, _MAX_CHARS)


def message_with_fix(row: Row) -> str:
    """The message and, if there is one, the fix, on a single line."""
    return f"{message(row)}; fix: {fix(row)}" if fix(row) else message(row)


def file_text(file: str) -> str:
    """The name of a file as text. It can contain bytes outside UTF-8."""
    return file.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def file_and_place(row: Row) -> tuple[str, FieldPosition | None]:
    """Return the file to show for a finding, and the position in this file if known.

    For piped output of Helm, this is the template without a position. The output has other line numbers.
    """
    if row.manifest.file == STDIN_NAME and row.manifest.source:
        return row.manifest.source, None
    return row.manifest.file, row.place


def is_refused(row: Row) -> bool:
    """Whether kube-apiserver or kubectl refuses the object, with or without the webhook."""
    built_in = group_kind(row.manifest.api_version, row.manifest.kind) in BUILT_IN_KINDS
    return built_in and row.judged.finding.rule in _REFUSED


def consequence(row: Row) -> str:
    """What happens to the object at admission: refused, denied, warned about, or recorded."""
    rule = row.judged.finding.rule
    if is_refused(row):
        return "kubectl refuses it" if rule == UNKNOWN_FIELD.id else "kube-apiserver refuses it"
    return "the webhook does not review it" if rule in OFFLINE else _CONSEQUENCES[row.judged.mode]


_REFUSED = API_RULES | {UNKNOWN_FIELD.id}


_CONSEQUENCES = {
    Mode.DENY: "the webhook denies it",
    Mode.WARN: "the webhook warns",
    Mode.AUDIT: "the webhook only records it",
    Mode.OFF: "the webhook ignores it",
}
