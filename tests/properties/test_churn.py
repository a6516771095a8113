"""An index after any events answers as a new one; see `churn`, which runs for as long as one likes."""

import os
import random

import pytest
from properties.churn import differences, differences_by_order

WORLDS = 300
# Worlds whose answers depended on the order of events: which workload was placed or named first.
AFTER_EVENTS = (6000002094, 6000003553, 6000003888)
# And on the order of the nodes in a list: which orders of a rollout were tried, and which node was named.
BY_ORDER = (322, 864, 1731, 1993, 4379, 5937)


@pytest.mark.parametrize("number", AFTER_EVENTS)
def test_what_events_changed_once(number):
    assert differences(number) == []


@pytest.mark.parametrize("number", BY_ORDER)
def test_what_the_order_of_a_list_changed_once(number):
    assert differences_by_order(number) == []


@pytest.mark.slow
def test_an_index_after_events_answers_reviews_as_a_new_one():
    start = 0 if "CI" in os.environ else random.randrange(10**9)  # noqa: S311 nothing secret
    for number in range(start, start + WORLDS):
        assert differences(number) + differences_by_order(number) == [], f"world {number}"
