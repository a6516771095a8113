"""How many pods every order places; `test_brute_force` compares the same with all orders."""

import random
import time

import pytest
from build import ROOMY, cluster, constraint, pod
from msgspec.structs import replace

from conformance.placing import worlds
from conformance.placing.ours import game_in
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.placement.classes import NodeClass, PodClass
from webhook.core.placement.closed_forms import possible_ends, same_in_every_order
from webhook.core.placement.game import Game
from webhook.core.placement.game_from_cluster import PodBatch, game_of
from webhook.core.placement.pod_limits import DomainSpread, NodeLimit, NodeSpread, SpreadLimit
from webhook.core.placement.proofs.host_bounds import PossibleEnds
from webhook.core.placement.search import search
from webhook.core.scheduler.plugins.node_resources_fit import NODE_RESOURCES_FIT as FIT
from webhook.core.scheduler.problem import take

ONE_POD_A_NODE = {"cpu": "4", "memory": "8Gi", "pods": "1"}


def placed(text, replicas, *constraints, labelled="app=web", **more):
    index = cluster(text, **more)
    batch = PodBatch(problem=take(index, pod(labelled, constraints=constraints)), pods=replicas)
    return same_in_every_order(game_of([batch], index).game)


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a: a0=3 a1=0 | b: b0=0", 4, id="two equal hosts are open, and stay so"),
        pytest.param("a: a0=3 a1=0 | b: b0=0 b1=0 b2=0", 8, id="four are"),
        pytest.param("a: a0=1 a1=0 | b: b0=0", 5, id="three, one of which has a pod"),
    ],
)
def test_pods_that_a_constraint_over_hosts_does_not_count(text, expected):
    two = {**ONE_POD_A_NODE, "pods": "2"}
    assert placed(text, 9, spread(HOSTNAME, 2), labelled="app=api", resources=two) == expected


UNEQUAL, THREE_IN_B = "a: a0=0 | b: b0=0 b1=0 b2=0 b3=0", "a: a0=0 | b: b0=0 b1=0 b2=0"


@pytest.mark.parametrize(
    ("text", "labelled", "constraints", "expected"),
    [
        pytest.param(UNEQUAL, "app=web", [spread(ZONE), spread(HOSTNAME)], 3, id="both count the pods"),
        pytest.param(UNEQUAL, "app=web", [spread(ZONE), spread(HOSTNAME, 2)], 5, id="four hosts never get a pod each"),
        pytest.param(THREE_IN_B, "app=web", [spread(ZONE), spread(HOSTNAME, 2)], None, id="orders differ"),
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
        pytest.param("a: a0=0 a1=0 | b: b0=0 b1=0", 99, 99, id="equal zones never stop"),
        pytest.param("a: a0=1 a1=0 | b: b0=0 b1=0", 7, 7, id="pods that run fill, too"),
        pytest.param(THREE_IN_B, 5, 5, id="a small zone is soon full"),
        pytest.param(THREE_IN_B, 6, None, id="unless each host of the other has a pod"),
    ],
)
def test_hosts_that_may_differ_by_two(text, pods, expected):
    assert placed(text, pods, spread(ZONE), spread(HOSTNAME, 2)) == expected


def test_with_too_few_zones_their_maxskew_is_a_cap():
    assert placed("a: a0=0 a1=0 | b: b0=0 b1=0", 8, spread(ZONE, min_domains=3), spread(HOSTNAME, 2)) == 2


def by_hand(**changed):
    """Two classes, one of them closed to the pod class; the other in no domain that counts."""
    closed = NodeClass(size=1, open=(False,), node_limits=((),), start=(0,), domains=(0,), held=(0,))
    open_ = NodeClass(
        size=1, open=(True,), node_limits=((NodeLimit((1,), 4),),), start=(0,), domains=(1,), held=(None,)
    )
    pod_class = PodClass(pods=9, **changed)
    zones = DomainSpread(key=0, weights=(1,), base=(0, 0), eligible=(0,), counting=(True, False), enough=True)
    return Game([closed, open_], [pod_class], node_spreads=[NodeSpread((1,), None)], domain_spreads=[zones], keys=1)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        pytest.param({}, 5, id="the open node has room for five"),
        pytest.param({"on_nodes": (SpreadLimit(0, 0),)}, 0, id="only the closed node counts"),
        pytest.param(
            {"on_nodes": (SpreadLimit(0, 0),), "on_domains": (SpreadLimit(0, 0),)},
            None,
            id="a node that does not count",
        ),
        pytest.param({"on_domains": (SpreadLimit(0, 0), SpreadLimit(0, 1))}, None, id="two constraints on domains"),
    ],
)
def test_games_by_hand(limits, expected):
    assert same_in_every_order(by_hand(**limits)) == expected


