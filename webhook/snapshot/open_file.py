"""Open files that describe a cluster: a snapshot, JSON or YAML from kubectl, or a directory of these."""

import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import msgspec

from webhook.core.api.version import KubernetesVersion
from webhook.core.workloads.custom_kinds import EmbeddedKind
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.files import LEADS_OUT, STDIN, File, leads_out, read_files
from webhook.manifests.reading.manifest import read_manifests
from webhook.snapshot.load import Item, Snapshot, SnapshotError, read_snapshot

_GZIP = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_PEEKED = 4096  # white space before the first brace; no program writes more of it


def load_snapshot(
    path: str,
    embedded: tuple[EmbeddedKind, ...] = (),
    *,
    as_version: KubernetesVersion | None = None,
    keep: Callable[[Item], bool] = lambda _item: False,
) -> Snapshot:
    """Load the cluster from a file.

    Args:
        path: A file or directory, or ``-``.
        embedded: Kinds with embedded pod templates, from the policy.
        as_version: Overrides the release in the file's header.
        keep: Selects the objects to return as they are, beside the index.

    Raises:
        SnapshotError: The file cannot be read, or a line is wrong.
    """
    try:
        with open_cluster_file(path) as stream:
            return read_snapshot(stream, path, embedded, as_version=as_version, keep=keep)
    except OSError as error:
        raise SnapshotError(path, error.strerror or "cannot be read") from error


def open_cluster_file(path: str) -> io.BufferedReader:
    """Open a JSON file as it is. Convert any other file to one JSON object a line.

    Raises:
        OSError: The file cannot be opened.
        SnapshotError: The YAML cannot be read.
    """
    if path != STDIN and leads_out(path):
        raise SnapshotError(path, LEADS_OUT)
    if path != STDIN and not Path(path).is_dir():
        stream = Path(path).open("rb")  # noqa: SIM115 the caller closes it
        if _is_json(stream):
            return stream
        stream.close()
    objects = list[bytes]()
    for file in read_files([path], unpack=True):
        content = [file] if isinstance(file, InputFault) else read_manifests(file.name, file.data, duplicates=False)
        for entry in content:
            if isinstance(entry, InputFault):
                if entry.fatal:
                    fault = file.unquoted(entry) if isinstance(file, File) else entry
                    raise SnapshotError(fault.file, fault.message, fault.line or None)
            else:
                objects.append(entry.value if isinstance(entry.value, bytes) else msgspec.json.encode(entry.value))
    # JSON has line breaks only between tokens. A space means the same there.
    return io.BufferedReader(io.BytesIO(b"\n".join(text.replace(b"\n", b" ") for text in objects)))


def _is_json(stream: io.BufferedReader) -> bool:
    """Whether the file's text is empty or starts like a JSON object.

    Rewinds the stream. Unpacks gzip. True if the gzip data is damaged.
    """
    unpacked: BinaryIO | gzip.GzipFile = stream
    if stream.peek(len(_GZIP))[: len(_GZIP)] == _GZIP:
        unpacked = gzip.GzipFile(fileobj=stream)
    try:
        text = unpacked.read(_PEEKED).removeprefix(_BYTE_ORDER_MARK).lstrip()
    except (OSError, EOFError):
        return True  # whoever reads it will say why it cannot be unpacked
    finally:
        stream.seek(0)
    return not text or text.startswith(b"{")
