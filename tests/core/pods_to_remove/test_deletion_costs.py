"""Deletion costs: each prefix of the removal order stays within maxSkew, and few costs change."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.core.pods_to_remove.deletion_costs import SpreadLimit, deletion_costs, removal_plan
from webhook.core.pods_to_remove.running_pod import RunningPod


def skew(counts, limit):
    return max(counts) - (0 if limit.too_few else min(counts))


def prefixes(order, limits):
    """The counts of each constraint after each removal."""
    counts = [[*limit.counts] for limit in limits]
    for name in order:
        for of_limit, limit in zip(counts, limits, strict=True):
            if name in limit.domain_of:
                of_limit[limit.domain_of[name]] -= 1
        yield [(tuple(of_limit), limit) for of_limit, limit in zip(counts, limits, strict=True)]


def is_within(order, limits):
    return all(skew(counts, limit) <= limit.max_skew for step in prefixes(order, limits) for counts, limit in step)


def exists(names, limits):
    """Whether any order keeps each prefix within maxSkew."""

    @cache
    def can(left):
        if not left:
            return True
        removed = [name for name in names if name not in left]
        return any(
            all(skew(counts, limit) <= limit.max_skew for counts, limit in [*prefixes([*removed, name], limits)][-1])
            and can(left - {name})
            for name in left
        )

    return can(frozenset(names))


@st.composite
def clusters(draw, keys):
    """Pods on hosts of zones, beside other pods: the limits for zones, and for hosts with ``keys`` 2."""
    zone_of = draw(st.lists(st.integers(0, 2), min_size=1, max_size=4))
    hosts = draw(st.lists(st.integers(0, len(zone_of) - 1), min_size=1, max_size=7))
    places = [([zone_of[host] for host in hosts], max(zone_of) + 1), (hosts, len(zone_of))]
    limits = []
    for where, number in places[:keys]:
        others = draw(st.lists(st.integers(0, 1), min_size=number, max_size=number))
        limits.append(
            SpreadLimit(
                max_skew=draw(st.integers(1, 2)),
                hard=draw(st.booleans()),
                counts=tuple(others[domain] + where.count(domain) for domain in range(number)),
                domain_of={f"p{index}": domain for index, domain in enumerate(where)},
                too_few=draw(st.booleans()),
            )
        )
    return tuple(sorted(limits, key=lambda limit: not limit.hard))


@pytest.mark.parametrize("keys", [1, 2])
def test_every_prefix_is_within_max_skew_where_any_order_is(keys):
    @given(clusters(keys))
    def compare(limits):
        names = [*limits[0].domain_of]
        plan = removal_plan([RunningPod(name=name, ready=True) for name in names], limits)
        order = [pod.name for pod in plan.order]
        assert sorted(order) == sorted(names)
        assert is_within(order, limits) == exists(names, limits) == (not plan.above)
        assert plan.worst_skew == max(skew(counts, limit) for step in prefixes(order, limits) for counts, limit in step)

    compare()


def zones(text, max_skew=1, hard=True):
    """``a=2 b=1``: ready pods a0, a1 and b0 in two domains."""
    rows = [each.split("=") for each in text.split()]
    domain_of = {f"{zone}{n}": index for index, (zone, pods) in enumerate(rows) for n in range(int(pods))}
    counts = tuple(int(pods) for _, pods in rows)
    return SpreadLimit(max_skew=max_skew, hard=hard, counts=counts, domain_of=domain_of)


def running(limit, **costs):
    return [RunningPod(name=name, ready=True, deletion_cost=costs.get(name, 0)) for name in limit.domain_of]


def test_nine_pods_scaled_to_three_leave_one_in_each_zone():
    limit = zones("a=3 b=3 c=3")
    order = [pod.name for pod in removal_plan(running(limit), (limit,)).order]
    assert sorted(name[0] for name in order[:6]) == [*"aabbcc"]


def test_uneven_zones_lose_their_excess_first():
    limit = zones("a=4 b=1 c=1")
    assert [pod.name[0] for pod in removal_plan(running(limit), (limit,)).order][:3] == [*"aaa"]


def test_a_hard_constraint_precedes_a_soft_one():
    hard, soft = zones("a=1 b=1 c=2"), zones("x=4", hard=False)
    soft = SpreadLimit(max_skew=1, hard=False, counts=(3, 1), domain_of={"a0": 0, "b0": 0, "c0": 1, "c1": 0})
    assert removal_plan(running(hard), (hard, soft)).order[0].name == "c1"


def test_without_constraints_the_newest_is_removed_first():
    old, new = (RunningPod(name=name, ready=True, ready_since=since) for name, since in (("old", 1), ("new", 2)))
    assert removal_plan([old, new], ()).order == (new, old)


FRESH = [(1 << 20) + 1024 * number for number in (1, 2, 3)]


@pytest.mark.parametrize(
    ("present", "expected"),
    [
        pytest.param([0, 0], FRESH[:2], id="the last has the highest cost"),
        pytest.param([1024, 2048], [1024, 2048], id="nothing changes"),
        pytest.param([0, 1024, 2048], FRESH, id="a cost of 0 is none"),
        pytest.param([0, 2048, 3072], [1024, 2048, 3072], id="a new pod below"),
        pytest.param([2048, 0, 3072], [2048, 2560, 3072], id="a new pod between"),
        pytest.param([2048, 3072, 0], [2048, 3072, 4096], id="a new pod above"),
        pytest.param([2048, 5000, 3072, 4096], [2048, 2560, 3072, 4096], id="a moved pod"),
        pytest.param([7, 0, 8], FRESH, id="no number is left between"),
        pytest.param([2**31 - 1, 0], FRESH[:2], id="no number is left above"),
    ],
)
def test_few_costs_change(present, expected):
    order = [RunningPod(name=str(index), ready=True, deletion_cost=cost) for index, cost in enumerate(present)]
    assert [*deletion_costs(order).values()] == expected


def test_a_pod_that_comes_or_goes_leaves_the_other_costs():
    limit = zones("a=3 b=3 c=3")
    costs = deletion_costs(removal_plan(running(limit), (limit,)).order)
    more = zones("a=4 b=3 c=3")
    again = deletion_costs(removal_plan(running(more, **costs), (more,)).order)
    assert {name for name in again if again[name] != costs.get(name)} == {"a3"}
    fewer = zones("a=3 b=3 c=2")
    assert deletion_costs(removal_plan(running(fewer, **costs), (fewer,)).order).items() <= costs.items()
