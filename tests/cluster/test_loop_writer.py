"""What threads hand over is done in the event loop, a little at a time."""

import asyncio
import threading
import time
from functools import partial
from itertools import pairwise

import pytest

from webhook.cluster import feed
from webhook.cluster.feed import LoopWriter


def test_steps_are_taken_in_the_loop_and_in_their_order():
    async def run():
        write, taken = LoopWriter(asyncio.get_running_loop()), []
        steps = [lambda number=number: taken.append((number, threading.get_ident())) for number in range(1000)]
        await asyncio.to_thread(write, steps)
        return taken

    assert asyncio.run(run()) == [(number, threading.get_ident()) for number in range(1000)]


@pytest.mark.parametrize("threads", [1, 8])
def test_the_loop_is_free_after_each_turn(monkeypatch, threads):
    """Of all threads together: 400 steps of half a millisecond are more than 100 turns, and others come in between."""
    monkeypatch.setattr(feed, "TURN_SECONDS", 0.001)

    async def run():
        loop, between, ended = asyncio.get_running_loop(), [], []
        write, taken = LoopWriter(loop), []

        def step():
            until = time.perf_counter() + 0.0005
            while time.perf_counter() < until:
                pass
            taken.append(1)

        def other():
            between.append(len(taken))
            if not ended:
                loop.call_soon(other)

        loop.call_soon(other)
        await asyncio.gather(*(asyncio.to_thread(write, [step] * (400 // threads)) for _ in range(threads)))
        ended.append(True)
        return between, len(taken)

    between, taken = asyncio.run(run())
    assert taken == 400
    assert max(now - before for before, now in pairwise(between)) <= 2


def test_what_a_step_raises_comes_to_whoever_handed_it_over_and_nobody_else():
    async def run():
        write, taken = LoopWriter(asyncio.get_running_loop()), []
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(write, [partial(taken.append, 1), lambda: 1 / 0, partial(taken.append, 2)])
        await asyncio.to_thread(write, [partial(taken.append, 3)])
        return taken

    assert asyncio.run(run()) == [1, 3]


def test_after_the_end_of_the_loop_nothing_is_taken():
    async def made():
        return LoopWriter(asyncio.get_running_loop())

    taken = []
    asyncio.run(made())([partial(taken.append, 1)])
    assert taken == []
