"""Evaluate costly objects in separate processes.

The event loop answers the index queries of these processes.

    a costly object waits for its turn      -> a process has half a second of CPU time for it -> the decision
    it gets no turn in time                 -> BUSY or CROWDED
    it uses up the CPU time                 -> the process is killed and replaced, and the reason is TOO_COSTLY

`turns` orders the waiting objects. The reason is BUSY if other objects of the same namespace waited, else CROWDED.
"""

import asyncio
import itertools
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from webhook.core.budget import Missing
from webhook.core.index.nodes import NodeView
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.index.remote_index import SEVERAL_REVISIONS, IndexQuestion, answer_all
from webhook.core.review.decision import Decision
from webhook.metrics import Metrics
from webhook.server.costly.job import LENGTH, Answers, NewView, NodesReference, ReviewJob, pack, unpack
from webhook.server.turns import Caller, Turns

_PROCESS = "webhook.server.costly.process"
# The second works while the first restarts, for about 0.2 s. Each has 25 MiB, and the nodes.
_PROCESSES = 2
_FAIR_SECONDS = 0.5  # with less time left, the previous users of the process are the reason for a missing answer
_QUESTIONS = 64  # answered without a pause
_STUCK_SECONDS = 3.0  # for half a second of CPU time; then the process is killed
# Rows packed without a pause: a third of a millisecond.
_SLICE = 64
_PART = 64 * 1024  # of a message, in a single read
_AGAIN_SECONDS = 1.0  # wait after a process failed to start
_GONE_SECONDS = 0.2  # the kernel ends a killed process within this time; the loop does not wait for it

_OUTCOMES = {Missing.BUSY: "busy", Missing.CROWDED: "crowded", Missing.TOO_COSTLY: "too-costly"}


class ReviewerPool:
    """Reviews costly objects in separate processes. Use a pool from a single event loop."""

    def __init__(self, metrics: Metrics, cluster: ReadOnlyIndex) -> None:
        self._metrics = metrics
        self._cluster = cluster
        self._turns: Turns[_Process] = Turns()
        self._all: dict[_Process, asyncio.Task[None]] = {}
        self._killed: set[_Process] = set()
        self._working: set[asyncio.Task[Decision | Exception | None]] = set()
        self.running = False
        # Whether a process was ever ready. Later restarts do not change it: objects that crash processes must not
        # remove the replica from its Service.
        self.ready = False

    def start(self) -> None:
        """Start the processes. They are ready within a second."""
        self.running = True
        while len(self._all) < _PROCESSES:
            process = _Process()
            self._all[process] = asyncio.get_running_loop().create_task(self._make_ready(process))

    def close(self) -> None:
        self.running = False
        for process, getting_ready in self._all.items():
            getting_ready.cancel()
            process.end()
            self._killed.add(process)
        self._all.clear()
        for process in [*self._killed]:
            self._reap(process)

    async def decide(self, job: ReviewJob, caller: Caller, until: float) -> Decision | Exception | Missing:
        """Return the decision by ``until`` (of `time.perf_counter`), or the reason for its absence."""
        decision = await self._decide(job, caller, until)
        self._metrics.count("costly_reviews", _OUTCOMES[decision] if isinstance(decision, Missing) else "judged")
        return decision

    async def _decide(self, job: ReviewJob, caller: Caller, until: float) -> Decision | Exception | Missing:
        came = time.perf_counter()
        try:
            async with asyncio.timeout(until - came):
                process = await self._turns.get(caller)
        except TimeoutError:
            return Missing.BUSY if self._turns.crowds_itself(caller) else Missing.CROWDED
        began = time.perf_counter()
        # The job continues after its caller's deadline: finishing it is cheaper than a new process.
        working = asyncio.get_running_loop().create_task(self._work(process, job, caller))
        self._working.add(working)
        working.add_done_callback(self._working.discard)
        done, _ = await asyncio.wait([working], timeout=until - began)
        if not done and until - began < min(_FAIR_SECONDS, (until - came) / 2):
            return Missing.BUSY if self._turns.crowds_itself(caller, has_turn=True) else Missing.CROWDED
        decision = working.result() if done else None
        return Missing.TOO_COSTLY if decision is None else decision

    async def _work(self, process: "_Process", job: ReviewJob, caller: Caller) -> Decision | Exception | None:
        """Send a review to a worker process and return its decision.

        None if the process ended. Afterwards the worker process is free again, or has been replaced.
        """
        usable = False
        began = time.perf_counter()
        try:
            async with asyncio.timeout(_STUCK_SECONDS):
                await process.begin(job, self._cluster)
                decision = await process.decision(self._cluster)
            usable = True
        except (TimeoutError, ConnectionError):
            return None
        finally:
            self._turns.done(caller, time.perf_counter() - began)
            if usable:
                self._turns.put(process)
            else:
                self._replace(process)
        return decision

    def _replace(self, process: "_Process") -> None:
        if process not in self._all:
            return  # the pool is closed
        del self._all[process]
        process.end()
        self._killed.add(process)
        asyncio.get_running_loop().call_later(_GONE_SECONDS, self._reap, process)
        self.start()

    def _reap(self, process: "_Process") -> None:
        if process in self._killed:
            self._killed.remove(process)
            process.reap()

    async def _make_ready(self, process: "_Process") -> None:
        try:
            await process.ready(self._cluster)
        except ConnectionError:
            await asyncio.sleep(_AGAIN_SECONDS)
            self._replace(process)
        else:
            self.ready = True
            self._turns.put(process)


