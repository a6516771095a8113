"""Verdicts on whole workloads: known answers, each worked out by hand or published elsewhere."""

import pytest
from build import apart, cluster, constraint, pod
from msgspec.structs import replace

from webhook.core.api.types import (
    Container,
    LabelSelector,
    ObjectMeta,
    PodAffinityTerm,
    ResourceRequirements,
)
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.index import node_sets
from webhook.core.placement.game_from_cluster import PodBatch, game_of
from webhook.core.placement.placement_verdict import Effort, PlacementVerdict
from webhook.core.placement.simulation import one_order, simulate
from webhook.core.scheduler.problem import take

ZONES_OF_TWO = "a: a0=0 a1=0 | b: b0=0 b1=0 | c: c0=0 c1=0"


def spread(key, max_skew=1, select="app=web"):
    return constraint(key, max_skew=max_skew, select=select)


def simulated(text, replicas, *constraints):
    """A workload of equal pods in the cluster."""
    index = cluster(text)
    batch = PodBatch(problem=take(index, pod(constraints=constraints)), pods=replicas)
    return simulate(game_of([batch], index))


@pytest.mark.parametrize(
    ("zones", "ceiling"),
    [
        pytest.param("a: a0=0 | b: b0=0 b1=0 b2=0 b3=0", 3, id="1 and 4 nodes"),
        pytest.param("a: a0=0 | b: b0=0 b1=0", 5, id="1 and 2 nodes"),
        pytest.param("a: a0=0 a1=0 | b: b0=0 b1=0 b2=0", 9, id="2 and 3 nodes"),
    ],
)
def test_zone_and_host_ceilings(zones, ceiling):
    found = simulated(zones, 20, spread(ZONE), spread(HOSTNAME))
    assert (found.verdict, found.fewest, found.most) == (PlacementVerdict.NO_FIT, ceiling, ceiling)
    assert simulated(zones, ceiling, spread(ZONE), spread(HOSTNAME)).verdict is PlacementVerdict.FITS


def test_equal_zones_have_no_ceiling():
    assert simulated(ZONES_OF_TWO, 60, spread(ZONE), spread(HOSTNAME)).verdict is PlacementVerdict.FITS


def redis(host_skew, order="a0 b0 c0 a1 b1 c1", *, free=True, zones=None):
    """Three shards of two pods, a shard's pods in different zones; the spread constraints count all shards.

    Shape: ``order`` is of pods that wait for the one before, unless the shards are free of each other. ``zones`` are
    those of each shard.
    """
    index = cluster(ZONES_OF_TWO)
    batches = []
    for number, shard in enumerate("abc" if free else [each[0] for each in order.split()]):
        term = PodAffinityTerm(label_selector=LabelSelector(match_labels={"shard": shard}), topology_key=ZONE)
        one = pod(
            f"app=redis shard={shard}",
            constraints=(spread(HOSTNAME, host_skew, "app=redis"), spread(ZONE, 2, "app=redis")),
            affinity=apart(term),
        )
        nodes = None if zones is None else zone_nodes(index, zones[shard])
        behind = number - 1 if number and not free else None
        problem, pods = take(index, one), 2 if free else 1
        batches.append(PodBatch(problem=problem, pods=pods, in_turn=free, behind=behind, nodes=nodes))
    return game_of(batches, index)


def zone_nodes(index, zones):
    return node_sets.from_slots([slot for name, slot in index.nodes.view().slots.items() if name[0] in zones], 6)


def test_redis_can_get_stuck():
    found = simulate(redis(1))
    assert (found.verdict, found.wanted, found.fewest, found.most) == (PlacementVerdict.STUCK, 6, 5, 6)
    assert found.stuck == pytest.approx(133 / 810)
    assert [(step.batch, step.node) for step in found.witness] == [
        (0, "a0"), (0, "b0"), (1, "a1"), (1, "b1"), (2, "c0")
    ]  # fmt: skip


@pytest.mark.parametrize(
    "order",
    [
        pytest.param("a0 b0 c0 a1 b1 c1", id="all first pods, then all second ones"),
        pytest.param("a0 a1 b0 b1 c0 c1", id="shard after shard"),
    ],
)
def test_redis_in_a_fixed_order(order):
    found = simulate(redis(1, order, free=False))
    assert (found.verdict, found.fewest, found.most) == (PlacementVerdict.STUCK, 5, 6)
    assert found.stuck == pytest.approx(1 / 6)


@pytest.mark.parametrize(
    ("skew", "zones"),
    [
        pytest.param(2, None, id="room for two on each host"),
        pytest.param(1, {"a": "ab", "b": "bc", "c": "ca"}, id="two zones for each shard"),
    ],
)
def test_redis_fits(skew, zones):
    for free in (True, False):
        found = simulate(redis(skew, free=free, zones=zones))
        assert (found.verdict, found.fewest, found.stuck, found.witness) == (PlacementVerdict.FITS, 6, 0, ())


