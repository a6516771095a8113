"""Output of commands: results to the standard output, everything else to the standard error; colours and progress."""

import gc
import os
import re
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TextIO, TypeVar

import click
import msgspec

from webhook.core.text import one_line, plural
from webhook.manifests.reading.documents import InputFault

Json = dict[str, object]
_Answer = TypeVar("_Answer")
PATIENCE_SECONDS = 1.0  # after this long, progress is shown
_STEP_SECONDS = 0.1  # between two counts: nobody reads faster, and each is a write to the terminal
_CLEAR = "\r\033[K"  # the line of a terminal
_COMMAND = re.compile(r"^([^\S\n]*)::", re.MULTILINE)
WIDTH = 80  # columns: terminals open with so many, and mails and tickets keep them
BOLD, DIM, RED, YELLOW, BLUE, GREEN = "1", "2", "31", "33", "34", "32"


class Paint:
    """Terminal colours, or none."""

    def __init__(self, *, color: bool) -> None:
        self._color = color

    def __call__(self, text: str, *codes: str) -> str:
        """The text in colours, where they are allowed."""
        return f"\033[{';'.join(codes)}m{text}\033[0m" if self._color and text else text


def collect_rarely() -> None:
    """Run the garbage collector less often: a command is short, and makes trees of values without cycles.

    By default the collector takes 15 % of the time for 1,000 documents.
    """
    # After 100,000 new values instead of 700: at worst, cycles of some MiB wait to be freed.
    gc.set_threshold(100_000, 50, 50)


def colored(stream: TextIO) -> bool:
    """Whether to print colours: to a terminal that has them, unless NO_COLOR is set (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def print_results(pieces: Iterable[str]) -> None:
    """Write results, until the reader closes the pipe; text that the terminal cannot show is escaped."""
    try:
        for piece in pieces:
            sys.stdout.write(piece)
        sys.stdout.flush()
    except BrokenPipeError:
        # The exit code says the rest. Python would complain once more when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_values(value: object, output: str) -> None:
    """Write a value as JSON or as YAML."""
    if output == "json":
        print_results([msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"])
    else:
        from webhook.core.yaml_text import block  # noqa: PLC0415 only needed for YAML

        print_results([block(msgspec.to_builtins(value))])


def one_or_all(values: Sequence[object]) -> object:
    """One value as it is, several as a list."""
    return values[0] if len(values) == 1 else values


def pages(answers: Iterable[_Answer], render: Callable[[_Answer], Iterable[str]]) -> Iterator[str]:
    """The pages of several answers, with an empty line between them."""
    for number, answer in enumerate(answers):
        yield "\n" * bool(number)
        yield from render(answer)


def wrapped(text: str, paint: Paint | None = None, *codes: str, indent: str = "") -> Iterator[str]:
    """The text in lines of at most 80 columns; all but the first are indented by two columns more."""
    for line in textwrap.wrap(one_line(text, 4096), WIDTH, initial_indent=indent, subsequent_indent=indent + "  "):
        yield (paint(line, *codes) if paint is not None else line) + "\n"


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The rows as lines of a table, with columns as wide as they need be, and the last as it is."""
    widths = [max(map(len, column)) for column in [*zip(*rows, strict=True)][:-1]]
    for row in rows:
        yield "  ".join([*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[-1]])


def harmless(text: str) -> str:
    """Disarm workflow commands in outside text. GitHub Actions runs commands in a step's output.

    Source: actions/runner ActionCommand.cs ``TryParseV2`` (``::`` at the start of a line) and ``TryParse`` (``##[``).
    """
    return _COMMAND.sub(r"\1: :", text).replace("##[", "## [")


def print_faults(faults: Iterable[InputFault], *, verbose: bool = True) -> None:
    """Print one line per error and per note. Unless ``verbose``, equal notes share a line."""
    notes: dict[str, list[InputFault]] = {"": []}
    for fault in faults:
        notes.setdefault("" if fault.fatal or verbose else fault.message, []).append(fault)
    for message, equal in notes.items():
        if message and len(equal) > 1:
            files = plural(len({each.file for each in equal}), "file")
            click.echo(
                f"{files}: note: {harmless(one_line(message, 400))} (-v names {'it' if files == '1 file' else 'them'})",
                err=True,
            )
            continue
        for fault in equal:
            kind = "error" if fault.fatal else "note"
            place, _, text = str(fault).partition(": ")
            click.echo(harmless(f"{place}: {kind}: {text}"), err=True)


def say(line: str) -> None:
    """Print one line on the standard error, over a progress counter if there is one."""
    click.echo(f"{_CLEAR if sys.stderr.isatty() else ''}{harmless(line)}", err=True)


class Progress:
    """A counter on the standard error, if that is a terminal and the command takes longer than a second."""

    def __init__(self, of: str = "objects", *, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._of = of
        self._next = time.monotonic() + patience_seconds if sys.stderr.isatty() else float("inf")
        self._shown = False

    def __call__(self, count: int) -> None:
        """Show how many were looked at."""
        now = time.monotonic()
        if now >= self._next:
            self._next, self._shown = now + _STEP_SECONDS, True
            sys.stderr.write(f"{_CLEAR}{count:,} {self._of}")
            sys.stderr.flush()

    def close(self) -> None:
        """Remove the counter."""
        if self._shown:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
