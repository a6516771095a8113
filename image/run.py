"""Run an image as a kubelet would, without a container engine: its own files, read-only, its user, no capabilities.

    python3 image/run.py dist/image --bind tls:/run/evenspread/tls --tmpfs /tmp -- webhook --cert …

The program is process 1 of namespaces of its own (user, mounts, processes, IPC), but for the network, which is the
caller's: inside tests/e2e/controlplane/netns.sh it answers at any pod's address. What stands behind ``--`` replaces
the image's arguments, as ``args`` of a container does. Everything in FOLDER/root is read-only; /run holds the mount
points and nothing else, /dev/shm is writable and empty at first. SIGTERM, SIGINT and SIGHUP go to the program, and its
exit code is ours. It ends with us, even when we are killed.

Started by root of the machine, files have the owners that they have in the image; else all of them belong to the one
user there is, and a file that only root may read is not noticed. There is no seccomp filter and no limit on anything.
"""

import argparse
import ctypes
import errno
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

_NEW_USER, _NEW_MOUNTS, _NEW_PROCESSES, _NEW_IPC = 0x10000000, 0x20000, 0x20000000, 0x8000000
_READ_ONLY, _NO_SUID, _NO_DEV, _NO_EXEC, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
_DETACH = 2
_DEATH_SIGNAL, _DROP_BOUND, _NO_NEW_PRIVILEGES, _AMBIENT, _CLEAR_AMBIENT = 1, 24, 38, 47, 4
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_IDS = 65536
_DEVICES = ("null", "zero", "full", "random", "urandom")
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_CANNOT = 125  # as docker run and podman run have it: the fault is ours, not the program's

_libc = ctypes.CDLL(None, use_errno=True)


class Mount(NamedTuple):
    """A file or folder of the machine, and where it is seen."""

    source: Path
    target: str
    writable: bool

    @classmethod
    def parse(cls, text: str) -> "Mount":
        """From HOST:PATH or HOST:PATH:rw."""
        source, _, rest = text.partition(":")
        target, *more = rest.split(":")
        if not target.startswith("/") or more not in ([], ["rw"]):
            raise argparse.ArgumentTypeError(f"{text}: write HOST:PATH or HOST:PATH:rw")
        return cls(Path(source).resolve(), target, bool(more))


class Container(NamedTuple):
    """What is run, and what it sees. Shape: ``user`` is the number of the user and of the group."""

    root: Path
    command: tuple[str, ...]
    environment: dict[str, str]
    user: int
    mounts: tuple[Mount, ...]
    writable: tuple[str, ...]
    group: Path | None


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text}: write NAME=VALUE")
    return name, value


def config_of(folder: Path) -> dict[str, Any]:
    """How an image wants to be run, from the one manifest of its layout.

    Errors: OSError if there is no image.
    """
    if not (folder / "layout").is_dir():
        raise OSError(errno.ENOENT, f"{folder}: make image builds one")

    def blob(descriptor: dict[str, Any]) -> dict[str, Any]:
        found = folder / "layout/blobs/sha256" / descriptor["digest"].removeprefix("sha256:")
        read: dict[str, Any] = json.loads(found.read_text())
        return read

    [entry] = json.loads((folder / "layout/index.json").read_text())["manifests"]
    wanted: dict[str, Any] = blob(blob(entry)["config"])["config"]
    return wanted


def _call(name: str, *arguments: object) -> int:
    """Call the C library.

    Errors: OSError.
    """
    result = int(getattr(_libc, name)(*arguments))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def _mount(source: Path | str, target: Path, kind: str | None, flags: int, options: str = "") -> None:
    names = [None if each is None else os.fsencode(each) for each in (source, target, kind)]
    try:
        _call("mount", *names, ctypes.c_ulong(flags), options.encode() or None)
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror} ({source} at {target})") from error


