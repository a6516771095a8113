"""Closed forms of how many pods constraints admit, beside what trying everything gives."""

from itertools import product

import pytest

from webhook.core.placement.proofs.bounds import (
    DomainState,
    PinnedDomain,
    SkewLimit,
    addable,
    addable_pinned,
    reachable_minimum,
    stranded,
)
from webhook.core.placement.proofs.host_bounds import Zone, addable_on_hosts


def cells(text):
    """``0:0 2 2:1``: domains with their pods, and after the colon how many more each takes."""
    found = {}
    for part in text.split():
        pods, _, room = part.partition(":")
        cell = DomainState(int(pods), int(room) if room else None)
        found[cell] = found.get(cell, 0) + 1
    return found


@pytest.mark.parametrize(
    ("domains", "limit", "minimum", "added"),
    [
        pytest.param("0 0 0", SkewLimit(1), None, None, id="nothing bounds domains that are all open"),
        pytest.param("0 0 0:0", SkewLimit(1), 0, 2, id="a closed domain holds the others"),
        pytest.param("0 0 0:0", SkewLimit(2), 0, 4, id="at maxSkew above it"),
        pytest.param("0 0 3:0", SkewLimit(1), 3, 8, id="with the pods that it has"),
        pytest.param("5 0 1:0", SkewLimit(1), 1, 2, id="a domain above that keeps what it has"),
        pytest.param("0 0 0:1", SkewLimit(1), 1, 5, id="a domain with room for one"),
        pytest.param("0:0 0:0", SkewLimit(1), 0, 0, id="all closed"),
        pytest.param("0 0", SkewLimit(2, enough=False), 0, 4, id="fewer than minDomains: maxSkew is a cap"),
        pytest.param("3 0", SkewLimit(2, enough=False), 0, 2, id="which one has passed"),
        pytest.param("", SkewLimit(1), None, 0, id="no domain at all"),
    ],
)
def test_one_constraint(domains, limit, minimum, added):
    assert reachable_minimum(cells(domains), limit) == minimum
    assert addable(cells(domains), limit) == added


def zones(text):
    """``1: 0 0 | 0: 0x4``: zones, their pods, and the pods on each host that is open."""
    found = []
    for part in text.split("|"):
        pods, _, hosts = part.partition(":")
        counts = {}
        for each in hosts.split():
            number, _, many = each.partition("x")
            counts[DomainState(int(number))] = counts.get(DomainState(int(number)), 0) + int(many or 1)
        found.append(Zone(int(pods), counts))
    return found


@pytest.mark.parametrize(
    ("state", "held", "of_zones", "of_hosts", "added"),
    [
        pytest.param("0: 0 | 0: 0x4", None, SkewLimit(1), SkewLimit(1), 3, id="1 and 4 nodes"),
        pytest.param("0: 0 | 0: 0x2", None, SkewLimit(1), SkewLimit(1), 5, id="1 and 2 nodes"),
        pytest.param("0: 0x2 | 0: 0x3", None, SkewLimit(1), SkewLimit(1), 9, id="2 and 3 nodes"),
        pytest.param("0: 0x3 | 0: 0x4", None, SkewLimit(1), SkewLimit(1), 13, id="3 and 4 nodes"),
        pytest.param("0: 0x3 | 0: 0x3", None, SkewLimit(1), SkewLimit(1), None, id="equal zones"),
        pytest.param("0: 0 | 0: 0x4", None, SkewLimit(1), SkewLimit(2), 5, id="two pods a host"),
        pytest.param("0: 0 | 0: 0x4", None, SkewLimit(2), SkewLimit(1), 4, id="zones two apart"),
        pytest.param("1: 1 | 1: 1 0x3", None, SkewLimit(1), SkewLimit(1), 1, id="with two of three there"),
        pytest.param("0: 0x3 | 0: 0x3", 0, SkewLimit(1), SkewLimit(1), 6, id="a closed host holds the hosts"),
        pytest.param("0: 0x3 | 0: 0x3 | 0:", None, SkewLimit(1), SkewLimit(1), 2, id="a closed zone holds the zones"),
        pytest.param("0: 0 | 0: 0", None, SkewLimit(1, enough=False), SkewLimit(1), 2, id="too few zones"),
        pytest.param("0: 0 | 0: 0", None, SkewLimit(1), SkewLimit(1, enough=False), 2, id="too few hosts"),
    ],
)
def test_zones_and_hosts(state, held, of_zones, of_hosts, added):
    assert addable_on_hosts(zones(state), held, of_zones, of_hosts, 100) == added


def test_what_is_wanted_ends_the_count():
    small = zones("0: 0 | 0: 0x4")
    assert addable_on_hosts(small, None, SkewLimit(1), SkewLimit(1), 3) is None
    assert addable_on_hosts(small, None, SkewLimit(1), SkewLimit(1), 4) == 3


def test_nothing_is_said_of_more_pods_than_a_host_runs():
    assert addable_on_hosts(zones("0: 0x3 | 0: 0x3"), None, SkewLimit(1), SkewLimit(1), 2**31) is None
    assert stranded(2**31, 10**6, 2, 1, pinned=False) == 0


def homes(text):
    """``1+2 0 0-``: domains with their pods, the pods that can be in no other, and a dash for those that are closed."""
    found = []
    for part in text.split():
        pods, _, pinned = part.rstrip("-").partition("+")
        found.append(PinnedDomain(int(pods), int(pinned or 0), not part.endswith("-")))
    return tuple(found)


@pytest.mark.parametrize(
    ("state", "limit", "free", "added"),
    [
        pytest.param("0+5 0 0", SkewLimit(1), 0, 1, id="all pinned to one domain"),
        pytest.param("0+5 0 0", SkewLimit(1), 1, 2, id="one free pod is not enough to lift two domains"),
        pytest.param("0+5 0 0", SkewLimit(1), 2, 4, id="two are"),
        pytest.param("0+5 0 0", SkewLimit(3), 0, 3, id="at maxSkew"),
        pytest.param("0+2 0+2 0+2", SkewLimit(1), 0, 6, id="an equal number in each"),
        pytest.param("0+2 0+2 0-", SkewLimit(1), 0, 2, id="a closed domain"),
        pytest.param("0+2 0+2 1+4-", SkewLimit(1), 0, 4, id="with pods in it, and some that wait for it"),
        pytest.param("0+5 0", SkewLimit(2, enough=False), 5, 4, id="too few domains"),
        pytest.param("", SkewLimit(1), 5, 0, id="no domain at all"),
    ],
)
def test_pods_with_volumes(state, limit, free, added):
    assert addable_pinned(homes(state), limit, free) == added


def most_left(replicas, max_skew, staying, lost, *, pinned):
    """The most pods that run after the loss, over all placements that maxSkew allows."""
    found = (
        sum(max(each, max_skew) for each in pods[:staying])
        for pods in product(range(replicas + 1), repeat=staying + lost)
        if sum(pods) == replicas and max(pods) <= (0 if pinned else min(pods)) + max_skew
    )
    return max(found, default=replicas)


@pytest.mark.parametrize("pinned", [True, False])
@pytest.mark.parametrize("max_skew", [1, 2, 3])
@pytest.mark.parametrize(("staying", "lost"), [(1, 1), (2, 1), (1, 2), (3, 1), (2, 2)])
def test_stranded_pods_as_counted_over_all_placements(max_skew, staying, lost, pinned):
    for replicas in range(8):
        left = most_left(replicas, max_skew, staying, lost, pinned=pinned)
        assert stranded(replicas, max_skew, staying, lost, pinned=pinned) == max(0, replicas - left)
