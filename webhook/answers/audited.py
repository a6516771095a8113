"""The entries of ``rule``, ``check`` and ``audit`` with ``-o json``: rules, findings and the state of the pods."""

from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import UNSET, UnsetType, field

from webhook.answers.document import Document, with_fields_of
from webhook.answers.scanned import skew_document
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.rule import Severity
from webhook.core.scan.scan_results import ClusterScan, Count, PendingCause, PublishedSkew, Stranded, ZoneLoss

# Why pods are Pending, behind their number.
CAUSES: Mapping[PendingCause, str] = {
    PendingCause.SPREAD: "blocked by spread constraints",
    PendingCause.CAPACITY: "short of capacity",
    PendingCause.OTHER: "blocked for another reason",
    PendingCause.FITS: "with a fitting node",
    PendingCause.GATED: "with scheduling gates",
    PendingCause.FOREIGN: "of another scheduler",
    PendingCause.UNKNOWN: "for an unknown reason",
}


class CheckedObject(Document, frozen=True):
    """The object of a finding."""

    api_version: str
    kind: str
    namespace: str
    name: str


class RuleEntry(Document, frozen=True, kw_only=True):
    """A rule. ``page`` is the Markdown of its page, absent in the list."""

    id: str
    title: str
    severity: Severity
    mode: Mode
    since: str
    url: str
    page: str | UnsetType = UNSET


class _InCluster(Document, frozen=True, kw_only=True):
    """An entry about one cluster. ``cluster`` is absent in a run with a single cluster."""

    cluster: str | UnsetType = UNSET


class FindingEntry(_InCluster, frozen=True, kw_only=True):
    """A finding.

    Attributes:
        url: The address of the rule's page.
        source: The Helm template of the object.
        more: The number of further findings of the same rule. Only for a rule reported once per run.
        waived: The reason of the exemption. Only for an exempted finding.
    """

    file: str
    line: int
    column: int
    object: CheckedObject
    rule: str
    mode: Mode
    severity: Severity
    path: str
    message: str
    fix: str
    url: str
    source: str | UnsetType = UNSET
    more: Count | UnsetType = UNSET
    waived: str | UnsetType = UNSET


class HiddenEntry(Document, frozen=True):
    """The number of a rule's findings below ``--level``."""

    rule: str
    level: str
    hidden: Count


class SkippedRule(_InCluster, frozen=True):
    """A rule, the missing fact that prevented its evaluation, and the number of affected objects."""

    rule: str
    not_evaluated: str
    objects: Count


class _PendingEntry(_InCluster, frozen=True):
    """A workload's Pending pods by cause, the oldest pod's creation time and the smallest fix (empty if unknown)."""

    rule: Literal["pending-pods"]
    workload: str
    pending: Mapping[PendingCause, Count]
    since: str
    fix: str


class _SkewEntry(PublishedSkew, frozen=True):
    """A constraint above maxSkew, with the fields of ``skew -o json``."""

    rule: Literal["actual-skew"]
    workload: str
    cluster: str | UnsetType = UNSET


class _DefaultsEntry(_InCluster, frozen=True):
    """A workload without constraints: how many configured defaults it would get, and its running pods without them."""

    rule: Literal["defaults-to-inject"]
    workload: str
    would_inject: Count
    lacking: Count


class _ZoneLossEntry(_InCluster, frozen=True, kw_only=True):
    """A workload's pods without a node after a zone failure. Without ``workload``, those of all workloads."""

    rule: Literal["zone-loss-strands-pods"]
    workload: str | UnsetType = UNSET
    zone: str = field(name="zoneLoss")
    wanted: Count = field(name="pods")
    unreachable: Stranded = field(name="pendingIfUnreachable")
    gone: Stranded = field(name="pendingIfGone")


StateEntry = _PendingEntry | _SkewEntry | _DefaultsEntry | _ZoneLossEntry


def state_entries(scan: ClusterScan) -> Iterator[StateEntry]:
    """Yield the audit's entries about the cluster's present state.

    First, by workload: Pending pods, skew above maxSkew, and default constraints to inject. Then the pods lost in a
    zone failure: the total of each zone, and the losses of each workload.
    """
    for workload in scan.workloads:
        title = workload.title
        if workload.pending:
            yield _PendingEntry(
                rule="pending-pods",
                workload=title,
                pending=dict(workload.pending),
                since=workload.pending_since,
                fix=workload.pending_fix,
            )
        for skew in workload.skews:
            if skew.above:
                yield with_fields_of(skew_document(skew), _SkewEntry, rule="actual-skew", workload=title, cluster=UNSET)
        if count := workload.would_inject:
            yield _DefaultsEntry(
                rule="defaults-to-inject", workload=title, would_inject=count, lacking=workload.lacking
            )
    # First the totals of each zone, then the workloads.
    yield from (_zone_loss(total, UNSET) for total in scan.zones)
    for workload in scan.workloads:
        yield from (_zone_loss(loss, workload.title) for loss in workload.losses if loss.costs)


def _zone_loss(loss: ZoneLoss, workload: str | UnsetType) -> _ZoneLossEntry:
    return with_fields_of(loss, _ZoneLossEntry, rule="zone-loss-strands-pods", workload=workload, cluster=UNSET)
