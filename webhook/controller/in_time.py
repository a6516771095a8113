"""An answer in time, or none: the controller has one thread for the objects of everybody.

What an object says decides how long it takes to look at it, and whoever writes it decides what it says. Where nothing
else bounds that, it is ended from outside, between any two steps of Python. So nothing may be asked here that changes
anything.
"""

import ctypes
import threading
from collections.abc import Callable
from typing import TypeVar

_Answer = TypeVar("_Answer")


class OutOfTimeError(BaseException):
    """There was no answer in time. No Exception: of those, one part of an answer keeps no other back."""


def in_time(seconds: float, ask: Callable[[], _Answer]) -> _Answer:
    """What the function answers, by the clock.

    Errors: OutOfTimeError; what the function raises.
    """
    asking, lock, over = threading.get_ident(), threading.Lock(), False

    def end() -> None:
        with lock:
            if not over:
                _raise_in(asking, OutOfTimeError)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        return ask()
    finally:
        timer.cancel()
        with lock:  # what was raised by then comes here, and nothing is raised from here on
            over = True


def _raise_in(thread: int, error: type[BaseException]) -> None:
    """Have the thread raise the error at its next step. Source: docs.python.org c-api ``PyThreadState_SetAsyncExc``."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))