def ends(text, pods, *constraints, **more):
    index = cluster(text, **more)
    return possible_ends(game_of([PodBatch(problem=take(index, pod(constraints=constraints)), pods=pods)], index).game)


@pytest.mark.parametrize(
    ("text", "pods", "expected"),
    [
        pytest.param(THREE_IN_B, 6, PossibleEnds((5,), fits=True), id="with a host left empty its zone stops at 3"),
        pytest.param(THREE_IN_B, 9, PossibleEnds((5, 7), fits=False), id="its hosts never get two each"),
        pytest.param(
            "a: a0=0 a1=0 | b: b0=0 ~b1=1", 9, PossibleEnds((8,), fits=False), id="a host without room stays at 1"
        ),
    ],
)
def test_how_orders_can_end(text, pods, expected):
    assert ends(text, pods, spread(ZONE), spread(HOSTNAME, 2)) == expected


@pytest.mark.parametrize(
    "constraints",
    [
        pytest.param([spread(ZONE)], id="one constraint"),
        pytest.param([spread(ZONE, select="app=db"), spread(HOSTNAME, 2)], id="of other pods"),
    ],
)
def test_of_other_games_ends_are_not_known(constraints):
    assert ends(f"{UNEQUAL} | c: c0=3", 9, *constraints) is None
    assert possible_ends(by_hand(on_nodes=(SpreadLimit(0, 0),), on_domains=(SpreadLimit(0, 0),))) is None


EQUAL = "a: a0=0 a1=0 | b: b0=0 b1=0"


@pytest.mark.parametrize("of_hosts", [1, 2])
@pytest.mark.parametrize("text", [EQUAL, UNEQUAL])
def test_pods_without_end_take_no_time(text, of_hosts):
    """Without limits of resources, as `making_room.cause` asks, a host takes as many as an author writes."""
    index, constraints = cluster(text), (spread(ZONE), spread(HOSTNAME, of_hosts))
    problem = take(index, pod(constraints=constraints))
    batch = PodBatch(problem=replace(problem, filters=tuple(each for each in problem.filters if each != FIT)), pods=1)
    began = time.process_time()
    few, many = (same_in_every_order(game_of([replace(batch, pods=pods)], index).game) for pods in (40, 4_000))
    assert time.process_time() - began < 0.5
    assert (few, many) == ((40, None) if text == EQUAL else ({1: 3, 2: 5}[of_hosts],) * 2)


def test_as_many_pods_as_a_host_takes_are_looked_at():
    roomy = ROOMY | {"pods": "200"}
    assert placed(EQUAL, 900, spread(ZONE), spread(HOSTNAME), resources=roomy) == 800
    assert placed(EQUAL, 800, spread(ZONE), spread(HOSTNAME), resources=roomy) == 800


def test_no_order_ends_otherwise():
    seen = reached = 0
    for number in range(150):
        rng = random.Random(f"ends/{number}")  # noqa: S311 - any worlds will do
        nodes = worlds.zones(rng, cpu=lambda r: r.choice("123"))
        given = [worlds.constraint(ZONE, rng.choice([1, 1, 2]), worlds.WEB, minDomains=rng.choice([1, 1, 1, 4]))]
        given.append(worlds.constraint(HOSTNAME, rng.choice([2, 2, 3]), worlds.WEB))
        template = worlds.pod("w", worlds.WEB, given, cpu="1")
        pods = worlds.running(rng, nodes, worlds.WEB, 3)
        world = {"nodes": nodes, "pods": pods, "replicas": rng.randint(2, 8), "template": template}
        game = game_in(world).game
        known = possible_ends(game)
        if known is None:
            continue
        found, wanted = search(game, 4_000), game.pod_classes[0].pods
        ended = {sum(end.placed) for end in found.ends}
        assert found.exact
        assert ended <= {*known.stuck, *[wanted] * known.fits}, number
        assert known.fits or known.stuck
        seen, reached = seen + 1, reached + (ended == {*known.stuck, *[wanted] * known.fits})
    assert (seen > 60, reached > seen / 2) == (True, True)
