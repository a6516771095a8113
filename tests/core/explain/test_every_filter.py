"""Every filter has its words wherever an explanation speaks of filters: a new one must not pass for another."""

import pytest

from webhook.cli.explaining import words
from webhook.core.explain import explanation, obstacles, reliefs
from webhook.core.scheduler.plugins.node_filters import NODE_RESOURCES_FIT
from webhook.core.scheduler.problem import FILTERS


@pytest.mark.parametrize("plugin", FILTERS)
def test_a_filter_can_be_named(plugin):
    assert plugin in obstacles._NAMED
    # What is short is said by resource.
    assert (plugin in explanation._WORDS) is (plugin != NODE_RESOURCES_FIT)
    assert any(plugin in plugins for plugins in reliefs.PARTS.values())


def test_every_part_has_its_words():
    # With room is not "without" something.
    assert words._PARTS.keys() == reliefs.PARTS.keys() - {"room"}
