"""Open what can stand for a cluster: a snapshot, what kubectl printed as JSON or YAML, or a directory of such files."""

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
    """Load the cluster from a file; without ``as_version``, the index takes the release in the file's header.

    Shape: ``keep`` chooses the objects that are kept as they are too.
    Errors: SnapshotError for a file that cannot be read, and for the first line that is wrong.
    """
    try:
        with open_cluster_file(path) as stream:
            return read_snapshot(stream, path, embedded, as_version=as_version, keep=keep)
    except OSError as error:
        raise SnapshotError(path, error.strerror or "cannot be read") from error


def open_cluster_file(path: str) -> io.BufferedReader:
    """The file itself if it is JSON, else its objects as JSON, one a line.

    Errors: OSError; SnapshotError for YAML that cannot be read.
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
        for each in content:
            if isinstance(each, InputFault):
                if each.fatal:
                    told = file.unquoted(each) if isinstance(file, File) else each
                    raise SnapshotError(told.file, told.message, told.line or None)
            else:
                objects.append(each.value if isinstance(each.value, bytes) else msgspec.json.encode(each.value))
    # Line breaks in JSON text are only between tokens, where a space means the same.
    return io.BufferedReader(io.BytesIO(b"\n".join(each.replace(b"\n", b" ") for each in objects)))


def _is_json(stream: io.BufferedReader) -> bool:
    """Whether the text is empty or begins as a JSON object; the stream is rewound afterwards."""
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
