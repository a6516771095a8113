"""What the documents share: camelCase names, which are a promise, and numbers of pods."""

from msgspec import Struct


class Document(Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of a document. Fields may be added; a field that is there keeps its name and meaning."""


class Range(Document, frozen=True):
    """The fewest and the most pods with a node, over all orders. None if unknown."""

    min: int | None
    max: int | None
