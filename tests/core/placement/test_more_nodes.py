"""How many nodes make all pods fit; each answer is tried in an index that was told of these nodes."""

import pytest
from build import cluster, constraint, index, node, pod
from msgspec.structs import replace

from webhook.core.api.types import Container, NodeStatus, ResourceRequirements
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.placement.game_from_cluster import PodBatch, game_of
from webhook.core.placement.making_room import NodesToAdd, nodes_to_add
from webhook.core.placement.placement_verdict import Effort, PlacementVerdict
from webhook.core.placement.simulation import simulate
from webhook.core.scheduler.problem import take

EFFORT = Effort(states=2000)


def batches(there, made, replicas):
    return [PodBatch(problem=take(there, made), pods=replicas)]


def added(there, made, replicas):
    def fits(other):
        return simulate(game_of(batches(other, made, replicas), other), EFFORT).verdict is PlacementVerdict.FITS

    assert not fits(there)
    found = nodes_to_add(batches(there, made, replicas), there, fits)
    return {(each.like, each.labels.get(ZONE)): each.nodes for each in found}


def spread(*keys, skew=1, **spec):
    return pod(constraints=[constraint(key, max_skew=skew, select="app=web") for key in keys], **spec)


@pytest.mark.parametrize(
    ("state", "made", "replicas", "expected"),
    [
        pytest.param("a: a0 | b: b0 | c: ~c0", spread(ZONE), 4, {("a0", "c"): 1}, id="in the tainted zone"),
        pytest.param("a: a0 | b: b0", spread(HOSTNAME), 2, None, id="of pods that fit"),
        pytest.param("a: a0=1 | b: ~b0", spread(HOSTNAME), 2, {("a0", None): 2}, id="one each"),
        pytest.param("a: a0 | b: b0 b1", spread(ZONE, HOSTNAME), 8, {("a0", "a"): 1}, id="that makes zones equal"),
        pytest.param(
            "a: a0 | b: b0 b1 b2 b3", spread(ZONE, HOSTNAME), 20, {("a0", "a"): 3}, id="more than any mixture"
        ),
    ],
)
def test_the_fewest_nodes(state, made, replicas, expected):
    if expected is None:
        with pytest.raises(AssertionError):
            added(cluster(state), made, replicas)
    else:
        assert added(cluster(state), made, replicas) == expected


def roomy(cpu, *names, zone="a"):
    return [replace(node(name, zone), status=NodeStatus(allocatable={"cpu": cpu, "pods": "9"})) for name in names]


def with_cpu(cpu, *constraints):
    return pod(constraints=constraints, containers=(Container(resources=ResourceRequirements(requests={"cpu": cpu})),))


def test_added_nodes_are_of_a_class_that_is_large_enough():
    there = index(*roomy("1", "s0", "s1"), *roomy("4", "l0"))
    assert added(there, with_cpu("2"), 3) == {("l0", None): 1}
    assert added(there, with_cpu("1"), 30) == {("l0", None): 6}
    assert not added(there, with_cpu("8"), 1)


def test_as_many_in_each_zone():
    zones = [each for zone in "abc" for each in roomy("2", f"{zone}0", zone=zone)]
    found = added(index(*zones), with_cpu("1", constraint(ZONE, select="app=web")), 18)
    assert found == {("a0", "a"): 2, ("b0", "b"): 2, ("c0", "c"): 2}


def test_large_numbers_are_not_all_tried():
    there, tried = index(*roomy("1", "s0", zone=None)), []

    def fits(other):
        tried.append(len(other.nodes.view()))
        return len(other.nodes.view()) > 40

    assert nodes_to_add(batches(there, with_cpu("1"), 60), there, fits) == (NodesToAdd("s0", {}, 40),)
    assert len(tried) < 25


def test_none_like_nodes_that_the_pods_cannot_use():
    there = cluster("a: ~a0=1 | b: ~b0")
    assert not added(there, spread(ZONE), 4)


def test_what_is_said_of_them():
    there = cluster("a: a0 | b: ~b0")
    made = spread(ZONE)
    told = nodes_to_add(batches(there, made, 4), there, lambda _: True)
    assert told == (NodesToAdd("a0", {ZONE: "a"}, 1),)
