"""What happens to a group that stands: pods made anew one by one, shards added, a zone or a node lost and back."""

import pytest
from build import cluster
from core.groups.grouped import derived, planned_for, redis, shards_of, zones
from msgspec.structs import replace

from webhook.core.api.types import PodStatus
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.groups.fields import shard_fields as fields_of
from webhook.core.groups.group import with_fields
from webhook.core.groups.plan import pod_batches
from webhook.core.placement.game_from_cluster import PodBatch, game_of
from webhook.core.placement.placement_verdict import PlacementVerdict
from webhook.core.placement.simulation import one_order, simulate
from webhook.core.scheduler.problem import take

SHAPES = [
    pytest.param(redis(3), zones(2, 2, 2), id="three shards, six nodes"),
    pytest.param(redis(9), zones(3, 3, 3), id="nine shards in three zones"),
    pytest.param(redis(6, caps=(), apart=(ZONE,)), zones(3, 3), id="six shards in two zones"),
    pytest.param(redis(3, apart=(HOSTNAME,), caps=()), zones(6), id="three shards in one zone"),
]


def stands(group, text):
    """The plan, the cluster with all pods of the group in it, and these pods with the number of their shard."""
    found = derived(group, text)
    index, shards = cluster(text), found.plan.shards
    inputs = planned_for(group, shards_of(group), index)
    of = game_of(pod_batches(inputs, found.plan.fields, found.capacity), index)
    placed = []
    for number, step in enumerate(one_order(of)):
        like = with_fields(shards[step.batch].pod, found.plan.fields[shards[step.batch].name])
        meta = replace(like.meta, name=f"pod-{number}", uid=f"pod-{number}")
        spec = replace(like.pod_spec, node_name=step.node)
        placed.append((step.batch, replace(like, metadata=meta, spec=spec, status=PodStatus(phase="Running"))))
        index.apply("ADDED", placed[-1][1])
    return found.plan, index, placed


def anew(index, plan, numbers):
    """What becomes of one more pod of each of these shards."""
    made = [with_fields(plan.shards[number].pod, plan.fields[plan.shards[number].name]) for number in numbers]
    return simulate(game_of([PodBatch(problem=take(index, each), pods=1) for each in made], index))


@pytest.mark.parametrize(("group", "text"), SHAPES)
def test_a_rolling_update_never_gets_stuck(group, text):
    """Pod after pod, as a StatefulSet replaces them: each finds a place again, wherever the others stand."""
    plan, index, placed = stands(group, text)
    assert len(placed) == group.pods
    for number, pod in placed:
        index.apply("DELETED", pod)
        assert anew(index, plan, [number]).verdict is PlacementVerdict.FITS
        index.apply("ADDED", pod)


@pytest.mark.parametrize(("group", "text"), SHAPES)
def test_a_node_that_is_lost_comes_back(group, text):
    plan, index, placed = stands(group, text)
    node = placed[0][1].pod_spec.node_name
    lost = [(number, pod) for number, pod in placed if pod.pod_spec.node_name == node]
    for _, pod in lost:
        index.apply("DELETED", pod)
    assert anew(index, plan, [number for number, _ in lost]).verdict is PlacementVerdict.FITS


def test_while_a_zone_is_gone_its_pods_wait_and_then_fit_again():
    """Pins hold: nobody takes the place of the lost pods, and no cap is broken meanwhile."""
    plan, index, placed = stands(redis(3), zones(2, 2, 2))
    gone = {name: index.nodes.get(name) for name in ("c0", "c1")}
    lost = [(number, pod) for number, pod in placed if pod.pod_spec.node_name in gone]
    for _, pod in lost:
        index.apply("DELETED", pod)
    for node in gone.values():
        index.apply("DELETED", node)
    numbers = [number for number, _ in lost]
    said = anew(index, plan, numbers)
    assert (said.verdict, said.most, len(numbers)) == (PlacementVerdict.NO_FIT, 0, 2)
    for node in gone.values():
        index.apply("ADDED", node)
    assert anew(index, plan, numbers).verdict is PlacementVerdict.FITS


def test_shards_that_are_added_with_the_same_fields_find_their_places():
    """Three shards to five: the caps of three, and the zones that were kept for two more."""
    group = redis(3, plan_for=5)
    text = zones(6, 6, 6)
    plan, index, _ = stands(group, text)
    assert plan.same_up_to == 5
    grown = derived(replace(group, shards=5), text, shards_of(group)).plan
    assert grown.zone_pins.of_shards[:3] == plan.zone_pins.of_shards
    constraints = plan.fields["redis-0"].constraints
    new = [
        with_fields(shard.pod, fields_of(group, shard, constraints, pins))
        for shard, pins in zip(grown.shards[3:], grown.zone_pins.of_shards[3:], strict=True)
    ]
    said = simulate(game_of([PodBatch(problem=take(index, each), pods=2, in_turn=True) for each in new], index))
    assert said.verdict is PlacementVerdict.FITS
