"""The page about who can do what names tests and places that there are, and everybody whom it promises."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "security.md").read_text()
INPUT = (ROOT / "docs" / "untrusted-input.md").read_text()
WHO = ["Author of objects", "Tenant", "Neighbour on the network", "Reader of metrics", "Administrator"]


@pytest.mark.parametrize("who", WHO)
def test_everybody_has_a_part_and_a_row_that_leads_there(who):
    (heading,) = re.findall(rf"^## ({who}.*)$", PAGE, re.MULTILINE)
    anchor = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
    assert f"(#{anchor})" in PAGE.partition("\n## ")[0]


def test_every_bound_is_shown_by_a_test_that_there_is():
    named = set(re.findall(r"`(tests/[\w/]+\.py)`", PAGE + INPUT))
    assert len(named) > 20
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []
    functions = set(re.findall(r"`(test_\w+)`", PAGE))
    text = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name in sorted(functions) if f"def {name}(" not in text] == []


def test_every_link_leads_somewhere():
    for page in ("docs/security.md", "docs/untrusted-input.md", "SECURITY.md"):
        for link in re.findall(r"\]\(([^)#:]+)", (ROOT / page).read_text()):
            assert ((ROOT / page).parent / link).exists(), (page, link)


def test_a_report_goes_to_no_address_that_may_not_exist():
    assert re.findall(r"\S+@\S+|https?://\S+", (ROOT / "SECURITY.md").read_text()) == []
