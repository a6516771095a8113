"""Sum up the scans of all workloads of a cluster."""

from collections import Counter
from collections.abc import Iterable

from webhook.core.api.selectors import EVERYTHING
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.rules.frame.rule import Severity
from webhook.core.scan.scan_context import ScanContext
from webhook.core.scan.scan_results import ClusterScan, PendingCause, ScanGap, ScannedWorkload
from webhook.core.scan.zone_losses import total_losses


def cluster_scan(
    workloads: Iterable[ScannedWorkload], within: ScanContext, *, started: str = "", ended: str = ""
) -> ClusterScan:
    """Sum up the scans of the workloads, and sort them with the worst first. Both times are ISO times."""
    scans = sorted(workloads, key=_worst_first)
    pending, gaps = Counter[PendingCause](), Counter[tuple[str, str]]()
    for scan in scans:
        pending.update(scan.pending)
        # A rule can lack the same fact for several constraints of an object. That counts once.
        gaps.update({(gap.rule, gap.missing) for gap in scan.not_evaluated})
    index = within.context.index
    return ClusterScan(
        started=started,
        ended=ended,
        workloads=tuple(scans),
        zones=total_losses(within.zones, (loss for scan in scans for loss in scan.losses)),
        gaps=tuple(ScanGap(rule, missing, count) for (rule, missing), count in sorted(gaps.items())),
        lacks={} if index is None else index.lacking,
        nodes=0 if index is None else index.nodes.view().live.bit_count(),
        pods=0 if index is None else _pods(index),
        pending={cause: pending[cause] for cause in PendingCause if pending[cause]},
    )


def _pods(index: ReadOnlyIndex) -> int:
    running = sum(sum(index.pods.count(each, EVERYTHING).values()) for each in index.pods.namespaces())
    return running + sum(pod.meta.deletion_timestamp is None for pod in index.pods.waiting())


def _worst_first(workload: ScannedWorkload) -> tuple[object, ...]:
    """Return the sort key that puts the worst workload first.

    The order is by: pods Pending for spread, all Pending pods, rules that would deny it, pods above maxSkew of hard
    constraints, findings by severity, pods stranded by a zone loss, and name.
    """
    counted = Counter(judged.severity for judged in workload.findings if not judged.waived)
    above = sum((skew.skew or 0) - skew.max_skew for skew in workload.skews if skew.above and skew.hard)
    stranded = max((loss.gone.most or 0 for loss in workload.losses), default=0)
    return (
        -workload.pending.get(PendingCause.SPREAD, 0),
        -sum(workload.pending.values()),
        -len(workload.would_deny),
        -above,
        *(-counted[severity] for severity in reversed(Severity)),
        -stranded,
        workload.namespace,
        workload.kind,
        workload.name,
    )