def _bind(source: Path, target: Path, *, writable: bool = False) -> None:
    """Show a file or folder in another place; what is forbidden where it comes from stays forbidden."""
    _mount(source, target, None, _BIND | _RECURSIVE)
    kept = os.statvfs(target).f_flag & (_READ_ONLY | _NO_SUID | _NO_DEV | _NO_EXEC)  # the numbers of mount(2)
    _mount("none", target, None, _REMOUNT | _BIND | kept | _NO_SUID | (0 if writable else _READ_ONLY))


def _enter_namespaces(user: int) -> bool:
    """Enter namespaces of our own; returns whether all users are there, or the one alone."""
    us, everybody = os.getpid(), os.geteuid() == 0 and _mapped() >= _IDS
    users, groups = ((0, 0, _IDS),) * 2 if everybody else ((user, os.geteuid(), 1), (user, os.getegid(), 1))
    reading, writing = os.pipe()
    mapper = os.fork()
    if mapper == 0:  # it stays outside, where the users are
        os.read(reading, 1)
        _or_say(lambda: _map(us, users, groups, everybody=everybody))
    try:
        _call("unshare", _NEW_USER | _NEW_MOUNTS | _NEW_PROCESSES | _NEW_IPC)
    finally:
        os.write(writing, b"x")
    if os.waitpid(mapper, 0)[1]:
        raise OSError(errno.EPERM, "the users cannot be mapped")
    return everybody


def _map(process: int, users: Sequence[int], groups: Sequence[int], *, everybody: bool) -> NoReturn:
    """Tell the kernel who is who in the namespace of a process. Shape: number inside, number outside, how many."""
    if not everybody:
        Path(f"/proc/{process}/setgroups").write_text("deny")
    for file, numbers in (("uid_map", users), ("gid_map", groups)):
        Path(f"/proc/{process}/{file}").write_text(" ".join(map(str, numbers)))
    os._exit(0)


def _mapped() -> int:
    """How many users there are in our own namespace."""
    lines = Path("/proc/self/uid_map").read_text().splitlines()
    return max(int(line.split()[2]) for line in lines)


def _furnish(container: Container) -> None:
    """Mount all that the program sees, but for its processes."""
    root = container.root
    _mount("none", Path("/"), None, _RECURSIVE | _PRIVATE)
    _bind(root, root)
    for place in ("run", "dev"):
        _mount("tmpfs", root / place, "tmpfs", _NO_SUID | _NO_DEV, "mode=755")
    _make_devices(root / "dev")
    for path in container.writable:
        target = root / path.strip("/")
        _make_mount_point(path, target, folder=True)
        _mount("tmpfs", target, "tmpfs", _NO_SUID | _NO_DEV, "mode=1777")
    for mount in container.mounts:
        target = root / mount.target.lstrip("/").replace("var/run/", "run/", 1)
        _make_mount_point(mount.target, target, folder=mount.source.is_dir())
        _bind(mount.source, target, writable=mount.writable)
    for place in ("run", "dev"):
        _mount("none", root / place, None, _REMOUNT | _BIND | _READ_ONLY | _NO_SUID | _NO_DEV)


def _make_devices(target: Path) -> None:
    for name in _DEVICES:
        (target / name).touch()
        _mount(f"/dev/{name}", target / name, None, _BIND)
    (target / "fd").symlink_to("/proc/self/fd")


def _make_mount_point(path: str, target: Path, *, folder: bool) -> None:
    """Make a place to mount at, below /run; elsewhere it has to be in the image."""
    try:
        if folder:
            target.mkdir(parents=True, exist_ok=True)
        elif not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.touch()
    except OSError as error:
        raise OSError(error.errno, f"{path} is not in the image, and mount points are made below /run") from error


