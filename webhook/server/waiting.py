"""Suspend reviews until a missing object of the cluster arrives.

The missing object is the pod's owner or namespace, or the first lists are incomplete. A controller creates a workload's
first pod as soon as it has seen the ReplicaSet. Sometimes evenspread's watch delivers the ReplicaSet later: in a few of
100 new Deployments, by up to 10 ms. The watch wakes such a review. A suspended task needs no thread.

A replica with incomplete lists is not ready, so the replica gets no requests. Exception: the only replica restarts.
Before the list of Services is complete, `mutate` would add no default constraints, and a pod never gets them later.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Protocol

from webhook.admission import ReviewAnswer
from webhook.cluster.feed import Feed, Waiters
from webhook.core.index.owners import Awaited
from webhook.metrics import Metrics

_MAX_WAIT_SECONDS = 0.25  # 25 times the longest observed delay; a pod whose owner never arrives waits no longer
_SHARE = 0.25  # share of the caller's remaining time
# Share of the caller's remaining time. The rest is more than enough for the answer.
_LISTS_SHARE = 0.75
_LOOK_SECONDS = 0.02  # polling interval for complete lists
# Limit of waiting reviews of a source (an address). Each holds a body of up to 256 KiB, usually 6 KiB. Further reviews
# are answered at once.
MAX_WAITING_REVIEWS = 256
# Limit for a namespace of a source. Otherwise pods with invented owners could take all places.
MAX_OF_NAMESPACE = 64


class Judge(Protocol):
    """Evaluates the request with the current index."""

    def __call__(self, *, waited: bool) -> Awaitable[ReviewAnswer]: ...


class OwnerWait:
    """Makes reviews of pods wait for a missing object, such as the pod's owner. For a single event loop."""

    def __init__(self, arrivals: Waiters | None, metrics: Metrics) -> None:
        self._arrivals = arrivals
        self._metrics = metrics
        # Counts for each source, and for each namespace of a source.
        self._held: Counter[tuple[str, ...]] = Counter()

    async def answer(self, judge: Judge, remaining: Callable[[], float], source: str) -> ReviewAnswer:
        """Judge the request. If the decision awaits an object, judge again after its arrival or the end of the wait."""
        answer = await judge(waited=self._arrivals is None)
        if answer.decision.awaits is None or self._arrivals is None:
            return answer
        own = all_of, namespaced = (source,), (source, answer.request.namespace)
        if self._held[all_of] >= MAX_WAITING_REVIEWS or self._held[namespaced] >= MAX_OF_NAMESPACE:
            self._metrics.waited("crowded", 0.0)
            return await judge(waited=True)
        self._held.update(own)
        try:
            return await self._wait(answer.decision.awaits, judge, self._arrivals, remaining)
        finally:
            self._held.subtract(own)
            self._held += Counter()  # drops zeros

    async def _wait(
        self, awaited: Awaited, judge: Judge, arrivals: Waiters, remaining: Callable[[], float]
    ) -> ReviewAnswer:
        loop = asyncio.get_running_loop()
        came = asyncio.Event()
        began = loop.time()
        ends = began + min(_MAX_WAIT_SECONDS, _SHARE * remaining())

        while True:
            with arrivals.expecting(awaited, came.set):
                answer = await judge(waited=False)
                if answer.decision.awaits is None:
                    self._metrics.waited("arrived", loop.time() - began)
                    return answer
                if answer.decision.awaits == awaited:
                    try:
                        async with asyncio.timeout_at(ends):
                            await came.wait()
                    except TimeoutError:
                        break
            awaited = answer.decision.awaits
            came.clear()
        self._metrics.waited("gave-up", loop.time() - began)
        return await judge(waited=True)


class FirstLists:
    """Lets reviews wait until the first lists of the cluster are complete. For a single event loop."""

    def __init__(self, feed: Feed | None, metrics: Metrics) -> None:
        self._feed = feed
        self._metrics = metrics
        self._complete = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.awaited = feed is not None

    def start(self) -> None:
        if self._feed is not None:
            self._task = asyncio.get_running_loop().create_task(self._look(self._feed))

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def wait(self, remaining: float) -> None:
        """Wait until the cluster is listed, for at most `_LISTS_SHARE` of the ``remaining`` seconds.

        Does not raise on timeout. The connection limit also limits the waiters.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(_LISTS_SHARE * remaining):
                await self._complete.wait()
        except TimeoutError:
            self._metrics.waited("not-listed", loop.time() - began)
        else:
            self._metrics.waited("listed", loop.time() - began)

    async def _look(self, feed: Feed) -> None:
        while not feed.synced:  # noqa: ASYNC110 threads do the listing, and an event would not pay off
            await asyncio.sleep(_LOOK_SECONDS)
        self.awaited = False
        self._complete.set()
