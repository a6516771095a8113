"""Decode what the API server sends; if an object cannot be decoded, the others still are.

An object that cannot be decoded is treated as absent: left out of a list, and deleted by a watch, so that both agree.
"""

from collections.abc import Mapping
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct

from webhook.cluster.connection import ClusterError, RefusedError
from webhook.core.api.types import ListMeta, Named, ObjectMeta
from webhook.core.decoders import decoder_of, read_nested
from webhook.core.index.objects import ApiObject
from webhook.core.index.readers import Page, Reader, WatchEvent
from webhook.logs import bounded

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError)
LeftOutObject = tuple[ObjectMeta, str]  # an object that is left out, and why
_Decoded = TypeVar("_Decoded")


class RawPage(Struct, frozen=True):
    """A page of a list, with its objects as JSON text."""

    metadata: ListMeta = ListMeta()
    items: tuple[Raw, ...] | None = None


class _RawLine(Struct, frozen=True):
    type: str
    object: Raw


class _NameAndVersion(Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Unread(Struct, frozen=True):
    """An object with only its name decoded."""

    metadata: _NameAndVersion = _NameAndVersion()


class _Status(Struct, frozen=True):
    code: int = 0
    message: str = ""


class _NamedResource(Struct, frozen=True):
    name: str
    kind: str


class _ResourceList(Struct, frozen=True):
    resources: tuple[_NamedResource, ...] = ()


class _Version(Struct, frozen=True, rename="camel"):
    group_version: str = ""


class _Group(Struct, frozen=True, rename="camel"):
    name: str
    versions: tuple[_Version, ...] = ()
    preferred_version: _Version = _Version()


class _GroupList(Struct, frozen=True):
    groups: tuple[_Group, ...] = ()


def read_page(body: bytes, read: Reader) -> tuple[Page, list[LeftOutObject]]:
    """A page, and the objects in it that cannot be decoded."""
    try:
        return read_nested(read.page, body), []
    except msgspec.ValidationError:
        pass  # at least one object is bad: decode them one by one
    except _UNREADABLE as error:
        raise ClusterError(f"a page that is no JSON: {bounded(str(error))}") from error
    raw = read_raw_page(body)
    values, unread = read_items(raw, read)
    return Page(values=tuple(values), version=raw.metadata.resource_version, more=raw.metadata.continue_), unread


def read_items(page: RawPage, read: Reader) -> tuple[list[ApiObject], list[LeftOutObject]]:
    """The objects of a page, and those that cannot be decoded."""
    values, unread = list[ApiObject](), list[LeftOutObject]()
    for item in page.items or ():
        try:
            values.append(read_nested(read.value, bytes(item)))
        except _UNREADABLE as error:
            unread.append((decoded_name(item), str(error)))
    return values, unread


def read_raw_page(body: bytes) -> RawPage:
    """A page whose objects are not decoded."""
    return _decoded(body, RawPage)


def read_change(line: bytes, read: Reader) -> tuple[WatchEvent, str]:
    """One line of a watch, and the error of its object if that cannot be decoded.

    An undecodable object becomes a deletion of its name. A deletion needs only the name, so it has no error. An ERROR
    event raises RefusedError.
    """
    fault = ""
    try:
        change = read_nested(read.change, line)
        # The Status of an ERROR may decode as an empty object of the kind.
        if change.type != "ERROR":
            return change, ""
    except msgspec.ValidationError as error:
        fault = str(error)
    except _UNREADABLE as error:
        raise ClusterError(f"a line that is no JSON: {bounded(str(error))}") from error
    raw = _decoded(line, _RawLine)
    if raw.type == "ERROR":
        status = _decoded(raw.object, _Status)
        raise RefusedError(status.code, status.message)
    if raw.type == "DELETED":
        return WatchEvent(type="DELETED", value=name_only(decoded_name(raw.object), read)), ""
    return WatchEvent(type="DELETED", value=name_only(decoded_name(raw.object), read, uid=False)), fault


def name_only(meta: ObjectMeta, read: Reader, *, uid: bool = True) -> ApiObject:
    """An object with only a name, namespace, uid and version. Without uid, its deletion ends any of that name."""
    kept = ObjectMeta(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid if uid else "",
        resource_version=meta.resource_version,
    )
    return read.value(msgspec.json.encode(Named(metadata=kept)))


def read_plurals(body: bytes) -> Mapping[str, str]:
    """Kind -> plural, for the resources of a group."""
    resources = _decoded(body, _ResourceList).resources
    return {each.kind: each.name for each in reversed(resources) if "/" not in each.name}  # the others are subresources


def read_plural(body: bytes, kind: str) -> str:
    """The plural of a kind, from the resources of its group. Raises RefusedError 404 if the group lacks it."""
    plural = read_plurals(body).get(kind)
    if plural is None:
        raise RefusedError(404, f"no {bounded(kind)} in the group")
    return plural


def read_group_versions(body: bytes) -> Mapping[str, tuple[str, ...]]:
    """Group -> its versions, the preferred one first."""
    read = _decoded(body, _GroupList).groups
    ordered = {group.name: (group.preferred_version, *group.versions) for group in read}
    return {
        name: tuple(dict.fromkeys(each.group_version for each in versions if each.group_version))
        for name, versions in ordered.items()
    }


def decoded_name(raw: Raw | bytes) -> ObjectMeta:
    """Name, namespace, uid and version of an object that cannot be decoded; empty if those cannot be either."""
    try:
        of = _decoded(raw, _Unread).metadata
    except ClusterError:
        return ObjectMeta()
    return ObjectMeta(name=of.name, namespace=of.namespace, uid=of.uid, resource_version=of.resource_version)


def _decoded(raw: bytes | Raw, into: type[_Decoded]) -> _Decoded:
    try:
        return read_nested(decoder_of(into).decode, bytes(raw))
    except _UNREADABLE as error:
        raise ClusterError(f"an answer that cannot be read: {bounded(str(error))}") from error
