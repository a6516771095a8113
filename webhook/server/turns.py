"""A fair queue of requests for scarce threads and processes.

The threads read long request bodies, and the processes judge costly objects. A free thread or process serves the source
with the least recent use. Among requests of this source, it serves the namespace and user with the least recent use. A
source is a client address, proven by the connection. A client can state any namespace and user. So namespace and user
only order the requests of one source. Each namespace and each user occupies at most one thread or process, so others
can use the remaining threads or processes.
"""

import asyncio
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from webhook.core.api.well_known import KUBE_SYSTEM_ACCOUNTS_GROUP
from webhook.core.review.decision import AdmissionRequest

_HALF_LIFE_SECONDS = 10.0  # A namespace with much use waits behind others for about kube-apiserver's timeout.
_LEAST_SECONDS = 0.001  # smaller use is forgotten
_RUNNING_SECONDS = 1.0  # the assumed length of a turn until it ends
_MUCH_SECONDS = 0.5  # much use by one namespace: the longest turn of one costly object

_Item = TypeVar("_Item")


class Caller(NamedTuple):
    """The author of a waiting request. Hashes keep long names out of `Turns`.

    Attributes:
        known: Whether this address has sent valid reviews.
        source: The hash of the client address.
        keys: The hash of address and namespace, then the hash of address and user. Controllers have no user key.
    """

    known: bool
    source: int
    keys: tuple[int, ...]


def caller_of(request: AdmissionRequest, source: str, *, known: bool) -> Caller:
    """Return the author of a request from the client address ``source``.

    For a request from a controller, the result has no ``user`` key, because controllers create pods for all users.
    """
    own = hash((source, "namespace", request.namespace))
    if KUBE_SYSTEM_ACCOUNTS_GROUP in request.groups or not request.user:
        return Caller(known, hash(source), (own,))
    return Caller(known, hash(source), (own, hash((source, "user", request.user))))


class Turns(Generic[_Item]):
    """A fair queue of callers waiting for a free thread or process.

    For one event loop. After each use, the caller reports the used time with `done`.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._items: deque[_Item] = deque()
        self._waiting: dict[asyncio.Future[_Item], Caller] = {}
        self._running: Counter[int] = Counter()
        self._used: defaultdict[int, float] = defaultdict(float)
        self._halved = clock()

    def put(self, item: _Item) -> None:
        """Add a new or freed thread or process, and assign it to the next waiting caller."""
        self._items.append(item)
        self._assign_free()

    async def get(self, caller: Caller) -> _Item:
        """Wait for an item."""
        future: asyncio.Future[_Item] = asyncio.get_running_loop().create_future()
        self._waiting[future] = caller
        self._assign_free()
        try:
            return await future
        except asyncio.CancelledError:
            if not self._waiting.pop(future, None) and not future.cancelled():
                self._items.append(future.result())
                self.done(caller, 0.0)
            raise

    def done(self, caller: Caller, seconds: float) -> None:
        """Record how long the caller used a thread or process, and assign the free one to the next caller."""
        self._forget()
        for key in (caller.source, *caller.keys):
            self._running[key] -= 1
            self._used[key] += seconds
        self._running += Counter()  # drops zeros
        self._assign_free()

    def crowds_itself(self, caller: Caller, *, has_turn: bool = False) -> bool:
        """Whether the caller waits because of its own namespace.

        The namespace used the threads or processes much recently, or has another waiting or running request.
        ``has_turn``: whether the caller itself has a running request.
        """
        self._forget()
        own = caller.keys[0]
        here = self._running[own] + sum(own in queued.keys for queued in self._waiting.values())
        return here > has_turn or self._used[own] > _MUCH_SECONDS

    def _forget(self) -> None:
        """Halve the recorded use for each 10 seconds since the last call."""
        halvings = (self._clock() - self._halved) // _HALF_LIFE_SECONDS
        if halvings:
            self._halved += halvings * _HALF_LIFE_SECONDS
            used = {key: seconds * 0.5**halvings for key, seconds in self._used.items()}
            self._used = defaultdict(float, {key: use for key, use in used.items() if use > _LEAST_SECONDS})

    def _assign_free(self) -> None:
        """Give each free thread or process to the caller whose turn is next."""
        while self._items:
            waiting = (
                queued for queued, caller in self._waiting.items() if not any(self._running[key] for key in caller.keys)
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
