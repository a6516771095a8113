"""The fields of a finding as every format prints them."""

from webhook.cli.checking.results import Row
from webhook.core.policy.policy import Mode
from webhook.core.rules.constraint.unknown_fields import UNKNOWN_FIELD
from webhook.core.rules.rule_set import API_RULES, OFFLINE
from webhook.core.text import one_line
from webhook.core.workloads.kinds import BUILT_IN_KINDS, group_kind

MAX_OUTSIDE_TEXT_CHARS = 4096  # of one text from outside; a field of an object can have megabytes


def message(row: Row) -> str:
    """What is wrong, with the numbers, in kube-apiserver's own words if it has any."""
    return one_line(row.judged.finding.summary, MAX_OUTSIDE_TEXT_CHARS)


def fix(row: Row) -> str:
    """The smallest change that helps."""
    return one_line(row.judged.finding.fix or row.judged.finding.remedy, MAX_OUTSIDE_TEXT_CHARS)


def consequence(row: Row) -> str:
    """What happens to the object because of the finding: refused, warned about, or only reported here."""
    manifest, judged = row.manifest, row.judged
    built_in = group_kind(manifest.api_version, manifest.kind) in BUILT_IN_KINDS
    if built_in and judged.finding.rule in API_RULES:
        return "kube-apiserver refuses it"
    if built_in and judged.finding.rule == UNKNOWN_FIELD.id:
        return "kubectl refuses it"
    if judged.finding.rule in OFFLINE:
        return "the webhook does not look"
    return _CONSEQUENCES[judged.mode]


_CONSEQUENCES = {
    Mode.DENY: "the webhook denies it",
    Mode.WARN: "the webhook warns",
    Mode.AUDIT: "the webhook only records it",
    Mode.OFF: "the webhook says nothing",
}
