"""Answer a what-if question about a change to the cluster or to a workload.

A worker process runs the simulation (`webhook.core.what_if`). The worker reads the cluster like the command line, so
the console and the command line give the same answers. The worker has a deadline, the lowest priority, and only the
memory left in its container. At most one worker runs at a time.

Source: kubelet kuberuntime_container_linux.go (``memory.oom.group``); Linux cgroup-v2.rst (``memory.max``,
    ``memory.current``, ``memory.oom.group``).
"""

import contextlib
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import join

import msgspec
from msgspec import UNSET, Struct

from webhook.answers.simulated import Simulated
from webhook.console.query import number
from webhook.core.decoders import decoder_of
from webhook.core.scan.scan_results import ScannedWorkload
from webhook.core.text import one_line
from webhook.core.what_if.events import LabelledNodes, WhatIf

_MIB = 1024 * 1024
_SPARE_BYTES = 32 * _MIB  # for allocations of the controller meanwhile
_MOST_PROCESSOR_SECONDS = 30  # also ends a worker whose controller has ended
_MOST_ANSWER_BYTES = 4 * _MIB  # a document has some KiB
_NICE = 5  # the scan and the console have priority
MOST_REPLICAS, MOST_NODES = 1_000, 100  # beyond them, the search would rarely end in time
_LONGEST_NAME = 253  # of a Kubernetes object


class WorkerLimits(Struct, frozen=True, kw_only=True):
    """The limits of a worker process.

    Attributes:
        seconds: The worker's time. Reading 5,000 pods takes 3 s. The worker itself limits its search by states.
        patience_seconds: The longest wait for the previous worker to end.
        most_bytes: The worker's memory. In a container, also at most its free memory.
        least_bytes: With less free memory, no worker starts. The example cluster needs 32 MiB.
        cgroup: The container's control group, as the container sees it.
    """

    seconds: float = 30.0
    patience_seconds: float = 2.0
    most_bytes: int = 512 * _MIB
    least_bytes: int = 96 * _MIB
    cgroup: Path = Path("/sys/fs/cgroup")

    def bytes_left(self) -> int:
        """Return the memory available to the worker. Raises NoAnswer if it is too little."""
        left = self.most_bytes
        # Outside a container these files are missing, or the limit is "max".
        with contextlib.suppress(OSError, ValueError):
            most, current = (int((self.cgroup / f"memory.{name}").read_text("ascii")) for name in ("max", "current"))
            left = min(left, most - current - _SPARE_BYTES)
        if left < self.least_bytes:
            raise NoAnswer(
                f"The memory limit of this container leaves too little for the simulation: {max(0, left) // _MIB} MiB. "
                "Raise the limit, or run the command in a terminal."
            )
        return left


_LIMITS = WorkerLimits()


