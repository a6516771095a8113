"""The base class of all JSON output, with stable camelCase names, and the type of a range of pods."""

from typing import TypeVar

from msgspec import Struct

_Part = TypeVar("_Part", bound=Struct)


class Document(Struct, frozen=True, kw_only=True, rename="camel"):
    """Base class of JSON output: the whole document or a part. Releases may add fields, but never change old ones."""


class Range(Document, frozen=True):
    """The fewest and the most pods that get a node, over all orders of placing them. None if unknown."""

    min: int | None
    max: int | None


def with_fields_of(source: Struct, into: type[_Part], **others: object) -> _Part:
    """Build a struct of another type from ``others`` and the fields of ``source``.

    Example:
        with_fields_of(group, Planned, group=group.name)  # all other fields of Planned come from group
    """
    return into(**{name: getattr(source, name) for name in into.__struct_fields__ if name not in others}, **others)