class _Process:
    """A process and its socket. Its methods raise ConnectionError after its end."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        self._socket.setblocking(False)
        with theirs:
            command = (sys.executable, "-P", "-m", _PROCESS, str(theirs.fileno()))
            # It uses this process's module path: an installed program has its own.
            environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
            self._process = subprocess.Popen(  # noqa: S603 this program
                command, stdin=subprocess.DEVNULL, pass_fds=(theirs.fileno(),), process_group=0, env=environment
            )
        self._numbers = itertools.count()
        self._view: NodeView | None = None
        self._nodes = NodesReference(-1)

    def end(self) -> None:
        self._process.kill()

    def reap(self) -> None:
        """Remove the ended process from the kernel's table. Waits if it has not ended."""
        self._process.wait()
        self._socket.close()

    async def ready(self, cluster: ReadOnlyIndex) -> None:
        """Wait until the process has started, and send it the nodes."""
        await self._next()
        await self._send_nodes(cluster.nodes.view())

    async def begin(self, job: ReviewJob, cluster: ReadOnlyIndex) -> None:
        """Send the job, and wait until the process has received it."""
        await self._send_nodes(cluster.nodes.view())
        await self._send(job)
        await self._next()

    async def decision(self, cluster: ReadOnlyIndex) -> Decision | Exception:
        """Return the decision of the process. Meanwhile, answer its queries of the cluster."""
        message: Decision | Exception | Sequence[IndexQuestion]
        while not isinstance(message := await self._next(), Decision | Exception):
            revision, answers = await answers_to(cluster, message)
            for answer in answers:
                await self._send_nodes(answer)
            sent = [self._nodes if isinstance(answer, NodeView) else answer for answer in answers]
            await self._send(Answers(revision, sent))
        return message

    async def _send_nodes(self, answer: object) -> None:
        """Send changed nodes, in slices, so that other requests are answered in between."""
        if not isinstance(answer, NodeView) or answer is self._view:
            return
        self._view, self._nodes = answer, NodesReference(next(self._numbers))
        await self._send(NewView(self._nodes.number, answer.size, answer.live, answer.keys))
        for start in range(0, answer.size, _SLICE):
            await self._send(answer.rows(start, start + _SLICE))
            await asyncio.sleep(0)

    async def _send(self, message: object) -> None:
        await asyncio.get_running_loop().sock_sendall(self._socket, pack(message))

    async def _next(self) -> Any:  # noqa: ANN401 any message of the process
        head = await self._read(LENGTH.size)
        return unpack(await self._read(*LENGTH.unpack(head)))

    async def _read(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            part = await asyncio.get_running_loop().sock_recv(self._socket, min(size - len(received), _PART))
            if not part:
                raise ConnectionError
            received += part
        return bytes(received)


async def answers_to(cluster: ReadOnlyIndex, questions: Sequence[IndexQuestion]) -> tuple[int, list[object]]:
    """Answer queries on the cluster index in small batches.

    Other requests run between the batches, because the review of an object may need a query for each namespace.

    Returns:
        The revision of the index at the answers, and the answers. If the revision changed between batches, it is
            `SEVERAL_REVISIONS`.
    """
    answers, revisions = list[object](), set[int]()
    for start in range(0, len(questions), _QUESTIONS):
        if start:
            await asyncio.sleep(0)
        revision, some = answer_all(cluster, questions[start : start + _QUESTIONS])
        revisions.add(revision)
        answers += some
    return revisions.pop() if len(revisions) == 1 else SEVERAL_REVISIONS, answers
