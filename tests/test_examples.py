"""The pages that show what commands print are true."""

import pytest
from readme import ROOT

from examples import PAGES, SHOWN, with_outputs


@pytest.mark.parametrize("page", [pytest.param(each, id=str(each.relative_to(ROOT))) for each in PAGES])
@pytest.mark.sampled
def test_a_page_shows_what_commands_print_now(page):
    text = page.read_text()
    assert with_outputs(text) == text, "make docs writes it anew"
    assert len(SHOWN.findall(text)) == text.count("$ evenspread ")