class WhatIfChange(Struct, frozen=True, kw_only=True):
    """A what-if event for a workload, from the console's form.

    Empty and None mean no change.

    Attributes:
        lose: The zone to lose.
        drain: The node to drain.
        delete: The node to delete.
        add: The zone of the added nodes.
        nodes: The number of added nodes.
    """

    kind: str
    namespace: str
    name: str
    replicas: int | None = None
    lose: str = ""
    drain: str = ""
    delete: str = ""
    add: str = ""
    nodes: int = 1
    rollout: bool = False

    @property
    def title(self) -> str:
        """The workload, as ``deployment/web``."""
        return f"{self.kind.lower()}/{self.name}"

    @property
    def what_if(self) -> WhatIf:
        """The change to the cluster."""
        return WhatIf(
            drain=(self.drain,) if self.drain else (),
            delete=(self.delete,) if self.delete else (),
            lose=(LabelledNodes("zone", self.lose),) if self.lose else (),
            added=((LabelledNodes("zone", self.add), self.nodes),) if self.add else (),
        )

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of `evenspread simulate`. Each value is joined to its option, as in ``--drain=node-1``."""
        values = {"drain": self.drain, "delete-node": self.delete, "lose": self.lose and f"zone={self.lose}"}
        more = [f"--{option}={value}" for option, value in values.items() if value]
        if self.replicas is not None:
            more.append(f"--replicas={self.replicas}")
        if self.add:
            more.append(f"--add-nodes=zone={self.add}:{self.nodes}")
        if self.rollout:
            more.append("--rollout")
        return (*more, f"--namespace={self.namespace}", "--", self.title)


class NoAnswer(Exception):  # noqa: N818 it is no error: the question was too large, or came too early
    """A what-if question has no answer, for example because it needs too much memory.

    The message is a sentence for the user.
    """


def read_change(workload: ScannedWorkload, given: Mapping[str, str]) -> WhatIfChange:
    """Read the change from a form. Numbers out of bounds are ignored."""

    def text(name: str) -> str:
        return given.get(name, "").strip()[:_LONGEST_NAME]

    return WhatIfChange(
        kind=workload.kind,
        namespace=workload.namespace,
        name=workload.name,
        replicas=number(text("replicas"), most=MOST_REPLICAS),
        lose=text("lose"),
        drain=text("drain"),
        delete=text("delete"),
        add=text("add"),
        nodes=number(text("nodes"), most=MOST_NODES) or 1,
        rollout=bool(text("rollout")),
    )


class _PageAnswer(Struct, frozen=True, kw_only=True):
    """The template values of the what-if page. Without a result, ``refused`` has the reason."""

    events: tuple[Simulated, ...]
    refused: str
    command: str


def outcome(simulator: "Simulator", change: WhatIfChange) -> _PageAnswer:
    """Simulate the change. Returns the answer, or the reason for no answer, for the page."""
    command = simulator.command(change)
    try:
        document = simulator.answer(change)
    except NoAnswer as error:
        return _PageAnswer(events=(), refused=str(error), command=command)
    events = (document,) if document.events is UNSET else document.events
    return _PageAnswer(events=events, refused="", command=command)


class Simulator:
    """Runs `evenspread simulate` in a worker process.

    Args:
        worker: The module of the process. It reads a `WhatIfChange` from stdin and writes `Simulated` to stdout.
        cluster: The options for cluster and configuration.
        limits: The limits of the process.
    """

    def __init__(self, worker: str, cluster: Sequence[str], limits: WorkerLimits = _LIMITS) -> None:
        self._worker = worker
        self._cluster = tuple(cluster)
        self._limits = limits
        self._free = threading.Lock()

    def command(self, change: WhatIfChange) -> str:
        """The command for a terminal."""
        return join(("evenspread", "simulate", *self._cluster, *change.arguments))

    def answer(self, change: WhatIfChange) -> Simulated:
        """Simulate the change in a worker process, and return the result.

        Raises:
            NoAnswer: Another simulation is running, or this simulation exceeds a limit or fails.
        """
        if not self._free.acquire(timeout=self._limits.patience_seconds):
            raise NoAnswer("Another what-if question is being answered. Try again in a moment.")
        try:
            return self._answer(change)
        finally:
            self._free.release()

    def _answer(self, change: WhatIfChange) -> Simulated:
        left = self._limits.bytes_left()
        command = (sys.executable, "-P", "-m", self._worker, *self._cluster)
        # The worker imports modules from the same places as this process. An installed program sets its own path.
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        with subprocess.Popen(  # noqa: S603 our own program; no argument comes from a form
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
            env=environment,
        ) as process:
            _restrain(process.pid, left)
            try:
                output, errors = process.communicate(msgspec.json.encode(change), timeout=self._limits.seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                raise NoAnswer(
                    f"The simulation takes longer than {self._limits.seconds:g} s. The command line has no limit."
                ) from None
        return _read(process.returncode, output, errors)


def _restrain(pid: int, most_bytes: int) -> None:
    """Limit the worker's memory and lower its priority. The worker may have ended already."""
    with contextlib.suppress(OSError):
        resource.prlimit(pid, resource.RLIMIT_DATA, (most_bytes, most_bytes))
        resource.prlimit(pid, resource.RLIMIT_CPU, (_MOST_PROCESSOR_SECONDS, _MOST_PROCESSOR_SECONDS))
        os.setpriority(os.PRIO_PROCESS, pid, _NICE)
        # On a node short of memory, the kernel ends the worker first. In a container at its limit, the kubelet makes
        # the kernel end all processes, so the worker's limit is the memory left in the container.
        Path(f"/proc/{pid}/oom_score_adj").write_text("1000", encoding="ascii")


def _read(code: int, output: bytes, errors: bytes) -> Simulated:
    if code == 0 and len(output) <= _MOST_ANSWER_BYTES:
        with contextlib.suppress(msgspec.DecodeError):
            return decoder_of(Simulated).decode(output)
    lines = errors.decode("utf-8", "replace").strip().splitlines()
    # The kernel ends a worker without a word. Python may notice the limit first.
    if not lines or MemoryError.__name__ in lines[-1]:
        raise NoAnswer("The simulation needs more memory than this container has left.")
    raise NoAnswer(one_line(lines[-1].removeprefix("evenspread: ")))
