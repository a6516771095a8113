"""Every filter has its words, so that a new one does not pass for another; of names it has as many as it likes."""

import pytest
from build import ZONE, cluster, constraint, pod

from webhook.core.explain import obstacles
from webhook.core.explain.filter_words import FILTER_WORDS, PART_WORDS, PARTS
from webhook.core.scheduler import cycle
from webhook.core.scheduler.plugins.node_resources_fit import NODE_RESOURCES_FIT
from webhook.core.scheduler.plugins.taint_toleration import TAINT_TOLERATION
from webhook.core.scheduler.problem import CAPACITY_FILTERS, FILTERS, take


@pytest.mark.parametrize("plugin", FILTERS)
def test_a_filter_has_its_words(plugin):
    words = FILTER_WORDS[plugin]
    # What is short is said by resource.
    assert bool(words.closed) is (plugin != NODE_RESOURCES_FIT)
    assert words.parts
    assert {*words.parts} <= PART_WORDS.keys()


def test_no_words_are_left_over():
    assert FILTER_WORDS.keys() == cycle._PLUGINS.keys() == {*FILTERS}
    assert obstacles._NAMED.keys() <= {*FILTERS}


def test_every_part_has_filters_and_words():
    assert all(PARTS.values())
    assert PARTS["room"] == CAPACITY_FILTERS
    # With room is not "without" something.
    assert [part for part, words in PART_WORDS.items() if not words] == ["room"]


def test_a_filter_that_names_nothing_is_told_with_the_schedulers_reasons(monkeypatch):
    tried = cycle.Cycle(take(cluster("a: ~n1"), pod(constraints=(constraint(ZONE, select="app=web"),))))
    assert [each.text for each in obstacles.obstacles(tried)] == ["tainted dedicated:NoSchedule"]
    monkeypatch.delitem(obstacles._NAMED, TAINT_TOLERATION)
    assert [each.text for each in obstacles.obstacles(tried)] == ["node(s) had untolerated taint(s)"]
