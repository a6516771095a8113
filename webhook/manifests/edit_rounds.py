"""A file after several rounds of edits, as edits of the file before the first."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from webhook.manifests.insertion import Edit


class _Piece(Struct, frozen=True):
    """Bytes ``start`` to before ``end`` of the file, or others: then ``start`` and ``end`` are 0."""

    start: int
    end: int
    text: bytes | None = None

    @property
    def size(self) -> int:
        return self.end - self.start if self.text is None else len(self.text)

    def part(self, first: int, last: int) -> "_Piece":
        """Some of its bytes, counted from its own beginning."""
        if self.text is None:
            return _Piece(self.start + first, self.start + last)
        return _Piece(0, 0, self.text[first:last])


class Pieces(Struct, frozen=True):
    """The file as it is now, made of what is left of it and of new text."""

    pieces: tuple[_Piece, ...]
    size: int

    @staticmethod
    def of(data: bytes) -> "Pieces":
        """The file as it was read."""
        return Pieces((_Piece(0, len(data)),), len(data))

    def edited(self, edits: Iterable[Edit]) -> "Pieces":
        """After further edits, in the order of the text; their places are those of the file as it is now."""
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

    def edits(self) -> Sequence[Edit]:
        """What turns the file as it was into this one."""
        made: list[Edit] = []
        at, text = 0, b""
        for each in (*self.pieces, _Piece(self.size, self.size)):
            if each.text is not None:
                text += each.text
                continue
            if text or each.start > at:
                made.append(Edit(at, each.start, text))
            at, text = each.end, b""
        return made
