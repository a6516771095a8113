"""What is in the way of a pod, and what is not."""

import pytest
from build import cluster, constraint, pod, running
from msgspec.structs import replace

from webhook.core.explain import Cause, cause
from webhook.core.model import HOSTNAME, Container, ContainerPort, NodeSpec, PodSpec, PodStatus, ResourceRequirements
from webhook.core.verdict import decide, take

WEB = "app=web"
ZONES = constraint(select=WEB)
HOSTS = constraint(HOSTNAME, select=WEB)
SMALL = {"cpu": "2", "memory": "4Gi", "pods": "3"}


def asking(cpu="1", port=None):
    ports = None if port is None else (ContainerPort(container_port=port, host_port=port),)
    return (Container(name="c", resources=ResourceRequirements(requests={"cpu": cpu}), ports=ports),)


def judged(index, *constraints, **spec):
    problem = take(index, pod(WEB, constraints=constraints or None, **spec))
    return cause(problem, decide(problem))


@pytest.mark.parametrize(
    ("state", "constraints", "cpu", "expected"),
    [
        pytest.param("z1: a=1 | z2: b=0", (ZONES,), "1", None, id="a node admits it"),
        pytest.param("z1: a=1 | z2: ~b=0", (ZONES,), "1", Cause.SPREAD, id="a tainted zone holds the minimum"),
        pytest.param("z1: a=0 | z2: b=0", (constraint("rack", select=WEB),), "1", Cause.SPREAD, id="a key of no node"),
        pytest.param("z1: a=1 | z2: ~b=0", (), "1", None, id="the same without a constraint"),
        pytest.param("z1: ~a=1 | z2: ~b=0", (ZONES,), "1", Cause.OTHER, id="every node is tainted"),
        pytest.param("z1: a=0 | z2: b=0", (ZONES,), "9", Cause.CAPACITY, id="more than a node has"),
        pytest.param("z1: a=0 | z2: ~b=0", (), "9", Cause.CAPACITY, id="more than the node that is open has"),
        pytest.param("z1: a=1 | z2: ~b=0", (ZONES,), "9", Cause.OTHER, id="spread and capacity, neither alone"),
        pytest.param("z1: a=3 b=1 | z2: ~c=0", (ZONES,), "1", Cause.SPREAD, id="one node is full, the other open"),
        pytest.param("", (ZONES,), "1", Cause.OTHER, id="no node at all"),
    ],
)
def test_the_cause(state, constraints, cpu, expected):
    assert judged(cluster(state, resources=SMALL), *constraints, containers=asking(cpu)) == expected


def test_a_full_zone_beside_a_zone_at_its_limit_is_spread():
    index = cluster("z1: a=1 | z2: b=0")
    index.apply("ADDED", running("x", "b", "app=x", containers=asking("64")))
    assert judged(index, ZONES, containers=asking()) == Cause.SPREAD
    assert judged(index, HOSTS, containers=asking()) == Cause.SPREAD
    assert judged(index, constraint(select=WEB, max_skew=2), containers=asking()) is None


def test_a_host_port_is_capacity():
    index = cluster("z1: a=0")
    assert judged(index, ZONES, containers=asking(port=80)) is None
    index.apply("ADDED", running("x", "a", "app=x", containers=asking(port=80)))
    assert judged(index, ZONES, containers=asking(port=80)) == Cause.CAPACITY


def test_a_cordon_is_something_else():
    index = cluster("z1: a=0")
    index.apply("MODIFIED", replace(index.node("a"), spec=NodeSpec(unschedulable=True)))
    assert judged(index, ZONES) == Cause.OTHER


def test_a_selector_that_cannot_be_read_is_spread():
    assert judged(cluster("z1: a=0"), constraint(select="app=not/a/value")) == Cause.SPREAD


def test_room_that_preemption_made_for_another_stays_taken():
    index = cluster("z1: a=0", resources={"cpu": "2", "memory": "4Gi", "pods": "9"})
    waits = replace(running("first", "", "app=x", containers=asking("2")), status=PodStatus(nominated_node_name="a"))
    assert judged(index, ZONES, containers=asking()) is None
    index.apply("ADDED", waits)
    assert judged(index, ZONES, containers=asking()) == Cause.CAPACITY


def test_a_nominated_pod_counts_on_its_node():
    index, mine = cluster("z1: a=0 | z2: ~b=0"), replace(running("first", ""), spec=PodSpec())
    assert judged(index, ZONES) is None
    index.apply("ADDED", replace(mine, status=PodStatus(nominated_node_name="a")))
    assert judged(index, ZONES) == Cause.SPREAD
