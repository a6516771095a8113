"""An answer in time, or none: the controller has one thread for the objects of everybody.

What an object says decides how long it takes to look at it, and whoever writes it decides what it says. Where nothing
else bounds that, it is ended from outside, between any two steps of Python. So nothing may be asked here that changes
anything, nor what starts threads: the error could reach one of those. It is the processor's time that counts, since of
a machine that stands still no object is guilty; but nobody waits for ever, either.
"""

import ctypes
import threading
import time
from collections.abc import Callable
from typing import TypeVar

_LEAST_SECONDS = 0.01  # between two looks
_CLOCK = 10  # times as long by the clock as on the processor

_Answer = TypeVar("_Answer")


class OutOfTimeError(BaseException):
    """There was no answer in time. No Exception: of those, one part of an answer keeps no other back."""


def in_time(seconds: float, ask: Callable[[], _Answer]) -> _Answer:
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
