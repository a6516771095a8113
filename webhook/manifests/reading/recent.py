"""Keep what was read from recent documents. A check reads a document several times, an editor after each keystroke."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

_Result = TypeVar("_Result")

# At worst 40 MiB. A value takes ten times the memory of its text.
_MAX_DOCUMENTS = 128
_MAX_BYTES = 32 * 1024


def kept_for_recent(read: Callable[[bytes], _Result]) -> Callable[[bytes], _Result]:
    """Let a function keep its results for small documents. Callers must not change a result."""
    kept = lru_cache(maxsize=_MAX_DOCUMENTS)(read)

    @wraps(read)
    def reading(text: bytes) -> _Result:
        return kept(text) if len(text) <= _MAX_BYTES else read(text)

    return reading
