"""Build the container image with ordinary means: no container engine, no root, nothing compiled but bytecode.

    python -m image.build WHEEL FOLDER       dist/image by `make image`

Three layers: Debian's packages, the locked wheels, our own wheel. What goes in is locked by hash (packages.lock,
requirements.lock), and the interpreter that is in the first layer packs all of them, so that the same inputs give the
same digest on every machine. The Dockerfile calls this too, and takes the folder ``root``.

FOLDER gets ``layout`` (an OCI layout), ``root`` (the same files, to run as they are: run.py), ``sbom.spdx.json``,
``provenance.json``, and ``digest``. Layers are kept in the user's cache folder, by what they are made of.
"""

import argparse
import datetime as dt
import hashlib
import json
import os
import platform
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from image import debian, documents, oci, wheels

ROOT = Path(__file__).parents[1]
REQUIREMENTS = ROOT / "requirements.lock"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evenspread" / "image"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_LOADERS = {"amd64": "ld-linux-x86-64.so.2", "arm64": "ld-linux-aarch64.so.1"}
# Models and a second client, asynchronous: 70 MB that nothing imports, since objects are read as JSON.
_LEFT_OUT = ("kubernetes/aio", "kubernetes/client/api/[a-z]*", "kubernetes/client/models/[a-z]*")


class Layer(NamedTuple):
    """A layer in the cache. ``descriptor`` is what pack.py has printed."""

    folder: Path
    descriptor: dict[str, str]

    @property
    def root(self) -> Path:
        """The files of it."""
        return self.folder / "root"

    @property
    def file(self) -> Path:
        """The packed files."""
        return self.folder / "layer.tar.gz"


class Inputs(NamedTuple):
    """All that an image is made of."""

    architecture: str
    debian: debian.Lock
    requirements: tuple[Path, ...]
    wheel: Path

    @property
    def seconds(self) -> int:
        """The date of every file: SOURCE_DATE_EPOCH, or the day of the lock."""
        given = os.environ.get("SOURCE_DATE_EPOCH")
        return int(given or dt.datetime.fromisoformat(self.debian.date).timestamp())


def machine() -> str:
    """The architecture of this machine, by Debian's name."""
    return _ARCHITECTURES[platform.machine()]


def gather(wheel: Path, architecture: str) -> Inputs:
    """Fetch what is locked.

    Errors: SystemExit if something cannot be had.
    """
    dependencies = wheels.fetched(REQUIREMENTS, architecture, CACHE / "wheels")
    return Inputs(architecture, debian.locked(architecture), tuple(dependencies), wheel)


def layers(inputs: Inputs) -> list[Layer]:
    """The layers of an image, from the cache where they are there."""
    ours = _base(debian.locked(machine()), inputs.seconds, None)
    packer = ours.root
    base = ours if inputs.architecture == machine() else _base(inputs.debian, inputs.seconds, packer)

    def dependencies(root: Path) -> None:
        for wheel in inputs.requirements:
            wheels.unpack(wheel, root)
        for pattern in _LEFT_OUT:
            for path in (root / wheels.SITE).glob(pattern):
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def program(root: Path) -> None:
        wheels.unpack(inputs.wheel, root)
        wheels.install_programs(inputs.wheel, root)

    hashes = [hashlib.sha256(each.read_bytes()).hexdigest() for each in (*inputs.requirements, inputs.wheel)]
    *required, own = hashes
    return [
        base,
        _layer(dependencies, [*required, *_LEFT_OUT], inputs.seconds, packer),
        _layer(program, [own], inputs.seconds, packer),
    ]


def _base(lock: debian.Lock, seconds: int, packer: Path | None) -> Layer:
    def unpack(root: Path) -> None:
        debian.unpack(lock, CACHE / "debian", root)

    return _layer(unpack, [each.sha256 for each in lock.packages], seconds, packer)


def _layer(fill: Callable[[Path], None], made_of: Iterable[str], seconds: int, packer: Path | None) -> Layer:
    """A layer by what it is made of; ``packer`` is the root whose interpreter packs it, itself without one."""
    programs = (Path(debian.__file__), Path(wheels.__file__), Path(__file__).with_name("pack.py"))
    parts = [*made_of, *(each.read_text() for each in programs), str(seconds)]
    folder = CACHE / "layers" / hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
    if not folder.exists():
        half = folder.with_suffix(f".{os.getpid()}")
        shutil.rmtree(half, ignore_errors=True)
        made = Layer(half, {})
        made.root.mkdir(parents=True)
        fill(made.root)
        printed = _interpreter(packer or made.root, "-m", "image.pack", str(made.root), str(made.file), str(seconds))
        (half / "descriptor.json").write_text(printed)
        try:
            half.rename(folder)
        except OSError:  # another build has made the same meanwhile
            shutil.rmtree(half)
    return Layer(folder, json.loads((folder / "descriptor.json").read_text()))


def _interpreter(root: Path, *arguments: str) -> str:
    """What the interpreter of a root prints, run as a program of this machine, without what is set up for its own."""
    [libraries] = (root / "usr/lib").glob("*-linux-gnu")
    loader = libraries / _LOADERS[machine()]
    python = [str(root / "usr/bin" / debian.PYTHON), "-P", "-S", "-B"]
    command = [str(loader), "--library-path", str(libraries), *python, *arguments]
    environment = {"PYTHONHOME": str(root / "usr"), "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603 ours
    return done.stdout


def unpack_root(found: Iterable[Layer], root: Path) -> None:
    """Write the files of an image as a container engine would."""
    half = root.with_suffix(".half")
    for old in (half, root):
        shutil.rmtree(old, ignore_errors=True)
    half.mkdir()
    for layer in found:
        with tarfile.open(layer.file) as opened:
            debian.unpack_all(opened, half)
    half.rename(root)


def build(wheel: Path, folder: Path, architecture: str) -> str:
    """Build an image into a folder; returns its digest."""
    inputs = gather(wheel, architecture)
    found = layers(inputs)
    folder.mkdir(parents=True, exist_ok=True)
    contents = oci.Contents(
        architecture=architecture,
        version=wheels.named(wheel)[1],
        seconds=inputs.seconds,
        layers=tuple((layer.file, layer.descriptor) for layer in found),
    )
    digest = oci.write_layout(contents, folder / "layout")
    written = folder / "digest"
    if not written.exists() or written.read_text() != digest:
        unpack_root(found, folder / "root")
    documents.write(inputs.debian, (*inputs.requirements, wheel), digest, inputs.seconds, folder)
    written.write_text(digest)
    return digest


def main() -> None:
    """Build an image and print its digest and size."""
    parser = argparse.ArgumentParser(prog="image.build", description="Build the container image.")
    parser.add_argument("wheel", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--architecture", choices=_LOADERS, default=machine())
    given = parser.parse_args()
    digest = build(given.wheel, given.folder, given.architecture)
    sizes = [layer.stat().st_size for layer in (given.folder / "layout/blobs/sha256").iterdir()]
    print(f"{given.folder}: {digest}, {sum(sizes) / 2**20:.1f} MiB packed")  # noqa: T201 for who built it


if __name__ == "__main__":
    main()
