"""All workloads of a cluster -> what there is to say of the cluster, the worst workload first."""

from collections import Counter
from collections.abc import Iterable

from webhook.core.api.selectors import EVERYTHING
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.rules.frame.rule import Severity
from webhook.core.scan.scan_context import ScanContext
from webhook.core.scan.scanned import ClusterScan, PendingCause, ScanGap, ScannedWorkload
from webhook.core.scan.zone_losses import total_losses


def cluster_scan(
    workloads: Iterable[ScannedWorkload], within: ScanContext, *, started: str = "", ended: str = ""
) -> ClusterScan:
    """Sum up what was said of the workloads. Shape: both times are ISO times."""
    found = sorted(workloads, key=worst_first)
    pending, gaps = Counter[PendingCause](), Counter[tuple[str, str]]()
    for each in found:
        pending.update(each.pending)
        # A rule that lacks the same fact for several constraints of an object counts once.
        gaps.update({(gap.rule, gap.missing) for gap in each.not_evaluated})
    index = within.context.index
    return ClusterScan(
        started=started,
        ended=ended,
        workloads=tuple(found),
        zones=total_losses(within.zones, (loss for each in found for loss in each.losses)),
        gaps=tuple(ScanGap(rule, missing, count) for (rule, missing), count in sorted(gaps.items())),
        lacks={} if index is None else index.lacking,
        nodes=0 if index is None else index.nodes.view().live.bit_count(),
        pods=0 if index is None else _pods(index),
        pending={cause: pending[cause] for cause in PendingCause if pending[cause]},
    )


def _pods(index: ReadOnlyIndex) -> int:
    running = sum(sum(index.pods.count(each, EVERYTHING).values()) for each in index.pods.namespaces())
    return running + sum(pod.meta.deletion_timestamp is None for pod in index.pods.waiting())


def worst_first(of: ScannedWorkload) -> tuple[object, ...]:
    """What sorts workloads, the worst first.

    Shape: by pods that wait for their spread constraints, pods that wait at all, rules that would refuse it, pods above
    maxSkew of hard constraints, findings by severity, pods that the loss of a zone costs, and name.
    """
    counted = Counter(each.severity for each in of.findings if not each.waived)
    above = sum((each.skew or 0) - each.max_skew for each in of.skews if each.above and each.hard)
    stranded = max((loss.gone.most or 0 for loss in of.losses), default=0)
    return (
        -of.pending.get(PendingCause.SPREAD, 0),
        -sum(of.pending.values()),
        -len(of.would_deny),
        -above,
        *(-counted[severity] for severity in reversed(Severity)),
        -stranded,
        of.namespace,
        of.kind,
        of.name,
    )
