"""The time and effort that an examination may take, and why there is no answer.

`Budget` is passed on with the context. Loops that grow with the cluster check a time limit of the thread instead:

with time_limit(is_over):    the caller has the clock
    check_time()             once for each question about the cluster, and in loops over what it holds
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from enum import Enum
from functools import cached_property
from math import inf

from msgspec import Struct
from msgspec.structs import replace

# With 5,000 nodes, examining one template takes less than a millisecond, and a few if much is wrong.
_LEAST_SECONDS = 0.01
# The time in a thread beside the event loop, for an object that no process could judge.
_THREAD_SECONDS = 0.2


class Missing(Enum):
    """What was missing to evaluate a rule. The value is the sentence for users, unless a `Reason` has its own."""

    NO_CLUSTER = "no cluster"
    STALE = "what is known of the cluster is older than maxStaleness"
    NO_TIME = "no time left"
    NEEDS_SEARCH = "unknown: all orders would have to be searched, and others wait"
    # An object that is costly beside the cluster was not judged: for its own cost, for the load of its own namespace,
    # or for the load of others. In the last case rules use the cluster without a search.
    TOO_COSTLY = "too costly to look at beside this cluster"
    BUSY = "busy with other large objects"
    CROWDED = "busy with large objects of others"
    # The object exceeds a limit for rules that need the cluster, or a limit for all rules.
    TOO_LARGE = "too large to look at beside the cluster"
    IMMENSE = "too large to look at"
    RULE_FAILED = "the rule failed, which is a fault of evenspread"
    UNKNOWN = "unknown"  # a fact of this object or cluster

    # A review without a cluster asks for a dozen reasons and kinds. Enum hashes the name of a member each time.
    __hash__ = object.__hash__

    @cached_property
    def reason(self) -> "Reason":
        """The reason in the words of this kind."""
        return Reason(self.value, self)


class Reason(Struct, frozen=True):
    """Why there is no answer: the sentence for users, and the kind, on which decisions depend."""

    text: str
    kind: Missing = Missing.UNKNOWN

    def within(self, question: str) -> "Reason":
        """The reason after the question that has no answer."""
        return Reason(f"{question} is {self.text}", self.kind)


TOO_LONG = Reason("a review of more than 7 MiB", Missing.IMMENSE)
OVERLOADED = frozenset({Missing.TOO_COSTLY, Missing.BUSY})
"""No process had time for a costly object."""
OF_SIZE = OVERLOADED | {Missing.TOO_LARGE, Missing.IMMENSE}
"""The object's size is why rules do not look at it."""


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


class Budget(Struct, frozen=True, kw_only=True):
    """The time and effort that one examination may take.

    Attributes:
        clock: The clock of ``until``, in seconds.
        until: The deadline of the answer.
        may_search: False in the event loop. There only closed forms decide, and costly objects are left to a process.
        unjudged: Why no process judged the costly object. None if none had to.
    """

    clock: Callable[[], float] = float  # always 0.0, and can be pickled
    until: float = inf
    may_search: bool = True
    unjudged: Missing | None = None

    @property
    def is_spent(self) -> bool:
        """Whether no time is left to look at the cluster."""
        return self.clock() > self.until - _LEAST_SECONDS

    def at_most(self, seconds: float) -> "Budget":
        """The budget with a deadline in so many seconds, or earlier."""
        return replace(self, until=min(self.until, self.clock() + seconds))

    def limit_in_a_thread(self) -> AbstractContextManager[None]:
        """Let `check_time` raise soon: for a thread beside the event loop that judges what no process could."""
        ends = self.clock() + _THREAD_SECONDS
        return time_limit(lambda: self.clock() > ends)
