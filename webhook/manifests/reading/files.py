"""Read the files named on the command line, one at a time.

A directory means all .yaml, .yml and .json files below it, sorted, without following links to directories. Hidden
files are skipped, with a note if they have constraints. ``-`` is standard input. An unreadable file becomes an
`InputFault`, and reading continues. A path in a directory that is not a file becomes a note.
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
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct, structs

from webhook.core.workloads.custom_kinds import CONSTRAINTS
from webhook.manifests.reading.documents import BYTE_ORDER_MARKS, InputFault

STDIN = "-"
STDIN_NAME = "<stdin>"
_SUFFIXES = (".yaml", ".yml", ".json")
# More than any list of a cluster (150,000 pods are about 0.6 GiB), and still little enough for memory.
_MAX_INPUT_BYTES = 2**30

_OPEN_FILES = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
PIPES = (STDIN_NAME, *_OPEN_FILES)
"""Prefixes of file names for the output of another program."""
_HIDDEN = f"skipped: hidden file or directory with {CONSTRAINTS}; pass its path to check it"
_OF_GIT = frozenset({".git", ".hg", ".svn"})
_MAX_HIDDEN_BYTES = 2**23  # `manifest` reads no larger YAML
_CHUNK = 2**20  # by which a compressed file may pass the limit before it is refused
_GZIP = b"\x1f\x8b"
_KINDS_OF_FILES = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFDIR: "a directory"}

LEADS_OUT = "a link out of the working folder is neither read nor written"
_UNQUOTED = "not a readable manifest; evenspread quotes no text of a linked file: check the link's target itself"
_PLAIN = ("skipped: ", "not a Kubernetes object: ")  # how messages begin that quote nothing


class File(Struct, frozen=True):
    """A file: name, bytes, and whether its path follows a link inside the working folder."""

    name: str
    data: bytes
    linked: bool = False

    def unquoted(self, fault: InputFault) -> InputFault:
        """Return the fault, for a linked file with a message that quotes no text.

        The author of the symbolic link may not be allowed to read the link's target.
        """
        quotes = self.linked and not fault.message.startswith(_PLAIN)
        return structs.replace(fault, message=_UNQUOTED) if quotes else fault


def leads_out(path: str, top: str = "") -> bool:
    """Whether a link inside the working folder, or inside ``top``, leads out of both."""
    return _by_links(path, top)[1]


def _by_links(path: str, top: str) -> tuple[bool, bool]:
    """Whether the path follows a symbolic link, and whether the link leads out.

    Only links in the working folder or in ``top`` count. A link leads out if its target is outside both folders. A link
    replaced during the run goes unnoticed.
    """
    folders = tuple(map(Path, map(os.path.realpath, (".", top))))
    # Not normalised: `link/..` is above the link's target.
    steps = accumulate(Path(folders[0], path).parts, os.path.join)
    linked = any(
        Path(step).is_symlink()
        and any(Path(os.path.realpath(Path(step).parent)).is_relative_to(folder) for folder in folders)
        for step in steps
    )
    real = Path(os.path.realpath(path))
    return linked, linked and not any(real.is_relative_to(folder) for folder in folders)


def read_files(
    paths: Sequence[str], ignore: Iterable[str] = (), *, unpack: bool = False
) -> Iterator[File | InputFault]:
    """Read every file named by the paths, each once.

    Args:
        paths: Files, directories, patterns, or ``-``.
        ignore: Patterns. A file or directory is left out if its path or name matches.
        unpack: Decompress gzip files.
    """
    patterns = tuple(ignore)
    seen: set[str] = set()
    hidden: dict[str, InputFault] = {}
    for path in paths:
        if path != STDIN and leads_out(path):
            yield InputFault(file=path, message=LEADS_OUT)
            continue
        top = path if Path(path).is_dir() else ""
        for entry in _files(path, patterns):
            if isinstance(entry, InputFault) and entry.message == _HIDDEN:
                hidden[os.path.realpath(entry.file)] = entry
            elif isinstance(entry, InputFault):
                yield entry
            elif (real := os.path.realpath(entry) if entry != STDIN else STDIN) not in seen:
                seen.add(real)
                linked, out = (False, False) if entry == STDIN else _by_links(entry, top)
                file = InputFault(file=entry, message=LEADS_OUT) if out else _read(entry, given=entry == path)
                if linked and isinstance(file, File):
                    file = structs.replace(file, linked=True)
                yield _unpacked(file) if unpack and isinstance(file, File) else file
    yield from (fault for real, fault in hidden.items() if real not in seen)


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
    any_file = False
    faults: list[InputFault] = []

    def unreadable(error: OSError) -> None:
        faults.append(InputFault(file=str(error.filename), message=_reason(error)))

    hidden: list[str] = []
    for directory, names, files in os.walk(top.rstrip("/") or "/", onerror=unreadable):
        wanted = sorted(name for name in names if not _ignored(f"{directory}/{name}", ignore))
        names[:] = [name for name in wanted if not name.startswith(".")]
        hidden += (f"{directory}/{name}" for name in wanted if name.startswith(".") and name not in _OF_GIT)
        yield from faults
        faults.clear()
        for name in sorted(files):
            path = f"{directory}/{name}"
            if not name.endswith(_SUFFIXES) or _ignored(path, ignore):
                continue
            if name.startswith("."):
                hidden.append(path)
                continue
            any_file = True
            yield path
    for path in hidden:
        yield from _hidden(path, ignore)
    if not any_file:
        yield from faults or [InputFault(file=top, message=f"no {', '.join(_SUFFIXES)} file in this directory")]


def _hidden(path: str, ignore: tuple[str, ...]) -> Iterator[InputFault]:
    """Yield a warning for each hidden file with constraints, because hidden files are not read."""
    if Path(path).is_dir() and Path(path).is_symlink():
        return
    below = (f"{directory}/{name}" for directory, _, names in os.walk(path) for name in sorted(names))
    for name in below if Path(path).is_dir() else (path,):
        if not name.endswith(_SUFFIXES) or _ignored(name, ignore) or leads_out(name, path):
            continue
        try:
            is_small = stat.S_ISREG((facts := Path(name).stat()).st_mode) and facts.st_size <= _MAX_HIDDEN_BYTES
            has_constraints = is_small and CONSTRAINTS.encode() in Path(name).read_bytes()
        except OSError:
            continue
        if has_constraints:
            yield InputFault(file=name, message=_HIDDEN, fatal=False)


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
            kind = _KINDS_OF_FILES.get(stat.S_IFMT(mode), "a device")
            return InputFault(file=name, message=f"{kind}, not a file", fatal=given)
        with Path(path).open("rb") as file:
            return _bounded(name, file)
    except OSError as error:
        if Path(path).is_symlink() and not Path(path).exists():
            return InputFault(file=name, message="a broken link", fatal=given)
        return InputFault(file=name, message=_reason(error))


def most_unpacked(packed: int) -> int:
    """Return the limit for the unpacked size of a gzip file, in bytes.

    ``packed`` is the size of the gzip file in bytes. Snapshots of clusters unpack to 13 to 16 times their size.
    """
    return min(_MAX_INPUT_BYTES, 2**25 + 40 * packed)


def _bounded(name: str, file: BinaryIO | gzip.GzipFile, most: int = _MAX_INPUT_BYTES) -> File | InputFault:
    pieces, size = [], 0
    while piece := file.read(_CHUNK):
        pieces.append(piece)
        size += len(piece)
        if size > most:
            larger = f"unpacks to more than {most:,} bytes" if most < _MAX_INPUT_BYTES else "larger than 1 GiB"
            return InputFault(file=name, message=larger)
    data = b"".join(pieces)
    # As kubectl reads UTF-16. Source: cli-runtime pkg/resource/visitor.go ``FileVisitor.Visit``.
    return File(name, data.decode("utf-16", "replace").encode() if data.startswith(BYTE_ORDER_MARKS) else data)


def _unpacked(file: File) -> File | InputFault:
    if not file.data.startswith(_GZIP):
        return file
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(file.data)) as unpacked:
            content = _bounded(file.name, unpacked, most_unpacked(len(file.data)))
    except (OSError, EOFError, zlib.error) as error:
        return InputFault(file=file.name, message=f"cannot be unpacked: {error}")
    return structs.replace(content, linked=file.linked) if isinstance(content, File) else content


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
