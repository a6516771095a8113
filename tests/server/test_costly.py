"""Costly objects in processes of their own: the same answer, and what becomes of it when a process gives none."""

import asyncio
import copy
import os
import pathlib
import re
import signal
import socket
import time

import pytest
from build import node
from core.review.test_costly import CLUSTER, COSTLY, STRICT, WEB, WIDE, reviewed
from manifest import RECENT, TODAY, request

from webhook.core.budget import Missing
from webhook.core.context import Context
from webhook.core.review.decision import Decision
from webhook.metrics import Metrics
from webhook.server.costly import pool as costly
from webhook.server.costly import process as costly_process
from webhook.server.costly.job import ReviewJob
from webhook.server.costly.pool import ReviewerPool
from webhook.server.turns import caller_of

pytestmark = pytest.mark.slow


def job(manifest=COSTLY, policy=STRICT, *, skipped_rules=frozenset(), **fields):
    context = Context(policy=policy, version=RECENT, now=TODAY, skipped_rules=skipped_rules)
    return ReviewJob(request(manifest, **fields), context, waited=True)


def soon(seconds=20.0):
    return time.perf_counter() + seconds


def decide(judges, asked, until, source="127.0.0.1"):
    return judges.decide(asked, caller_of(asked.request, source, known=True), until)


def judged(act, *, index=CLUSTER):
    """What the function makes of running judges, and their metrics."""

    async def run():
        judges = ReviewerPool(metrics, index)
        judges.start()
        try:
            await asyncio.gather(*judges._all.values())
            return await act(judges)
        finally:
            judges.close()

    metrics = Metrics()
    made = asyncio.run(run())
    lines = metrics.text().decode().splitlines()
    counted = {
        line.split('"')[1]: float(line.split()[-1])
        for line in lines
        if line.startswith("evenspread_costly_reviews_total{")
    }
    return made, counted


def pids(judges):
    return {each._process.pid for each in judges._all}


def lives(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def as_here(judges, manifest=COSTLY, **given):
    """Whether the decision is the one of the event loop, where both have the time for it; the machine may be busy."""
    for _ in range(10):
        if await decide(judges, job(manifest, **given), soon()) == reviewed(manifest, **given):
            return True
    return False


def test_the_decision_is_the_one_of_the_event_loop():
    async def act(judges):
        return [await as_here(judges, each) for each in (COSTLY, WEB)]

    made, counted = judged(act)
    assert made == [True, True]
    assert counted.keys() == {"judged"}


def test_rules_that_nobody_would_hear_are_not_asked_there_either():
    async def act(judges):
        return await as_here(judges, skipped_rules=frozenset({WIDE}))

    assert judged(act)[0] is True
    assert reviewed(COSTLY, skipped_rules=frozenset({WIDE})) != reviewed(COSTLY)


def test_nodes_that_changed_are_told():
    async def act(judges):
        before = reviewed(COSTLY)
        CLUSTER.apply("ADDED", node("late", "c"))
        try:
            return await as_here(judges), before != reviewed(COSTLY)
        finally:
            CLUSTER.apply("DELETED", node("late", "c"))

    assert judged(act)[0] == (True, True)


def resident_mib(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)[1]) / 1024


def test_processes_return_the_memory_of_large_objects():
    large = copy.deepcopy(WEB)
    large["spec"]["template"]["spec"]["containers"] = [{"name": "a", "args": ["\x01" * (1 << 20)]}]

    async def act(pool):
        for _ in range(4):
            await decide(pool, job(), soon())
        before = sum(map(resident_mib, pids(pool)))
        assert isinstance(await decide(pool, job(large), soon()), Decision)
        for _ in range(8):
            await asyncio.gather(*(decide(pool, job(large), soon()) for _ in pids(pool)))
        return sum(map(resident_mib, pids(pool))) - before

    assert judged(act)[0] < 16  # 36 are kept without malloc_trim


def test_what_a_review_raises_comes_back():
    async def act(judges):
        return await decide(judges, job(policy=None), soon())

    made, _ = judged(act)
    assert isinstance(made, AttributeError)


def test_a_process_that_does_nothing_is_killed_in_time_and_replaced(monkeypatch):
    monkeypatch.setattr(costly, "_STUCK_SECONDS", 0.5)

    async def act(judges):
        before = pids(judges)
        for pid in before:
            os.kill(pid, signal.SIGSTOP)
        began = time.perf_counter()
        made = await decide(judges, job(), soon(0.5))
        took = time.perf_counter() - began
        await asyncio.sleep(0.5)
        after = pids(judges)
        return made, took, len(after), [pid for pid in before - after if lives(pid)]

    (made, took, processes, left), counted = judged(act)
    assert (made, processes, left) == (Missing.TOO_COSTLY, 2, [])
    assert 0.45 < took < 2.0
    assert counted == {"too-costly": 1}


