"""Text pages: wrapped lines, tables, and several pages in a row."""

import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from webhook.cli.output.color import Paint
from webhook.core.text import one_line

_Answer = TypeVar("_Answer")
WIDTH = 80  # columns: the default of terminals, and safe in mails and tickets
_MAX_WRAPPED_CHARS = 4096  # of one text; it may hold names from outside


def joined_pages(answers: Iterable[_Answer], render: Callable[[_Answer], Iterable[str]]) -> Iterator[str]:
    """Render each answer as a page, with an empty line between two pages."""
    for number, answer in enumerate(answers):
        yield "\n" * bool(number)
        yield from render(answer)


def wrapped(text: str, paint: Paint | None = None, *codes: str, indent: str = "") -> Iterator[str]:
    """Wrap text at 80 columns. Following lines are indented by two more columns."""
    lines = textwrap.wrap(
        one_line(text, _MAX_WRAPPED_CHARS), WIDTH, initial_indent=indent, subsequent_indent=indent + "  "
    )
    for line in lines:
        yield (paint(line, *codes) if paint is not None else line) + "\n"


def table_lines(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Align the columns of a table. The last column is not padded."""
    widths = [max(map(len, column)) for column in [*zip(*rows, strict=True)][:-1]]
    for row in rows:
        yield "  ".join([*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[-1]])
