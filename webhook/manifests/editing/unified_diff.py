"""Print edits of a text as a unified diff, in the format of diff(1) and patch(1).

The edits are known, so no texts are compared. difflib takes minutes for a large file.
"""

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence

from msgspec import Struct

from webhook.manifests.editing.document_text import TextEdit

_CONTEXT = 3  # lines around a change
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")


class _LineChange(Struct, frozen=True):
    """Replace the ``old`` lines from ``first`` (from 0) by the ``new`` lines."""

    first: int
    old: Sequence[bytes]
    new: Sequence[bytes]

    @property
    def end(self) -> int:
        return self.first + len(self.old)


def line_diff(name: str, data: bytes, edits: Sequence[TextEdit]) -> Iterator[str]:
    """The diff of a file. ``edits`` are sorted by position and do not overlap."""
    lines = _LINE.findall(data)
    name = _quoted(name)
    yield f"--- {name}\n+++ {name}\n"
    grown = 0
    for group in _groups([*_changes(data, lines, edits)]):
        first, last = max(group[0].first - _CONTEXT, 0), min(group[-1].end + _CONTEXT, len(lines))
        more = sum(len(change.new) - len(change.old) for change in group)
        yield f"@@ -{_range(first, last - first)} +{_range(first + grown, last - first + more)} @@\n"
        at = first
        for change in group:
            yield from _marked(" ", lines[at : change.first])
            yield from _marked("-", change.old)
            yield from _marked("+", change.new)
            at = change.end
        yield from _marked(" ", lines[at:last])
        grown += more


def _quoted(name: str) -> str:
    """The name as git and patch(1) read it: in quotes where a character could end the line or change a terminal.

    Source: git quote.c ``quote_c_style``.
    """
    if name.isprintable():
        return name
    letters = (
        character
        if character.isprintable()
        else "".join(f"\\{byte:03o}" for byte in character.encode("utf-8", "surrogateescape"))
        for character in name.replace("\\", "\\\\").replace('"', '\\"')
    )
    return f'"{"".join(letters)}"'


def _changes(data: bytes, lines: Sequence[bytes], edits: Sequence[TextEdit]) -> Iterator[_LineChange]:
    """The edits as changes of whole lines. Edits of one line become one change."""
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    pending = deque(edits)
    while pending:
        first = end = bisect_right(starts, pending[0].start, hi=len(lines)) - 1
        at, block = starts[first], list[bytes]()
        # patch(1) refuses two changes of one line.
        while pending and (not block or pending[0].start < starts[end + 1]):
            edit = pending.popleft()
            block += [data[at : edit.start], edit.text]
            at = edit.end
            end = max(end, bisect_right(starts, edit.end, hi=len(lines)) - 1)
        block.append(data[at : starts[end + 1]])
        yield _trimmed(first, lines[first : end + 1], _LINE.findall(b"".join(block)))


def _trimmed(first: int, old: Sequence[bytes], new: Sequence[bytes]) -> _LineChange:
    """Return the change of lines, without equal lines at its start and end."""
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    tail = 0
    while tail < min(len(old), len(new)) - same and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return _LineChange(first + same, [*old[same : len(old) - tail]], [*new[same : len(new) - tail]])


def _groups(changes: Sequence[_LineChange]) -> Iterator[list[_LineChange]]:
    """Group the changes into hunks. Changes with touching context lines share a hunk."""
    group: list[_LineChange] = []
    for change in changes:
        # The context of two hunks must not overlap.
        if group and change.first - group[-1].end > 2 * _CONTEXT:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _range(first: int, length: int) -> str:
    return str(first + 1) if length == 1 else f"{first + 1},{length}"


def _marked(sign: str, lines: Sequence[bytes]) -> Iterator[str]:
    for line in lines:
        text = line.decode("utf-8", "surrogateescape")
        yield f"{sign}{text}" if line.endswith(b"\n") else f"{sign}{text}\n\\ No newline at end of file\n"
