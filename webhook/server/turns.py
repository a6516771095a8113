"""Turns at what is scarce: threads for long bodies, processes for costly objects.

A free item goes to the source that has used least of them lately, and of that source to the namespace and user that
have. A source is an address, which the connection proves. Namespace and user are words of the caller, so they only
divide the turns of one source. Only one request of a namespace or user has a turn at a time, so that an item is left
for the next author.
"""

import asyncio
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from webhook.core.review.decision import AdmissionRequest

_HALF_LIFE_SECONDS = 10.0
_LEAST_SECONDS = 0.001  # what is less is forgotten
_RUNNING_SECONDS = 1.0  # what a turn counts for until it is known how long it takes
_MUCH_SECONDS = 0.5  # of a namespace: as much as one costly object may take
_CONTROLLERS = "system:serviceaccounts:kube-system"

_Item = TypeVar("_Item")


class Caller(NamedTuple):
    """Whose request waits: its source, and its namespace and user among those of the source, as hashes.

    A caller's texts may be long, and what a caller has used is remembered. A ``known`` source has sent valid reviews.
    """

    known: bool
    source: int
    keys: tuple[int, ...]


def caller_of(request: AdmissionRequest, source: str, *, known: bool) -> Caller:
    """The caller of a request from this source. Controllers make everybody's pods, and so are no user."""
    own = hash((source, "namespace", request.namespace))
    if _CONTROLLERS in request.groups or not request.user:
        return Caller(known, hash(source), (own,))
    return Caller(known, hash(source), (own, hash((source, "user", request.user))))


class Turns(Generic[_Item]):
    """See the module; for one event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._items: deque[_Item] = deque()
        self._waiting: dict[asyncio.Future[_Item], Caller] = {}
        self._running: Counter[int] = Counter()
        self._used: defaultdict[int, float] = defaultdict(float)
        self._halved = clock()

    def put(self, item: _Item) -> None:
        """Give the item, which is new or free again, to whoever is next."""
        self._items.append(item)
        self._lead()

    async def get(self, caller: Caller) -> _Item:
        """An item, for a turn that the caller ends with `done`."""
        future: asyncio.Future[_Item] = asyncio.get_running_loop().create_future()
        self._waiting[future] = caller
        self._lead()
        try:
            return await future
        except asyncio.CancelledError:
            if not self._waiting.pop(future, None) and not future.cancelled():
                self._items.append(future.result())
                self.done(caller, 0.0)
            raise

    def done(self, caller: Caller, seconds: float) -> None:
        """The turn took so long."""
        for key in (caller.source, *caller.keys):
            self._running[key] -= 1
            self._used[key] += seconds
        self._running += Counter()  # drops those that have none
        now = self._clock()
        if now - self._halved > _HALF_LIFE_SECONDS:
            self._halved = now
            used = {key: seconds / 2 for key, seconds in self._used.items() if seconds > _LEAST_SECONDS}
            self._used = defaultdict(float, used)
        self._lead()

    def crowds_itself(self, caller: Caller, *, has_turn: bool = False) -> bool:
        """Whether its namespace has had much of the turns lately, or has another request here."""
        own = caller.keys[0]
        here = self._running[own] + sum(own in each.keys for each in self._waiting.values())
        return here > has_turn or self._used[own] > _MUCH_SECONDS

    def _lead(self) -> None:
        """Give free items to those that are next."""
        while self._items:
            waiting = (
                each for each, caller in self._waiting.items() if not any(self._running[key] for key in caller.keys)
            )
            future = min(waiting, key=self._rank, default=None)
            if future is None:
                return
            caller = self._waiting.pop(future)
            if not future.done():
                self._running.update((caller.source, *caller.keys))
                future.set_result(self._items.popleft())

    def _rank(self, future: asyncio.Future[_Item]) -> tuple[bool, float, float]:
        caller = self._waiting[future]
        return not caller.known, self._cost(caller.source), max(map(self._cost, caller.keys))

    def _cost(self, key: int) -> float:
        return self._used.get(key, 0.0) + _RUNNING_SECONDS * self._running[key]
