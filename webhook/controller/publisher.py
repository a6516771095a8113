"""Publish the results of scans: reports at once, totals and events at the end of a full scan or an update."""

import logging
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

from webhook.controller.events import EventWriter
from webhook.controller.reports import ReportWriter
from webhook.controller.workload_lister import ObjectName, UnreadNames, is_among
from webhook.core.scan.scanned import ScannedWorkload
from webhook.core.workloads.kinds import group_kind
from webhook.logs import exception_fields
from webhook.report.scanned import notices, report_content

Results = Mapping[ObjectName, ScannedWorkload]

_log = logging.getLogger(__name__)


def results_by_name(scans: Iterable[ScannedWorkload]) -> Results:
    """Return the results by the names of their workloads."""
    return {_name(scanned): scanned for scanned in scans}


class Publisher:
    """Writes results. For a single thread.

    Attributes:
        fresh: Whether there are results without events.
        waiting: Whether pods are Pending because of spread. Their event becomes due after some time without a change.
    """

    def __init__(self, reports: ReportWriter | None, events: EventWriter | None, clock: Callable[[], float]) -> None:
        self._reports = reports
        self._events = events
        self._clock = clock
        self._fresh: set[ObjectName] = set()
        self._waiting: set[ObjectName] = set()

    @property
    def fresh(self) -> bool:
        return bool(self._fresh)

    @property
    def waiting(self) -> bool:
        return bool(self._waiting)

    def forget(self) -> None:
        """Forget which results have no events yet."""
        self._fresh, self._waiting = set(), set()

    def begin(self) -> None:
        """Start a full scan: read the existing reports."""
        if self._reports is not None:
            self._reports.begin()

    def take(self, scanned: ScannedWorkload, *, update: bool) -> None:
        """Write the report of a workload, in a full scan or in an update."""
        for failure in scanned.failures:
            fields = {"part": failure.part, "workload": scanned.title, **exception_fields(failure.error)}
            _log.error("a bug stopped a part of the scan; the other parts are complete", extra={"fields": fields})
        self._fresh.add(_name(scanned))
        if self._reports is not None:
            content = report_content(scanned)
            self._reports.update(_name(scanned), content) if update else self._reports.take(content)

    def end(self, results: Results, unread: UnreadNames) -> None:
        """End a full scan: delete reports without a result, and write the events of all results."""
        if self._reports is not None:
            self._reports.end(unread)
        self._write_events(results, results.values(), unread)

    def update(self, results: Results, gone: Iterable[ObjectName], unread: UnreadNames, *, every: bool) -> None:
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

    def _write_events(self, results: Results, told: Iterable[ScannedWorkload], unread: UnreadNames) -> None:
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
