"""Limits of the controller: writes per minute, CPU share, and time per object.

A tenant can create and delete workloads quickly. This uses up only the writes of the tenant's own namespace.

The author of an object can make its evaluation slow. `call_within` therefore interrupts a long evaluation. The
interruption can happen between any two bytecodes, so the called code must not change shared state or start threads. The
limit counts CPU time, because a busy machine must not end an evaluation early. The call also ends after ten times as
much wall-clock time.
"""

import ctypes
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

_LEAST_REST_SECONDS = 0.01  # shorter rests are added up: each wake-up has a cost
_LONGEST_REST_SECONDS = 5.0  # the remainder of a longer rest follows later
_LEAST_SECONDS = 0.01  # between two checks
_CLOCK = 10  # wall-clock limit, as a multiple of the CPU limit

_Answer = TypeVar("_Answer")


class Rate(Struct, frozen=True, kw_only=True):
    """A rate limit in writes: a steady rate, and the ``burst`` allowed after a pause."""

    a_minute: float
    burst: float


# For the whole cluster, and for each namespace. etcd accepts thousands of writes a second. The next scans write the
# remainder.
REPORT_RATES = Rate(a_minute=600, burst=3000), Rate(a_minute=60, burst=300)
COST_RATES = Rate(a_minute=540, burst=60), Rate(a_minute=270, burst=30)  # at most 600 and 300 in any minute
EVENT_RATES = Rate(a_minute=60, burst=300), Rate(a_minute=6, burst=30)


class _Bucket:
    def __init__(self, rate: Rate, at: float, *, full: bool) -> None:
        self._rate = rate
        self._left = rate.burst if full else 0.0
        self._at = at

    def left(self, now: float) -> float:
        self._left = min(self._rate.burst, self._left + (now - self._at) * self._rate.a_minute / 60)
        self._at = now
        return self._left

    def take(self) -> None:
        self._left -= 1


class Allowance:
    """Limits writes by token buckets: one for the cluster, and one for each namespace. Not thread-safe."""

    def __init__(self, everywhere: Rate, one_namespace: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._rates = everywhere, one_namespace
        self._fill(full=True)

    def empty(self) -> None:
        """Begin without a burst. Another replica may have used the limits until now."""
        self._fill(full=False)

    def _fill(self, *, full: bool) -> None:
        self._began, self._full = self._clock(), full
        self._everywhere = _Bucket(self._rates[0], self._began, full=full)
        self._namespaces: dict[str, _Bucket] = {}

    def allows(self, namespace: str) -> bool:
        """Whether the limits allow a write in this namespace now."""
        now, own = self._clock(), self._namespaces.get(namespace)
        if own is None:
            own = self._namespaces[namespace] = _Bucket(self._rates[1], self._began, full=self._full)
        return self._everywhere.left(now) >= 1 and own.left(now) >= 1

    def take(self, namespace: str) -> bool:
        """Count a write in this namespace, and return True. False if the limits allow none now."""
        if not self.allows(namespace):
            return False
        self._everywhere.take()
        self._namespaces[namespace].take()
        return True

    def forget_idle(self) -> None:
        """Drop the counts of namespaces without recent writes."""
        now, full = self._clock(), self._rates[1].burst
        self._namespaces = {name: own for name, own in self._namespaces.items() if own.left(now) < full}


class CpuThrottle:
    """Make a worker rest so that it uses only a share of a core.

    Call `rest` first in each new thread. The first call starts the thread's clock.

    Args:
        share: The allowed share of a core, above 0 and at most 1.
        pause: Sleeps for a number of seconds.
        clock: CPU time of the calling thread, in seconds. Each thread has its own clock, so readings of two threads are
            never subtracted.
    """

    def __init__(
        self, share: float, pause: Callable[[float], object], clock: Callable[[], float] = time.thread_time
    ) -> None:
        self._rest = 1 / share - 1
        self._pause = pause
        self._clock = clock
        self._last = threading.local()  # the last reading of this thread's clock
        self._last.reading = clock()
        self._owed = 0.0
        self.used = 0.0  # CPU time so far, in seconds

    def rest(self) -> None:
        """Pause in proportion to the CPU time since this thread's last call."""
        now = self._clock()
        used = now - getattr(self._last, "reading", now)
        self.used += used
        self._owed += used * self._rest
        if self._owed >= _LEAST_REST_SECONDS:
            rest = min(self._owed, _LONGEST_REST_SECONDS)
            self._pause(rest)
            self._owed -= rest
        self._last.reading = self._clock()


class CpuLimitError(BaseException):
    """A call exceeded its time. It derives from BaseException so that no handler for Exception swallows it."""


def call_within(seconds: float, ask: Callable[[], _Answer]) -> _Answer:
    """Call the function and return its result, within ``seconds`` of CPU time.

    Raises:
        CpuLimitError: The limit has passed, or ten times as much wall-clock time.
    """
    asking, lock, over = threading.get_ident(), threading.Lock(), threading.Event()
    clock = time.pthread_getcpuclockid(asking)
    until, at_last = time.clock_gettime(clock) + seconds, time.monotonic() + _CLOCK * seconds

    def end_overdue() -> None:
        left = seconds
        while left > 0:
            if over.wait(max(left, _LEAST_SECONDS)):
                return
            left = min(until - time.clock_gettime(clock), at_last - time.monotonic())
        with lock:
            if not over.is_set():
                _raise_in(asking, CpuLimitError)

    threading.Thread(target=end_overdue, name="in-time", daemon=True).start()
    try:
        return ask()
    finally:
        with lock:  # an error raised so far arrives here, and no further error follows
            over.set()


def _raise_in(thread: int, error: type[BaseException]) -> None:
    """Raise the error in the thread at its next bytecode.

    Source: docs.python.org c-api ``PyThreadState_SetAsyncExc``.
    """
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))