def test_a_process_whose_caller_has_gone_ends_its_job_and_takes_the_next(monkeypatch):
    async def act(judges):
        before = pids(judges)
        monkeypatch.setattr(asyncio, "wait", at_once)
        late = [await decide(judges, job(), soon()) for _ in range(2)]
        monkeypatch.undo()
        return late, await as_here(judges), pids(judges) == before

    async def at_once(tasks, timeout):  # noqa: ASYNC109 as asyncio.wait
        return await wait(tasks, timeout=timeout and 0)

    wait = asyncio.wait
    made, counted = judged(act)
    assert made == ([Missing.TOO_COSTLY, Missing.TOO_COSTLY], True, True)
    assert counted["too-costly"] == 2


def test_a_job_that_works_too_long_ends_its_process(monkeypatch):
    def act(judges):
        return decide(judges, job(), soon())

    monkeypatch.setattr(costly, "_PROCESS", "server.endless")
    monkeypatch.setenv("PYTHONPATH", "tests")
    made, counted = judged(act)
    assert made == Missing.TOO_COSTLY
    assert counted == {"too-costly": 1}


def test_a_killed_process_is_one_unknown_answer_and_no_more():
    async def act(judges):
        for pid in pids(judges):
            os.kill(pid, signal.SIGKILL)
        return [await decide(judges, job(), soon()) for _ in range(2)], await as_here(judges)

    made, counted = judged(act)
    assert made == ([Missing.TOO_COSTLY, Missing.TOO_COSTLY], True)
    assert counted["too-costly"] == 2


def test_who_gets_no_turn_is_busy_with_its_own_or_crowded_by_others():
    async def act(judges):
        for pid in pids(judges):
            os.kill(pid, signal.SIGSTOP)
        until = soon(0.5)
        asked = [
            decide(judges, job(user="eve", namespace="shop"), until),
            decide(judges, job(user="eve", namespace="shop"), until),
            decide(judges, job(user="ann", namespace="shop"), until, "127.0.0.2"),
            decide(judges, job(user="bob", namespace="bobs"), until, "127.0.0.2"),
        ]
        return await asyncio.gather(*asked), judges._turns._waiting

    (made, waiting), counted = judged(act)
    assert made == [Missing.TOO_COSTLY, Missing.BUSY, Missing.TOO_COSTLY, Missing.CROWDED]
    assert counted == {"too-costly": 2, "busy": 1, "crowded": 1}
    assert waiting == {}


def test_one_that_had_no_time_left_when_its_turn_came_is_not_too_costly():
    async def act(judges):
        first, second = judges._all
        os.kill(first._process.pid, signal.SIGSTOP)
        os.kill(second._process.pid, signal.SIGSTOP)
        until = soon(1.0)
        other = [asyncio.create_task(decide(judges, job(namespace=n), until, "127.0.0.2")) for n in "ab"]
        await asyncio.sleep(0.1)
        waiting = asyncio.create_task(decide(judges, job(), until))
        await asyncio.sleep(0.8)  # too little is left for a new process to start
        os.kill(first._process.pid, signal.SIGKILL)
        os.kill(second._process.pid, signal.SIGKILL)
        made = await waiting
        await asyncio.gather(*other)
        return made

    assert judged(act)[0] == Missing.CROWDED


def test_a_client_that_leaves_takes_its_job_with_it():
    async def act(judges):
        for pid in pids(judges):
            os.kill(pid, signal.SIGSTOP)
        task = asyncio.create_task(decide(judges, job(), soon()))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return len(judges._all), judges._turns._waiting

    assert judged(act) == ((2, {}), {})


def test_they_end_in_the_middle_of_a_job():
    async def act(judges):
        before = pids(judges)
        for pid in before:
            os.kill(pid, signal.SIGSTOP)
        task = asyncio.create_task(decide(judges, job(), soon(0.5)))
        await asyncio.sleep(0.05)
        judges.close()
        return [pid for pid in before if lives(pid)], await task, len(judges._all)

    assert judged(act)[0] == ([], Missing.TOO_COSTLY, 0)


def test_a_process_that_does_not_start_is_tried_again(monkeypatch):
    async def act(judges):
        process = costly._PROCESS
        monkeypatch.setattr(costly, "_AGAIN_SECONDS", 0.01)
        monkeypatch.setattr(costly, "_PROCESS", "webhook.nothing")
        for pid in pids(judges):
            os.kill(pid, signal.SIGKILL)
        made = [await decide(judges, job(), soon()) for _ in range(2)]
        monkeypatch.setattr(costly, "_PROCESS", process)
        return made, await as_here(judges)

    assert judged(act)[0] == ([Missing.TOO_COSTLY, Missing.TOO_COSTLY], True)


def test_a_process_ends_with_its_server():
    ours, theirs = socket.socketpair()
    with theirs, theirs.makefile("rb") as stream:
        ours.close()
        costly_process.work(costly_process.ServerLink(theirs, stream))
