"""A memory limit for a group of processes, as a container has it: a cgroup, of either version."""

import contextlib
import itertools
import os
import pathlib
import signal
import time

ROOTS = (pathlib.Path("/sys/fs/cgroup/memory"), pathlib.Path("/sys/fs/cgroup"))  # version 1, version 2
NUMBERS = itertools.count(1)
MIB = 1024 * 1024


class MemoryGroup:
    """Made by `memory_group`; what runs in it is killed by the kernel past the limit."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self._first = (folder / "memory.limit_in_bytes").exists()

    def limit(self, mib: int) -> None:
        name = "memory.limit_in_bytes" if self._first else "memory.max"
        (self._folder / name).write_text(str(mib * MIB))

    @property
    def entrance(self) -> pathlib.Path:
        """A process that writes its number here is in the group, and so are its children."""
        return self._folder / "cgroup.procs"

    @property
    def members(self) -> list[int]:
        return [int(each) for each in self.entrance.read_text().split()]

    @property
    def anonymous(self) -> float:
        """MiB of memory that belongs to processes: what stays when they have nothing to do."""
        return self._numbers("memory.stat")["total_rss" if self._first else "anon"] / MIB

    @property
    def usage(self) -> float:
        """MiB of all that counts against the limit."""
        name = "memory.usage_in_bytes" if self._first else "memory.current"
        return int((self._folder / name).read_text()) / MIB

    @property
    def killed(self) -> int:
        """How many processes the limit has killed."""
        return self._numbers("memory.oom_control" if self._first else "memory.events")["oom_kill"]

    def _numbers(self, name: str) -> dict[str, int]:
        lines = (self._folder / name).read_text().split("\n")
        return {key: int(number) for key, _, number in (line.partition(" ") for line in lines if line)}

    def remove(self) -> None:
        """With whatever is still in it."""
        for _ in range(100):
            for pid in self.members:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(OSError):
                self._folder.rmdir()
                return
            time.sleep(0.05)


def memory_group() -> MemoryGroup | None:
    """A new group; None where this machine lets nobody make one."""
    for root in ROOTS:
        folder = root / f"evenspread-{os.getpid()}-{next(NUMBERS)}"
        with contextlib.suppress(OSError):
            folder.mkdir()
            if (folder / "memory.stat").exists():
                return MemoryGroup(folder)
            folder.rmdir()
    return None
