"""Read one YAML document into the JSON value that Kubernetes' clients see.

kubectl, Helm and kustomize read YAML with go-yaml v2. Its parser is a port of libyaml, also used here. The code below
reimplements go-yaml's conversion of parser events to values, without recursion. Peculiarities:

    merge keys      override fields before them
    aliases         are limited in number
    duplicate keys  are no error, and the last one wins. kustomize, Flux and Argo CD refuse them, so they are reported
    scalars         have a module of their own (`yaml_scalars`)

Source: go.yaml.in/yaml/v2 decode.go; sigs.k8s.io/yaml yaml.go.
"""

from collections.abc import Callable
from enum import Enum
from functools import lru_cache, wraps
from typing import Any, TypeVar

from msgspec import Struct
from yaml._yaml import CParser
from yaml.error import MarkedYAMLError
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)
from yaml.reader import ReaderError

from webhook.manifests.reading.yaml_scalars import (
    UnreadableDocumentError,
    json_number,
    key_text,
    resolve_plain,
    resolve_tagged,
)

Json = Any  # raw JSON from outside: core.apiserver.decoding gives it types

MAX_DUPLICATES = 20  # one line each; a document that has more is no manifest
# Deeper than any real manifest, and below the recursion limit of later functions.
MAX_YAML_LEVELS = 400
# An API server takes requests of 3 MiB. go-yaml bounds how many values aliases repeat, and not how long they are: 1 MB
# of text would be 5 GB as JSON.
_MAX_ALIASED_CHARS = 4_000_000

_MERGE_TAG = "tag:yaml.org,2002:merge"


class Duplicate(Struct, frozen=True, gc=False):
    """A key that is repeated in a mapping. ``index`` is the character index of the repetition."""

    key: str
    index: int


class YamlValue(Struct, frozen=True):
    """The value of a document, with notes.

    Attributes:
        value: A JSON value. Aliases of one anchor share an object, so never change it in place.
        trailing: The index of text after the end of the document, ignored by every client.
    """

    value: Json
    duplicates: tuple[Duplicate, ...] = ()
    trailing: int | None = None


_Result = TypeVar("_Result")
# At worst 40 MiB for each function. A value takes ten times the memory of its text.
_MAX_KEPT = 128
_MAX_KEPT_BYTES = 32 * 1024


def kept_for_recent(read: Callable[[bytes], _Result]) -> Callable[[bytes], _Result]:
    """Let a function keep its results for recent small documents. Callers must not change a result.

    A check reads a document several times, and an editor after each keystroke.
    """
    kept = lru_cache(maxsize=_MAX_KEPT)(read)

    @wraps(read)
    def reading(text: bytes) -> _Result:
        return kept(text) if len(text) <= _MAX_KEPT_BYTES else read(text)

    return reading


@kept_for_recent
def read_document(text: bytes) -> YamlValue:
    """Read one document. Raises UnreadableDocumentError."""
    try:
        return _DocumentBuilder(text).read()
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        parts = (str(part) for part in (error.problem, error.context) if part)
        raise UnreadableDocumentError(" ".join(parts), mark.index if mark else None) from None
    except ReaderError as error:
        # PyYAML counts bytes here, and characters in marks.
        before = text[: max(error.position, 0)].decode("utf-8", "ignore")
        raise UnreadableDocumentError(str(error.reason), len(before.removeprefix("\ufeff"))) from None


def _index(event: Event | None) -> int:
    mark = event.start_mark if event else None
    return mark.index if mark else 0


class _Anchor(Struct):
    """A YAML node with an anchor.

    Attributes:
        complete: Whether the end of the YAML node has been read.
        weight: The number of decode operations for the YAML node in go-yaml.
        size: The characters of its scalars, including those of aliases.
    """

    complete: bool = False
    value: Json = None
    weight: int = 0
    size: int = 0


class _Key(Enum):
    """The position in an open sequence or mapping, if no ordinary key waits for its value."""

    ITEM = 0  # in a sequence
    NEXT = 1  # in a mapping, before a key
    MERGE = 2  # in a mapping, after ``<<``


class _OpenNode(Struct):
    """An unfinished mapping or sequence. ``key`` is the key of the next value, else the position (`_Key`)."""

    value: Json
    key: str | _Key
    flow: bool
    anchor: _Anchor | None
    decoded: int
    size: int
    merged: set[str] = set()