def _be_program(container: Container, *, everybody: bool) -> NoReturn:
    """Become the program, as process 1: its files and processes, its user, no capabilities and no way to get any."""
    try:
        _mount("proc", container.root / "proc", "proc", _NO_SUID | _NO_DEV | _NO_EXEC)
    except PermissionError:  # where a part of it is hidden from us: theirs, in which our numbers are others
        _bind(Path("/proc"), container.root / "proc")
    os.setsid()
    os.chdir(container.root)
    _call("syscall", ctypes.c_long(_PIVOT_ROOT[os.uname().machine]), b".", b".")
    _call("umount2", b".", _DETACH)
    os.chdir("/")
    for capability in range(int(Path("/proc/sys/kernel/cap_last_cap").read_text()) + 1):
        _call("prctl", _DROP_BOUND, capability, 0, 0, 0)
    if everybody:
        os.setgroups([])
        os.setresgid(container.user, container.user, container.user)
        os.setresuid(container.user, container.user, container.user)
    _call("prctl", _AMBIENT, _CLEAR_AMBIENT, 0, 0, 0)
    _call("prctl", _NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    _call("prctl", _DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    os.execve(container.command[0], container.command, container.environment)  # noqa: S606 it is what we are for


def run(container: Container) -> int:
    """Run a container; returns its exit code, or 128 and the signal that ended it.

    Errors: OSError where this machine forbids what it takes.
    """
    group = None if container.group is None else os.open(container.group, os.O_WRONLY)
    everybody = _enter_namespaces(container.user)
    _furnish(container)
    waiting = signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
    program = os.fork()
    if program == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, waiting)
        if group is not None:
            os.write(group, b"0")  # whoever writes it
            os.close(group)
        _or_say(lambda: _be_program(container, everybody=everybody))
    for number in _FORWARDED:
        signal.signal(number, lambda given, _frame: os.kill(program, given))
    signal.pthread_sigmask(signal.SIG_SETMASK, waiting)
    code = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
    return 128 - code if code < 0 else code


def _or_say(act: Callable[[], NoReturn]) -> NoReturn:
    """Do it; where that fails, say why and end."""
    try:
        act()
    except OSError as error:
        sys.stderr.write(f"image/run.py: {error.strerror}\n")
        sys.stderr.flush()
    os._exit(_CANNOT)


def asked(arguments: Sequence[str]) -> Container:
    """What a command line asks for.

    Errors: SystemExit; OSError if there is no image.
    """
    parser = argparse.ArgumentParser(prog="image/run.py", epilog="What follows -- are the arguments of the program.")
    parser.add_argument("folder", type=Path, help="what `make image` wrote")
    parser.add_argument("--bind", metavar="HOST:PATH[:rw]", type=Mount.parse, action="append", default=[])
    parser.add_argument("--tmpfs", metavar="PATH", action="append", default=[], help="a further writable, empty folder")
    parser.add_argument("--env", metavar="NAME=VALUE", type=_pair, action="append", default=[])
    parser.add_argument("--cgroup", metavar="FILE", type=Path, help="cgroup.procs of the group that the program is in")
    parser.add_argument("--entrypoint", metavar="PATH", help="another program of the image")
    end = arguments.index("--") if "--" in arguments else len(arguments)
    given, rest = parser.parse_args(arguments[:end]), arguments[end + 1 :]
    config = config_of(given.folder)
    start = [given.entrypoint] if given.entrypoint else config["Entrypoint"]
    return Container(
        root=(given.folder / "root").resolve(),
        command=(*start, *(rest or ([] if given.entrypoint else config["Cmd"]))),
        environment=dict((*map(_pair, config["Env"]), *given.env)),
        user=int(config["User"].partition(":")[0]),
        mounts=tuple(given.bind),
        writable=("/dev/shm", *given.tmpfs),  # noqa: S108 as every kubelet gives it
        group=given.cgroup,
    )


def main() -> int:
    """Run what the command line asks for."""
    try:
        return run(asked(sys.argv[1:]))
    except OSError as error:
        sys.stderr.write(f"image/run.py: {error.strerror}\n")
        return _CANNOT


if __name__ == "__main__":
    sys.exit(main())
