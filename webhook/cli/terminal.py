"""The two ends of a command: results to the standard output, all else to the standard error; colours and progress."""

import gc
import os
import sys
import time
from collections.abc import Iterable
from typing import TextIO

import click

from webhook.manifests.documents import Fault

PATIENCE_SECONDS = 1.0  # who waits longer than this wants to see that something moves
_STEP_SECONDS = 0.1
_CLEAR = "\r\033[K"  # the line of a terminal
BOLD, DIM, RED, YELLOW, BLUE, GREEN = "1", "2", "31", "33", "34", "32"


class Paint:
    """Terminal colours, or none."""

    def __init__(self, *, color: bool) -> None:
        self._color = color

    def __call__(self, text: str, *codes: str) -> str:
        """The text in colours, where they are allowed."""
        return f"\033[{';'.join(codes)}m{text}\033[0m" if self._color and text else text


def collect_rarely() -> None:
    """Let garbage be collected less often: a run is short, and makes trees of values, not cycles.

    By default the collector takes 15 % of the time of 1,000 documents.
    """
    gc.set_threshold(100_000, 50, 50)


def colored(stream: TextIO) -> bool:
    """Whether colours may go there: a terminal that has them, and no NO_COLOR (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def print_results(pieces: Iterable[str]) -> None:
    """Write results, until whoever reads them has seen enough; text that the terminal cannot show is escaped."""
    try:
        for piece in pieces:
            sys.stdout.write(piece)
        sys.stdout.flush()
    except BrokenPipeError:
        # The exit code says the rest. Python would complain once more when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_faults(faults: Iterable[Fault]) -> None:
    """One line a fault."""
    for fault in faults:
        kind = "error" if fault.fatal else "note"
        place, _, message = str(fault).partition(": ")
        click.echo(f"{place}: {kind}: {message}", err=True)


def say(line: str) -> None:
    """One line on the standard error, in the place of a counter that may stand there."""
    click.echo(f"{_CLEAR if sys.stderr.isatty() else ''}{line}", err=True)


class Progress:
    """A counter on the standard error, if that is a terminal and there is something to wait for."""

    def __init__(self, *, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._next = time.monotonic() + patience_seconds if sys.stderr.isatty() else float("inf")
        self._shown = False

    def __call__(self, count: int) -> None:
        """Show how many objects were looked at."""
        now = time.monotonic()
        if now >= self._next:
            self._next, self._shown = now + _STEP_SECONDS, True
            sys.stderr.write(f"{_CLEAR}{count:,} objects")
            sys.stderr.flush()

    def close(self) -> None:
        """Take the counter away."""
        if self._shown:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
