"""Write a pair to disk atomically: a reader sees the old pair or the new pair.

The layout is the kubelet's for Secrets: a directory for each pair, and a symlink ``live`` to the newest, replaced by a
rename. Only the owner can read the files.
"""

import os
import shutil
import tempfile
from pathlib import Path

from certs.authority import CertificateError, Pair, key_fault

_LIVE = "live"


def live_paths(directory: Path) -> tuple[Path, Path]:
    """Return the paths of the newest pair of a directory: certificate, key."""
    return directory / _LIVE / "tls.crt", directory / _LIVE / "tls.key"


def write_pair(directory: Path, pair: Pair) -> tuple[Path, Path]:
    """Make the pair the directory's newest in a single step, and return its paths."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix="pair-", dir=directory))
    _write(fresh / "tls.crt", pair.certificate)
    _write(fresh / "tls.key", pair.key)
    link = directory / f".{fresh.name}"
    # A rename can replace a link, but not a directory.
    link.symlink_to(fresh.name)
    link.replace(directory / _LIVE)
    # Also delete pairs of crashed processes.
    for old in directory.glob("pair-*"):
        if old != fresh:
            shutil.rmtree(old, ignore_errors=True)
    return live_paths(directory)


def write_public(path: Path, pem: bytes) -> None:
    """Write a world-readable certificate in a single step."""
    handle, name = tempfile.mkstemp(prefix=".new-", dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(pem)
    fresh = Path(name)
    fresh.chmod(0o644)
    fresh.replace(path)


def read_pair(certificate: Path, key: Path) -> Pair:
    """Read a pair, and check that certificate and key match.

    Raises:
        CertificateError: Names the faulty file.
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
        # A power cut must not leave empty files.
        os.fsync(file.fileno())
