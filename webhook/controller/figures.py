"""Metrics of the scan: results, cost and writes.

The number of time series is limited. At most twelve zones, and only the worst workloads, have their own series.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
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
            for api_version in ReportApi:
                api.add_metric([str(api_version)], reports.api is api_version)
            yield api
            writes = CounterMetricFamily(
                "evenspread_report_writes",
                "Reports by outcome: written, removed, postponed (too many a minute), refused (by a quota or policy of "
                "the namespace, or because it is terminating), failed.",
                labels=["outcome"],
            )
            for outcome, count in list(reports.writes.items()):
                writes.add_metric([outcome], count)
            yield writes
        if events is not None:
            events_written = CounterMetricFamily(
                "evenspread_scan_events",
                "Events by outcome: told (written), known (written by an earlier leader), postponed (too many a "
                "minute), refused (by the API server), failed.",
                labels=["reason", "outcome"],
            )
            for (reason, outcome), count in list(events.outcomes.items()):
                events_written.add_metric([reason, outcome], count)
            yield events_written


def _group_metrics(groups: GroupReconciler) -> Iterator[Metric]:
    """Yield conditions and broken caps, if there are groups. Broken caps are limited to `_MOST_CAPS` series."""
    known_groups = [*groups.found.values()]
    if not known_groups:
        return
    conditions = GaugeMetricFamily(
        "evenspread_groups", "SpreadGroups by condition and its status.", labels=["condition", "status"]
    )
    counted = Counter((row.type, row.status) for group in known_groups for row in group.status.conditions)
    for condition in sorted(CONDITIONS):
        for status in ("True", "False", "Unknown"):
            conditions.add_metric([condition, status], counted[condition, status])
    yield conditions
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
    for of_cap, pods in _take_in_turns(broken.items(), _MOST_CAPS):
        above.add_metric(of_cap, pods)
    yield above
    yield GaugeMetricFamily(
        "evenspread_group_unguarded_pods",
        "Pods of SpreadGroups that lack fields of the plan.",
        value=sum(group.status.unguarded.count for group in known_groups),
    )
    writes = CounterMetricFamily(
        "evenspread_group_status_writes",
        "Status writes of SpreadGroups by outcome: written, postponed, refused, failed.",
        labels=["outcome"],
    )
    for outcome, count in list(groups.writes.items()):
        writes.add_metric([outcome], count)
    yield writes


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
    for labels, skew in _take_in_turns(skews, _MOST_SKEWS):
        worst.add_metric(labels, skew)
    yield worst
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
    writes = CounterMetricFamily(
        "evenspread_scale_in_writes",
        "Deletion costs by outcome: written, removed, postponed (too many a minute), conflict, refused, failed.",
        labels=["outcome"],
    )
    for outcome, count in list(guard.writes.items()):
        writes.add_metric([outcome], count)
    yield writes


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
    for cause in PendingCause:
        pending.add_metric([str(cause)], scan.pending.get(cause, 0))
    yield pending
    waiting = GaugeMetricFamily(
        "evenspread_spread_pending_pods",
        "Pods Pending only because of their spread constraints, for at most 100 workloads: the worst of each namespace,"
        " then the second worst of each, and so on.",
        labels=["namespace", "kind", "name"],
    )
    worst = sorted(scan.workloads, key=lambda workload: -workload.pending.get(PendingCause.SPREAD, 0))
    pods = (
        ((workload.namespace, workload.kind, workload.name), workload.pending.get(PendingCause.SPREAD, 0))
        for workload in worst
    )
    for labels, count in _take_in_turns((workload for workload in pods if workload[1]), _MOST_WAITING):
        waiting.add_metric(labels, count)
    yield waiting
    losses = GaugeMetricFamily(
        "evenspread_zone_loss_pending_pods",
        "Minimum of Pending pods if all nodes of the zone are unreachable, including pods Pending now.",
        labels=["topology_value"],
    )
    for zone in scan.zones:
        if zone.unreachable.fewest is not None:
            losses.add_metric([zone.zone], zone.unreachable.fewest)
    yield losses


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
