"""Write an event when a workload's fault begins, and none while the fault lasts.

The leader keeps the written events in memory. After a change of leaders, the first scan finds the same faults again.
Events about these faults have the same names, so the API server rejects duplicates. A recurring fault increments the
count of its existing event.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from webhook.cluster.connection import ApiServer
from webhook.cluster.errors import ClusterError, RefusedError
from webhook.cluster.writing.events import count_again, create_event
from webhook.cluster.writing.reports import is_of_one_object
from webhook.controller.bounds import Allowance
from webhook.controller.workload_lister import ObjectName, UnreadNames, in_both, is_among
from webhook.core.api.times import micro_time
from webhook.core.workloads.kinds import GroupKind
from webhook.logs import log_change
from webhook.report.scanned import Notice, event

_FAILURES = 4  # in a row; then the writer stops until the next scan
_MOST_COUNTED = 10_000  # remembered recurrences; a forgotten event starts counting anew

_log = logging.getLogger(__name__)

_At = tuple[str, str]  # uid, reason


class _EventRecord(NamedTuple):
    """The faults in the last written event, and the workload with these faults."""

    keys: frozenset[str]
    workload: ObjectName


class EventWriter:
    """Writes the events of a scan: call `begin`, `take` for each workload, then `end`.

    Not thread-safe.

    Attributes:
        fault: The reason for missing events in the last scan. Empty if all were written.
        outcomes: The number of events by reason and outcome. The outcomes are: told (written), known (already written
            by an earlier leader), postponed (rate limit), refused (the API server refuses events of this object or
            namespace), failed.
    """

    def __init__(
        self, server: ApiServer, allowance: Allowance, instance: str, *, may_write: Callable[[], bool]
    ) -> None:
        self._server = server
        self._allowance = allowance
        self._instance = instance
        self._may_write = may_write
        self.forget()
        self._failures = 0
        self.fault = ""
        self.outcomes: Counter[tuple[str, str]] = Counter()

    def forget(self) -> None:
        """Clear the record of written events. Called when leadership may have been with another replica."""
        self._before: dict[_At, _EventRecord] = {}
        self._now: dict[_At, _EventRecord] = {}
        self._ended = False  # whether a scan has ended
        self._never_read: set[GroupKind | ObjectName] = set()  # kinds and objects without a successful read in any scan
        self._tried: dict[_At, ObjectName] = {}  # failed writes; an event may exist anyway
        self._due: set[_At] = set()
        self._times: Counter[_At] = Counter()

    def begin(self) -> None:
        """Start a scan. If the last scan did not end, keep the events written by it."""
        self._before, self._now, self._failures = {**self._before, **self._now}, {}, 0

    def take(self, workload: ObjectName, due: Iterable[Notice], now: datetime) -> None:
        """Write the new events of a workload."""
        for notice in due:
            at = (notice.regarding["uid"], notice.reason)
            self._due.add(at)
            written = self._before.get(at)
            if (written and notice.keys <= written.keys) or self._write(at, workload, notice, now):
                self._now[at] = _EventRecord(notice.keys, workload)
            elif written:
                self._now[at] = written

    def end(self, unread: UnreadNames = ()) -> None:
        """End a scan, and forget the faults of earlier scans not found again.

        Faults of ``unread`` kinds and objects are kept.
        """
        kept = {at: event for at, event in self._before.items() if is_among(unread, event.workload)}
        self._before, self._now = {**kept, **self._now}, {}
        self._tried = {
            at: workload
            for at, workload in self._tried.items()
            if at not in self._before and (at in self._due or is_among(unread, workload))
        }
        self._never_read = in_both(self._never_read, unread) if self._ended else {*unread}
        self._ended, self._due = True, set()
        self._allowance.forget_idle()
        if self._failures < _FAILURES:
            self.fault = ""

    def _write(self, at: _At, workload: ObjectName, notice: Notice, now: datetime) -> bool:
        """Write an event. Returns False if a limit, a refusal or a failure prevents it."""
        if self._failures >= _FAILURES or not self._may_write():
            return False
        if not self._allowance.take(notice.regarding["namespace"]):
            self.outcomes[notice.reason, "postponed"] += 1
            return False
        try:
            new = self._create_or_count(at, workload, event(notice, now, self._instance), now)
        except ClusterError as error:
            self._tried[at] = workload
            refused = isinstance(error, RefusedError) and is_of_one_object(error)
            self.outcomes[notice.reason, "refused" if refused else "failed"] += 1
            if not refused:
                self._failed(error)
            return False
        self._failures = 0
        self.outcomes[notice.reason, "told" if new else "known"] += 1
        return True

    def _create_or_count(self, at: _At, workload: ObjectName, document: Mapping[str, Any], now: datetime) -> bool:
        """Create the event. If the event exists and the fault recurred, increment the event's count.

        Returns False if the event already exists for the same fault. An earlier leader created it, or a write whose
        response was lost. Raises ClusterError.
        """
        if create_event(self._server, document):
            return True
        # A former leader may have written this event. A failed write may have arrived anyway.
        if not self._ended or is_among(self._never_read, workload) or at in self._tried:
            return False
        self._times[at] += 1
        if len(self._times) > _MOST_COUNTED:
            del self._times[next(iter(self._times))]  # the oldest recurrence
        count_again(self._server, document, self._times[at] + 1, micro_time(now))
        return True

    def _failed(self, error: ClusterError) -> None:
        self._failures += 1
        if self._failures == _FAILURES:
            self.fault = log_change(_log, "%s", f"events cannot be written: {error}", self.fault)
