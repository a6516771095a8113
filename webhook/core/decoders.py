"""Decode JSON into types: one decoder a type, with limits on nesting and values.

The API server accepts 10,000 levels of nesting in fields it does not read (managedFields, custom resources). A decoder
fails on nesting deeper than Python's stack. Without a cut, an object with such nesting would escape review. The next
objects of its watch would escape too. `read_nested` therefore removes everything nested deeper than `MOST_LEVELS`. No
decoded field is that deep.

Values are counted before decoding, because a decoder blocks all other threads until all values exist.

Source: k8s.io json ``maxNestingDepth``.
"""

import re
import threading
from collections.abc import Callable
from itertools import islice
from typing import TypeVar, cast

import msgspec
from msgspec import Raw

_Read = TypeVar("_Read")

# When msgspec first reads a Struct, it stores the layout of its fields for all threads. A thread that reads the same
# Struct meanwhile gets a partial layout, and the process ends with a segmentation fault (msgspec 0.22). So only this
# module creates decoders, one at a time.
_making = threading.Lock()
_made: dict[object, object] = {}


def decoder_of(into: type[_Read]) -> msgspec.json.Decoder[_Read]:
    """Return the decoder of JSON into this type. All callers share one decoder for each type."""
    made = _made.get(into)
    if made is None:
        with _making:
            made = _made.setdefault(into, msgspec.json.Decoder(into))
    return cast("msgspec.json.Decoder[_Read]", made)


def converted(value: object, into: type[_Read]) -> _Read:
    """Convert plain JSON values into this type. Raises msgspec.ValidationError if they do not fit."""
    return msgspec.convert(value, decoder_of(into).type)


MOST_LEVELS = 200
"""The most nested levels of a document. Python refuses 1,000, and the deepest field of a CronJob has 15."""

# A token is a bracket, or the text before the next nested list or object, at most 64 values long. Other threads run
# between two matches. The possessive quantifiers never go back, so a string of megabytes takes linear time.
_TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_FLAT = rb'[\[{](?:[^\[\]{}"]++|' + _TEXT + rb"){0,64}+[\]}]"
_TEXT_OR_FLAT = re.compile(_TEXT + rb"|" + _FLAT, re.DOTALL)
_TOKEN = re.compile(rb'(?:[^\[\]{}"]++|' + _TEXT + rb"|" + _FLAT + rb"){1,64}+|[\[\]{}]", re.DOTALL)
_OPENING, _CLOSING = b"[{", b"]}"
# A value in a list or an object begins after one of these.
_BEFORE_VALUE = (b",", b"[", b"{")
_VALUE = re.compile(_TEXT + rb"|[,\[{]", re.DOTALL)


def read_nested(read: Callable[[bytes], _Read], text: bytes) -> _Read:
    """Apply ``read`` to the text. If the nesting is too deep, apply it to the text cut at `MOST_LEVELS`.

    Raises the exceptions of ``read``, except RecursionError.
    """
    try:
        return read(text)
    except RecursionError:
        return read(cut(text))


def has_more_values(text: bytes | Raw, most: int) -> bool:
    """Whether JSON text, valid or not, has more than ``most`` values. Takes linear time and lets other threads run."""
    if memoryview(text).nbytes <= most:
        return False
    text = bytes(text)
    if sum(map(text.count, _BEFORE_VALUE)) <= most:
        return False
    values = (token for token in _VALUE.finditer(text) if token[0] in _BEFORE_VALUE)
    return next(islice(values, most, None), None) is not None


def cut(text: bytes) -> bytes:
    """Replace each list and mapping nested deeper than `MOST_LEVELS` with null. Invalid JSON stays invalid."""
    depth, kept, start = 0, [], 0
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in _OPENING:
            depth += 1
            if depth == MOST_LEVELS + 1:
                kept += [text[start : token.start()], b"null"]
        elif mark in _CLOSING:
            if depth == MOST_LEVELS + 1:
                start = token.end()
            depth -= 1
        elif depth == MOST_LEVELS:
            kept += [text[start : token.start()], _TEXT_OR_FLAT.sub(_emptied, mark)]
            start = token.end()
    return b"".join([*kept, text[start:]] if depth <= MOST_LEVELS else kept)


def _emptied(token: re.Match[bytes]) -> bytes:
    return token[0] if token[0].startswith(b'"') else b"null"
