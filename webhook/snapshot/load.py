"""Load a snapshot file into an index.

A snapshot is JSON Lines: a header ``{"kind": "Snapshot", "kubernetesVersion": "v1.37.1", …}``, then one API object a
line. Output of ``kubectl get … -o json`` works too: a List or one object. Both forms may be gzipped.
"""

import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import ClassVar

from msgspec import UNSET, Raw, Struct, UnsetType, structs

from webhook.cluster.live import left_out_line
from webhook.cluster.resources import BUDGETS, BUILT_IN_RESOURCES
from webhook.core.api.types import TypeMeta
from webhook.core.api.version import RECORDED, KubernetesVersion, parse_version
from webhook.core.decoders import decoder_of
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.readers import decode_object
from webhook.core.workloads.custom_kinds import EmbeddedKind
from webhook.logs import bounded
from webhook.manifests.reading.files import most_unpacked
from webhook.manifests.reading.lists import inherit, missing_type, split_list

_GZIP = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_OFFSET = re.compile(r"\(byte (\d+)\)")


class _Limits(Struct, frozen=True, kw_only=True):
    """The limits of a readable snapshot file. ``objects`` is a count, the others are unpacked bytes."""

    # The API server accepts requests of 3 MiB, and etcd stores objects of 1.5 MiB. Stored JSON is not much longer.
    line: int = 8 * 1024**2
    # Several times 15,000 nodes and 450,000 pods of 2.5 KB each.
    snapshot: int = 4 * 1024**3
    # A List is held in memory as a whole.
    document: int = 1024**3
    # 15,000 nodes, 450,000 pods, and as many other objects.
    objects: int = 1_000_000


_LIMITS = _Limits()
_BYTES_OF_A_FIELD = 12  # on average at least; fields and items end with a comma


class SnapshotError(Exception):
    """A snapshot cannot be read. The message is a single line, and starts with the file and the line number."""

    def __init__(self, name: str, message: str, line: int | None = None) -> None:
        super().__init__(f"{name}: {message}" if line is None else f"{name}:{line}: {message}")


class Item(Struct, frozen=True, kw_only=True):
    """One API object of the file, as JSON text.

    Attributes:
        line: The object's first line, from 1.
        of: Its apiVersion and kind.
        raw: Its JSON.
    """

    line: int
    of: TypeMeta
    raw: Raw

    @property
    def type_names(self) -> tuple[str, str]:
        """Its apiVersion and kind. Empty if absent."""
        return self.of.api_version or "", self.of.kind or ""


class Snapshot(Struct, frozen=True, kw_only=True):
    """A cluster loaded from a file.

    Attributes:
        index: The cluster.
        version: The release in the header, or the requested one.
        taken_at: The time of the capture, None if unknown.
        objects: The number of objects by kind, including kinds ignored by evenspread.
        kept: The objects kept as raw JSON, because the caller's ``keep`` selected them.
        left_out: A line for each object refused by the index.
    """

    index: ClusterIndex
    version: KubernetesVersion | None = None
    taken_at: str | None = None
    objects: Mapping[str, int]
    kept: tuple[Item, ...] = ()
    left_out: tuple[str, ...] = ()


_RESOURCES = {resource.name: resource.kind for resource in (*BUILT_IN_RESOURCES, BUDGETS)}
# Resources that older versions did not capture.
_LATER = frozenset(
    {
        *("limitranges", "priorityclasses", "runtimeclasses"),
        *("csidrivers", "csistoragecapacities", "volumeattachments", "spreadgroups"),
        BUDGETS.name,
    }
)


class Header(Struct, frozen=True, rename="camel"):
    """The first line of a snapshot.

    Attributes:
        missing: Plural names of resources that are not in the file, with the reason: ``403 Forbidden``.
        resources: All requested resources. None in files of older versions.
        anonymised: Whether names were replaced.
    """

    KIND: ClassVar[str] = "Snapshot"

    kubernetes_version: str | None = None
    taken_at: str | None = None
    missing: Mapping[str, str] = {}
    resources: tuple[str, ...] | None = None
    anonymised: bool = False

    @property
    def lacks(self) -> Mapping[str, str]:
        """The resources missing from the file, each with the reason."""
        later = _LATER if self.resources is None else _RESOURCES.keys() - {*self.resources}
        return {**{name: "not in this snapshot" for name in _RESOURCES if name in later}, **self.missing}


class _List(TypeMeta, frozen=True):
    items: list[Raw] | UnsetType | None = UNSET


class _PossibleList(Struct, frozen=True):
    items: Raw | UnsetType = UNSET  # not decoded, because a list may have millions of items


_TYPE = decoder_of(TypeMeta)
_HEADER = decoder_of(Header)
_LIST = decoder_of(_List)
_POSSIBLE_LIST = decoder_of(_PossibleList)
_UNREADABLE = (ValueError, RecursionError)  # msgspec's errors and those of UTF-8 are ValueErrors


