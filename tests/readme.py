"""Writes what the README's commands print: ``PYTHONPATH=tests python tests/readme.py``."""

import contextlib
import io
import re
from pathlib import Path

from webhook.cli.main import main

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "README.md"
SHOWN = re.compile(
    r"(?P<prompt>\$ \.venv/bin/evenspread (?P<command>check examples/\S+)\n)(?P<out>[^`]*?)\$ echo \$\?\n(?P<code>\d)\n"
)


def with_outputs(text):
    """The page, with what its commands print now and the codes they exit with."""

    def anew(shown):
        out, code = printed(shown["command"])
        return f"{shown['prompt']}{out}$ echo $?\n{code}\n"

    return SHOWN.sub(anew, text)


def printed(command):
    """What a command prints in the repository's directory, and its exit code."""
    out = io.StringIO()
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = main(command.split())
    return out.getvalue(), int(code)


if __name__ == "__main__":
    PAGE.write_text(with_outputs(PAGE.read_text()))
