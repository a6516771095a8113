"""Texts of a finding in all output formats: its message, its fix and its consequence."""

from webhook.cli.checking.results import Row
from webhook.core.policy.policy import Mode
from webhook.core.rules.constraint.unknown_fields import UNKNOWN_FIELD
from webhook.core.rules.rule_set import API_RULES, OFFLINE
from webhook.core.text import one_line
from webhook.core.workloads.kinds import BUILT_IN_KINDS, group_kind

_MAX_CHARS = 4096  # of a text, since it can quote a field of any size


def message(row: Row) -> str:
    """The finding with its numbers. For errors of kube-apiserver, its own message."""
    return one_line(row.judged.finding.summary, _MAX_CHARS)


def fix(row: Row) -> str:
    """The smallest fix."""
    return one_line(row.judged.finding.fix or row.judged.finding.remedy, _MAX_CHARS)


def consequence(row: Row) -> str:
    """What happens to the object at admission: refused, denied, warned about, or recorded."""
    manifest, judged = row.manifest, row.judged
    built_in = group_kind(manifest.api_version, manifest.kind) in BUILT_IN_KINDS
    if built_in and judged.finding.rule in API_RULES:
        return "kube-apiserver refuses it"
    if built_in and judged.finding.rule == UNKNOWN_FIELD.id:
        return "kubectl refuses it"
    if judged.finding.rule in OFFLINE:
        return "the webhook does not review it"
    return _CONSEQUENCES[judged.mode]


_CONSEQUENCES = {
    Mode.DENY: "the webhook denies it",
    Mode.WARN: "the webhook warns",
    Mode.AUDIT: "the webhook only records it",
    Mode.OFF: "the webhook ignores it",
}
