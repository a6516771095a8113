"""Lists of API objects, as kubectl reads them.

Source: apimachinery pkg/apis/meta/v1/unstructured ``unstructuredJSONScheme``. An object with ``items`` is a list. Its
kind decides nothing.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

from msgspec import UNSET, Raw, Struct, UnsetType, structs

from webhook.core.api.types import TypeMeta
from webhook.manifests.reading.go_yaml import Json


class Head(Struct, frozen=True, rename="camel"):
    """The decisive fields for reading an object. They may have any type."""

    api_version: Json = None
    kind: Json = None
    metadata: Json = None
    items: Raw | UnsetType = UNSET


_Typed = TypeVar("_Typed", TypeMeta, Head)


def inherit(item: _Typed, outer: TypeMeta | Head) -> _Typed:
    """Return the item of the list ``outer`` with its type.

    An item without apiVersion and kind has the type of its list, such as ``DeploymentList``.

    Source: apimachinery unstructured ``unstructuredJSONScheme.decodeToList``.
    """
    if item.kind or item.api_version or not isinstance(outer.kind, str) or outer.kind == "List":
        return item
    return structs.replace(item, api_version=outer.api_version, kind=outer.kind.removesuffix("List"))


def missing_type(api_version: Json, kind: Json) -> str:
    """Return why a document is not an API object: its missing fields. Empty for an API object."""
    fields = {"apiVersion": api_version, "kind": kind}
    absent = [name for name, value in fields.items() if not (isinstance(value, str) and value)]
    return f"not a Kubernetes object: it has no {' and no '.join(absent)}" if absent else ""


class ListItem(NamedTuple):
    """An item of a JSON list, with the position of its first byte: the line from 1, the column from 0."""

    text: bytes
    line: int
    column: int


def split_list(
    text: bytes, items: Iterable[Raw], *, start: int = 0, line: int = 1, column: int = 0
) -> Iterator[ListItem]:
    """Yield the items of a JSON list. A large list is never parsed as a whole.

    Args:
        text: The JSON text of the list.
        items: Its decoded items.
        start: An offset in ``text`` before the first item.
        line: The line of the text's first byte.
        column: The column of the text's first byte.
    """
    line += text.count(b"\n", 0, start)
    newline, end = text.rfind(b"\n", 0, start), start
    for item in items:
        piece = bytes(item)
        start = text.find(piece, end)
        # Counted from item to item: from the beginning each time, a large list would take quadratic time.
        line += text.count(b"\n", end, start)
        newline = max(newline, text.rfind(b"\n", end, start))
        yield ListItem(piece, line, start - newline - 1 + (column if newline < 0 else 0))
        end = start + len(piece)
        line += piece.count(b"\n")
        newline = max(newline, text.rfind(b"\n", start, end))
