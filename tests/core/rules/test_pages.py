"""docs/rules/ says what the code does."""

import pytest
from core.rules.pages import EXAMPLES, NEED_CLUSTER, PAGES, SILENT, example, pages

from webhook.core.rules.rule_set import BY_ID, RULES

BY_HAND = {"precision.md", "rollouts.md"}


@pytest.mark.slow
def test_the_pages_are_those_that_the_code_gives():
    written = {path.name: path.read_text() for path in PAGES.glob("*.md") if path.name not in BY_HAND}
    assert written == pages(), "run: make docs"


@pytest.mark.parametrize("rule", sorted(path.stem for path in EXAMPLES.glob("*.yaml")))
def test_the_first_example_breaks_the_rule_and_the_second_does_not(rule):
    shown = example(rule)
    assert len(shown.found(shown.bad, rule)) == 1
    assert shown.found(shown.good, rule) == []


def test_every_rule_that_needs_no_cluster_has_an_example():
    assert {rule.id for rule in RULES} - NEED_CLUSTER <= {path.stem for path in EXAMPLES.glob("*.yaml")}


def test_every_rule_says_why_it_matters_and_when_it_is_silent():
    for rule in BY_ID.values():
        assert rule.title
        assert len(rule.why) > 40
        assert SILENT[rule.id].endswith(".")
