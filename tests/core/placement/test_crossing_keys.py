"""Two crossing keys: bounds and orders (`crossing_orders`) beside a search of all orders."""

import random
from collections import Counter

import pytest
from build import cluster, constraint, pod
from msgspec.structs import replace

from conformance.placing.ours import batches_of, game_in, index_of
from conformance.placing.worlds import RACK, crossing_at_scale, world
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.placement.crossing_keys import reachable_minima
from webhook.core.placement.crossing_orders import CrossingEnds, crossing_ends, never_stuck
from webhook.core.placement.game_from_cluster import PodBatch, game_of
from webhook.core.placement.grid import grid_of
from webhook.core.placement.placement_verdict import Effort, PlacementVerdict
from webhook.core.placement.search import search
from webhook.core.placement.simulation import always_fits, simulate
from webhook.core.scheduler.problem import take

WORK = {"work": 2_000_000, "moves": 20_000}
WORLDS = 300


def racks(nodes, replicas, *constraints):
    """Equal pods on nodes that are written as ``zone-rack``, two nodes for each word."""
    index = cluster("")
    for number, name in enumerate(nodes.split() * 2):
        zone, rack = name.split("-")
        labels = {ZONE: zone, RACK: rack, HOSTNAME: f"n{number}"}
        index.apply("ADDED", node(f"n{number}", labels))
    given = constraints or (spread(ZONE), spread(RACK))
    return game_of([PodBatch(problem=take(index, pod(constraints=given)), pods=replicas)], index)


def node(name, labels):
    (found,) = (cluster(f"x: {name}=0").nodes.get(name),)
    return replace(found, metadata=replace(found.metadata, labels=labels))


def spread(key, max_skew=1, **more):
    return constraint(key, max_skew=max_skew, select="app=web", **more)


@pytest.mark.parametrize(
    ("nodes", "replicas", "ends"),
    [
        pytest.param("a-x a-y b-x b-y", 9, (9, 9), id="each rack in each zone: never stuck"),
        pytest.param("a-x b-x b-y", 4, (1, 4), id="a first pod in the common cell leaves zone a and rack y open"),
        pytest.param("a-x b-y", 9, (9, 9), id="a rack for each zone is one key"),
        pytest.param("a-x b-y b-z", 9, (5, 5), id="two racks of zone b get as many pods as one of zone a"),
    ],
)
def test_known_ends(nodes, replicas, ends):
    game = racks(nodes, replicas).game
    found = {sum(end.placed) for end in search(game, 20_000).ends}
    assert (min(found), max(found)) == ends
    said = crossing_ends(game, **WORK)
    assert (said.fewest, said.most) == ends


@pytest.mark.slow
def test_bounds_are_those_of_all_orders():
    """On small worlds they are exact, and the orders that are found end as some order does."""
    undecided = 0
    for number in range(WORLDS):
        of = world("crossing keys", "bounds", number)
        game, wanted = game_in(of).game, of["replicas"]
        said, found = crossing_ends(game, **WORK), search(game, 20_000)
        if said is None or not found.exact:
            continue
        ends = {sum(end.placed) for end in found.ends}
        assert (said.fewest, said.most) == (min(ends), max(ends)), of["id"]
        assert said.stuck is None or len(said.stuck.moves) in ends, of["id"]
        assert not said.fits or max(ends) == wanted, of["id"]
        assert never_stuck(game, WORK["work"]) is (min(ends) == wanted)
        undecided += min(ends) < wanted == max(ends) and not (said.stuck and said.fits)
    assert undecided <= WORLDS // 50


@pytest.mark.slow
def test_workloads_at_scale_are_decided():
    outcomes = Counter()
    for number in range(12):
        of = crossing_at_scale(random.Random(f"decided/{number}"))  # noqa: S311 no secret
        index = index_of(of)
        game = game_of(batches_of(of, index), index)
        found = simulate(game)
        outcomes[found.verdict] += 1
        assert found.fewest is not None
        assert found.most is not None
        if found.verdict is PlacementVerdict.STUCK:
            assert found.fewest <= len(found.witness) < found.most == of["replicas"]
        assert always_fits(game) is (found.verdict is PlacementVerdict.FITS)
    assert not outcomes[PlacementVerdict.UNKNOWN]
    assert len(outcomes) == 3


@pytest.mark.parametrize(
    "constraints",
    [
        pytest.param((spread(ZONE),), id="one key"),
        pytest.param((spread(ZONE), constraint(RACK, select="app=db", max_skew=1)), id="one does not count these pods"),
    ],
)
def test_other_games_are_left_to_the_search(constraints):
    assert crossing_ends(racks("a-x a-y b-x", 3, *constraints).game, **WORK) is None


def test_without_work_nothing_is_said():
    game = racks("a-x b-x b-y", 4).game
    assert reachable_minima(grid_of(game, 0)) is None
    assert crossing_ends(game, work=0, moves=0) is None
    assert not never_stuck(game, 0)


def test_bounds_are_told_where_no_order_was_found():
    game = racks("a-x b-x b-y", 3)
    assert crossing_ends(game.game, work=WORK["work"], moves=0) == CrossingEnds(1, 3, None, fits=False)
    assert not always_fits(game)
    assert always_fits(racks("a-x a-y b-x b-y", 9))
    assert not always_fits(racks("a-x b-y b-z", 9))
    many = racks("a-x b-x b-y", 30)
    found = simulate(many, Effort(states=30, orders=0, moves=1))
    assert (found.verdict, found.fewest, found.most) == (PlacementVerdict.UNKNOWN, 1, 30)


def test_hosts_are_a_third_key():
    three = (spread(ZONE), spread(RACK), spread(HOSTNAME))
    game = racks("a-x a-y b-x b-y", 9, *three).game
    ends = {sum(end.placed) for end in search(game, 20_000).ends}
    said = crossing_ends(game, **WORK)
    assert game.node_spreads
    assert (said.fewest, said.most) == (min(ends), max(ends))
