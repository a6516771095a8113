"""Metrics of the scan: what the last one found, what it took, and what was written.

Series are bounded: zones are at most twelve, and of workloads only the worst are shown one by one.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import TypeVar

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from webhook.controller.groups import GroupReconciler
from webhook.controller.scan import FinishedScan, Scanner
from webhook.core.api.spread_group import CONDITIONS
from webhook.core.scan.scanned import ActualSkew, ClusterScan, PendingCause, ScannedWorkload
from webhook.metrics import ClusterFigures
from webhook.report.documents import ReportApi
from webhook.report.scanned import is_broken

# Of constraints, two series each; beyond that the reports have them.
_MOST_WAITING = 100
_MOST_SKEWS = 1000
_MOST_CAPS = 1000
_Value = TypeVar("_Value")
_Labels = tuple[str, ...]
_OF_A_SKEW = ("namespace", "kind", "name", "topology_key", "when_unsatisfiable")


class ScanFigures(Collector):
    """See the module; asked at each scrape."""

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner

    def collect(self) -> Iterator[Metric]:
        """The present figures; those of the cluster only where this replica leads."""
        scanner = self._scanner
        yield CounterMetricFamily("evenspread_scan_cpu_seconds", "Processor time of scans.", value=scanner.used)
        yield from self._written()
        if scanner.feed is not None:
            yield from ClusterFigures(scanner.feed.watch_states).collect()
        yield from _of_groups(scanner.groups)
        latest = scanner.latest
        if latest is not None:
            yield from _taken(latest)
            yield from _found(latest.scan)
            yield from _skews(latest.scan.workloads, every=scanner.settings.all_workloads)

    def _written(self) -> Iterator[Metric]:
        reports, events = self._scanner.reports, self._scanner.events
        if reports is not None:
            api = GaugeMetricFamily("evenspread_report_api", "1 for the API of the reports.", labels=["api"])
            for each in ReportApi:
                api.add_metric([str(each)], reports.api is each)
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
            told = CounterMetricFamily(
                "evenspread_scan_events",
                "Events by outcome: told (written), known (written before), postponed (too many a minute), refused (as "
                "reports), failed.",
                labels=["reason", "outcome"],
            )
            for (reason, outcome), count in list(events.outcomes.items()):
                told.add_metric([reason, outcome], count)
            yield told


def _of_groups(groups: GroupReconciler) -> Iterator[Metric]:
    """Series are as many as conditions, and one for each of so many caps that are broken; none without a group."""
    found = [*groups.found.values()]
    if not found:
        return
    conditions = GaugeMetricFamily(
        "evenspread_groups", "SpreadGroups by condition and its status.", labels=["condition", "status"]
    )
    counted = Counter((each.type, each.status) for of in found for each in of.status.conditions)
    for of in sorted(CONDITIONS):
        for status in ("True", "False", "Unknown"):
            conditions.add_metric([of, status], counted[of, status])
    yield conditions
    above = GaugeMetricFamily(
        "evenspread_group_cap_exceeded_pods",
        "Pods above a broken cap of a SpreadGroup, in the fullest domain.",
        labels=["namespace", "name", "topology_key"],
    )
    broken: dict[tuple[str, str, str], int] = {}
    for each in found:
        for spread in each.status.distribution:
            if is_broken(spread):
                labels = (each.group.meta.namespace, each.group.meta.name, spread.topology_key)
                broken[labels] = max(broken.get(labels, 0), max(spread.domains.values()) - spread.cap)
    for of_cap, pods in _of_each_namespace(broken.items(), _MOST_CAPS):
        above.add_metric(of_cap, pods)
    yield above
    yield GaugeMetricFamily(
        "evenspread_group_unguarded_pods",
        "Pods of SpreadGroups that lack fields of the plan.",
        value=sum(each.status.unguarded.count for each in found),
    )
    writes = CounterMetricFamily(
        "evenspread_group_status_writes",
        "Statuses of SpreadGroups by outcome: written, postponed, refused, failed, as reports.",
        labels=["outcome"],
    )
    for outcome, count in list(groups.writes.items()):
        writes.add_metric([outcome], count)
    yield writes


def _of_each_namespace(rows: Iterable[tuple[_Labels, _Value]], most: int) -> list[tuple[_Labels, _Value]]:
    """So many rows: the first of each namespace, then the second of each.

    A namespace that has many takes no other's place, and its alert. The namespace is the first of the labels.
    """
    seen, turns = Counter[str](), list[tuple[int, tuple[_Labels, _Value]]]()
    for row in rows:
        seen[row[0][0]] += 1
        turns.append((seen[row[0][0]], row))
    return [row for _, row in sorted(turns, key=itemgetter(0))[:most]]


def _taken(latest: FinishedScan) -> Iterator[Metric]:
    yield GaugeMetricFamily("evenspread_scan_duration_seconds", "Duration of the last scan.", value=latest.seconds)
    yield GaugeMetricFamily(
        "evenspread_scan_last_success_timestamp_seconds", "End of the last scan.", value=latest.ended
    )


def _found(scan: ClusterScan) -> Iterator[Metric]:
    yield GaugeMetricFamily("evenspread_scan_workloads", "Workloads in the last scan.", value=len(scan.workloads))
    yield GaugeMetricFamily(
        "evenspread_would_deny",
        "Workloads that admission would deny under the ceiling deny.",
        value=sum(bool(each.would_deny) for each in scan.workloads),
    )
    yield GaugeMetricFamily(
        "evenspread_lacking_defaults_pods",
        "Running pods without a constraint whose workload's next pod would get defaults.",
        value=sum(each.lacking for each in scan.workloads),
    )
    pending = GaugeMetricFamily("evenspread_pending_pods", "Pods without a node, by cause.", labels=["cause"])
    for cause in PendingCause:
        pending.add_metric([str(cause)], scan.pending.get(cause, 0))
    yield pending
    waiting = GaugeMetricFamily(
        "evenspread_spread_pending_pods",
        "Pods Pending only because of their spread constraints, for 100 workloads, the worst of each namespace first.",
        labels=["namespace", "kind", "name"],
    )
    worst = sorted(scan.workloads, key=lambda each: -each.pending.get(PendingCause.SPREAD, 0))
    pods = (((each.namespace, each.kind, each.name), each.pending.get(PendingCause.SPREAD, 0)) for each in worst)
    for labels, count in _of_each_namespace((each for each in pods if each[1]), _MOST_WAITING):
        waiting.add_metric(labels, count)
    yield waiting
    losses = GaugeMetricFamily(
        "evenspread_zone_loss_pending_pods",
        "Minimum of Pending pods if all nodes of the zone are unreachable, pods Pending already included.",
        labels=["topology_value"],
    )
    for zone in scan.zones:
        if zone.unreachable.fewest is not None:
            losses.add_metric([zone.zone], zone.unreachable.fewest)
    yield losses


def _skews(workloads: Iterable[ScannedWorkload], *, every: bool) -> Iterator[Metric]:
    skew = GaugeMetricFamily(
        "evenspread_skew",
        "Difference in counted pods (all that the selector matches) between the fullest and the emptiest domain, of "
        "workloads above their limit.",
        labels=_OF_A_SKEW,
    )
    limit = GaugeMetricFamily("evenspread_max_skew", "The limit of evenspread_skew.", labels=_OF_A_SKEW)
    worst: dict[tuple[str, ...], ActualSkew] = {}
    for workload in workloads:
        for each in workload.skews:
            if each.skew is None or not (every or each.above):
                continue
            named = (workload.namespace, workload.kind, workload.name)
            labels: tuple[str, ...] = (*named, each.topology_key, each.when_unsatisfiable)
            # A workload may have several of one key, by selectors or templates.
            if labels not in worst or each.skew - each.max_skew > (worst[labels].skew or 0) - worst[labels].max_skew:
                worst[labels] = each
    for labels, each in _of_each_namespace(worst.items(), _MOST_SKEWS):
        skew.add_metric(labels, each.skew or 0)
        limit.add_metric(labels, each.max_skew)
    yield skew
    yield limit
