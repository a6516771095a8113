"""Several rounds of edits of a file, combined into edits of the original file.

Each round's positions are those of the text after the round before. `Pieces` keeps track of which bytes of the current
text are still original, so that the rounds together can be shown as one diff.
"""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from webhook.manifests.editing.insertion import TextEdit


class _Piece(Struct, frozen=True):
    """The original bytes from ``start`` to before ``end``, or new ``text``; then ``start`` and ``end`` are 0."""

    start: int
    end: int
    text: bytes | None = None

    @property
    def size(self) -> int:
        return self.end - self.start if self.text is None else len(self.text)

    def part(self, first: int, last: int) -> "_Piece":
        """Some of its bytes; positions count from its own beginning."""
        if self.text is None:
            return _Piece(self.start + first, self.start + last)
        return _Piece(0, 0, self.text[first:last])


class Pieces(Struct, frozen=True):
    """The current text of a file, as a sequence of original and new pieces; ``size`` is that of the original."""

    pieces: tuple[_Piece, ...]
    size: int

    @staticmethod
    def of(data: bytes) -> "Pieces":
        """The original text."""
        return Pieces((_Piece(0, len(data)),), len(data))

    def edited(self, edits: Iterable[TextEdit]) -> "Pieces":
        """The text after further edits; these are in the order of the text, and their positions are in this text."""
        made: list[_Piece] = []
        at = 0
        for edit in edits:
            made += [*self._between(at, edit.start), _Piece(0, 0, edit.text)]
            at = edit.end
        made += self._between(at, sum(each.size for each in self.pieces))
        return Pieces(tuple(each for each in made if each.size), self.size)

    def _between(self, first: int, last: int) -> Iterator[_Piece]:
        at = 0
        for each in self.pieces:
            start, end = max(first - at, 0), min(last - at, each.size)
            if start < end:
                yield each.part(start, end)
            at += each.size

    def edits(self) -> Sequence[TextEdit]:
        """The edits of the original that make this text."""
        made: list[TextEdit] = []
        at, text = 0, b""
        for each in (*self.pieces, _Piece(self.size, self.size)):
            if each.text is not None:
                text += each.text
                continue
            if text or each.start > at:
                made.append(TextEdit(at, each.start, text))
            at, text = each.end, b""
        return made