def read_snapshot(
    stream: io.BufferedReader,
    name: str,
    embedded: tuple[EmbeddedKind, ...] = (),
    *,
    as_version: KubernetesVersion | None = None,
    keep: Callable[[Item], bool] = lambda _item: False,
) -> Snapshot:
    """Read an open snapshot or List, with the arguments of `load_snapshot`.

    ``name`` is the file's name in messages.

    Returns:
        The cluster. A snapshot's header lists the missing resources. All others are complete. For a List, each resource
        without an object counts as missing.

    Raises:
        SnapshotError: At the first invalid line.
    """
    index, header, version, kinds = ClusterIndex(as_version or RECORDED, scoring=True), None, None, Counter[str]()
    kept, refused = list[Item](), list[str]()
    for item in read_items(stream, name):
        kind = item.of.kind or ""
        try:
            if kind == Header.KIND:
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
            kept.append(item)
        if value is not None and (why := index.apply("ADDED", value)):
            refused.append(f"{name}:{item.line}: note: {left_out_line(kind, value, why)}")
    for resource, why in (header or header_of_list(kinds)).lacks.items():
        index.mark_missing(resource, why)
    taken_at = None if header is None else header.taken_at
    return Snapshot(
        index=index, version=version, taken_at=taken_at, objects=dict(kinds), kept=tuple(kept), left_out=tuple(refused)
    )


def read_header(line: bytes) -> Header | None:
    """Decode the header in a snapshot's first line. None for any other line."""
    try:
        return _HEADER.decode(line) if _TYPE.decode(line).kind == Header.KIND else None
    except _UNREADABLE:
        return None


def header_of_list(kinds: Collection[str]) -> Header:
    """Return a header for a file without one. A resource without an object of its kind counts as missing."""
    missing = {name: "none in the file" for name, kind in _RESOURCES.items() if kind not in kinds}
    return Header(missing=missing, resources=tuple(_RESOURCES))


def read_items(stream: io.BufferedReader, name: str, limits: _Limits = _LIMITS) -> Iterator[Item]:
    """Yield the objects of a snapshot or a List. A snapshot's header comes first.

    Raises:
        SnapshotError: For the first line without an object, and for a truncated or oversized file.
    """
    unpacked = gzip.GzipFile(fileobj=stream) if stream.peek(2)[:2] == _GZIP else stream
    if unpacked is not stream and stream.seekable():
        most = most_unpacked(stream.seek(0, io.SEEK_END))
        stream.seek(0)
        limits = structs.replace(limits, snapshot=min(limits.snapshot, most), document=min(limits.document, most))
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
            yield from _document(text, name, limits)
    except (EOFError, OSError, zlib.error) as error:
        raise SnapshotError(name, f"cannot be unpacked: {bounded(str(error))}") from error


def _is_whole(line: bytes) -> bool:
    """Whether the first line is a complete object and no List. If so, each line holds one object."""
    try:
        return _POSSIBLE_LIST.decode(line).items is UNSET
    except _UNREADABLE:
        return False


def _lines(first: bytes, rest: io.BufferedIOBase, name: str, limits: _Limits) -> Iterator[Item]:
    line, number, size = first, 1, 0
    while line:
        size += len(line)
        if len(line) > limits.line:
            raise SnapshotError(name, f"an object of more than {limits.line} bytes", number)
        if size > limits.snapshot:
            raise SnapshotError(name, f"more than {limits.snapshot} bytes", number)
        if number > limits.objects:
            raise SnapshotError(name, f"more than {limits.objects:,} objects", number)
        if not line.isspace():
            yield _item(line, name, number)
        # One extra byte distinguishes an oversized line from a line of the exact limit.
        line, number = rest.readline(limits.line + 1), number + 1


def _document(text: bytes, name: str, limits: _Limits) -> Iterator[Item]:
    """Yield each object of a JSON document: the items of a List, or the single object.

    Raises SnapshotError if the text is not JSON or the List has too many items.
    """
    # Each item costs about 100 bytes of memory on top of its text.
    if (commas := text.count(b",")) > limits.objects and commas > len(text) / _BYTES_OF_A_FIELD:
        raise SnapshotError(name, f"more than {limits.objects:,} items")
    try:
        whole = _LIST.decode(text)
    except _UNREADABLE as error:
        raise SnapshotError(name, f"not JSON: {bounded(str(error))}", _line_of(text, error)) from error
    if whole.items is UNSET:
        yield _item(text, name, 1)
        return
    items = whole.items or []
    if len(items) > limits.objects:
        raise SnapshotError(name, f"more than {limits.objects:,} objects")
    for item in split_list(text, items):
        yield _item(item.text, name, item.line, whole)


def _item(raw: bytes, name: str, line: int, outer: TypeMeta | None = None) -> Item:
    try:
        of = _TYPE.decode(raw)
    except _UNREADABLE as error:
        raise SnapshotError(name, f"not a Kubernetes object: {bounded(str(error))}", line) from error
    if outer is not None:
        of = inherit(of, outer)
    if of.kind != Header.KIND and (missing := missing_type(of.api_version, of.kind)):
        raise SnapshotError(name, missing, line)
    return Item(line=line, of=of, raw=Raw(raw))


def _line_of(text: bytes, error: Exception) -> int:
    """Return the line of a decoding error, or the last line if the error has no position."""
    offset = _OFFSET.search(str(error))
    return text.count(b"\n", 0, int(offset[1]) if offset else len(text)) + 1
