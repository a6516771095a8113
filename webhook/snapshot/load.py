"""A snapshot file -> ClusterIndex.

A snapshot is JSON Lines: a header ``{"kind": "Snapshot", "kubernetesVersion": "v1.37.1", …}`` and then one API object
a line. What ``kubectl get … -o json`` prints is read as well: a List, or one object. Either may be gzipped.
"""

import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping

import msgspec
from msgspec import Raw, Struct

from webhook.cluster.resources import BUILT_IN
from webhook.core.api.types import TypeMeta
from webhook.core.api.version import RECORDED, KubernetesVersion, parse_version
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.readers import decode_object
from webhook.core.workloads.custom_kinds import EmbeddedKind
from webhook.logs import bounded

HEADER_KIND = "Snapshot"
_GZIP = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_OFFSET = re.compile(r"\(byte (\d+)\)")


class Limits(Struct, frozen=True, kw_only=True):
    """How much of a file is read before it is refused. Unit: bytes, unpacked."""

    # The API server takes requests of 3 MiB, etcd objects of 1.5; JSON of a stored object is not much longer.
    line: int = 8 * 1024**2
    # Fifteen thousand nodes and 450,000 pods of 2.5 KB, several times over; what unpacks to more is no cluster.
    snapshot: int = 4 * 1024**3
    # A List has to be in memory as a whole.
    document: int = 1024**3


LIMITS = Limits()


class SnapshotError(Exception):
    """What cannot be read: one line of text, with the place in the file."""

    def __init__(self, name: str, message: str, line: int | None = None) -> None:
        super().__init__(f"{name}: {message}" if line is None else f"{name}:{line}: {message}")


class Item(Struct, frozen=True, kw_only=True):
    """One API object of the file, still as text.

    Unit: ``line`` counts from 1; it is where the object begins.
    """

    line: int
    of: TypeMeta
    raw: Raw


class Snapshot(Struct, frozen=True, kw_only=True):
    """What a file says of a cluster.

    Shape: ``objects`` counts what is in the file by kind, kinds that no answer depends on included. ``kept`` are those
    that the reader asked for, as they stand there.
    """

    index: ClusterIndex
    version: KubernetesVersion | None = None
    taken_at: str | None = None
    objects: Mapping[str, int]
    kept: tuple[Raw, ...] = ()


class Header(Struct, frozen=True, rename="camel"):
    """The first line of a snapshot.

    Shape: ``missing`` says of resources, by their plural, why nothing of them is in the file: ``403 Forbidden``.
    ``anonymised`` files have other names than the cluster.
    """

    kubernetes_version: str | None = None
    taken_at: str | None = None
    missing: Mapping[str, str] = {}
    anonymised: bool = False


class _List(Struct, frozen=True, rename="camel"):
    api_version: str | None = None
    kind: str | None = None
    items: tuple[Raw, ...] | None = None


_TYPE = msgspec.json.Decoder(TypeMeta)
_HEADER = msgspec.json.Decoder(Header)
_LIST = msgspec.json.Decoder(_List)
_UNREADABLE = (ValueError, RecursionError)  # msgspec's errors and those of UTF-8 are ValueErrors


def read_snapshot(
    stream: io.BufferedReader,
    name: str,
    embedded: tuple[EmbeddedKind, ...] = (),
    *,
    as_version: KubernetesVersion | None = None,
    keep: Callable[[Item], bool] = lambda _item: False,
) -> Snapshot:
    """Read an open snapshot; ``name`` is what messages call it, ``keep`` says of which objects the text is wanted.

    Shape: a List says nothing of kinds that are not in it; a snapshot has all there was, or its header says why not.
    Errors: SnapshotError for the first line that is wrong.
    """
    index, header, version, kinds = ClusterIndex(as_version or RECORDED), None, None, Counter[str]()
    kept: list[Raw] = []
    for item in read_items(stream, name):
        kind = item.of.kind or ""
        try:
            if kind == HEADER_KIND:
                header = _HEADER.decode(item.raw)
                version = parse_version(header.kubernetes_version) if header.kubernetes_version else None
                index.version = as_version or version or RECORDED
                index.taken_at = header.taken_at or ""
                continue
            value = decode_object(item.raw, item.of, embedded)
        except _UNREADABLE as error:
            raise SnapshotError(name, f"{bounded(kind)}: {bounded(str(error))}", item.line) from error
        kinds[kind] += 1
        if keep(item):
            kept.append(item.raw)
        if value is not None:
            index.apply("ADDED", value)
    for resource, why in (absent(kinds) if header is None else header.missing).items():
        index.lack(resource, why)
    taken_at = None if header is None else header.taken_at
    return Snapshot(index=index, version=version, taken_at=taken_at, objects=dict(kinds), kept=tuple(kept))


