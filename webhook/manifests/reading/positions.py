"""Find the position of an API path in the text of a manifest.

A path is for example ``spec.template.spec.topologySpreadConstraints[0].maxSkew``. The YAML or JSON text is first parsed
into a tree of positions (`ValuePosition`). `find` then follows the path through the tree. A missing field has the
position of its deepest existing parent. Positions are computed only for reported fields.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct
from yaml._yaml import CParser
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from webhook.core.json_edits import first_key
from webhook.manifests.reading.go_yaml import MAX_YAML_LEVELS, kept_for_recent

_TOKEN = re.compile(r'\s*([{}\[\],:]|"(?:[^"\\]|\\.)*"|[^\s{}\[\],:"]+)')
_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*"|([{\[])|[}\]]')
_INDEX = re.compile(r"\[(\d{1,7})\]")


class Span(Struct, frozen=True):
    """Characters of a document, from ``start`` to before ``end``."""

    start: int
    end: int


class ValuePosition(Struct):
    """The position of a value in the manifest's text, as a tree.

    Mutable only while the tree is built.

    Attributes:
        fields: The fields of a mapping by key, each with the key's span.
        items: The items of a list.
    """

    start: int
    end: int
    fields: "dict[str, tuple[Span, ValuePosition]] | None" = None
    items: "list[ValuePosition] | None" = None


def find(root: ValuePosition, path: str) -> Span:
    """Return the text span of the field at a path.

    The span covers the key. It also covers the value, if the value is after the key in the text. An alias has its value
    before the key. Keys may contain dots, like label keys. The longest matching key wins. ``a[0].{x, y}`` means
    ``a[0]``.
    """
    span = Span(root.start, root.end)
    for key, node, _ in follow(root, path):
        span = Span(key.start, max(node.end, key.end) if node.start >= key.end else key.end)
    return span


def follow(root: ValuePosition, path: str) -> Iterator[tuple[Span, ValuePosition, str]]:
    """Yield the existing YAML nodes from the root down to the field at a path.

    Returns:
        For each YAML node: the position of its key (or of the start of a list item), the node, and the rest of the
            path.
    """
    node, rest = root, path
    while rest:
        if node.items is not None and (match := _INDEX.match(rest)) and int(match[1]) < len(node.items):
            node = node.items[int(match[1])]
            rest = rest[match.end() :]
            yield Span(node.start, node.start), node, rest
            continue
        name = _longest_field(node, rest.removeprefix("."))
        if name is None:
            return
        key, node = (node.fields or {})[name]
        rest = rest.removeprefix(".")
        rest = rest[len(name) + 2 :] if rest.startswith(f"[{name}]") else rest[len(name) :]
        yield key, node, rest


def _longest_field(node: ValuePosition, rest: str) -> str | None:
    fields = node.fields or {}
    if rest.startswith("[") and (name := rest[1:].partition("]")[0]) in fields:
        return name
    return first_key(fields, rest)


class _Tree:
    """Builds the tree of positions from YAML nodes in the order of the text, without recursion."""

    def __init__(self, *, merges: bool) -> None:
        self.root = ValuePosition(0, 0)
        self.duplicates: list[tuple[str, Span]] = []
        self._merges = merges
        self._open: list[ValuePosition] = []
        self._keys: list[tuple[str, Span] | None] = []

    def begin(self, start: int, *, mapping: bool) -> ValuePosition:
        node = ValuePosition(start, start, {}, None) if mapping else ValuePosition(start, start, None, [])
        self._open.append(node)
        self._keys.append(None)
        return node

    def finish(self, end: int) -> None:
        node = self._open.pop()
        self._keys.pop()
        node.end = end
        self.put(node, "", node.start, end)

    def scalar(self, text: str, start: int, end: int) -> None:
        """Add a scalar as the next key of a mapping, or as a value. A key gets no `ValuePosition`, to save time."""
        if self._keys and self._keys[-1] is None and self._open[-1].fields is not None:
            self._keys[-1] = (text, Span(start, end))
        else:
            self.put(ValuePosition(start, end), text, start, end)

    def put(self, node: ValuePosition, text: str, start: int, end: int) -> None:
        """Put a complete node into its parent: as an item, as a key, or as the value of the key before it."""
        if not self._open:
            self.root = node
            return
        parent = self._open[-1]
        if parent.items is not None:
            parent.items.append(node)
            return
        key, fields = self._keys[-1], parent.fields
        if key is None or fields is None:
            self._keys[-1] = (text, Span(start, end))
            return
        self._keys[-1] = None
        if self._merges and key[0] == "<<":
            # The first of several merged mappings wins, so it is written last. Own fields follow and replace it.
            for merged in reversed(node.items or [node]):
                fields.update(merged.fields or {})
            return
        if key[0] in fields:
            self.duplicates.append(key)
        fields[key[0]] = (key[1], node)


@kept_for_recent
def yaml_tree(text: bytes) -> ValuePosition:
    """Build the tree of a YAML document with the position of each value.

    `go_yaml` must have parsed the document without an error.
    """
    tree = _Tree(merges=True)
    anchors: dict[str, ValuePosition] = {}
    next_event: Callable[[], Any] = CParser(text).get_event  # Any: which fields an event has depends on its type
    while (event := next_event()) is not None:
        kind = type(event)
        if kind is ScalarEvent and event.anchor is None:
            tree.scalar(event.value, event.start_mark.index, event.end_mark.index)
        elif kind is MappingStartEvent or kind is SequenceStartEvent:
            node = tree.begin(event.start_mark.index, mapping=kind is MappingStartEvent)
            if event.anchor is not None:
                anchors[event.anchor] = node
        elif kind is MappingEndEvent or kind is SequenceEndEvent:
            tree.finish(event.end_mark.index)
        elif kind is ScalarEvent:
            node = anchors[event.anchor] = ValuePosition(event.start_mark.index, event.end_mark.index)
            tree.put(node, event.value, node.start, node.end)
        # Use the anchor's own node. Its fields have their position at the anchor.
        elif kind is AliasEvent:
            tree.put(anchors[event.anchor], "", event.start_mark.index, event.end_mark.index)
        elif kind is DocumentEndEvent:
            break
    return tree.root


def is_too_deep(text: bytes) -> bool:
    """Whether JSON text is nested deeper than YAML may be. Fast for few brackets."""
    if text.count(b"{") + text.count(b"[") <= MAX_YAML_LEVELS:
        return False
    depth = 0
    for token in _BRACKET.finditer(text):
        if token[1]:
            depth += 1
            if depth > MAX_YAML_LEVELS:
                return True
        elif token[0] in {b"}", b"]"}:
            depth -= 1
    return False


def json_tree(text: str) -> ValuePosition:
    """Build the tree of valid JSON text."""
    return _json_tree(text).root


def json_duplicates(text: str) -> list[tuple[str, int]]:
    """Find keys that are repeated in one object. Return each key with the index of its repetition."""
    twice = False

    def pairs(items: list[tuple[str, object]]) -> dict[str, object]:
        nonlocal twice
        members = dict(items)
        twice = twice or len(members) < len(items)
        return members

    json.loads(text, object_pairs_hook=pairs)
    return [(key, span.start) for key, span in _json_tree(text).duplicates] if twice else []


def _json_tree(text: str) -> _Tree:
    tree = _Tree(merges=False)
    for token in _TOKEN.finditer(text):
        start, end = token.start(1), token.end()
        if token[1] in {"{", "["}:
            tree.begin(start, mapping=token[1] == "{")
        elif token[1] in {"}", "]"}:
            tree.finish(end)
        elif token[1] not in {",", ":"}:
            name = json.loads(token[1]) if token[1][0] == '"' else ""
            tree.scalar(name, start, end)
    return tree
