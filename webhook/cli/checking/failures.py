"""Faults of evenspread itself while it examined objects, and how they are printed."""

import os
import traceback
from collections.abc import Sequence

from msgspec import Struct

from webhook.cli.terminal import say
from webhook.core.text import one_line


class Failure(Struct, frozen=True):
    """A part of the program raised on an object, which is a bug; the other parts did their work.

    Shape: ``part`` is what it is called in a sentence: ``the rule selector-empty``.
    """

    file: str
    title: str
    part: str
    error: Exception


def print_failures(failures: Sequence[Failure]) -> None:
    """Print one line for each failure; the first one with its traceback, if that was requested."""
    for failure in failures:
        said = f"{type(failure.error).__name__}: {one_line(str(failure.error))}".removesuffix(": ")
        say(f"{one_line(failure.file)}: {failure.title}: {failure.part} failed ({said}); everything else was looked at")
    if failures:
        say("evenspread: a fault of evenspread itself, please report it; EVENSPREAD_DEBUG=1 shows where")
        if os.environ.get("EVENSPREAD_DEBUG"):
            say("".join(traceback.format_exception(failures[0].error)))
