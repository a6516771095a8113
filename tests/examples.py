"""Writes what commands print into the pages that show them: ``PYTHONPATH=tests python tests/examples.py``.

A block begins with one command, such as ``$ evenspread simulate``. Its complete output in the repository's directory
follows, and its exit code if the page asks for it with ``$ echo $?``.
"""

import re

from readme import ROOT, printed

PAGES = (
    *(ROOT / "docs" / name for name in ("simulate.md", "what-if.md", "group-examples.md")),
    *sorted((ROOT / "docs" / "examples").glob("*.md")),
    ROOT / "docs" / "first-hour" / "README.md",
    ROOT / "docs" / "start" / "first-check.md",
    ROOT / "docs" / "cli" / "check.md",
)
SHOWN = re.compile(
    r"```\n\$ evenspread (?P<command>(?:simulate|plan|check|audit|explain|test) .*)\n"
    r"(?P<out>(?:(?!```).*\n)*?)(?P<code>\$ echo \$\?\n\d\n)?```\n"
)


def with_outputs(text):
    """The page, with what its commands print now."""

    def anew(shown):
        out, code = printed(shown["command"])
        asked = f"$ echo $?\n{code}\n" if shown["code"] else ""
        return f"```\n$ evenspread {shown['command']}\n{out}{asked}```\n"

    return SHOWN.sub(anew, text)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(with_outputs(page.read_text()))
