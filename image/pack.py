"""Compile the Python files of a folder and pack it into a layer: run by the image's own interpreter (see build.py).

    python -m image.pack FOLDER LAYER SECONDS     prints the layer's descriptor as JSON

Bytecode and gzip differ between releases of Python and of zlib, so that only the interpreter that is locked gives the
same bytes everywhere.
"""

import compileall
import gzip
import hashlib
import json
import py_compile
import shutil
import sys
import tarfile
from pathlib import Path

_WRITABLE = {"tmp", "var/tmp"}
_LEVEL = 6  # of gzip: 9 takes five times as long for one per cent


def compile_all(folder: Path) -> None:
    """Write the bytecode of every Python file; a read-only root writes none later.

    Errors: SystemExit if a file cannot be compiled.
    """
    done = compileall.compile_dir(
        folder,
        quiet=2,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,  # no dates in them, and no look at the source
        stripdir=str(folder),
        prependdir="/",
    )
    if not done:
        raise SystemExit(f"{folder}: not every file could be compiled")


def pack(folder: Path, layer: Path, seconds: int) -> dict[str, object]:
    """Pack a folder. Shape: OCI's descriptor of the layer, and ``diff_id``, the digest before compression."""
    plain = layer.with_suffix(".plain")
    with tarfile.open(plain, "w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(folder.rglob("*")):
            _add(archive, path, str(path.relative_to(folder)), seconds)
    with (
        plain.open("rb") as file,
        layer.open("wb") as target,
        gzip.GzipFile("", "wb", _LEVEL, target, 0) as zipped,
    ):
        shutil.copyfileobj(file, zipped)
    kind = "application/vnd.oci.image.layer.v1.tar+gzip"
    made = {"mediaType": kind, "digest": _digest(layer), "size": layer.stat().st_size, "diff_id": _digest(plain)}
    plain.unlink()
    return made


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return f"sha256:{hashlib.file_digest(opened, 'sha256').hexdigest()}"


def _add(archive: tarfile.TarFile, path: Path, name: str, seconds: int) -> None:
    """Add one file as root's, with the one date, and with what its mode says of running it and no more."""
    member = tarfile.TarInfo(name)
    member.mtime = seconds
    if path.is_symlink():
        member.type, member.linkname, member.mode = tarfile.SYMTYPE, str(path.readlink()), 0o777
        archive.addfile(member)
    elif path.is_dir():
        member.type, member.mode = tarfile.DIRTYPE, 0o1777 if name in _WRITABLE else 0o755
        archive.addfile(member)
    else:
        status = path.stat()
        member.size, member.mode = status.st_size, 0o755 if status.st_mode & 0o111 else 0o644
        with path.open("rb") as content:
            archive.addfile(member, content)


def main(folder: str, layer: str, seconds: str) -> None:
    """Compile and pack, and print the descriptor."""
    compile_all(Path(folder))
    print(json.dumps(pack(Path(folder), Path(layer), int(seconds))))  # noqa: T201 for the program that started it


if __name__ == "__main__":
    main(*sys.argv[1:])
