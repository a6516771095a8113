"""Events of what the scan has seen: one when something begins to be wrong, none while it stays so.

What was told is remembered while this replica leads. What the first scan finds may have been told by the leader before
it: such an event has the same name, and the API server refuses the second. Something that ended and begins again is
told by the same event, which then counts.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from webhook.cluster.connection import ApiServer, ClusterError, RefusedError
from webhook.cluster.writing.events import tell, tell_again
from webhook.cluster.writing.reports import is_of_one_object
from webhook.controller.allowance import Allowance
from webhook.logs import bounded
from webhook.report.scanned import Notice, event, micro_time

_FAILURES = 4  # in a row; then nothing more is told until the next scan
_OUTCOMES = ("told", "known", "postponed", "failed")

_log = logging.getLogger(__name__)

_Of = tuple[str, str]  # uid, reason
_Told = dict[_Of, frozenset[str]]  # what was wrong when it was told last


class Events:
    """See the module; for one thread.

    Shape: ``fault`` says why not all could be told in the last scan; ``outcomes`` counts by reason and what became of
    each: told, known (by the leader before), postponed (too many a minute), failed.
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
        self._before: _Told = {}
        self._now: _Told = {}
        self._settled = False  # after a scan that saw everything
        self._tried: set[_Of] = set()  # what could not be told, as far as we know
        self._times: Counter[_Of] = Counter()

    def begin(self) -> None:
        """A scan begins."""
        self._now, self._failures = {}, 0

    def take(self, due: Iterable[Notice], now: datetime) -> None:
        """Tell what is new in these."""
        for notice in due:
            at = (notice.regarding["uid"], notice.reason)
            told = self._before.get(at, frozenset())
            if notice.keys <= told or self._tell(at, notice, now):
                self._now[at] = notice.keys
            elif told:
                self._now[at] = told

    def end(self, *, complete: bool) -> None:
        """The scan has ended; of workloads that an incomplete one did not see, what was told stays told."""
        if not complete:
            self._now = {**self._before, **self._now}
        self._before, self._settled = self._now, self._settled or complete
        self._tried -= self._now.keys()
        self._allowance.forget_idle()
        if self._failures < _FAILURES:
            self.fault = ""

    def _tell(self, at: _Of, notice: Notice, now: datetime) -> bool:
        """Whether it is told now."""
        if self._failures >= _FAILURES or not self._may_write():
            return False
        if not self._allowance.take(notice.regarding["namespace"]):
            self.outcomes[notice.reason, "postponed"] += 1
            return False
        try:
            new = self._told(at, event(notice, now, self._instance), now)
        except ClusterError as error:
            self.outcomes[notice.reason, "failed"] += 1
            self._tried.add(at)
            self._failed(error)
            return False
        self._failures = 0
        self.outcomes[notice.reason, "told" if new else "known"] += 1
        return True

    def _told(self, at: _Of, said: Mapping[str, Any], now: datetime) -> bool:
        """Whether it was not known before.

        Errors: ClusterError.
        """
        if tell(self._server, said):
            return True
        # What stands when this replica begins may have been told, and what failed may have arrived all the same.
        if not self._settled or at in self._tried:
            return False
        self._times[at] += 1
        tell_again(self._server, said, self._times[at] + 1, micro_time(now))
        return True

    def _failed(self, error: ClusterError) -> None:
        if isinstance(error, RefusedError) and is_of_one_object(error):
            return
        self._failures += 1
        if self._failures == _FAILURES:
            told = bounded(f"events cannot be told: {error}")
            if told != self.fault:
                _log.warning("%s", told)
            self.fault = told
