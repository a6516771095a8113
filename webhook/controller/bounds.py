"""Bounds of the controller: writes a minute, a share of one core, and the time for one answer.

A tenant who creates and deletes workloads as fast as possible uses up the writes of its own namespace, and no more.

The content of an object decides how long a look at it takes, and its author decides the content. `call_within` ends
such a look from outside, between any two steps of Python. So nothing may run there that changes anything or starts
threads: the error could reach one of those. The processor's time counts, since no object is guilty of a machine that
stands still. Ten times as long by the clock is the end in any case.
"""

import ctypes
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

_LEAST_REST_SECONDS = 0.01  # shorter ones are put together: waking up costs, too
_LONGEST_REST_SECONDS = 5.0  # what is left of longer ones is rested later
_LEAST_SECONDS = 0.01  # between two looks
_CLOCK = 10  # times as long by the clock as on the processor

_Answer = TypeVar("_Answer")


class Rate(Struct, frozen=True, kw_only=True):
    """Unit: writes. ``burst`` is what may come at once after a time without any."""

    a_minute: float
    burst: float


class _Bucket:
    def __init__(self, rate: Rate, now: float) -> None:
        self._rate = rate
        self._left = rate.burst
        self._at = now

    def left(self, now: float) -> float:
        self._left = min(self._rate.burst, self._left + (now - self._at) * self._rate.a_minute / 60)
        self._at = now
        return self._left

    def take(self) -> None:
        self._left -= 1


class Allowance:
    """See the module; for one thread."""

    def __init__(self, everywhere: Rate, one_namespace: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._one_namespace = one_namespace
        self._everywhere = _Bucket(everywhere, clock())
        self._namespaces: dict[str, _Bucket] = {}

    def take(self, namespace: str) -> bool:
        """Whether one write may go there now; if so it is counted."""
        now = self._clock()
        own = self._namespaces.get(namespace)
        if own is None:
            own = self._namespaces[namespace] = _Bucket(self._one_namespace, now)
        if self._everywhere.left(now) < 1 or own.left(now) < 1:
            return False
        self._everywhere.take()
        own.take()
        return True

    def forget_idle(self) -> None:
        """Drop what is known of namespaces that have all of their share again."""
        now, full = self._clock(), self._one_namespace.burst
        self._namespaces = {name: each for name, each in self._namespaces.items() if each.left(now) < full}


class CpuThrottle:
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


class OutOfTimeError(BaseException):
    """There was no answer in time. No Exception: of those, one part of an answer keeps no other back."""


def call_within(seconds: float, ask: Callable[[], _Answer]) -> _Answer:
    """What the function answers in time.

    Unit: ``seconds`` of the processor; ten times as many by the clock.
    Errors: OutOfTimeError; what the function raises.
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
                _raise_in(asking, OutOfTimeError)

    threading.Thread(target=end_overdue, name="in-time", daemon=True).start()
    try:
        return ask()
    finally:
        with lock:  # what was raised by then comes here, and nothing is raised from here on
            over.set()


def _raise_in(thread: int, error: type[BaseException]) -> None:
    """Have the thread raise the error at its next step. Source: docs.python.org c-api ``PyThreadState_SetAsyncExc``."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))
