"""Publish the results of scans: reports at once, totals and events at the end of a full scan or an update."""

import logging
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from webhook.cluster.feed import Feed
from webhook.controller.events import EventWriter
from webhook.controller.guard import ScaleInGuard
from webhook.controller.reports import ReportWriter
from webhook.controller.scan_inputs import current_context
from webhook.controller.updates import Updates
from webhook.controller.workload_lister import ObjectName, UnreadNames, is_among
from webhook.core.api.times import api_time
from webhook.core.policy.policy import Policy
from webhook.core.scan.cluster_scan import cluster_scan
from webhook.core.scan.scan_context import key_of
from webhook.core.scan.scan_results import ClusterScan, ScannedWorkload
from webhook.core.workloads.kinds import group_kind
from webhook.logs import exception_fields
from webhook.report.scanned import notices, report_content

_Results = Mapping[ObjectName, ScannedWorkload]

_log = logging.getLogger(__name__)


class FinishedScan(Struct, frozen=True, kw_only=True):
    """The current results, and the cost of the last full scan.

    Attributes:
        ended: When the results were last brought up to date, in seconds since 1970.
        seconds: Wall-clock time of the full scan, in seconds.
        used: CPU time of the full scan, in seconds.
    """

    ended: float
    seconds: float
    used: float
    scan: ClusterScan = ClusterScan()


class Publisher:
    """Writes the reports and events of scan results. Not thread-safe."""

    def __init__(
        self, reports: ReportWriter | None, events: EventWriter | None, guard: ScaleInGuard, clock: Callable[[], float]
    ) -> None:
        self._reports = reports
        self._events = events
        self._guard = guard
        self._clock = clock
        self.forget()

    def forget(self) -> None:
        """Clear the set of workloads with scan results but without written events."""
        self._fresh: set[ObjectName] = set()  # workloads with results without events
        # Workloads with pods Pending because of spread. Their event becomes due after some time without a change.
        self._waiting: set[ObjectName] = set()

    def begin(self) -> None:
        """Start a full scan: read the existing reports."""
        if self._reports is not None:
            self._reports.begin()

    def take(self, scanned: ScannedWorkload, *, update: bool) -> None:
        """Log the failures of a workload's scan, and pass on its report to the writer.

        ``update`` is False in a full scan.
        """
        for failure in scanned.failures:
            fields = {"part": failure.part, "workload": scanned.title, **exception_fields(failure.error)}
            _log.error("a bug stopped a part of the scan; the other parts are complete", extra={"fields": fields})
        self._fresh.add(_name(scanned))
        if self._reports is not None:
            content = report_content(self._with_guard(scanned))
            self._reports.update(_name(scanned), content) if update else self._reports.take(content)

    def publish(  # noqa: PLR0913 the last two by keyword
        self,
        cost: FinishedScan,
        updates: Updates,
        policy: Policy,
        feed: Feed,
        *,
        full: bool = False,
        every: bool = False,
    ) -> FinishedScan:
        """Write the events of new results, and delete reports without a workload. Return the current results.

        Args:
            cost: The cost of the last full scan, and the time of the results.
            updates: The scanned workloads.
            policy: The policy of the scan.
            feed: The copy of the cluster.
            full: Whether a full scan ends.
            every: Whether to retry failed reports, and to write the events of all results.
        """
        ended = api_time(cost.ended)
        if not (full or every or self._fresh or self._waiting or updates.gone or updates.moved):
            return replace(cost, scan=replace(cost.scan, ended=ended))
        within = current_context(policy, feed, self._clock())
        with feed.lock:
            results = {_name(scanned): self._with_guard(scanned) for scanned in updates.known.scans()}
            scan = cluster_scan(results.values(), within, started=api_time(cost.ended - cost.seconds), ended=ended)
            updates.moved = False
        unread = set() if updates.lister is None else updates.lister.unread
        if full:
            if self._reports is not None:
                self._reports.end(unread)
            self._write_events(results, results.values(), unread)
        else:
            self._update(results, updates.gone, unread, every=every)
        updates.gone.clear()
        return replace(cost, scan=scan)

    def _with_guard(self, scanned: ScannedWorkload) -> ScannedWorkload:
        """Return the results with the state of the scale-in guard."""
        if scanned.scale_in is None:
            return scanned
        key = key_of(scanned.namespace, scanned.api_version, scanned.kind, scanned.name)
        return replace(scanned, scale_in=self._guard.states.get(key))

    def _update(self, results: _Results, gone: Iterable[ObjectName], unread: UnreadNames, *, every: bool) -> None:
        """End an update: delete the reports of the workloads in ``gone``, and write the events of new results.

        With ``every``, also retry failed reports, and write the events of all results.
        """
        told = results.keys() if every else results.keys() & (self._fresh | self._waiting)
        if self._reports is not None:
            for name in gone:
                if not is_among(unread, name):
                    self._reports.update(name, None)
            if every and self._reports.behind:
                self._reports.begin()
                for scanned in results.values():
                    self._reports.take(report_content(scanned))
                self._reports.end(unread)
        self._write_events(results, [results[name] for name in told], {*unread, *(results.keys() - told)})

    def _write_events(self, results: _Results, told: Iterable[ScannedWorkload], unread: UnreadNames) -> None:
        if self._events is not None:
            now = datetime.fromtimestamp(self._clock(), UTC)
            self._events.begin()
            for scanned in told:
                self._events.take(_name(scanned), notices(scanned, now), now)
            self._events.end(unread)
        self._fresh = set()
        self._waiting = {name for name, scanned in results.items() if scanned.oldest_for_spread is not None}


def _name(scanned: ScannedWorkload) -> ObjectName:
    return group_kind(scanned.api_version, scanned.kind), scanned.namespace, scanned.name
