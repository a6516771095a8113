"""One way to keep a release's values, wherever an upgrade is shown."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [*(ROOT / "docs").glob("**/*.md"), *(ROOT / "charts").glob("**/*"), *(ROOT / "webhook").glob("**/*.py")]


def test_every_upgrade_takes_what_a_newer_chart_adds():
    """``--reuse-values`` leaves out the values that the release does not know."""
    shown = {
        page.name: re.findall(r"^.*helm upgrade .*[ \"]--reuse-values.*$", page.read_text(), re.MULTILINE)
        for page in PAGES
        if page.is_file()
    }
    assert {name: lines for name, lines in shown.items() if lines} == {}