class _DocumentBuilder:
    """Builds the value of a YAML document from parser events, without recursion.

    ``_decoded`` counts go-yaml's decode operations. go-yaml limits the share of these operations caused by aliases.
    ``_size`` counts the characters of scalars, including every use of an alias. The value as JSON has about this
    length.
    """

    def __init__(self, text: bytes) -> None:
        self._parser = CParser(text)
        self._root: Json = None
        self._stack: list[_OpenNode] = []
        self._anchors: dict[str, _Anchor] = {}
        self._duplicates: list[Duplicate] = []
        self._decoded = 1
        self._from_aliases = 0
        self._size = 0
        self._size_from_aliases = 0

    def read(self) -> YamlValue:
        """Parse the YAML document, and return its value."""
        next_event = self._parser.get_event
        handlers: dict[type, Callable[[Any], None]] = {
            ScalarEvent: self._scalar,
            MappingStartEvent: self._start,
            SequenceStartEvent: self._start,
            MappingEndEvent: self._end,
            SequenceEndEvent: self._end,
            AliasEvent: self._alias,
        }
        event = next_event()  # the start of the stream
        while not isinstance(event := next_event(), DocumentEndEvent):
            handler = handlers.get(type(event))
            if handler is not None:
                try:
                    handler(event)
                except UnreadableDocumentError as error:
                    raise UnreadableDocumentError(error.message, _index(event)) from None
            elif isinstance(event, StreamEndEvent):
                return YamlValue(None)
        return YamlValue(self._root, tuple(self._duplicates), self._trailing(event))

    def _trailing(self, last: Event) -> int | None:
        try:
            event = self._parser.get_event()
        except (MarkedYAMLError, ReaderError) as error:
            mark = getattr(error, "problem_mark", None) or last.end_mark
            return int(mark.index) if mark else 0
        return None if isinstance(event, StreamEndEvent) else _index(event)

    def _scalar(self, event: ScalarEvent) -> None:
        text = event.value
        parent = self._stack[-1] if self._stack else None
        implicit = event.implicit[0]
        if text == "<<" and parent and parent.key is _Key.NEXT and (implicit or event.tag == _MERGE_TAG):
            parent.key = _Key.MERGE
            return
        if parent and parent.flow and implicit and "?" in text:
            # Newer versions of libyaml read it as text. In go-yaml's older copy it starts a key.
            raise UnreadableDocumentError(
                "Kubernetes' clients read '?' in flow style as the start of a key; quote the text"
            )
        value = resolve_tagged(event.tag, text) if event.tag else resolve_plain(text) if implicit else text
        self._decoded += 1
        self._size += len(text)
        if event.anchor is not None:
            anchor = self._anchors[event.anchor] = _Anchor()
            anchor.complete, anchor.value, anchor.weight, anchor.size = True, value, 1, len(text)
        self._put(value, event)

    def _put(self, value: Json, event: Event) -> None:
        """Add a finished value to the innermost open mapping or sequence, as a key, a value or an item."""
        parent = self._stack[-1] if self._stack else None
        if parent is not None and parent.key is _Key.NEXT:
            key = key_text(value)
            if key in parent.value and key not in parent.merged and len(self._duplicates) < MAX_DUPLICATES:
                self._duplicates.append(Duplicate(key, _index(event)))
            parent.key = key
            return
        if type(value) in (int, float):
            value = json_number(value)
        if parent is None:
            self._root = value
        elif parent.key is _Key.ITEM:
            parent.value.append(value)
        elif parent.key is _Key.MERGE:
            self._merge(parent, value, isinstance(event, AliasEvent))
        else:
            parent.value[parent.key] = value
            parent.merged.discard(parent.key)  # overriding a merged key is fine, but only once
            parent.key = _Key.NEXT

    def _merge(self, parent: _OpenNode, value: Json, aliased: bool) -> None:
        """Merge the mappings of ``<<`` like go-yaml v2: they override fields above, and the first mapping wins."""
        listed = isinstance(value, list) and not aliased
        mappings = value if listed else [value]
        if listed:
            self._decoded -= 1  # go-yaml does not decode the list itself
        if not all(isinstance(mapping, dict) for mapping in mappings):
            raise UnreadableDocumentError("map merge requires map or sequence of maps as the value")
        for mapping in reversed(mappings):
            parent.merged.update(mapping)
            parent.value.update(mapping)
        parent.key = _Key.NEXT

    def _start(self, event: MappingStartEvent | SequenceStartEvent) -> None:
        if len(self._stack) == MAX_YAML_LEVELS:
            raise UnreadableDocumentError(f"nested more than {MAX_YAML_LEVELS} levels deep")
        anchor = None
        if event.anchor is not None:
            anchor = self._anchors[event.anchor] = _Anchor()
        start: tuple[Json, _Key] = ({}, _Key.NEXT) if isinstance(event, MappingStartEvent) else ([], _Key.ITEM)
        self._stack.append(_OpenNode(*start, bool(event.flow_style), anchor, self._decoded, self._size))
        self._decoded += 1

    def _end(self, event: MappingEndEvent | SequenceEndEvent) -> None:
        node = self._stack.pop()
        if node.anchor is not None:
            anchor = node.anchor
            anchor.complete, anchor.value, anchor.weight = True, node.value, self._decoded - node.decoded
            anchor.size = self._size - node.size
        self._put(node.value, event)

    def _alias(self, event: AliasEvent) -> None:
        name = event.anchor or ""
        anchor = self._anchors.get(name)
        if anchor is None:
            raise UnreadableDocumentError(f"unknown anchor '{name[:64]}' referenced")
        if not anchor.complete:
            raise UnreadableDocumentError(f"anchor '{name[:64]}' value contains itself")
        self._decoded += 1 + anchor.weight
        self._from_aliases += anchor.weight
        self._size += anchor.size
        self._size_from_aliases += anchor.size
        if self._size_from_aliases > _MAX_ALIASED_CHARS:
            raise UnreadableDocumentError(f"aliases repeat more than {_MAX_ALIASED_CHARS:,} characters")
        if self._from_aliases > 100 and self._decoded > 1000:
            self._bound_aliases()
        self._put(anchor.value, event)

    def _bound_aliases(self) -> None:
        """Raise if aliases cause too large a share of the decode operations.

        The limit is 99 % up to 400,000 operations. It falls to 10 % at 4,000,000 operations.

        Source: decode.go ``allowedAliasRatio``.
        """
        share = min(max((self._decoded - 400_000) / 3_600_000, 0.0), 1.0)
        if self._from_aliases / self._decoded > 0.99 - 0.89 * share:
            raise UnreadableDocumentError("document contains excessive aliasing")
