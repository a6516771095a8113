"""A share of one core: whoever works is made to rest in proportion to the processor's time that it took."""

import time
from collections.abc import Callable

_LEAST_REST_SECONDS = 0.01  # shorter ones are put together: waking up costs, too
_LONGEST_REST_SECONDS = 5.0  # what is left of longer ones is rested later


class Share:
    """See the module; for one thread.

    Shape: ``share`` is above 0 and at most 1. ``used`` is the processor's time so far; ``pause`` waits.
    Unit: seconds.
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
        self._since = clock()
        self._owed = 0.0
        self.used = 0.0

    def rest(self) -> None:
        """Wait as long as what was used since the last time asks for."""
        now = self._clock()
        self.used += now - self._since
        self._owed += (now - self._since) * self._rest
        if self._owed >= _LEAST_REST_SECONDS:
            rest = min(self._owed, _LONGEST_REST_SECONDS)
            self._pause(rest)
            self._owed -= rest
        self._since = self._clock()
