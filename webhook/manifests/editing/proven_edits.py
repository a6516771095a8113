"""Prove edits by reading the edited text again, and combine several rounds of edits into edits of the original file.

The edited text must have the same objects, except for the intended changes. Wrong changes are dropped, the others kept.
"""

import json
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec import Struct

from webhook.manifests.editing.document_text import TextEdit
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.files import File
from webhook.manifests.reading.go_yaml import Json
from webhook.manifests.reading.manifest import Manifest, read_manifests

Content = Sequence[Manifest | InputFault]  # of a file, by `read_manifests`


class ObjectChange(Struct, frozen=True):
    """A change of one object of a file.

    Attributes:
        number: The object's index in the file.
        after: The object's JSON value after the change.
        edits: The edits of the file's text.
    """

    number: int
    after: Json
    edits: tuple[TextEdit, ...]


def proven(file: File, content: Content, changes: Sequence[ObjectChange]) -> list[ObjectChange]:
    """Return the changes whose edits have the intended result in the file.

    Empty if the remaining changes work in separate tests but not together.
    """
    kept = _holding(file, content, changes)
    return kept if len(kept) == len(changes) or _holds(file, content, kept) else []


def edited(data: bytes, changes: Sequence[ObjectChange]) -> bytes:
    """The file's bytes after all edits."""
    pieces, at = [], 0
    for edit in in_text_order(changes):
        pieces += [data[at : edit.start], edit.text]
        at = edit.end
    return b"".join((*pieces, data[at:]))


def in_text_order(changes: Sequence[ObjectChange]) -> list[TextEdit]:
    """Return the edits of all changes, sorted by their position in the file."""
    return sorted((edit for change in changes for edit in change.edits), key=lambda edit: edit.start)


def value_of(manifest: Manifest) -> Json:
    """An object as parsed JSON."""
    return msgspec.json.decode(manifest.value) if isinstance(manifest.value, bytes) else manifest.value


def _holding(file: File, content: Content, changes: Sequence[ObjectChange]) -> list[ObjectChange]:
    """Return the changes confirmed by rereading the edited text. If all fail together, each half is tested."""
    if not changes or _holds(file, content, changes):
        return [*changes]
    half = len(changes) // 2
    return [*_holding(file, content, changes[:half]), *_holding(file, content, changes[half:])] if half else []


def _holds(file: File, content: Content, changes: Sequence[ObjectChange]) -> bool:
    """Whether the edited file, parsed again, has the new values, and all other objects and faults as before."""
    by_number = {change.number: change for change in changes}
    again = [*read_manifests(file.name, edited(file.data, changes))]
    if len(again) != len(content):
        return False
    return all(
        _same(before, after, by_number.get(number))
        for number, (before, after) in enumerate(zip(content, again, strict=True))
    )


def _same(before: Manifest | InputFault, after: Manifest | InputFault, change: ObjectChange | None) -> bool:
    if isinstance(before, InputFault) or isinstance(after, InputFault):
        return isinstance(before, InputFault) and isinstance(after, InputFault) and before.message == after.message
    value = value_of(before) if change is None else change.after
    # Compared as text, since in Python True == 1 == 1.0.
    return json.dumps(value, sort_keys=True) == json.dumps(msgspec.json.decode(after.json_text), sort_keys=True)


class _Piece(Struct, frozen=True):
    """The original bytes from ``start`` to before ``end``, or new text. For new text, both are 0."""

    start: int
    end: int
    text: bytes | None = None

    @property
    def size(self) -> int:
        return self.end - self.start if self.text is None else len(self.text)

    def part(self, first: int, last: int) -> "_Piece":
        """Return the bytes ``first`` to ``last`` of this piece. Positions count from its start."""
        if self.text is None:
            return _Piece(self.start + first, self.start + last)
        return _Piece(0, 0, self.text[first:last])


class Pieces(Struct, frozen=True):
    """The current text of an edited file, as a sequence of original and new pieces.

    Attributes:
        pieces: The pieces in the order of the text.
        size: The original file's size in bytes.
    """

    pieces: tuple[_Piece, ...]
    size: int

    @staticmethod
    def of(data: bytes) -> "Pieces":
        """The original text."""
        return Pieces((_Piece(0, len(data)),), len(data))

    def edited(self, edits: Iterable[TextEdit]) -> "Pieces":
        """Apply further edits, sorted by position. Positions refer to the text before these edits."""
        made: list[_Piece] = []
        at = 0
        for edit in edits:
            made += [*self._between(at, edit.start), _Piece(0, 0, edit.text)]
            at = edit.end
        made += self._between(at, sum(piece.size for piece in self.pieces))
        return Pieces(tuple(piece for piece in made if piece.size), self.size)

    def _between(self, first: int, last: int) -> Iterator[_Piece]:
        at = 0
        for piece in self.pieces:
            start, end = max(first - at, 0), min(last - at, piece.size)
            if start < end:
                yield piece.part(start, end)
            at += piece.size

    def edits(self) -> Sequence[TextEdit]:
        """The edits of the original that lead to this text."""
        made: list[TextEdit] = []
        at, text = 0, b""
        for piece in (*self.pieces, _Piece(self.size, self.size)):
            if piece.text is not None:
                text += piece.text
                continue
            if text or piece.start > at:
                made.append(TextEdit(at, piece.start, text))
            at, text = piece.end, b""
        return made
