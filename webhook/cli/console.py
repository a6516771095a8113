"""The two ends of a command: results to the standard output, all else to the standard error; colours and progress."""

import gc
import os
import sys
import time
from collections.abc import Callable, Iterable
from typing import TextIO

import click

from webhook.cli.documents import Fault

_PATIENCE_SECONDS = 1.0  # who waits longer than this wants to see that something moves
_STEP_SECONDS = 0.1


def collect_rarely() -> None:
    """Let garbage be collected less often: a run is short, and makes trees of values, not cycles.

    By default the collector takes 15 % of the time of 1,000 documents.
    """
    gc.set_threshold(100_000, 50, 50)


def colored(stream: TextIO) -> bool:
    """Whether colours may go there: a terminal that has them, and no NO_COLOR (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def print_results(pieces: Iterable[str]) -> None:
    """Write results; text that the terminal cannot show is escaped."""
    for piece in pieces:
        sys.stdout.write(piece)
    sys.stdout.flush()


def print_faults(faults: Iterable[Fault]) -> None:
    """One line a fault."""
    for fault in faults:
        kind = "error" if fault.fatal else "note"
        place, _, message = str(fault).partition(": ")
        click.echo(f"{place}: {kind}: {message}", err=True)


def progress() -> Callable[[int], None]:
    """A counter on the standard error, if that is a terminal and there is something to wait for."""
    if not sys.stderr.isatty():
        return lambda _count: None
    next_time = time.monotonic() + _PATIENCE_SECONDS

    def show(count: int) -> None:
        nonlocal next_time
        now = time.monotonic()
        if now >= next_time:
            next_time = now + _STEP_SECONDS
            sys.stderr.write(f"\r\033[K{count:,} objects")
            sys.stderr.flush()

    return show


def end_progress() -> None:
    """Clear the counter's line."""
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K")
        sys.stderr.flush()
