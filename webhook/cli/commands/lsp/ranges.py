"""Positions of a text in the units of the language server protocol."""

from lsprotocol import types
from pygls.workspace import PositionCodec

from webhook.manifests.editing.document_text import TextEdit
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.manifest import FieldPosition


class Ranges:
    """Converts positions in a file into ranges of the editor.

    A finding of `check` has lines and characters from 1. An edit has offsets in bytes.
    """

    def __init__(self, text: str, codec: PositionCodec) -> None:
        self._lines = text.split("\n")
        self._data = text.encode("utf-8", "replace")
        self._codec = codec

    def of_place(self, place: FieldPosition) -> types.Range:
        """Return the editor's range of a field, without the field's lines after the first."""
        return self.between(place.line - 1, place.column - 1, place.column - 1 + place.width)

    def of_fault(self, fault: InputFault) -> types.Range:
        """Return the range from a fault to the end of the fault's line."""
        line, column = max(fault.line - 1, 0), max(fault.column - 1, 0)
        text = self._lines[line].rstrip() if line < len(self._lines) else ""
        return self.between(line, min(column, max(len(text) - 1, 0)), len(text))

    def of_edit(self, edit: TextEdit) -> types.TextEdit:
        """The edit in the units of the editor."""
        return types.TextEdit(types.Range(self._at(edit.start), self._at(edit.end)), edit.text.decode())

    def between(self, line: int, start: int, end: int) -> types.Range:
        """The LSP range of the characters ``start`` to ``end`` in a line. Lines and characters are numbered from 0."""
        return types.Range(self._position(line, start), self._position(line, end))

    def character(self, position: types.Position) -> int:
        """The index of a position in its line, in characters."""
        return self._codec.position_from_client_units(self._lines, position).character

    def _position(self, line: int, character: int) -> types.Position:
        text = self._lines[line] if line < len(self._lines) else ""
        return types.Position(line, self._codec.client_num_units(text[:character]))

    def _at(self, index: int) -> types.Position:
        before = self._data[:index].decode("utf-8", "replace")
        return self._position(before.count("\n"), len(before) - before.rfind("\n") - 1)
