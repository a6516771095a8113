"""A time limit that is checked inside the loops that grow with the cluster.

with time_limit(is_over):    the caller has the clock
    check_time()             once for each question about the cluster, and in loops over what it holds
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class OutOfTimeError(BaseException):
    """The limit has passed. Not an `Exception`: a rule that runs out of time has not failed."""


def _never() -> bool:
    return False


# Each thread has its own.
_is_over: ContextVar[Callable[[], bool]] = ContextVar("_is_over", default=_never)


@contextmanager
def time_limit(is_over: Callable[[], bool]) -> Iterator[None]:
    """Let `check_time` raise in this thread once the function returns true; within another limit, instead of it."""
    before = _is_over.set(is_over)
    try:
        yield
    finally:
        _is_over.reset(before)


def check_time() -> None:
    """Raise OutOfTimeError if the limit has passed."""
    if _is_over.get()():
        raise OutOfTimeError
