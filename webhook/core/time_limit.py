"""A limit of processor time, checked inside the loops that grow with the cluster.

with time_limit(0.003):    a review in the event loop
check_time()           once for each question about the cluster, and in loops over what it holds
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf

IN_LINE_SECONDS = 0.003
"""Processor time of one review in the event loop. What takes longer is left to a process, which has more time."""


class OutOfTimeError(BaseException):
    """The limit has passed. Not an `Exception`: a rule that runs out of time has not failed."""


class _Ends(threading.local):
    # Other threads may have the processor meanwhile, so the clock alone proves nothing; but it is read in a fifth of
    # the time, and the processor time of this thread is never ahead of it.
    clock, processor = inf, inf


_ends = _Ends()


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Let `check_time` raise in this thread after so much processor time; within another limit, instead of it."""
    before = _ends.clock, _ends.processor
    _ends.clock, _ends.processor = time.perf_counter() + seconds, time.thread_time() + seconds
    try:
        yield
    finally:
        _ends.clock, _ends.processor = before


def check_time() -> None:
    """Raise OutOfTimeError if the limit has passed."""
    if time.perf_counter() > _ends.clock and time.thread_time() > _ends.processor:
        raise OutOfTimeError
