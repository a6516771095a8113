"""Output of commands: results on stdout, errors and notes on stderr."""

import os
import re
import sys
from collections.abc import Iterable, Sequence

import click
import msgspec

from webhook.cli.output.long_runs import CLEAR_LINE
from webhook.core.text import one_line, plural
from webhook.manifests.reading.documents import InputFault

Json = dict[str, object]
_WORKFLOW_COMMAND = re.compile(r"^([^\S\n]*)::", re.MULTILINE)
_MAX_NOTE_CHARS = 400  # five lines of a usual terminal


def print_results(pieces: Iterable[str]) -> None:
    """Write results to stdout until the reader closes the pipe."""
    try:
        for piece in pieces:
            sys.stdout.write(piece)
        sys.stdout.flush()
    except BrokenPipeError:
        # The exit code still holds. Without this, Python would report the pipe again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_values(value: object, output: str) -> None:
    """Write a value as JSON or YAML."""
    if output == "json":
        print_results([msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"])
    else:
        from webhook.core.yaml_text import block  # noqa: PLC0415 only needed for YAML

        print_results([block(msgspec.to_builtins(value))])


def one_or_all(values: Sequence[object]) -> object:
    """Return a single value itself, and several values as a list."""
    return values[0] if len(values) == 1 else values


def disarm(text: str) -> str:
    """Escape GitHub workflow commands in untrusted text. GitHub Actions runs those in a step's output.

    Source: actions/runner ActionCommand.cs ``TryParseV2`` (``::`` at the start of a line) and ``TryParse`` (``##[``).
    """
    return _WORKFLOW_COMMAND.sub(r"\1: :", text).replace("##[", "## [")


def print_faults(faults: Iterable[InputFault], *, verbose: bool = True) -> None:
    """Print a line for each error and note. Without ``verbose``, equal notes share a line."""
    notes: dict[str, list[InputFault]] = {"": []}
    for fault in faults:
        notes.setdefault("" if fault.fatal or verbose else fault.message, []).append(fault)
    for message, equal in notes.items():
        if message and len(equal) > 1:
            files = plural(len({fault.file for fault in equal}), "file")
            text = disarm(one_line(message, _MAX_NOTE_CHARS))
            click.echo(f"{files}: note: {text} (-v names {'it' if files == '1 file' else 'them'})", err=True)
            continue
        for fault in equal:
            kind = "error" if fault.fatal else "note"
            place, _, text = str(fault).partition(": ")
            click.echo(disarm(f"{place}: {kind}: {text}"), err=True)


def print_message(line: str) -> None:
    """Print a line on stderr, in place of a progress counter."""
    click.echo(f"{CLEAR_LINE if sys.stderr.isatty() else ''}{disarm(line)}", err=True)
