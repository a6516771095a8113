"""Protect decoders from JSON with too many levels or values.

Too deep levels are cut, since no field there is read. Values are counted before decoding, because a decoder blocks all
other threads until it has created them.

The API server accepts 10,000 levels in fields it does not read (managedFields, custom resources). The decoder stops at
the depth of Python's stack. Without the cut, such an object would escape review, and so would the objects after it in
a watch.

Source: k8s.io json ``maxNestingDepth``.
"""

import re
from collections.abc import Callable
from itertools import islice
from typing import TypeVar

from msgspec import Raw

MOST_LEVELS = 200
"""Far below Python's stack, and above all that a pod template lies in."""

# A bracket, or what comes before the next list or object that holds another, a few dozen values at a time: others take
# turns between two matches. No step back into a string: a text of megabytes takes no memory and no second look.
_TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_FLAT = rb'[\[{](?:[^\[\]{}"]++|' + _TEXT + rb"){0,64}+[\]}]"
_TEXT_OR_FLAT = re.compile(_TEXT + rb"|" + _FLAT, re.DOTALL)
_TOKEN = re.compile(rb'(?:[^\[\]{}"]++|' + _TEXT + rb"|" + _FLAT + rb"){1,64}+|[\[\]{}]", re.DOTALL)
_OPENING, _CLOSING = b"[{", b"]}"
# A value in a list or an object begins after one of these.
_BEFORE_VALUE = (b",", b"[", b"{")
_VALUE = re.compile(_TEXT + rb"|[,\[{]", re.DOTALL)

_Read = TypeVar("_Read")


def read_nested(read: Callable[[bytes], _Read], text: bytes) -> _Read:
    """Apply ``read`` to the text. If that is nested too deeply, apply it to the text cut at `MOST_LEVELS`.

    Errors: those of ``read``, but for RecursionError.
    """
    try:
        return read(text)
    except RecursionError:
        return read(cut(text))


def has_more_values(text: bytes | Raw, most: int) -> bool:
    """Whether JSON text has more than ``most`` values. Takes linear time, and counts in broken text too.

    Text inside strings does not count. Other threads run meanwhile.
    """
    if memoryview(text).nbytes <= most:
        return False
    text = bytes(text)
    if sum(map(text.count, _BEFORE_VALUE)) <= most:
        return False
    values = (token for token in _VALUE.finditer(text) if token[0] in _BEFORE_VALUE)
    return next(islice(values, most, None), None) is not None


def cut(text: bytes) -> bytes:
    """The text with null for each list and mapping below `MOST_LEVELS`; broken text stays broken."""
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