def read_header(line: bytes) -> Header | None:
    """The header that a snapshot's first line is; None for any other text."""
    try:
        return _HEADER.decode(line) if _TYPE.decode(line).kind == HEADER_KIND else None
    except _UNREADABLE:
        return None


def absent(kinds: Collection[str]) -> Mapping[str, str]:
    """What a file without a header lacks that has objects of these kinds, and how that is said."""
    return {resource.name: "none in the input" for resource in BUILT_IN if resource.kind not in kinds}


def read_items(stream: io.BufferedReader, name: str, limits: Limits = LIMITS) -> Iterator[Item]:
    """The objects of a snapshot or a List, a snapshot's header first.

    Errors: SnapshotError for the first line that is no object, for what is cut short, and for what is too large.
    """
    unpacked = gzip.GzipFile(fileobj=stream) if stream.peek(2)[:2] == _GZIP else stream
    try:
        first = unpacked.readline(limits.document + 1).removeprefix(_BYTE_ORDER_MARK)
        if _is_whole(first):
            yield from _lines(first, unpacked, name, limits)
        else:
            text = first + unpacked.read(limits.document + 1 - len(first))
            if not text or text.isspace():
                raise SnapshotError(name, "the file is empty")
            if len(text) > limits.document:
                raise SnapshotError(name, f"more than {limits.document} bytes in one JSON document")
            yield from _document(text, name)
    except (EOFError, OSError, zlib.error) as error:
        raise SnapshotError(name, f"cannot be unpacked: {bounded(str(error))}") from error


def _is_whole(line: bytes) -> bool:
    """Whether the line is an object by itself and no List: then so is every other line."""
    try:
        return not (_TYPE.decode(line).kind or "").endswith("List")
    except _UNREADABLE:
        return False


def _lines(first: bytes, rest: io.BufferedIOBase, name: str, limits: Limits) -> Iterator[Item]:
    line, number, taken = first, 1, 0
    while line:
        taken += len(line)
        if len(line) > limits.line:
            raise SnapshotError(name, f"an object of more than {limits.line} bytes", number)
        if taken > limits.snapshot:
            raise SnapshotError(name, f"more than {limits.snapshot} bytes", number)
        if not line.isspace():
            yield _item(line, name, number)
        # One byte more than allowed tells a line that is too long from one that just fits.
        line, number = rest.readline(limits.line + 1), number + 1


def _document(text: bytes, name: str) -> Iterator[Item]:
    """The items of a List, or one object that takes several lines."""
    try:
        found = _LIST.decode(text)
    except _UNREADABLE as error:
        raise SnapshotError(name, f"not JSON: {bounded(str(error))}", _line_of(text, error)) from error
    listed = found.kind or ""
    if not listed.endswith("List"):
        yield _item(text, name, 1)
        return
    # A list that the API server itself gave says the kind once, for all.
    kind = listed.removesuffix("List")
    stated = TypeMeta(api_version=found.api_version, kind=kind) if kind else None
    line, counted = 1, 0
    for raw in found.items or ():
        start = text.index(bytes(raw), counted)
        line, counted = line + text.count(b"\n", counted, start), start
        yield _item(raw, name, line, stated)


def _item(raw: bytes | Raw, name: str, line: int, stated: TypeMeta | None = None) -> Item:
    try:
        of = _TYPE.decode(raw)
    except _UNREADABLE as error:
        raise SnapshotError(name, f"not a Kubernetes object: {bounded(str(error))}", line) from error
    if not of.kind or not (of.api_version or of.kind == HEADER_KIND):
        if stated is None:
            raise SnapshotError(name, "an object without apiVersion and kind", line)
        of = stated
    return Item(line=line, of=of, raw=Raw(raw))


def _line_of(text: bytes, error: Exception) -> int:
    """The line that a decoding error is about; the last one where it says no place."""
    offset = _OFFSET.search(str(error))
    return text.count(b"\n", 0, int(offset[1]) if offset else len(text)) + 1
