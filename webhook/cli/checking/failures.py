"""What of ours went wrong while objects were looked at, and how it is told."""

import os
import traceback
from collections.abc import Sequence

from msgspec import Struct

from webhook.cli.terminal import say
from webhook.core.text import one_line


class Failure(Struct, frozen=True):
    """A rule that raised on an object: our fault; every other rule spoke. Without a rule the whole review raised."""

    file: str
    title: str
    rule: str
    error: Exception


def print_failures(failures: Sequence[Failure]) -> None:
    """What of ours went wrong, a line each; the first with its traceback where somebody asked for it."""
    for failure in failures:
        who = f"the rule {failure.rule}" if failure.rule else "the review"
        said = f"{type(failure.error).__name__}: {one_line(str(failure.error))}".removesuffix(": ")
        say(f"{one_line(failure.file)}: {failure.title}: {who} failed ({said}); everything else was looked at")
    if failures:
        say("evenspread: a fault of evenspread itself, please report it; EVENSPREAD_DEBUG=1 shows where")
        if os.environ.get("EVENSPREAD_DEBUG"):
            say("".join(traceback.format_exception(failures[0].error)))
