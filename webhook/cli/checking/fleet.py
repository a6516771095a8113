"""The audits of several clusters, compared. The worst cluster and the worst workload come first."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import UNSET, Struct

from webhook.answers.audited import SkippedRule
from webhook.answers.fleet import FleetCluster, FleetWorkload, SeverityCounts, UnreadCluster, WorkloadInCluster
from webhook.cli.checking.levels import Level, exit_code
from webhook.cli.checking.results import Row, RunResult
from webhook.cli.exit_codes import Exit
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.rule import Severity
from webhook.core.scan.scan_results import ClusterScan, PendingCause, ScannedWorkload
from webhook.core.text import one_line, plural
from webhook.manifests.reading.documents import InputFault


class ClusterAudit(Struct, frozen=True, kw_only=True):
    """The audit of a cluster. Without a ``result``, the cluster could not be read: ``error`` and ``code`` say why."""

    name: str
    result: RunResult | None = None
    error: str = ""
    code: Exit = Exit.FINE


class Fleet(Struct, frozen=True, kw_only=True):
    """Several clusters, and the workloads with a fault in at least one of them.

    Workloads with the same kind, namespace and name form one entry. Clusters and workloads are sorted, the worst first.
    """

    audits: tuple[ClusterAudit, ...]
    clusters: tuple[FleetCluster | UnreadCluster, ...]
    workloads: tuple[FleetWorkload, ...]

    def exit_code(self, fail_on: Level | None) -> Exit:
        """The highest exit code of the clusters. Usage errors count only if every cluster has such an error.

        For example, a namespace on the command line is a usage error only if no cluster has it.
        """
        codes = [audit.code if audit.result is None else exit_code(audit.result, fail_on) for audit in self.audits]
        return max([code for code in codes if code is not Exit.USAGE], default=Exit.USAGE)


def compared(audits: Iterable[ClusterAudit]) -> Fleet:
    """Compare the clusters. The same kind, namespace and name is the same workload."""
    pairs = sorted(((audit, _cluster(audit)) for audit in audits), key=lambda pair: _cluster_badness(pair[1]))
    ordered = tuple(audit for audit, _ in pairs)
    return Fleet(audits=ordered, clusters=tuple(entry for _, entry in pairs), workloads=tuple(_workloads(ordered)))


def combined(fleet: Fleet) -> RunResult:
    """All results as one, without the scans. An unread cluster is a fatal fault."""
    results = [audit.result for audit in fleet.audits if audit.result is not None]
    unread = [InputFault(file=each.name, message=each.error) for each in fleet.audits if each.result is None]
    gaps, kinds = Counter[tuple[str, str]](), Counter[str]()
    for result in results:
        gaps.update({(gap.rule, gap.not_evaluated): gap.objects for gap in result.gaps})
        kinds.update(result.kinds)
    return RunResult(
        rows=tuple(row for result in results for row in result.rows),
        faults=(*(fault for result in results for fault in result.faults), *unread),
        gaps=tuple(SkippedRule(rule, missing, count) for (rule, missing), count in sorted(gaps.items())),
        failures=tuple(failure for result in results for failure in result.failures),
        files=sum(result.files for result in results),
        kinds=kinds,
        workloads=sum(result.workloads for result in results),
        owned=sum(result.owned for result in results),
        clean=tuple(workload for result in results for workload in result.clean),
    )


def _cluster(audit: ClusterAudit) -> FleetCluster | UnreadCluster:
    if audit.result is None:
        return UnreadCluster(rule="fleet-cluster", cluster=audit.name, error=audit.error)
    result, scan = audit.result, audit.result.scan or ClusterScan()
    rows = [row for row in result.rows if not row.waived]
    fatal = [str(fault) for fault in result.faults if fault.fatal]
    return FleetCluster(
        rule="fleet-cluster",
        cluster=audit.name,
        error=one_line(f"{plural(len(fatal), 'error')} in the input: {fatal[0]}") if fatal else UNSET,
        nodes=scan.nodes,
        pods=scan.pods,
        workloads=result.workloads,
        findings=_severity_counts(rows),
        would_deny=len({row.manifest.title for row in rows if row.judged.configured is Mode.DENY}),
        pending=dict(scan.pending),
        above_max_skew=sum(any(skew.above for skew in workload.skews) for workload in scan.workloads),
    )


def _cluster_badness(entry: FleetCluster | UnreadCluster) -> tuple[object, ...]:
    """The sort key that puts the worst cluster first, and unread ones last."""
    if isinstance(entry, UnreadCluster):
        return (1, entry.cluster)
    return (0, *_badness([entry]), entry.cluster)


def _badness(states: Iterable[FleetCluster | WorkloadInCluster]) -> tuple[int, ...]:
    """Return a sort key for the worst first: minus the pods Pending for spread, the findings and the skews."""
    states = [*states]
    return (
        -sum(state.pending.get(PendingCause.SPREAD, 0) for state in states),
        *(-sum(getattr(state.findings, severity) for state in states) for severity in reversed(Severity)),
        -sum(state.above_max_skew for state in states),
    )


def _severity_counts(rows: Iterable[Row]) -> SeverityCounts:
    counts = Counter(row.severity for row in rows)
    return SeverityCounts(**{str(severity): counts[severity] for severity in Severity})


def _workloads(audits: Sequence[ClusterAudit]) -> list[FleetWorkload]:
    states = defaultdict[str, list[WorkloadInCluster]](list)
    for audit in audits:
        if audit.result is not None:
            for title, state in _states(audit.name, audit.result).items():
                states[title].append(state)
    faulty = [(title, own) for title, own in states.items() if any(_badness(own))]
    return [
        FleetWorkload(
            rule="fleet-workload", workload=title, differs=len({state.rules for state in own}) > 1, clusters=tuple(own)
        )
        for title, own in sorted(faulty, key=lambda entry: (_badness(entry[1]), entry[0]))
    ]


def _states(cluster: str, result: RunResult) -> Mapping[str, WorkloadInCluster]:
    """Return the state of each workload of a cluster by title, also of workloads without faults."""
    rows, scanned = defaultdict[str, list[Row]](list), dict[str, ScannedWorkload]()
    for _, title in result.clean:
        rows[title] = []
    for row in result.rows:
        rows[row.manifest.title] += [] if row.waived else [row]
    for workload in result.scan.workloads if result.scan is not None else ():
        scanned[workload.title] = workload
    states = dict[str, WorkloadInCluster]()
    for title in rows.keys() | scanned.keys():
        state = scanned.get(title)
        states[title] = WorkloadInCluster(
            cluster=cluster,
            findings=_severity_counts(rows[title]),
            rules=tuple(sorted({row.judged.finding.rule for row in rows[title]})),
            pending={} if state is None else dict(state.pending),
            above_max_skew=0 if state is None else sum(skew.above for skew in state.skews),
        )
    return states
