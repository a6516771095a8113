"""Split the bytes of a file into documents like kubectl, each with its position in the file.

A line with ``---`` always ends a YAML document, so a broken document does not hide the next one. A document with a
leading ``{`` is tried as JSON first (one object, or several in a row as in JSON Lines), then as YAML.

Source: apimachinery pkg/util/yaml/decoder.go ``YAMLReader``, ``YAMLOrJSONDecoder``.
"""

import re
from collections.abc import Generator, Iterator

import msgspec
from msgspec import Struct, structs

from webhook.core.decoders import decoder_of
from webhook.core.text import one_line
from webhook.manifests.reading.go_yaml import MAX_YAML_LEVELS

_SEPARATOR = re.compile(rb"^---([^\n]*)\n?", re.MULTILINE)
_SOURCE = re.compile(rb"^# Source: ([^\r\n]{1,256})", re.MULTILINE)
_LEADING = re.compile(rb"(?:[ \t\r]*(?:#[^\n]*)?\n|---[^\n]*\n)*")
# The most comment bytes passed on to the next document. A file may consist of separators only.
_MAX_COMMENTS_BYTES = 16 * 1024
BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")
"""How UTF-16 text begins, for kubectl to read it."""
NOT_JSON = "not JSON: "
_MALFORMED = re.compile(r"JSON is malformed: (.*) \(byte (\d+)\)")


class InputFault(Struct, frozen=True, kw_only=True):
    """An unreadable part of the input, as one line of text.

    Attributes:
        line: From 1. 0 if unknown.
        column: From 1. 0 if unknown.
        fatal: False for a note: nothing was lost.
        foreign: Whether the input seems to be no Kubernetes object, for example without apiVersion and kind.
    """

    file: str
    message: str
    line: int = 0
    column: int = 0
    fatal: bool = True
    foreign: bool = False

    def __str__(self) -> str:
        """Return the fault like a compiler's message: ``FILE:LINE:COLUMN: message``."""
        place = f":{self.line}:{self.column}" if self.line else ""
        return f"{one_line(self.file)}{place}: {one_line(self.message, 400)}"


class InputDocument(Struct, frozen=True, kw_only=True):
    """A YAML or JSON document of a file.

    Attributes:
        line: The line of the document's first character in the file, from 1.
        column: The column of the document's first character, from 0.
        json: Whether the text is exactly one JSON value.
        malformed: Why a text starting with a brace is not JSON.
        comments: The last 16 KiB of lines before the document's content, including those of preceding empty documents.
        is_patch: Whether a kustomization uses the document as a patch. A patch needs no apiVersion.
    """

    file: str
    text: bytes
    line: int = 1
    column: int = 0
    json: bool = False
    malformed: str = ""
    malformed_at: int = 0
    comments: bytes = b""
    is_patch: bool = False

    @property
    def source(self) -> str:
        """The template in Helm's comment above its output. Empty without such a comment."""
        comment = _SOURCE.search(self.comments)
        return comment[1].decode("utf-8", "replace").strip() if comment else ""

    @property
    def start(self) -> int:
        """The index of the first character after the leading comments, ``---`` lines and empty lines."""
        above = _LEADING.match(self.text)
        rest = self.text[above.end() :] if above else self.text
        return len((above[0] if above else b"").decode("utf-8", "replace")) + len(rest) - len(rest.lstrip())

    def place(self, index: int | None) -> tuple[int, int]:
        """Return the line and the column in the file, both from 1, of a character.

        ``index`` is the character's index in this document. None means the first character.
        """
        before = self.text.decode("utf-8", "replace").removeprefix("\ufeff")[: index or 0]
        start = before.rfind("\n") + 1
        line = before.count("\n")
        return self.line + line, len(before) - start + 1 + (0 if line else self.column)

    def fault(self, message: str, index: int | None = 0, *, fatal: bool = True, foreign: bool = False) -> InputFault:
        """A fault at a character of this document."""
        line, column = self.place(index)
        return InputFault(file=self.file, message=message, line=line, column=column, fatal=fatal, foreign=foreign)


def split(file: str, data: bytes) -> Iterator[InputDocument | InputFault]:
    """The documents of a file, including empty ones."""
    if b"\0" in (data[:1], data[1:2]):
        message = "UTF-16 text without a byte order mark, which kubectl does not read; save it as UTF-8"
        letters = data.replace(b"\0", b"")
        is_foreign = not (b"apiVersion" in letters and b"kind" in letters)
        yield InputFault(file=file, message=message, line=1, column=1, foreign=is_foreign)
        return
    if data and not data.endswith(b"\n"):
        data += b"\n"  # kubectl adds it too, which decides how a block scalar at the end is read
    start, line, readable, above = 0, 1, True, b""
    for separator in _SEPARATOR.finditer(data):
        end = separator.start()
        rest = separator[1].strip()
        if readable and end > start:
            above = yield from _chunk(InputDocument(file=file, text=data[start:end], line=line, comments=above))
        line += data.count(b"\n", start, end)
        readable = not rest or rest.startswith(b"#")
        if not readable:
            text = rest[:64].decode("utf-8", "replace")
            message = f"kubectl accepts only a comment after '---' on the same line; document skipped: {text}"
            yield InputFault(file=file, message=message, line=line, column=4)
        # For kubectl, a separator at the start of a document belongs to that document.
        start = separator.end() if end > start else end
        line += end < start
    if readable:
        yield from _chunk(InputDocument(file=file, text=data[start:], line=line, comments=above))


def _chunk(whole: InputDocument) -> Generator[InputDocument | InputFault, None, bytes]:
    """Yield the documents between two YAML separators.

    They are one YAML document, or several JSON objects.

    Returns:
        The comments, if there are only comments. They belong to the next document.
    """
    leading = _LEADING.match(whole.text)
    above = leading[0] if leading else b""
    comments = (whole.comments + above)[-_MAX_COMMENTS_BYTES:]
    if len(above) == len(whole.text):
        return comments
    whole = structs.replace(whole, comments=comments)
    yield from _json_or_yaml(whole)
    return b""


def _json_or_yaml(whole: InputDocument) -> Iterator[InputDocument | InputFault]:
    text, line = whole.text, whole.line
    if not text.lstrip().startswith(b"{"):
        yield whole
        return
    rest, start = memoryview(text), 0
    while start < len(text):
        end, malformed = _end_of_json(rest[start:])
        if malformed and not start:
            yield structs.replace(whole, malformed=malformed, malformed_at=end)  # it may be YAML in flow style
            return
        column = start - (text.rfind(b"\n", 0, start) + 1)
        piece = structs.replace(whole, text=text[start : start + end], line=line, column=column, json=True)
        if malformed:
            yield piece.fault(malformed, len(piece.text[:end].decode("utf-8", "replace")))
            return
        yield piece
        line += piece.text.count(b"\n")
        start += end


def _end_of_json(text: memoryview) -> tuple[int, str]:
    """Return the length of the JSON value at the start, with trailing white space.

    The text is empty for valid JSON. For invalid JSON, return the index and the text of the fault instead.
    """
    try:
        decoder_of(msgspec.Raw).decode(text)
    except RecursionError:
        return 1, f"nested more than {MAX_YAML_LEVELS} levels deep"
    except msgspec.DecodeError as error:
        malformed = _MALFORMED.fullmatch(str(error))
        if malformed is None:
            return len(text), "JSON ends too early"
        place = int(malformed[2])
        return (place - 1, "") if malformed[1] == "trailing characters" else (place, f"{NOT_JSON}{malformed[1]}")
    return len(text), ""
