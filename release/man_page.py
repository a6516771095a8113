"""Write the manual page evenspread.1 from the help of the commands.

    python -m release.man_page >evenspread.1

Source: man-pages(7) for the sections, groff_man(7) for the macros.
"""

import inspect
import re
import sys
from collections.abc import Iterator

import click

from webhook import __version__
from webhook.cli.main import evenspread

_ESCAPES = str.maketrans(
    {"\\": "\\e", "-": "\\-", "'": "\\(aq", '"': "\\(dq", "^": "\\(ha", "~": "\\(ti", "`": "\\(ga"}
)
_VERBATIM = "\b"  # click's mark of a paragraph that is not wrapped


def man_page() -> str:
    """Return the page with all commands, as text for roff. The same version has the same text."""
    root = click.Context(evenspread, info_name="evenspread", help_option_names=["-h", "--help"])
    summary, *_ = _paragraphs(evenspread)
    lines = [f'.TH EVENSPREAD 1 "" "evenspread {__version__}" "User Commands"', ".SH NAME"]
    lines += [f"evenspread \\- {_escaped(summary[0].lower() + summary[1:].rstrip('.'))}"]
    lines += [".SH SYNOPSIS", ".B evenspread", ".I COMMAND", "[OPTIONS] [ARGUMENTS]", ".SH DESCRIPTION"]
    lines += _description(evenspread)
    lines.append(".SH COMMANDS")
    for name in evenspread.list_commands(root):
        command = evenspread.get_command(root, name)
        if command is None:
            raise ValueError(name)
        lines += _command(click.Context(command, info_name=name, parent=root, help_option_names=["-h", "--help"]))
    return "\n".join(lines) + "\n"


def _command(context: click.Context) -> Iterator[str]:
    """Yield the section of a command."""
    command = context.command
    yield f".SS {_escaped(' '.join(['evenspread', context.info_name or '', *command.collect_usage_pieces(context)]))}"
    yield from _description(command)
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and record[1]:
            yield from (".TP", f".B {_escaped(record[0])}", _escaped(record[1]))
    if command.epilog:
        yield from (".PP", _escaped(command.epilog))


def _description(command: click.Command) -> Iterator[str]:
    for paragraph in _paragraphs(command):
        if paragraph.startswith((_VERBATIM, " ")):
            text = paragraph.removeprefix(f"{_VERBATIM}\n")
            yield from (".PP", ".nf", ".RS", *map(_escaped, inspect.cleandoc(text).splitlines()), ".RE", ".fi")
        else:
            yield from (".PP", _escaped(" ".join(paragraph.split())))


def _paragraphs(command: click.Command) -> list[str]:
    return re.split(r"\n\s*\n", inspect.cleandoc(command.help or ""))


def _escaped(text: str) -> str:
    """Escape the characters with a meaning for roff, and a leading full stop."""
    return text.translate(_ESCAPES) if not text.startswith(".") else f"\\&{text.translate(_ESCAPES)}"


if __name__ == "__main__":
    sys.stdout.write(man_page())
