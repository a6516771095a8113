"""Text pages for stdout: colours, wrapped lines, tables, and several pages in a row."""

import os
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TextIO, TypeVar

from webhook.core.text import one_line

# SGR codes of ECMA-48.
BOLD, DIM, RED, YELLOW, BLUE, GREEN = "1", "2", "31", "33", "34", "32"
WIDTH = 80  # columns: the default of terminals, and safe in mails and tickets
_MAX_WRAPPED_CHARS = 4096  # of one text; it may hold names from outside
_Answer = TypeVar("_Answer")


def paint(text: str, *codes: str) -> str:
    """Return the text in these ANSI codes, or unchanged if stdout is no colour terminal."""
    return f"\033[{';'.join(codes)}m{text}\033[0m" if text and codes and _has_color(sys.stdout) else text


@lru_cache(maxsize=1)  # pages paint thousands of texts
def _has_color(stream: TextIO) -> bool:
    """Whether a stream is a colour terminal. NO_COLOR turns colours off (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def joined_pages(answers: Iterable[_Answer], render: Callable[[_Answer], Iterable[str]]) -> Iterator[str]:
    """Render each answer as a page, with an empty line between two pages."""
    for number, answer in enumerate(answers):
        yield "\n" * bool(number)
        yield from render(answer)


def wrapped(text: str, *codes: str, indent: str = "") -> Iterator[str]:
    """Wrap text at 80 columns. Following lines are indented by two more columns."""
    lines = textwrap.wrap(
        one_line(text, _MAX_WRAPPED_CHARS), WIDTH, initial_indent=indent, subsequent_indent=indent + "  "
    )
    for line in lines:
        yield paint(line, *codes) + "\n"


def counted_kinds(kinds: Mapping[str, int], most: int) -> str:
    """The numbers of objects of the ``most`` frequent kinds: ``9 Pod, 3 Node, 2 of other kinds``."""
    counts = Counter(kinds).most_common()
    rest = sum(count for _, count in counts[most:])
    shown = [f"{count:,} {kind}" for kind, count in counts[:most]]
    return ", ".join([*shown, *([f"{rest:,} of other kinds"] if rest else [])])


def table_lines(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Align the columns of a table. The last column is not padded."""
    widths = [max(map(len, column)) for column in [*zip(*rows, strict=True)][:-1]]
    for row in rows:
        yield "  ".join([*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[-1]])
