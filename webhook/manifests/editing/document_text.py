"""The text of a manifest's document with its positions, for edits of a few bytes."""

import re
from functools import lru_cache

from msgspec import Struct

from webhook.manifests.reading.manifest import Manifest
from webhook.manifests.reading.positions import ValuePosition, json_tree, yaml_tree

_BYTE_ORDER_MARK = "\ufeff"
_MAX_GUESSED_INDENT_COLUMNS = 8  # further right, items were put under something; nobody indents lists so far


class UneditableError(Exception):
    """The text cannot be changed without touching other bytes. The message has the reason."""


class TextEdit(Struct, frozen=True):
    """The bytes of a file from ``start`` to before ``end`` are replaced by ``text``."""

    start: int
    end: int
    text: bytes


class Text(Struct, frozen=True):
    """The text of a YAML or JSON document in a file.

    Attributes:
        text: The characters. Positions are character indexes in this text.
        root: The tree of the parsed values.
        json: Whether the document is JSON.
        start: The document's first byte in the file.
        mark: The byte order mark before the document.
    """

    text: str
    root: ValuePosition
    json: bool
    start: int
    mark: str

    def edit(self, first: int, last: int, added: str) -> TextEdit:
        """Return the edit that replaces the characters from ``first`` to before ``last`` with ``added``."""
        start = self.start + len((self.mark + self.text[:first]).encode())
        return TextEdit(start, start + len(self.text[first:last].encode()), added.encode())


def text_of(data: bytes, manifest: Manifest) -> Text:
    """Find the text of a manifest's document in its file ``data``.

    Raises:
        UneditableError: The file has changed, or it is a template.
    """
    document = manifest.document
    start = _line_starts(data)[document.line - 1] + document.column
    # The file may have changed since it was read.
    if not (data + b"\n").startswith(document.text, start):
        raise UneditableError("the file has changed since it was read")
    # What is YAML now may be something else once it is rendered.
    if b"{{" in document.text:
        raise UneditableError("the file contains '{{', like a Helm template")
    decoded = document.text.decode()
    text = decoded.removeprefix(_BYTE_ORDER_MARK)
    mark = decoded[: len(decoded) - len(text)]
    return Text(text, _tree(text, is_json=document.json), document.json, start, mark)


@lru_cache(maxsize=1)
def _line_starts(data: bytes) -> list[int]:
    return [0, *(match.end() for match in re.finditer(b"\n", data))]


@lru_cache(maxsize=1)
def _tree(text: str, *, is_json: bool) -> ValuePosition:
    """Return the tree of positions. Only the last is cached: callers visit the objects of a document in turn."""
    return json_tree(text) if is_json else yaml_tree(text.encode())


def list_indent(text: str, spec: ValuePosition) -> int:
    """The author's indentation of lists in this pod spec, relative to their keys."""
    for key, node in (spec.fields or {}).values():
        if node.items and key.end <= node.start and text[node.start] == "-":
            indent = column(text, node.start) - column(text, key.start)
            if 0 <= indent <= _MAX_GUESSED_INDENT_COLUMNS:
                return indent
    return 0


def column(text: str, index: int) -> int:
    """The column of a character in its line, from 0."""
    return index - text.rfind("\n", 0, index) - 1


def line_end(text: str, index: int) -> int:
    """Return the index of the end of the line that contains the character at ``index``."""
    end = text.find("\n", index)
    end = len(text) if end < 0 else end
    return end - 1 if text[end - 1] == "\r" else end


def line_break(text: str, end: int) -> str:
    """The line break at this position. A last line without a break uses the previous line's break."""
    if end >= len(text) - 1:
        end = max(text.rfind("\n", 0, end) - 1, 0)
    return "\r\n" if text.startswith("\r\n", end) else "\n"
