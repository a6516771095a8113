"""What maxSkew makes of caps: the published numbers, and every way to fill a few domains."""

from functools import cache

import pytest
from build import selector
from core.groups.grouped import cap, redis

from webhook.core.api.well_known import ZONE
from webhook.core.groups.caps import fullest, safe_max_skew


@cache
def reachable(pods, domains, max_skew, min_is_zero=False):
    """The most pods that a domain can hold, by filling empty domains one pod after the other in every way."""
    layer, most = {(0,) * domains}, 0
    for _ in range(pods):
        following = set()
        for counts in layer:
            lowest = 0 if min_is_zero else min(counts)
            for number, count in enumerate(counts):
                if count + 1 - lowest <= max_skew:
                    following.add(tuple(sorted((*counts[:number], count + 1, *counts[number + 1 :]))))
        if not following:
            break
        layer = following
        most = max(most, *(max(counts) for counts in layer))
    return most


def test_a_share_is_of_the_expected_pods_or_of_those_that_the_cap_selects():
    group, masters = redis(3), cap(ZONE, "<1/2", selector=selector("role=master"), enforced=False)
    assert [group.shared_by(cap(ZONE, "<1/2"), count) for count in (0, 9)] == [6, 6]
    assert [group.shared_by(masters, count) for count in (0, 3, 9)] == [3, 3, 9]


SMALL = [(pods, domains) for pods in range(1, 15) for domains in range(1, 5)]


@pytest.mark.parametrize(("pods", "domains"), SMALL)
def test_the_fullest_domain_is_that_of_the_worst_order(pods, domains):
    for max_skew in range(1, pods + 2):
        assert fullest(pods, domains, max_skew) == reachable(pods, domains, max_skew), max_skew


@pytest.mark.parametrize(("pods", "domains"), SMALL)
def test_the_safe_max_skew_is_the_largest_that_keeps_the_cap(pods, domains):
    for most in range(1, pods + 1):
        safe = [skew for skew in range(1, pods + 1) if reachable(pods, domains, skew) <= most]
        assert safe_max_skew(pods, domains, most) == max(safe, default=None), most


def led(pods, domains, max_skew):
    """The fullest domain where one takes pods as long as it may, and else the emptiest other gets one."""
    counts = [0] * domains
    for _ in range(pods):
        number = 0 if counts[0] + 1 - min(counts) <= max_skew else counts.index(min(counts))
        counts[number] += 1
    return counts[0]


@pytest.mark.parametrize(("pods", "domains"), SMALL)
def test_leading_pods_into_one_domain_is_the_worst_order(pods, domains):
    assert all(led(pods, domains, skew) == reachable(pods, domains, skew) for skew in range(1, pods + 2))


@pytest.mark.parametrize("domains", range(2, 30))
@pytest.mark.sampled
def test_the_closed_forms_of_many_pods_and_domains(domains):
    """Published for fewer than 60 pods and 30 domains."""
    for pods in range(1, 60):
        worst = {skew: led(pods, domains, skew) for skew in range(1, pods + 1)}
        assert worst == {skew: fullest(pods, domains, skew) for skew in worst}
        for most in range(1, pods):
            kept = (skew for skew, held in worst.items() if held <= most)
            assert safe_max_skew(pods, domains, most) == max(kept, default=None), (pods, most)


@pytest.mark.parametrize(("pods", "domains"), SMALL)
def test_min_domains_above_the_domains_make_max_skew_the_most(pods, domains):
    for most in range(1, pods + 1):
        assert reachable(pods, domains, most, min_is_zero=True) == min(most, pods)


@pytest.mark.parametrize(
    ("pods", "rule", "worst", "safe"),
    [
        pytest.param(6, 2, 3, 1, id="three shards"),
        pytest.param(12, 5, 7, 2, id="six shards"),
        pytest.param(18, 8, 11, 4, id="nine shards: 11 of 18 where 8 were meant"),
        pytest.param(36, 17, 23, 8, id="eighteen shards"),
    ],
)
def test_half_of_the_pods_over_three_zones(pods, rule, worst, safe):
    assert cap(ZONE, "<1/2").most(pods) == rule
    assert (fullest(pods, 3, rule), safe_max_skew(pods, 3, rule)) == (worst, safe)


@pytest.mark.parametrize("pods", [6, 12, 18, 36])
def test_no_max_skew_keeps_two_zones_below_half(pods):
    assert safe_max_skew(pods, 2, cap(ZONE, "<1/2").most(pods)) is None


@pytest.mark.parametrize(("pods", "nodes"), [(18, 14), (24, 18), (6, 6)])
def test_a_third_of_the_pods_as_max_skew_is_safe_from_so_many_nodes_on(pods, nodes):
    most = cap(ZONE, "<1/3").most(pods)
    assert [fullest(pods, many, most) <= most for many in (nodes - 1, nodes)] == [pods == 6 and nodes == 5, True]


def test_a_cap_that_all_pods_meet_needs_no_max_skew():
    assert safe_max_skew(6, 1, 6) == 6


@pytest.mark.parametrize(
    ("text", "pods", "most"),
    [
        pytest.param("<1/2", 6, 2, id="a share that divides"),
        pytest.param("<1/2", 7, 3, id="a share that does not"),
        pytest.param("<=1/2", 7, 3, id="at most a share"),
        pytest.param("<=1/2", 6, 3, id="at most a share that divides"),
        pytest.param("<5", 100, 4, id="fewer than a number"),
        pytest.param("<=5", 100, 5, id="at most a number"),
    ],
)
def test_what_a_cap_leaves(text, pods, most):
    assert cap(ZONE, text).most(pods) == most


def test_a_cap_in_words():
    assert [cap(ZONE, text).text for text in ("<1/2", "<=5")] == ["less than 1/2", "at most 5"]
