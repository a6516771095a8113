"""The README shows what the commands really print."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
SHOWN = re.findall(r"\$ \.venv/bin/evenspread (check examples/\S+)\n(.*?)\$ echo \$\?\n(\d)\n", README, re.DOTALL)


def test_a_rejected_a_warned_and_a_clean_example_are_shown():
    assert [(command, code) for command, _, code in SHOWN] == [
        ("check examples/rejected.yaml", "1"),
        ("check examples/warned.yaml", "1"),
        ("check examples/clean.yaml", "0"),
    ]


@pytest.mark.parametrize(("command", "printed", "code"), SHOWN, ids=[command for command, _, _ in SHOWN])
def test_the_example_prints_what_the_readme_shows(command, printed, code):
    program = [sys.executable, "-c", "from webhook.cli.main import run; run()", *command.split()]
    done = subprocess.run(  # noqa: S603  the command stands in our own README
        program, cwd=ROOT, capture_output=True, text=True, check=False, timeout=30
    )
    assert (done.stdout + done.stderr, str(done.returncode)) == (printed, code)


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_every_link_leads_somewhere(link):
    assert (ROOT / link).exists(), link
