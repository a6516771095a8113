"""Costly objects are judged by processes beside the event loop, which answers what they ask of the cluster.

    review says "costly" -> a place in the queue -> a process, for half a second of its work -> the decision
                            or BUSY                 or killed: TOO_COSTLY, and a new process

The queue is short, and nobody has more of it than a share: neither a namespace nor a user.
"""

import asyncio
import itertools
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from typing import Any

from webhook.core.index.facts import Direct
from webhook.core.index.tables.node_table import NodeView
from webhook.core.review.decision import AdmissionRequest, Decision
from webhook.core.rules.limits.size import BUSY, TOO_COSTLY
from webhook.metrics import Metrics
from webhook.server.costly.job import (
    LENGTH,
    Answered,
    Asked,
    Failed,
    Job,
    NewView,
    NodeRows,
    Nodes,
    packed,
    unpacked,
)

_PROCESS = "webhook.server.costly.process"
# The second is there while the first starts anew, which takes some 0.2 s. Each has 25 MiB, and the nodes.
_PROCESSES = 2
MOST_JOBS = 8  # at half a second each, the last of those that wait begins within what callers wait by default
SHARE = 2
_STUCK_SECONDS = 3.0  # for half a second of work; then the process is killed
# Rows that are packed at once: a third of a millisecond.
_SLICE = 64
_PART = 64 * 1024
_AGAIN_SECONDS = 1.0  # after a process that did not start
_GONE_SECONDS = 0.2  # what the kernel takes at most to end a killed process; the loop does not wait for it
_CONTROLLERS = "system:serviceaccounts:kube-system"  # they make everybody's pods


class Judges:
    """See the module; for one event loop."""

    def __init__(self, metrics: Metrics, cluster: Direct) -> None:
        self._metrics = metrics
        self._cluster = cluster
        self._free: asyncio.Queue[_Process] = asyncio.Queue()
        self._all: dict[_Process, asyncio.Task[None]] = {}
        self._killed: set[_Process] = set()
        self._working: set[asyncio.Task[Decision | Failed | None]] = set()
        self._jobs = 0
        self._held: Counter[str] = Counter()  # jobs of each namespace and user
        self.running = False

    def start(self) -> None:
        """Start the processes; they are ready within a second."""
        self.running = True
        while len(self._all) < _PROCESSES:
            process = _Process()
            self._all[process] = asyncio.get_running_loop().create_task(self._make_ready(process))

    def close(self) -> None:
        """End the processes, in the middle of a job too."""
        self.running = False
        for process, getting_ready in self._all.items():
            getting_ready.cancel()
            process.end()
            self._killed.add(process)
        self._all.clear()
        for process in [*self._killed]:
            self._reap(process)

    async def decide(self, job: Job, until: float) -> Decision | Failed | str:
        """The decision by ``until`` (of `time.perf_counter`), or why there is none, as rules say it."""
        asked_by = _asked_by(job.request)
        if self._jobs >= MOST_JOBS or any(self._held[each] >= SHARE for each in asked_by):
            self._metrics.costly("busy")
            return BUSY
        self._jobs += 1
        self._held.update(asked_by)
        try:
            return await self._decide(job, until)
        finally:
            self._jobs -= 1
            self._held.subtract(asked_by)
            self._held += Counter()  # drops those that hold none

    async def _decide(self, job: Job, until: float) -> Decision | Failed | str:
        try:
            async with asyncio.timeout(until - time.perf_counter()):
                process = await self._free.get()
        except TimeoutError:
            self._metrics.costly("busy")
            return BUSY
        # Whoever asked may not wait for the end: a process that ends its job costs less than a new one.
        working = asyncio.get_running_loop().create_task(self._work(process, job))
        self._working.add(working)
        working.add_done_callback(self._working.discard)
        done, _ = await asyncio.wait([working], timeout=until - time.perf_counter())
        decision = working.result() if done else None
        self._metrics.costly("too-costly" if decision is None else "judged")
        return TOO_COSTLY if decision is None else decision

    async def _work(self, process: "_Process", job: Job) -> Decision | Failed | None:
        """What the process decides, None if it ended; it is free again then, or replaced."""
        usable = False
        try:
            async with asyncio.timeout(_STUCK_SECONDS):
                await process.begin(job, self._cluster)
                decision = await process.decision(self._cluster)
            usable = True
        except (TimeoutError, ConnectionError):
            return None
        finally:
            self._put_back(process, usable=usable)
        return decision

    def _put_back(self, process: "_Process", *, usable: bool) -> None:
        if usable:
            self._free.put_nowait(process)
        else:
            self._replace(process)

    def _replace(self, process: "_Process") -> None:
        if process not in self._all:
            return  # all have ended
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
            self._free.put_nowait(process)


