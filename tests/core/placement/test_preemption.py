"""How many pods of lower priority have to go: small clusters, worked out by hand."""

import pytest
from build import constraint, index, node, pod, running
from msgspec.structs import replace

from webhook.core.api.types import Container, NodeStatus, ResourceRequirements
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.placement.game_from_cluster import PodBatch, game_of
from webhook.core.placement.making_room import pods_to_preempt
from webhook.core.placement.placement_verdict import Effort, PlacementVerdict
from webhook.core.placement.simulation import simulate
from webhook.core.scheduler.problem import take

EFFORT = Effort(states=1000)


def cpus(amount):
    return {"containers": (Container(resources=ResourceRequirements(requests={"cpu": amount})),)}


def holding(name, on, cpu, priority=0):
    made = running(name, on, "app=other")
    return replace(made, spec=replace(made.spec, priority=priority, **cpus(cpu)))


def nodes(**zones):
    offers = NodeStatus(allocatable={"cpu": "4", "pods": "9"})
    return [replace(node(name, zone), status=offers) for name, zone in zones.items()]


def asked(there, replicas, *, cpu="2", priority=10, constraints=(), **spec):
    problem = take(there, pod(constraints=constraints, priority=priority, **spec, **cpus(cpu)))
    batches = [PodBatch(problem=problem, pods=replicas)]
    found = simulate(game_of(batches, there), EFFORT)
    assert found.verdict is not PlacementVerdict.FITS
    return pods_to_preempt(batches, there, found, EFFORT)


TWO = [*nodes(a="a", b="b"), holding("x", "a", "2"), holding("y", "a", "1", 5), holding("z", "b", "3")]


@pytest.mark.parametrize(
    ("replicas", "victims"),
    [
        # Of x and y, y stays at first, for it matters more.
        pytest.param(1, 1, id="where one has to go"),
        pytest.param(2, 2, id="one more for the next"),
        pytest.param(3, 3, id="and for the third"),
        pytest.param(4, 3, id="none for the last, which goes where z was"),
        pytest.param(5, None, id="more than the nodes can hold"),
    ],
)
def test_the_fewest_go_and_the_most_important_stay(replicas, victims):
    assert asked(index(*TWO), replicas) == victims


def test_pods_that_find_a_place_drive_nobody_away():
    there = index(*nodes(a="a", b="b"), holding("x", "a", "4"))
    assert asked(there, 3) == 1


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"priority": 0}, id="without a priority"),
        pytest.param({"preemption_policy": "Never"}, id="that never preempt"),
        pytest.param({"priority": 0, "cpu": "3"}, id="of no higher priority than the others"),
    ],
)
def test_pods_that_do_not_preempt(more):
    assert asked(index(*nodes(a="a"), holding("x", "a", "4")), 1, **more) is None


def test_there_is_nobody_to_preempt():
    assert asked(index(*nodes(a="a"), holding("x", "a", "4", 10)), 1) is None


def test_constraints_count_lower_pods_still():
    there = index(*nodes(a="a", b="b"), holding("x", "a", "4"), holding("y", "b", "4"))
    zones = [constraint(ZONE, select="app=web")]
    assert asked(there, 4, constraints=zones) == 2
    blocked = [constraint(HOSTNAME, select="app=other", max_skew=1)]
    there = index(*nodes(a="a", b="b"), holding("x", "a", "4"), *[holding(f"y{n}", "b", "1") for n in range(4)])
    assert asked(there, 3, constraints=blocked) is None


def test_where_some_orders_get_stuck():
    """Zone and host: the worst order is gone to its end first, and only then does somebody have to leave."""
    there = index(*nodes(a0="a", a1="a", b0="b"), holding("x", "b0", "2"), holding("y", "a0", "3"))
    found = asked(there, 4, constraints=[constraint(ZONE, select="app=web")])
    assert found == 1
