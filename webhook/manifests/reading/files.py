"""The paths of a command line -> the files that they name, read one at a time.

A directory stands for all .yaml, .yml and .json files below it, sorted, without hidden ones and without following links
to directories. ``-`` is the standard input. A file that cannot be read becomes an `InputFault`, and reading goes on.
"""

import fnmatch
import glob
import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from webhook.manifests.reading.documents import InputFault

STDIN = "-"
STDIN_NAME = "<stdin>"
SUFFIXES = (".yaml", ".yml", ".json")
# More than any list of a cluster (150,000 pods are about 0.6 GiB), and still little enough for memory.
MAX_INPUT_BYTES = 2**30

_OPEN_FILES = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
PIPES = (STDIN_NAME, *_OPEN_FILES)
"""How the names of files begin that are no files, but what another program prints."""
_CHUNK = 2**20  # by which a compressed file may pass the limit before it is refused
_GZIP = b"\x1f\x8b"


class File(Struct, frozen=True):
    """A file's name, as given or found, and its bytes."""

    name: str
    data: bytes


def read_files(
    paths: Sequence[str], ignore: Iterable[str] = (), *, unpack: bool = False
) -> Iterator[File | InputFault]:
    """Read every file that the paths name, each once.

    Shape: ``ignore`` are patterns; a file or directory is left out if its whole path, or its name, matches one.
    ``unpack`` reads through gzip.
    """
    patterns = tuple(ignore)
    seen: set[str] = set()
    for path in paths:
        for found in _files(path, patterns):
            if isinstance(found, InputFault):
                yield found
            elif (real := os.path.realpath(found) if found != STDIN else STDIN) not in seen:
                seen.add(real)
                file = _read(found, given=found == path)
                yield _unpacked(file) if unpack and isinstance(file, File) else file


def _files(path: str, ignore: tuple[str, ...]) -> Iterator[str | InputFault]:
    if path == STDIN:
        yield path
        return
    if not os.path.lexists(path) and glob.has_magic(path):
        matches = sorted(glob.iglob(path, recursive=True))  # noqa: PTH207 - Path.glob takes no absolute pattern
        if not matches:
            yield InputFault(file=path, message="no file matches")
        for match in matches:
            if not _ignored(match, ignore):
                yield from _walk(match, ignore) if Path(match).is_dir() else (match,)
    elif Path(path).is_dir():
        yield from _walk(path, ignore)
    else:
        yield path


def _walk(top: str, ignore: tuple[str, ...]) -> Iterator[str | InputFault]:
    found = False
    faults: list[InputFault] = []

    def unreadable(error: OSError) -> None:
        faults.append(InputFault(file=str(error.filename), message=_reason(error)))

    for directory, names, files in os.walk(top.rstrip("/") or "/", onerror=unreadable):
        names[:] = sorted(
            name for name in names if not name.startswith(".") and not _ignored(f"{directory}/{name}", ignore)
        )
        yield from faults
        faults.clear()
        for name in sorted(files):
            path = f"{directory}/{name}"
            if name.endswith(SUFFIXES) and not name.startswith(".") and not _ignored(path, ignore):
                found = True
                yield path
    if not found:
        yield from faults or [InputFault(file=top, message=f"no {', '.join(SUFFIXES)} file in this directory")]


def _ignored(path: str, patterns: tuple[str, ...]) -> bool:
    name = Path(path).name
    return any(fnmatch.fnmatch(path, pattern) or fnmatch.fnmatch(name, pattern) for pattern in patterns)


def _read(path: str, *, given: bool) -> File | InputFault:
    """Read one file. Pipes are read only if the path was ``given``, as in ``check <(helm template .)``."""
    name = STDIN_NAME if path == STDIN else path
    try:
        if path == STDIN:
            return _bounded(name, sys.stdin.buffer)
        mode = Path(path).stat().st_mode
        if not stat.S_ISREG(mode) and not (given and path.startswith(_OPEN_FILES)):
            return InputFault(file=name, message=f"{_file_type(mode)}, not a file")
        with Path(path).open("rb") as file:
            return _bounded(name, file)
    except OSError as error:
        broken = Path(path).is_symlink() and not Path(path).exists()
        return InputFault(file=name, message="a broken link" if broken else _reason(error))


def _bounded(name: str, file: BinaryIO | gzip.GzipFile) -> File | InputFault:
    pieces, size = [], 0
    while piece := file.read(_CHUNK):
        pieces.append(piece)
        size += len(piece)
        if size > MAX_INPUT_BYTES:
            return InputFault(file=name, message=f"larger than {MAX_INPUT_BYTES // 2**30} GiB")
    return File(name, b"".join(pieces))


def _unpacked(file: File) -> File | InputFault:
    if not file.data.startswith(_GZIP):
        return file
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(file.data)) as unpacked:
            return _bounded(file.name, unpacked)
    except (OSError, EOFError, zlib.error) as error:
        return InputFault(file=file.name, message=f"cannot be unpacked: {error}")


def _file_type(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "a named pipe"
    return "a socket" if stat.S_ISSOCK(mode) else "a directory" if stat.S_ISDIR(mode) else "a device"


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
