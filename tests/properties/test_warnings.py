"""Every warning is one line that people can read to its end, however long the names in it are."""

import json
import re

import pytest
import yaml
from build import cluster
from core.rules.pages import EXAMPLES, OPEN, example
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.review.examination import examine
from webhook.core.review.messages import warnings_of
from webhook.core.rules.frame.rule import WARNING_CHARS

WORDS = st.lists(st.text("abcdefghij", min_size=1, max_size=30), min_size=1, max_size=8)
LONG = st.builds("-".join, WORDS).map(lambda text: text[:63].rstrip("-"))
RULES = sorted(path.stem for path in EXAMPLES.glob("*.yaml"))


def with_names(text, name):
    """A manifest whose own words for labels, values and objects are longer."""
    return yaml.safe_load(re.sub(r"\bweb\b", name, text).replace("app:", f"{name}.example.com/{name}:"))


def is_whole(warning, finding):
    """Whether a warning ends with a whole word of what is wrong, and has the whole fix or none of it."""
    said = f"evenspread/{finding.rule}: {finding.warning or finding.summary}"
    head = warning if finding.warning or not finding.remedy else warning.removesuffix(f"; {finding.remedy}")
    if head == said:
        return True
    kept = head.removesuffix(" …")
    return head.endswith(" …") and said.startswith(kept) and said[len(kept)] in " ,;:"


@pytest.mark.sampled
@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=10, phases=(Phase.generate,))
@given(name=LONG)
def test_no_warning_is_cut_inside_a_word(rule, name):
    shown = example(rule)
    index = cluster(shown.nodes, labelled=shown.labels) if shown.nodes else None
    for manifest in (yaml.safe_load(shown.bad), with_names(shown.bad, name)):
        judged = examine(
            json.dumps(manifest).encode(), Context(policy=OPEN, index=index, version=RECORDED, now="2026-01-01")
        ).findings
        for each in judged:
            [warning] = warnings_of([each.finding])
            assert len(warning) <= WARNING_CHARS
            assert is_whole(warning, each.finding), warning
