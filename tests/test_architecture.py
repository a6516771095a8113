"""The map of the code leads somewhere: every path it names exists, and every room has its paragraph."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
PAGES = {"docs/architecture.md": ARCHITECTURE, "CONTRIBUTING.md": (ROOT / "CONTRIBUTING.md").read_text()}
ROOMS = sorted(
    {f"{path.parent.relative_to(ROOT)}/" for path in (ROOT / "webhook").rglob("*.py")} - {"webhook/"},
)
# A paragraph about a room begins with the room's name; files in it may go by their names alone.
PARAGRAPHS = dict(re.findall(r"^\*\*\[`(\S+?)`\]\(\S+\)\*\*(.*?)$(?=\n\n)", ARCHITECTURE, re.MULTILINE | re.DOTALL))
LINKS = [(page, link) for page, text in PAGES.items() for link in re.findall(r"\]\(([^)#:]+)\)", text)]


def named(text):
    """What looks like a path in a text: with a slash and no space, or a file of the languages that are used here."""
    code = re.findall(r"`([^`\s]+)`", text)
    path = re.compile(r"[\w.-]+(/[\w.-]+)*/|[\w.-]+(/[\w.-]+)+|[\w-]+\.(py|md|toml)")
    return {each for each in code if path.fullmatch(each) and not each.isupper()}


@pytest.mark.parametrize("page", PAGES)
def test_every_path_that_is_named_exists(page):
    inside = {path for room, text in PARAGRAPHS.items() for path in named(text) if (ROOT / room / path).exists()}
    assert [path for path in sorted(named(PAGES[page]) - inside) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize(("page", "link"), LINKS)
def test_every_link_leads_somewhere(page, link):
    assert ((ROOT / page).parent / link).exists()


def test_every_room_has_its_paragraph_and_every_paragraph_its_room():
    assert sorted(PARAGRAPHS) == ROOMS


@pytest.mark.parametrize("room", ROOMS)
def test_a_paragraph_says_what_a_room_never_does(room):
    """Whose knowledge it is, and where it ends: what keeps the next file from landing in the wrong room."""
    assert re.search(r"\b(never|nobody|Nothing imports|No rule)\b", PARAGRAPHS[room])


def test_paths_are_told_from_other_code():
    text = "`a/b.py`, `a/`, `x.py`, `KIND/NAME`, `6/6 nodes`, `-o json`, `decode`"
    assert named(text) == {"a/b.py", "a/", "x.py"}
