"""Metrics of the scan: results, cost and writes.

The number of time series is limited. At most twelve zones, and only the worst workloads, have their own series.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from operator import itemgetter
from typing import TypeVar

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from webhook.controller.groups import GroupReconciler
from webhook.controller.guard import ScaleInGuard
from webhook.controller.scan import Scanner
from webhook.core.api.spread_group import CONDITIONS
from webhook.core.scan.scan_results import ActualSkew, ClusterScan, GuardState, PendingCause, ScannedWorkload
from webhook.metrics import ClusterFigures
from webhook.report.documents import ReportApi
from webhook.report.scanned import is_broken

# Each constraint has two series. Reports have the others.
_MOST_WAITING = 100
_MOST_SKEWS = 1000
_MOST_CAPS = 1000
_Value = TypeVar("_Value")
_Family = TypeVar("_Family", GaugeMetricFamily, CounterMetricFamily)
_Labels = tuple[str, ...]
_OF_A_WORKLOAD = ("namespace", "kind", "name")
_OF_A_SKEW = (*_OF_A_WORKLOAD, "topology_key", "when_unsatisfiable")


class ScanFigures(Collector):
    """Computes the metrics of the last scan at each scrape."""

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner

    def collect(self) -> Iterator[Metric]:
        scanner = self._scanner
        yield CounterMetricFamily("evenspread_scan_cpu_seconds", "Processor time of scans.", value=scanner.used)
        yield CounterMetricFamily(
            "evenspread_scan_differences",
            "Results of full scans that differ although no fact changed. Any is a bug of evenspread.",
            value=scanner.differences,
        )
        yield from self._write_metrics()
        if scanner.feed is not None:
            yield from ClusterFigures(scanner.feed.watch_states).collect()
        yield from _group_metrics(scanner.groups)
        yield from _guard_metrics(scanner.guard)
        latest = scanner.latest
        if latest is not None:
            duration, end = "evenspread_scan_duration_seconds", "evenspread_scan_last_success_timestamp_seconds"
            yield GaugeMetricFamily(duration, "Duration of the last scan.", value=latest.seconds)
            yield GaugeMetricFamily(end, "End of the last scan.", value=latest.ended)
            yield from _result_metrics(latest.scan)
            yield from _skew_metrics(latest.scan.workloads, every=scanner.settings.all_workloads)

    def _write_metrics(self) -> Iterator[Metric]:
        reports, events = self._scanner.reports, self._scanner.events
        if reports is not None:
            api = GaugeMetricFamily("evenspread_report_api", "1 for the apiVersion of the reports.", labels=["api"])
            yield _filled(api, (((str(version),), reports.api is version) for version in ReportApi))
            yield _outcomes(
                "evenspread_report_writes",
                "Reports by outcome: written, removed, postponed (too many a minute), refused (by a quota or policy of "
                "the namespace, or because it is terminating), failed.",
                reports.writes,
            )
        if events is not None:
            written = CounterMetricFamily(
                "evenspread_scan_events",
                "Events by outcome: told (written), known (written by an earlier leader), postponed (too many a "
                "minute), refused (by the API server), failed.",
                labels=["reason", "outcome"],
            )
            yield _filled(written, list(events.outcomes.items()))


def _filled(family: _Family, rows: Iterable[tuple[Sequence[str], float]]) -> _Family:
    """Return the metric with a series for each row: its label values and its value."""
    for labels, value in rows:
        family.add_metric(labels, value)
    return family


def _outcomes(name: str, text: str, counts: Mapping[str, int]) -> Metric:
    """Return a counter with a series for each outcome. Another thread may count meanwhile."""
    rows = [((outcome,), count) for outcome, count in list(counts.items())]
    return _filled(CounterMetricFamily(name, text, labels=["outcome"]), rows)


def _group_metrics(groups: GroupReconciler) -> Iterator[Metric]:
    """Yield conditions and broken caps, if there are groups. Broken caps are limited to `_MOST_CAPS` series."""
    known_groups = [*groups.found.values()]
    if not known_groups:
        return
    conditions = GaugeMetricFamily(
        "evenspread_groups", "SpreadGroups by condition and its status.", labels=["condition", "status"]
    )
    counted = Counter((row.type, row.status) for group in known_groups for row in group.status.conditions)
    pairs = product(sorted(CONDITIONS), ("True", "False", "Unknown"))
    yield _filled(conditions, ((pair, counted[pair]) for pair in pairs))
    above = GaugeMetricFamily(
        "evenspread_group_cap_exceeded_pods",
        "Pods above a broken cap of a SpreadGroup, in the fullest domain.",
        labels=["namespace", "name", "topology_key"],
    )
    broken: dict[tuple[str, str, str], int] = {}
    for known in known_groups:
        for spread in known.status.distribution:
            if is_broken(spread):
                labels = (known.group.meta.namespace, known.group.meta.name, spread.topology_key)
                broken[labels] = max(broken.get(labels, 0), max(spread.domains.values()) - spread.cap)
    yield _filled(above, _take_in_turns(broken.items(), _MOST_CAPS))
    yield GaugeMetricFamily(
        "evenspread_group_unguarded_pods",
        "Pods of SpreadGroups that lack fields of the plan.",
        value=sum(group.status.unguarded.count for group in known_groups),
    )
    yield _outcomes(
        "evenspread_group_status_writes",
        "Status writes of SpreadGroups by outcome: written, postponed, refused, failed.",
        groups.writes,
    )


def _guard_metrics(guard: ScaleInGuard) -> Iterator[Metric]:
    """Yield the scale-ins of reported and guarded workloads, limited to `_MOST_SKEWS` series."""
    states = guard.states.copy()
    if not (guard.enabled or states):
        return
    guards = Counter(state.guard for state in states.values())
    worst = GaugeMetricFamily(
        "evenspread_scale_in_worst_skew",
        "Largest skew that a scale-in can leave, for workloads with scaleIn report or guard.",
        labels=_OF_A_WORKLOAD,
    )
    skews = (((key.namespace, key.kind, key.name), states[key].worst_skew) for key in sorted(states))
    yield _filled(worst, _take_in_turns(skews, _MOST_SKEWS))
    yield GaugeMetricFamily(
        "evenspread_scale_in_guarded",
        "Workloads whose pods have deletion costs of evenspread.",
        value=guards[GuardState.GUARDED],
    )
    yield GaugeMetricFamily(
        "evenspread_scale_in_stopped",
        "Workloads that the guard leaves alone, because another program writes their deletion costs.",
        value=guards[GuardState.STOPPED],
    )
    yield _outcomes(
        "evenspread_scale_in_writes",
        "Deletion costs by outcome: written, removed, postponed (too many a minute), conflict, refused, failed.",
        guard.writes,
    )


def _take_in_turns(rows: Iterable[tuple[_Labels, _Value]], most: int) -> list[tuple[_Labels, _Value]]:
    """Select ``most`` rows in turns: the first of each namespace, then the second of each.

    So a namespace with many rows does not displace another namespace, or its alert. The first label is the namespace.
    """
    seen, turns = Counter[str](), list[tuple[int, tuple[_Labels, _Value]]]()
    for row in rows:
        seen[row[0][0]] += 1
        turns.append((seen[row[0][0]], row))
    return [row for _, row in sorted(turns, key=itemgetter(0))[:most]]


def _result_metrics(scan: ClusterScan) -> Iterator[Metric]:
    yield GaugeMetricFamily("evenspread_scan_workloads", "Workloads in the last scan.", value=len(scan.workloads))
    yield GaugeMetricFamily(
        "evenspread_would_deny",
        "Workloads that admission would deny under the ceiling deny.",
        value=sum(bool(workload.would_deny) for workload in scan.workloads),
    )
    yield GaugeMetricFamily(
        "evenspread_lacking_defaults_pods",
        "Running pods without constraints, if the workload's next pod would get defaults.",
        value=sum(workload.lacking for workload in scan.workloads),
    )
    pending = GaugeMetricFamily("evenspread_pending_pods", "Pods without a node, by cause.", labels=["cause"])
    yield _filled(pending, (((str(cause),), scan.pending.get(cause, 0)) for cause in PendingCause))
    waiting = GaugeMetricFamily(
        "evenspread_spread_pending_pods",
        "Pods Pending only because of their spread constraints, for at most 100 workloads: the worst of each namespace,"
        " then the second worst of each, and so on.",
        labels=_OF_A_WORKLOAD,
    )
    pods = [
        ((workload.namespace, workload.kind, workload.name), count)
        for workload in scan.workloads
        if (count := workload.pending.get(PendingCause.SPREAD, 0))
    ]
    worst_first = sorted(pods, key=itemgetter(1), reverse=True)
    yield _filled(waiting, _take_in_turns(worst_first, _MOST_WAITING))
    losses = GaugeMetricFamily(
        "evenspread_zone_loss_pending_pods",
        "Minimum of Pending pods if all nodes of the zone are unreachable, including pods Pending now.",
        labels=["topology_value"],
    )
    fewest = (((zone.zone,), zone.unreachable.fewest) for zone in scan.zones)
    yield _filled(losses, ((labels, pods) for labels, pods in fewest if pods is not None))


def _skew_metrics(workloads: Iterable[ScannedWorkload], *, every: bool) -> Iterator[Metric]:
    skew = GaugeMetricFamily(
        "evenspread_skew",
        "Skew of workloads above their limit: pods of the fullest domain minus pods of the emptiest domain. Counts all "
        "pods that the selector matches.",
        labels=_OF_A_SKEW,
    )
    limit = GaugeMetricFamily("evenspread_max_skew", "maxSkew of the constraint.", labels=_OF_A_SKEW)
    worst: dict[tuple[str, ...], ActualSkew] = {}
    for workload in workloads:
        for row in workload.skews:
            if row.skew is None or not (every or row.above):
                continue
            named = (workload.namespace, workload.kind, workload.name)
            labels: tuple[str, ...] = (*named, row.topology_key, row.when_unsatisfiable)
            # A workload may have several constraints with a key, from selectors or templates.
            if labels not in worst or row.skew - row.max_skew > (worst[labels].skew or 0) - worst[labels].max_skew:
                worst[labels] = row
    for labels, row in _take_in_turns(worst.items(), _MOST_SKEWS):
        skew.add_metric(labels, row.skew or 0)
        limit.add_metric(labels, row.max_skew)
    yield skew
    yield limit
