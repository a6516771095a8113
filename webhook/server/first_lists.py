"""Reviews that come before the cluster was listed wait for that, within their own time.

A replica is not ready before, and so is not asked. But a single replica that starts again is: an answer that knows no
Service would leave a pod without constraints for as long as it lives.
"""

import asyncio

from webhook.cluster.feed import Feed
from webhook.metrics import Metrics

_LOOK_SECONDS = 0.02  # how much later than the lists the reviews go on
# Of the caller's remaining time: the rest is more than the answer takes.
_SHARE = 0.75


class FirstLists:
    """See the module; for one event loop. Without a feed nothing is awaited."""

    def __init__(self, feed: Feed | None, metrics: Metrics) -> None:
        self._feed = feed
        self._metrics = metrics
        self._complete = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.awaited = feed is not None

    def start(self) -> None:
        """Look for the end of the first lists."""
        if self._feed is not None:
            self._task = asyncio.get_running_loop().create_task(self._look(self._feed))

    def close(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()

    async def wait(self, remaining: float) -> None:
        """Return once the cluster is known, or most of the time is over. Connections bound how many wait."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(_SHARE * remaining):
                await self._complete.wait()
        except TimeoutError:
            self._metrics.waited("not-listed", loop.time() - began)
        else:
            self._metrics.waited("listed", loop.time() - began)

    async def _look(self, feed: Feed) -> None:
        while not feed.synced:  # noqa: ASYNC110 threads list, and no event is worth their while
            await asyncio.sleep(_LOOK_SECONDS)
        self.awaited = False
        self._complete.set()
