"""docs/rules/ describes the code."""

import pytest
from core.rules.pages import EXAMPLES, PAGES, SILENT, example, pages
from manifest import DENY

from webhook.core.policy.policy import Mode
from webhook.core.rules.rule_set import BY_ID, RULES

BY_HAND = {"precision.md", "rollouts.md"}


@pytest.mark.slow
def test_the_pages_are_those_that_the_code_gives():
    written = {path.name: path.read_text() for path in PAGES.glob("*.md") if path.name not in BY_HAND}
    assert written == pages(), "run: make docs"


@pytest.mark.parametrize("rule", sorted(path.stem for path in EXAMPLES.glob("*.yaml")))
def test_the_wrong_manifest_breaks_the_rule_and_the_fixed_one_breaks_none(rule):
    shown = example(rule)
    assert len(shown.found(shown.bad, rule)) == 1
    assert shown.found(shown.good, rule) == []
    judged = shown.judged(shown.good, DENY)
    assert [each.finding.summary for each in judged if each.mode in {Mode.WARN, Mode.DENY}] == []


def test_every_rule_has_an_example():
    assert {rule.id for rule in RULES} == {path.stem for path in EXAMPLES.glob("*.yaml")}


def test_every_rule_says_why_it_matters_and_when_it_is_silent():
    for rule in BY_ID.values():
        assert rule.title
        assert len(rule.why) > 40
        assert all(each.endswith(".") for each in SILENT[rule.id])
