"""Time limits of an examination, and the reasons for rules without a result.

The context carries a `Budget`. Loops that grow with the cluster check the thread's time limit instead:

    with time_limit(is_over):    # the caller has the clock
        check_time()             # for each cluster lookup, and in each round of a loop over cluster objects
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from enum import Enum
from functools import cached_property
from math import inf

from msgspec import Struct
from msgspec.structs import replace

# With 5,000 nodes, one template takes under 1 ms, or a few ms with many findings.
_LEAST_SECONDS = 0.01
# The time for an object that no process could judge. It is judged in a thread, which slows the event loop.
_THREAD_SECONDS = 0.2


class Missing(Enum):
    """The possible reasons for a rule without an evaluation.

    Each enum value is the message for users. A `Reason` of this kind can have another message.
    """

    NO_CLUSTER = "no cluster"
    STALE = "the cluster data is older than maxStaleness"
    NO_TIME = "no time left"
    NEEDS_SEARCH = "unknown: a search through all orders would delay other requests"
    # No process judged a costly object: for its own cost, for the load of its own namespace, or for the load of other
    # namespaces. In the last case, rules use the cluster without a search.
    TOO_COSTLY = "too costly to check against this cluster"
    BUSY = "busy with other large objects"
    CROWDED = "busy with large objects of others"
    # The object exceeds a limit of rules that need the cluster, or of all rules.
    TOO_LARGE = "too large to check against the cluster"
    IMMENSE = "too large to check"
    RULE_FAILED = "the rule failed because of a bug in evenspread"
    UNKNOWN = "unknown"  # a fact about this object or cluster

    # A review without a cluster looks up a dozen members in sets. Enum would hash the member's name each time.
    __hash__ = object.__hash__

    @cached_property
    def reason(self) -> "Reason":
        """The reason for this missing evaluation, with its text."""
        return Reason(self.value, self)


class Reason(Struct, frozen=True):
    """Why a rule or query could not be evaluated. ``text`` is for users. ``kind`` is for decisions in the code."""

    text: str
    kind: Missing = Missing.UNKNOWN

    def within(self, question: str) -> "Reason":
        """Return the reason with its subject in front: ``<question> is <reason>``."""
        return Reason(f"{question} is {self.text}", self.kind)


OVERLOADED = frozenset({Missing.TOO_COSTLY, Missing.BUSY})
"""Reasons if no process had time for a costly object."""
OF_SIZE = OVERLOADED | {Missing.TOO_LARGE, Missing.IMMENSE}
"""Reasons from the object's size."""


class OutOfTimeError(BaseException):
    """The time limit has passed. It is not an `Exception`, because a rule that runs out of time has not failed."""


def _never() -> bool:
    return False


_is_over: ContextVar[Callable[[], bool]] = ContextVar("_is_over", default=_never)


@contextmanager
def time_limit(is_over: Callable[[], bool]) -> Iterator[None]:
    """Limit the time of the code in the ``with`` block.

    `check_time` raises in this thread once ``is_over`` returns true. A nested ``with`` block has only its own limit.
    """
    before = _is_over.set(is_over)
    try:
        yield
    finally:
        _is_over.reset(before)


def check_time() -> None:
    """Raise `OutOfTimeError` if the limit of this thread has passed."""
    if _is_over.get()():
        raise OutOfTimeError


class Budget(Struct, frozen=True, kw_only=True):
    """The time limits for judging one object.

    Attributes:
        clock: Returns the current time in seconds.
        until: The deadline, by this clock.
        may_search: Whether rules may search through orders of pods. False in the event loop. There, closed forms
            decide, and a separate process judges costly objects.
        unjudged: Why no separate process judged the costly object. None if a process did, or if none had to.
    """

    clock: Callable[[], float] = float  # returns 0.0, and can be pickled
    until: float = inf
    may_search: bool = True
    unjudged: Missing | None = None

    @property
    def is_spent(self) -> bool:
        """Whether the deadline for cluster lookups has passed."""
        return self.clock() > self.until - _LEAST_SECONDS

    def at_most(self, seconds: float) -> "Budget":
        """Return the budget with a deadline at most ``seconds`` from now."""
        return replace(self, until=min(self.until, self.clock() + seconds))

    def limit_in_a_thread(self) -> AbstractContextManager[None]:
        """Make `check_time` raise after `_THREAD_SECONDS`.

        Use this for an object judged in a thread because no process could judge it.
        """
        ends = self.clock() + _THREAD_SECONDS
        return time_limit(lambda: self.clock() > ends)
