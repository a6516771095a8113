"""Events of what the scan has seen: one when something begins to be wrong, none while it stays so.

What was told is remembered while this replica leads. What the first scan finds may have been told by the leader before
it: such an event has the same name, and the API server refuses the second. Something that ended and begins again is
told by the same event, which then counts.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from webhook.cluster.connection import ApiServer, ClusterError, RefusedError
from webhook.cluster.writing.events import count_again, create_event
from webhook.cluster.writing.reports import is_of_one_object
from webhook.controller.bounds import Allowance
from webhook.controller.workload_lister import ObjectName, UnreadNames, in_both, is_among
from webhook.core.workloads.kinds import GroupKind
from webhook.logs import bounded
from webhook.report.scanned import Notice, event, micro_time

_FAILURES = 4  # in a row; then nothing more is told until the next scan
_MOST_COUNTED = 10_000  # recurrences; whoever comes again after being forgotten counts anew

_log = logging.getLogger(__name__)

_At = tuple[str, str]  # uid, reason


class _Told(NamedTuple):
    """What was wrong when it was told last, and where it was seen."""

    keys: frozenset[str]
    of: ObjectName


class EventWriter:
    """See the module; for one thread.

    Shape: ``fault`` says why not all could be told in the last scan; ``outcomes`` counts by reason and what became of
    each: told, known (by the leader before), postponed (too many a minute), refused (that one, or its
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
        """Begin anew: another replica may have led meanwhile."""
        self._before: dict[_At, _Told] = {}
        self._now: dict[_At, _Told] = {}
        self._ended = False  # whether a scan has
        self._never_read: set[GroupKind | ObjectName] = set()  # in all scans that have ended
        self._tried: dict[_At, ObjectName] = {}  # what could not be told, as far as we know
        self._due: set[_At] = set()
        self._times: Counter[_At] = Counter()

    def begin(self) -> None:
        """A scan begins; what one told that did not end is told."""
        self._before, self._now, self._failures = {**self._before, **self._now}, {}, 0

    def take(self, of: ObjectName, due: Iterable[Notice], now: datetime) -> None:
        """Tell what is new in these."""
        for notice in due:
            at = (notice.regarding["uid"], notice.reason)
            self._due.add(at)
            told = self._before.get(at)
            if (told and notice.keys <= told.keys) or self._tell(at, of, notice, now):
                self._now[at] = _Told(notice.keys, of)
            elif told:
                self._now[at] = told

    def end(self, unread: UnreadNames = ()) -> None:
        """The scan has ended; of kinds and objects that could not be read, what was told stays told."""
        kept = {at: told for at, told in self._before.items() if is_among(unread, told.of)}
        self._before, self._now = {**kept, **self._now}, {}
        self._tried = {
            at: of
            for at, of in self._tried.items()
            if at not in self._before and (at in self._due or is_among(unread, of))
        }
        self._never_read = in_both(self._never_read, unread) if self._ended else {*unread}
        self._ended, self._due = True, set()
        self._allowance.forget_idle()
        if self._failures < _FAILURES:
            self.fault = ""

    def _tell(self, at: _At, of: ObjectName, notice: Notice, now: datetime) -> bool:
        """Whether it is told now."""
        if self._failures >= _FAILURES or not self._may_write():
            return False
        if not self._allowance.take(notice.regarding["namespace"]):
            self.outcomes[notice.reason, "postponed"] += 1
            return False
        try:
            new = self._told(at, of, event(notice, now, self._instance), now)
        except ClusterError as error:
            self._tried[at] = of
            refused = isinstance(error, RefusedError) and is_of_one_object(error)
            self.outcomes[notice.reason, "refused" if refused else "failed"] += 1
            if not refused:
                self._failed(error)
            return False
        self._failures = 0
        self.outcomes[notice.reason, "told" if new else "known"] += 1
        return True

    def _told(self, at: _At, of: ObjectName, said: Mapping[str, Any], now: datetime) -> bool:
        """Whether it was not known before.

        Errors: ClusterError.
        """
        if create_event(self._server, said):
            return True
        # What stands when this replica begins may have been told, and what failed may have arrived all the same.
        if not self._ended or is_among(self._never_read, of) or at in self._tried:
            return False
        self._times[at] += 1
        if len(self._times) > _MOST_COUNTED:
            del self._times[next(iter(self._times))]  # the one that began first
        count_again(self._server, said, self._times[at] + 1, micro_time(now))
        return True

    def _failed(self, error: ClusterError) -> None:
        self._failures += 1
        if self._failures == _FAILURES:
            told = bounded(f"events cannot be told: {error}")
            if told != self.fault:
                _log.warning("%s", told)
            self.fault = told
