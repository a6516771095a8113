"""Decode the API server's JSON: lists and watches.

An undecodable object does not affect the others. It counts as absent: a list leaves it out, and a watch deletes it.
"""

from typing import TypeVar

import msgspec
from msgspec import Raw, Struct

from webhook.cluster.errors import ClusterError, RefusedError
from webhook.core.api.types import ListMeta, Named, ObjectMeta
from webhook.core.decoders import decoder_of, read_nested
from webhook.core.index.objects import ApiObject
from webhook.core.index.readers import ListPage, Reader, WatchEvent
from webhook.logs import bounded

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError)
LeftOutObject = tuple[ObjectMeta, str]  # a left-out object, and the reason
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


class _NameOnlyObject(Struct, frozen=True):
    """An object with only its name decoded."""

    metadata: _NameAndVersion = _NameAndVersion()


class _ErrorStatus(Struct, frozen=True):
    code: int = 0
    message: str = ""


def read_page(body: bytes, read: Reader) -> tuple[ListPage, list[LeftOutObject]]:
    """Decode a page. Returns the page and its undecodable objects."""
    try:
        return read_nested(read.page, body), []
    except msgspec.ValidationError:
        pass  # at least one object is invalid: decode each on its own
    except _UNREADABLE as error:
        raise ClusterError(f"the response of the API server is not valid JSON: {bounded(str(error))}") from error
    raw = decoded(body, RawPage)
    values, unread = read_items(raw, read)
    return ListPage(values=tuple(values), version=raw.metadata.resource_version, more=raw.metadata.continue_), unread


def read_items(page: RawPage, read: Reader) -> tuple[list[ApiObject], list[LeftOutObject]]:
    """Decode the objects of a page. Returns the decoded objects, and the names and errors of the others."""
    values, unread = list[ApiObject](), list[LeftOutObject]()
    for item in page.items or ():
        try:
            values.append(read_nested(read.value, bytes(item)))
        except _UNREADABLE as error:
            unread.append((decoded_name(item), str(error)))
    return values, unread


def read_change(line: bytes, read: Reader) -> tuple[WatchEvent, str]:
    """Decode a line of a watch. Returns the event, and the error of an undecodable object.

    An undecodable object becomes a deletion of its name. A deletion needs only the name, so it has no error.

    Raises:
        RefusedError: The line is an ERROR event.
    """
    fault = ""
    try:
        change = read_nested(read.change, line)
        # The Status of an ERROR can decode as an empty object of the kind.
        if change.type != "ERROR":
            return change, ""
    except msgspec.ValidationError as error:
        fault = str(error)
    except _UNREADABLE as error:
        raise ClusterError(f"a watch event is not JSON: {bounded(str(error))}") from error
    raw = decoded(line, _RawLine)
    if raw.type == "ERROR":
        status = decoded(raw.object, _ErrorStatus)
        raise RefusedError(status.code, status.message)
    if raw.type == "DELETED":
        return WatchEvent(type="DELETED", value=name_only(decoded_name(raw.object), read)), ""
    return WatchEvent(type="DELETED", value=name_only(decoded_name(raw.object), read, uid=False)), fault


def name_only(meta: ObjectMeta, read: Reader, *, uid: bool = True) -> ApiObject:
    """Return an object with only name, namespace, uid and version. A deletion without uid matches every uid."""
    kept = ObjectMeta(
        name=meta.name, namespace=meta.namespace, uid=meta.uid if uid else "", resource_version=meta.resource_version
    )
    return read.value(msgspec.json.encode(Named(metadata=kept)))


def decoded_name(raw: Raw | bytes) -> ObjectMeta:
    """Return name, namespace, uid and version of an undecodable object. Empty if those are undecodable too."""
    try:
        meta = decoded(raw, _NameOnlyObject).metadata
    except ClusterError:
        return ObjectMeta()
    return ObjectMeta(name=meta.name, namespace=meta.namespace, uid=meta.uid, resource_version=meta.resource_version)


def decoded(raw: bytes | Raw, into: type[_Decoded]) -> _Decoded:
    """Decode JSON into this type. Raises ClusterError."""
    try:
        return read_nested(decoder_of(into).decode, bytes(raw))
    except _UNREADABLE as error:
        raise ClusterError(f"the API server's response cannot be decoded: {bounded(str(error))}") from error
