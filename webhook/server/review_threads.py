"""Threads for reviews with long bodies."""

import asyncio
import contextlib
import contextvars
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from webhook.admission import ReviewAnswer
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.index.remote_index import IndexQuestion
from webhook.server.costly.pool import answers_to
from webhook.server.http.request_body import TOO_MANY, BodyError
from webhook.server.turns import Caller, Turns

# Threads share the interpreter, so more are not faster. The second is for a review behind a much longer review.
_THREADS = 2
# Share of the remaining time for waiting for a thread. The rest is for the answer by policy.
_WAITING_SHARE = 0.75
LONGEST_SECONDS = 30.0  # a caller's longest wait; it also ends threads left behind by the loop


class FromThread:
    """Queries the index from a thread. The event loop answers, since it owns the index."""

    def __init__(self, index: ReadOnlyIndex) -> None:
        self._index, self._loop = index, asyncio.get_running_loop()

    def all(self, questions: Sequence[IndexQuestion]) -> tuple[int, Sequence[object]]:
        """Implement `IndexClient`."""
        # In a new context: the thread's time limit must not apply to the loop.
        answer = contextvars.Context().run(
            asyncio.run_coroutine_threadsafe, answers_to(self._index, questions), self._loop
        )
        return answer.result(LONGEST_SECONDS)


class ReviewThreads:
    """Two threads for long bodies. `Turns` selects the next caller. Memory for bodies limits the waiting reviews."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="review")
        self._turns: Turns[None] = Turns()
        for _ in range(_THREADS):
            self._turns.put(None)

    async def run(self, judge: Callable[[], ReviewAnswer], caller: Caller, until: float) -> ReviewAnswer:
        try:
            async with asyncio.timeout(_WAITING_SHARE * (until - time.perf_counter())):
                await self._turns.get(caller)
        except TimeoutError:
            raise BodyError(TOO_MANY, 429) from None
        began, loop = time.perf_counter(), asyncio.get_running_loop()

        def ended(_future: object) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._free, caller, began)

        # A thread continues after its caller has left, and is not free before it ends.
        judging = self._threads.submit(judge)
        judging.add_done_callback(ended)
        return await asyncio.wrap_future(judging)

    def _free(self, caller: Caller, began: float) -> None:
        self._turns.done(caller, time.perf_counter() - began)
        self._turns.put(None)
