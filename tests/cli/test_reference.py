import re

import pytest
from cli import reference

from webhook.cli.main import evenspread

INDEX = reference.PAGES[0].parents[1] / "cli.md"


@pytest.mark.parametrize("page", reference.PAGES, ids=lambda page: page.name)
def test_the_page_shows_what_help_prints(page):
    text = page.read_text()
    assert reference.with_help(text) == text, "run: make docs"


def test_every_command_is_on_one_page_and_in_the_index():
    shown = [name for page in reference.PAGES for name in re.findall(r"<!-- help: (\S+) -->", page.read_text())]
    assert sorted(shown) == sorted(evenspread.list_commands(None))
    assert [name for name in shown if f'<a id="{name}"></a>[{name}](cli/' not in INDEX.read_text()] == []


@pytest.mark.parametrize("page", [INDEX, *reference.PAGES], ids=lambda page: page.name)
def test_every_link_leads_somewhere(page):
    text = page.read_text()
    for link, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", text):
        target = (page.parent / link).resolve() if link else page
        assert target.exists(), link
        headings = re.findall(r"^#+ (.*)", target.read_text(), re.MULTILINE) if anchor else []
        anchors = {re.sub(r"[^a-z0-9_ -]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert not anchor or anchor in anchors, anchor
