"""JSON that is nested more deeply than the decoder follows: what lies that deep is left out, since nothing reads it.

The API server takes 10,000 levels, in fields that it keeps unread (managedFields, custom resources); the decoder gives
up at the depth of Python's stack. Else whoever writes such a field would not be looked at, nor would anybody else whose
objects come after it in a watch.

Source: k8s.io json ``maxNestingDepth``.
"""

import re
from collections.abc import Callable
from typing import TypeVar

MOST_LEVELS = 200
"""Far below Python's stack, and above all that a pod template lies in."""

# No step back into a string: a text of megabytes takes no memory and no second look.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}]', re.DOTALL)
_OPENING, _CLOSING = b"[{", b"]}"

_Read = TypeVar("_Read")


def read_nested(read: Callable[[bytes], _Read], text: bytes) -> _Read:
    """What ``read`` makes of the text, or of the text cut at `MOST_LEVELS` where that is nested too deeply for it.

    Errors: those of ``read``, but for RecursionError.
    """
    try:
        return read(text)
    except RecursionError:
        return read(cut(text))


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
    return b"".join([*kept, text[start:]] if depth <= MOST_LEVELS else kept)