def test_an_ordinal_without_a_place_holds_the_others():
    index = cluster("a: a0=0 | b: b0=0")
    problem = take(index, pod())
    shut_out = PodBatch(problem=problem, pods=1, nodes=0)
    waiting = PodBatch(problem=problem, pods=3, behind=0)
    found = simulate(game_of([shut_out, waiting], index))
    assert (found.verdict, found.most) == (PlacementVerdict.NO_FIT, 0)
    alone = simulate(game_of([shut_out, replace(waiting, behind=None)], index))
    assert (alone.verdict, alone.most) == (PlacementVerdict.NO_FIT, 3)


BY_HAND = Effort(states=1, orders=20, moves=200)


def test_past_the_bound_single_orders_are_a_proof_or_none():
    stuck = simulate(redis(1), BY_HAND)
    assert (stuck.verdict, stuck.fewest, stuck.most, stuck.sampled) == (PlacementVerdict.STUCK, None, 6, 20)
    assert 0 < stuck.stuck < 1
    assert len(stuck.witness) == sum(stuck.placed) == 5
    unknown = simulate(redis(2), BY_HAND)
    assert (unknown.verdict, unknown.stuck, unknown.sampled) == (PlacementVerdict.UNKNOWN, 0.0, 20)
    assert simulate(redis(1), Effort(states=1, orders=20, moves=10)).sampled == 2


def test_progress_is_told_in_states():
    told = []
    found = simulate(redis(1), tick=told.append)
    assert (told[-1], sorted(told)) == (found.states, told)


@pytest.mark.parametrize(
    ("small", "large"),
    [
        # Packed, two nodes keep one whole; spread, none is.
        pytest.param("a0=0 a1=0 a2=0", PlacementVerdict.STUCK, id="pods of one CPU beside one of two"),
        pytest.param("a0=0 a1=0 a2=0 a3=0", PlacementVerdict.FITS, id="with one node more"),
    ],
)
def test_room_that_others_break_up(small, large):
    index = cluster(f"a: {small}", resources={"cpu": "2", "memory": "8Gi", "pods": "9"})
    ones, two = (
        pod(containers=(Container(name="c", resources=ResourceRequirements(requests={"cpu": cpu})),)) for cpu in "12"
    )
    batches = [PodBatch(problem=take(index, ones), pods=3), PodBatch(problem=take(index, two), pods=1)]
    assert simulate(game_of(batches, index)).verdict is large


def test_the_ends_name_every_shard_that_can_be_the_one_without_a_place():
    found = simulate(redis(1))
    assert set(found.ends) == {(2, 2, 2), (1, 2, 2), (2, 1, 2), (2, 2, 1)}
    assert simulated(ZONES_OF_TWO, 6, spread(ZONE)).ends == ((6,),)


def test_one_order_ends_as_all_do_where_they_do_not_differ():
    index = cluster("a: a0=0 | b: ~b0")
    game = game_of([PodBatch(problem=take(index, pod(constraints=(spread(ZONE),))), pods=3)], index)
    assert simulate(game).most == 1
    assert [(step.batch, step.node) for step in one_order(game)] == [(0, "a0")]


def test_orders_that_all_get_stuck_prove_that_not_every_order_fits():
    index = cluster("a: a0=0 | b: b0=0 b1=0")
    both = [pod(f"app=web part={each}", constraints=(spread(ZONE), spread(HOSTNAME, 2))) for each in "xy"]
    batches = [PodBatch(problem=take(index, each), pods=5) for each in both]
    found = simulate(game_of(batches, index), BY_HAND)
    assert (found.verdict, found.stuck, found.fewest, found.most) == (PlacementVerdict.UNKNOWN, 1.0, None, None)
    assert len(found.witness) == sum(found.placed)
    assert simulate(redis(1), Effort(states=1, orders=0)).stuck is None


def test_of_orders_that_can_only_get_stuck_the_numbers_are_known():
    """All of them: `closed_forms.possible_ends`."""
    text, given = "a: a0=0 | b: b0=0 b1=0", (spread(ZONE), spread(HOSTNAME, 2))
    index = cluster(text)
    every, batch = simulated(text, 10, *given), PodBatch(problem=take(index, pod(constraints=given)), pods=10)
    some = simulate(game_of([batch], index), BY_HAND)
    assert (some.verdict, some.fewest, some.most) == (PlacementVerdict.NO_FIT, every.fewest, every.most)
    assert (some.sampled, every.sampled) == (BY_HAND.orders, 0)


def test_nodes_without_the_key_keep_nobody_apart():
    index = cluster("a: a0=0")
    index.apply("MODIFIED", replace(index.nodes.get("a0"), metadata=ObjectMeta(name="a0", labels={ZONE: "a"})))
    term = PodAffinityTerm(label_selector=LabelSelector(match_labels={"app": "web"}), topology_key=HOSTNAME)
    one = pod(affinity=apart(term))
    found = simulate(game_of([PodBatch(problem=take(index, one), pods=3)], index))
    assert (found.verdict, found.most) == (PlacementVerdict.FITS, 3)
