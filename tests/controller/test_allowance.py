"""How much may be written: over time, at once, and in one namespace."""

import pytest
from build import Clock

from webhook.controller.bounds import COST_RATES, Allowance, Rate

SOME = Rate(a_minute=60, burst=10)
FEW = Rate(a_minute=6, burst=3)


def taken(allowance, namespace, times=50):
    return sum(allowance.take(namespace) for _ in range(times))


def test_a_namespace_has_its_share_and_no_more():
    allowance = Allowance(SOME, FEW, Clock())
    assert [taken(allowance, name) for name in ("loud", "other", "loud")] == [3, 3, 0]


def test_all_together_have_what_there_is():
    allowance = Allowance(SOME, FEW, Clock())
    assert sum(taken(allowance, f"n{number}") for number in range(9)) == 10


def test_time_brings_it_back_up_to_the_burst():
    time = Clock()
    allowance = Allowance(SOME, FEW, time)
    taken(allowance, "loud")
    time.now = 20
    assert taken(allowance, "loud") == 2
    time.now = 3600
    assert taken(allowance, "loud") == 3


def test_namespaces_that_rest_are_forgotten():
    time = Clock()
    allowance = Allowance(SOME, FEW, time)
    taken(allowance, "loud")
    allowance.take("quiet")
    time.now = 11
    allowance.forget_idle()
    assert [*allowance._namespaces] == ["loud"]


@pytest.mark.parametrize(
    ("namespaces", "most"), [pytest.param(5, 600, id="the cluster"), pytest.param(1, 300, id="a namespace")]
)
def test_costs_of_several_leaders_stay_within_the_budget_of_any_minute(namespaces, most):
    time = Clock()
    leaders = [Allowance(*COST_RATES, time) for _ in range(3)]
    written = []
    for second in range(240):
        time.now = second
        for leader in leaders:
            if leader is not leaders[second // 20 % 3]:
                leader.empty()
        count = sum(taken(leaders[second // 20 % 3], f"n{number}", 80) for number in range(namespaces))
        written.append(count)
    assert max(sum(written[at : at + 60]) for at in range(180)) in range(most * 3 // 4, most + 1)
