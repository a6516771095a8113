"""Keep a pair on disk so that no reader ever sees half of one.

The kubelet's scheme for Secrets: each pair has a directory of its own, a symlink named ``live`` points at the newest,
and the symlink is replaced by one rename. Files are readable by their owner alone.
"""

import os
import shutil
import tempfile
from pathlib import Path

from certs.authority import CertificateError, Pair, key_fault

_LIVE = "live"


def live_paths(directory: Path) -> tuple[Path, Path]:
    """Where the newest pair of a directory stands: certificate, key."""
    return directory / _LIVE / "tls.crt", directory / _LIVE / "tls.key"


def write_pair(directory: Path, pair: Pair) -> tuple[Path, Path]:
    """Make the pair the directory's newest, in one step, and return its paths."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix="pair-", dir=directory))
    _write(fresh / "tls.crt", pair.certificate)
    _write(fresh / "tls.key", pair.key)
    link = directory / f".{fresh.name}"
    # A directory cannot be replaced in one step, a link to it can: readers see the old pair or the new one.
    link.symlink_to(fresh.name)
    link.replace(directory / _LIVE)
    # Also what an earlier process left that ended in between.
    for old in directory.glob("pair-*"):
        if old != fresh:
            shutil.rmtree(old, ignore_errors=True)
    return live_paths(directory)


def write_public(path: Path, pem: bytes) -> None:
    """Write a certificate that anyone may read, in one step."""
    handle, name = tempfile.mkstemp(prefix=".new-", dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(pem)
    fresh = Path(name)
    fresh.chmod(0o644)
    fresh.replace(path)


def read_pair(certificate: Path, key: Path) -> Pair:
    """Read a pair and see that its halves belong together.

    Errors: CertificateError, naming the file at fault.
    """
    pair = Pair(certificate=_read(certificate), key=_read(key))
    fault = key_fault(pair)
    if fault is not None:
        raise CertificateError(f"{certificate} and {key}: {fault}")
    return pair


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CertificateError(f"{path}: {error.strerror}") from error


def _write(path: Path, data: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        # Before the link points here: after a power cut the files would be empty.
        os.fsync(file.fileno())
