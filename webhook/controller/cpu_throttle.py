"""A share of one core: a worker rests in proportion to the processor time it used."""

import threading
import time
from collections.abc import Callable

_LEAST_REST_SECONDS = 0.01  # shorter ones are put together: waking up costs, too
_LONGEST_REST_SECONDS = 5.0  # what is left of longer ones is rested later


class Share:
    """Count the processor time of a worker and make it rest. Call `rest` first in each new thread: it starts its clock.

    Args:
        share: The part of a core that the worker may use, above 0 and at most 1.
        pause: Wait for a number of seconds.
        clock: Processor time of the calling thread, in seconds. Each thread has a clock of its own, so readings of
            two threads are never subtracted.
    """

    def __init__(
        self,
        share: float,
        pause: Callable[[float], object],
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self._rest = 1 / share - 1
        self._pause = pause
        self._clock = clock
        self._last = threading.local()  # the last reading of this thread's clock
        self._last.reading = clock()
        self._owed = 0.0
        self.used = 0.0  # processor time so far, in seconds

    def rest(self) -> None:
        """Wait for as long as the time used since this thread's last call requires."""
        now = self._clock()
        used = now - getattr(self._last, "reading", now)
        self.used += used
        self._owed += used * self._rest
        if self._owed >= _LEAST_REST_SECONDS:
            rest = min(self._owed, _LONGEST_REST_SECONDS)
            self._pause(rest)
            self._owed -= rest
        self._last.reading = self._clock()
