"""How many pods every order places; `test_brute_force` compares the same with all orders."""

import pytest
from build import cluster, constraint, pod

from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.placement.closed_forms import same_in_every_order
from webhook.core.placement.crowds import Party, game_of
from webhook.core.placement.game import Crowd, DomainSpread, Game, Gate, Limit, NodeClass, NodeSpread
from webhook.core.scheduler.problem import take

ONE_POD_A_NODE = {"cpu": "4", "memory": "8Gi", "pods": "1"}


def placed(text, replicas, *constraints, labelled="app=web", **more):
    index = cluster(text, **more)
    party = Party(problem=take(index, pod(labelled, constraints=constraints)), pods=replicas)
    return same_in_every_order(game_of([party], index).game)


def spread(key, max_skew=1, select="app=web", **more):
    return constraint(key, max_skew=max_skew, select=select, **more)


@pytest.mark.parametrize(
    ("text", "constraints", "expected"),
    [
        pytest.param("a: a0=0 | b: b0=0", [], 9, id="nothing in the way"),
        pytest.param("a: a0=0 a1=0 | b: b0=0 ~b1=0", [spread(HOSTNAME)], 3, id="an empty host limits the others to 1"),
        pytest.param("a: a0=0 a1=0 | b: b0=0 ~b1=2", [spread(HOSTNAME)], 9, id="one that holds 2 limits them to 3"),
        pytest.param("a: a0=0 a1=0 ~a2=1 | b: ~b0=3", [spread(HOSTNAME)], 4, id="the lowest of them counts"),
        pytest.param("a: a0=0 a1=0 | b: b0=0 | c: ~c0=0", [spread(ZONE)], 2, id="an empty zone limits the others"),
        pytest.param("a: a0=0 a1=0 | b: b0=0 | c: ~c0=0", [spread(ZONE, min_domains=4)], 2, id="as too few zones do"),
    ],
)
def test_one_constraint(text, constraints, expected):
    assert placed(text, 9, *constraints) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a: a0=2 a1=0 | b: b0=0", 1, id="only the zone with fewer is open, and stays so"),
        pytest.param("a: a0=1 a1=0 | b: b0=0", 2, id="both are"),
    ],
)
def test_pods_that_their_constraint_does_not_count(text, expected):
    assert placed(text, 9, spread(ZONE), labelled="app=api", resources=ONE_POD_A_NODE) == expected


UNEQUAL = "a: a0=0 | b: b0=0 b1=0 b2=0 b3=0"


@pytest.mark.parametrize(
    ("text", "labelled", "constraints", "expected"),
    [
        pytest.param(UNEQUAL, "app=web", [spread(ZONE), spread(HOSTNAME)], 3, id="both count the pods"),
        pytest.param(UNEQUAL, "app=web", [spread(ZONE), spread(HOSTNAME, 2)], None, id="orders may differ"),
        pytest.param(
            "a: a0=3 | b: b0=0 b1=0",
            "app=api",
            [spread(ZONE), spread(HOSTNAME, select="app=api")],
            None,
            id="one of them counts other pods",
        ),
    ],
)
def test_zones_and_hosts(text, labelled, constraints, expected):
    assert placed(text, 9, *constraints, labelled=labelled) == expected


def test_a_host_without_room_holds_the_level():
    assert placed("a: a0=0 a1=0 ~a2=1 | b: b0=0 b1=0 ~b2=1", 20, spread(ZONE), spread(HOSTNAME)) == 8


@pytest.mark.parametrize(
    ("text", "pods", "expected"),
    [
        pytest.param("a: a0=0 a1=0 | b: b0=0 b1=0", 8, 8, id="too few for any order to get stuck"),
        pytest.param("a: a0=0 a1=0 | b: b0=0 b1=0", 9, None, id="one more might"),
        pytest.param("a: a0=1 a1=0 | b: b0=0 b1=0", 7, 7, id="pods that run fill, too"),
        pytest.param("a: a0=0 | b: b0=0 b1=0 b2=0", 5, None, id="a small zone is soon full"),
    ],
)
def test_hosts_that_may_differ_by_two(text, pods, expected):
    assert placed(text, pods, spread(ZONE), spread(HOSTNAME, 2)) == expected


def test_with_too_few_zones_their_maxskew_is_a_cap():
    assert placed("a: a0=0 a1=0 | b: b0=0 b1=0", 8, spread(ZONE, min_domains=3), spread(HOSTNAME, 2)) is None


def by_hand(**changed):
    """Two classes, one of them closed to the crowd; the other in no domain that counts."""
    closed = NodeClass(size=1, open=(False,), gates=((),), start=(0,), domains=(0,), held=(0,))
    open_ = NodeClass(size=1, open=(True,), gates=((Gate((1,), 4),),), start=(0,), domains=(1,), held=(None,))
    crowd = Crowd(pods=9, **changed)
    zones = DomainSpread(key=0, weights=(1,), base=(0, 0), eligible=(0,), counting=(True, False), enough=True)
    return Game([closed, open_], [crowd], node_spreads=[NodeSpread((1,), None)], domain_spreads=[zones], keys=1)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        pytest.param({}, 5, id="the open node has room for five"),
        pytest.param({"on_nodes": (Limit(0, 0),)}, 0, id="only the closed node counts"),
        pytest.param({"on_nodes": (Limit(0, 0),), "on_domains": (Limit(0, 0),)}, None, id="a node that does not count"),
        pytest.param({"on_domains": (Limit(0, 0), Limit(0, 1))}, None, id="two constraints on domains"),
    ],
)
def test_games_by_hand(limits, expected):
    assert same_in_every_order(by_hand(**limits)) == expected
