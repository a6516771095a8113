"""What the documents share: camelCase names, which are a promise, and numbers of pods."""

from typing import TypeVar

from msgspec import Struct

_Part = TypeVar("_Part", bound=Struct)


class Document(Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of a document. Fields may be added; a field that is there keeps its name and meaning."""


class Range(Document, frozen=True):
    """The fewest and the most pods with a node, over all orders. None if unknown."""

    min: int | None
    max: int | None


def with_fields_of(of: Struct, into: type[_Part], **others: object) -> _Part:
    """A value of the type: these fields, and all others as the value has them."""
    return into(**{name: getattr(of, name) for name in into.__struct_fields__ if name not in others}, **others)