def _asked_by(request: AdmissionRequest) -> tuple[str, ...]:
    """Whose share of the queue it takes."""
    namespace = f"namespace {request.namespace}"
    return (namespace,) if _CONTROLLERS in request.groups else (namespace, f"user {request.user}")


class _Process:
    """One process, and the socket to it. Errors: ConnectionError where it has ended."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        self._socket.setblocking(False)
        with theirs:
            command = (sys.executable, "-P", "-m", _PROCESS, str(theirs.fileno()))
            # It finds its modules where this process does: an installed one finds them by a path of its own.
            environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
            self._process = subprocess.Popen(  # noqa: S603 our own program
                command, stdin=subprocess.DEVNULL, pass_fds=(theirs.fileno(),), process_group=0, env=environment
            )
        self._numbers = itertools.count()
        self._view: NodeView | None = None
        self._nodes = Nodes(-1)

    def end(self) -> None:
        """Kill it."""
        self._process.kill()

    def reap(self) -> None:
        """Have the kernel forget it, which takes no time once it has ended."""
        self._process.wait()
        self._socket.close()

    async def ready(self, cluster: Direct) -> None:
        """Wait until it has started, and tell it the nodes."""
        await self._next()
        await self._tell(cluster.one("view", (), {})[1])

    async def begin(self, job: Job, cluster: Direct) -> None:
        """Wait until it has begun with the job."""
        await self._tell(cluster.one("view", (), {})[1])
        await self._send(job)
        await self._next()

    async def decision(self, cluster: Direct) -> Decision | Failed:
        """What it decides, by what it asks of the cluster."""
        while True:
            said = await self._next()
            if not isinstance(said, Asked):
                decided: Decision | Failed = said
                return decided
            revision, answers = cluster.all(said.questions)
            for each in answers:
                await self._tell(each)
            told = [self._nodes if isinstance(each, NodeView) else each for each in answers]
            await self._send(Answered(revision, told))

    async def _tell(self, answer: object) -> None:
        """Send the nodes if this answer is about them and they are new, in slices: others are answered in between."""
        if not isinstance(answer, NodeView) or answer is self._view:
            return
        self._view, self._nodes = answer, Nodes(next(self._numbers))
        await self._send(NewView(self._nodes.number, answer.size, answer.live, answer.keys))
        for start in range(0, answer.size, _SLICE):
            await self._send(NodeRows(answer.rows(start, start + _SLICE)))
            await asyncio.sleep(0)

    async def _send(self, message: object) -> None:
        await asyncio.get_running_loop().sock_sendall(self._socket, packed(message))

    async def _next(self) -> Any:  # noqa: ANN401 whatever the process sends next
        head = await self._read(LENGTH.size)
        return unpacked(await self._read(*LENGTH.unpack(head)))

    async def _read(self, size: int) -> bytes:
        made = bytearray()
        while len(made) < size:
            part = await asyncio.get_running_loop().sock_recv(self._socket, min(size - len(made), _PART))
            if not part:
                raise ConnectionError
            made += part
        return bytes(made)
