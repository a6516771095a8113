"""Faults of evenspread itself while it examined objects, and how they are printed."""

import os
import traceback
from collections.abc import Sequence

from msgspec import Struct

from webhook.cli.terminal import say
from webhook.core.text import one_line


class Failure(Struct, frozen=True):
    """A rule raised on an object, which is a bug; the other rules were evaluated. Without a rule, the review raised."""

    file: str
    title: str
    rule: str
    error: Exception


def print_failures(failures: Sequence[Failure]) -> None:
    """Print one line for each failure; the first one with its traceback, if that was requested."""
    for failure in failures:
        who = f"the rule {failure.rule}" if failure.rule else "the review"
        said = f"{type(failure.error).__name__}: {one_line(str(failure.error))}".removesuffix(": ")
        say(f"{one_line(failure.file)}: {failure.title}: {who} failed ({said}); everything else was looked at")
    if failures:
        say("evenspread: a fault of evenspread itself, please report it; EVENSPREAD_DEBUG=1 shows where")
        if os.environ.get("EVENSPREAD_DEBUG"):
            say("".join(traceback.format_exception(failures[0].error)))
