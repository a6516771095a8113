"""Write the output of --help into the pages of the command line: ``python tests/cli/reference.py``."""

import re
from pathlib import Path

import click

from webhook.cli.main import evenspread

PAGES = sorted((Path(__file__).parents[2] / "docs" / "cli").glob("*.md"))
_BLOCK = re.compile(r"<!-- help: (\S+) -->\n.*?<!-- end -->", re.DOTALL)


def help_of(name):
    """What ``evenspread NAME --help`` prints in a terminal of 100 columns."""
    root = click.Context(evenspread, info_name="evenspread", terminal_width=100, help_option_names=["-h", "--help"])
    command = evenspread.get_command(root, name)
    return command.get_help(click.Context(command, info_name=name, parent=root))


def with_help(text):
    """The page with every block written anew."""
    return _BLOCK.sub(lambda found: f"<!-- help: {found[1]} -->\n```\n{help_of(found[1])}\n```\n<!-- end -->", text)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(with_help(page.read_text()))
