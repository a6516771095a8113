"""What would help besides looser constraints, and how much is missing."""

import pytest
from build import cluster, constraint, pod, running
from msgspec.structs import replace

from webhook.core.api.types import Container, NodeSpec, NodeStatus, ResourceRequirements, Taint, Toleration
from webhook.core.api.well_known import HOSTNAME
from webhook.core.explain.cause_text import _amount_text
from webhook.core.explain.explanation import explain_pod
from webhook.core.explain.obstacles import toleration_for
from webhook.core.explain.reliefs import shortages
from webhook.core.index import node_sets
from webhook.core.scheduler.problem import take

ZONES = constraint(select="app=web")
K8S = "node.kubernetes.io/"


def asking(**requests):
    return (Container(name="c", resources=ResourceRequirements(requests=requests)),)


@pytest.mark.parametrize(
    ("resource", "amount", "up", "expected"),
    [
        ("cpu", 2000, False, "2 cpu"),
        ("cpu", 1500, False, "1500m cpu"),
        ("cpu", 0, False, "0 cpu"),
        ("memory", 2**30, False, "1Gi memory"),
        ("memory", 3 * 2**29, False, "1.5Gi memory"),
        ("memory", 16 * 2**30 - 1, False, "15.99Gi memory"),
        ("memory", 16 * 2**30 - 1, True, "16Gi memory"),
        ("memory", 1000, False, "1000 memory"),
        ("memory", 0, False, "0 memory"),
        ("hugepages-2Mi", 2**21, True, "2Mi hugepages-2Mi"),
        ("ephemeral-storage", 2**71, False, "2048Ei ephemeral-storage"),
        ("example.com/gpu", 1200, False, "1,200 example.com/gpu"),
        ("pods", 1, True, "1 pods"),
    ],
)
def test_amounts(resource, amount, up, expected):
    assert _amount_text(resource, amount, up=up) == expected


def test_the_most_that_is_free():
    index = cluster("z1: a b", resources={"cpu": "4", "memory": "4Gi", "pods": "9"})
    index.apply("ADDED", running("x", "a", "app=x", containers=asking(cpu="3")))
    index.apply("ADDED", running("y", "b", "app=x", containers=asking(cpu="2500m")))
    problem = take(index, pod(containers=asking(cpu="2", memory="1Gi")))
    [found] = shortages(problem, problem.nodes.live)
    assert (found.resource, found.needed, found.free, found.node, found.nodes, found.has) == (
        "cpu",
        2000,
        1500,
        "b",
        2,
        None,
    )
    assert not [*shortages(problem, 0)]


def test_what_no_node_has_and_what_is_taken_beyond_that():
    index = cluster("z1: a b", resources={"cpu": "4", "memory": "4Gi", "pods": "9"})
    problem = take(index, pod(containers=asking(cpu="9")))
    assert [(each.free, each.has) for each in shortages(problem, problem.nodes.live)] == [(4000, 4000)]
    index.apply("MODIFIED", replace(index.nodes.get("b"), status=NodeStatus(allocatable={"cpu": "16", "pods": "9"})))
    index.apply("ADDED", running("y", "b", "app=x", containers=asking(cpu="20")))
    problem = take(index, pod(containers=asking(cpu="9")))
    assert [(each.free, each.has) for each in shortages(problem, problem.nodes.live)] == [(4000, None)]
    assert [each.free for each in shortages(problem, 1 << problem.nodes.slots["b"])] == [0]


def explained(taints, **spec):
    index = cluster("z1: a=1 | z2: b=0")
    index.apply("MODIFIED", replace(index.nodes.get("b"), spec=NodeSpec(taints=tuple(taints))))
    return explain_pod(take(index, pod("app=web", constraints=(ZONES,), **spec)))


GPU = Taint(key="dedicated", value="gpu", effect="NoSchedule")
SPOT = Taint(key="spot", effect="NoExecute")


@pytest.mark.parametrize(
    ("taints", "spec", "expected"),
    [
        pytest.param([GPU], {}, [(GPU,)], id="one taint"),
        pytest.param([GPU, SPOT], {}, [(GPU, SPOT)], id="two taints are tolerated together"),
        pytest.param(
            [GPU, SPOT], {"tolerations": (Toleration(key="spot", operator="Exists"),)}, [(GPU,)], id="one is tolerated"
        ),
        pytest.param([Taint(key=f"{K8S}unreachable", effect="NoExecute")], {}, [], id="unreachable"),
        pytest.param([Taint(key=f"{K8S}not-ready", effect="NoSchedule")], {}, [], id="not ready"),
        pytest.param([GPU, Taint(key=f"{K8S}not-ready", effect="NoExecute")], {}, [], id="not ready, tainted besides"),
        pytest.param([GPU], {"node_selector": {HOSTNAME: "a"}}, [], id="a node that the pod does not select"),
        pytest.param([GPU], {"containers": asking(cpu="99")}, [], id="a node that is too small"),
    ],
)
def test_tolerations_are_offered_where_they_are_enough(taints, spec, expected):
    found = [each for each in explained(taints, **spec).reliefs if each.what == "toleration"]
    assert [each.tolerations for each in found] == [tuple(map(toleration_for, parts)) for parts in expected]


@pytest.mark.parametrize(
    ("state", "spec", "expected"),
    [
        pytest.param("z1: ~a=1 | z2: ~b=0", {}, [("taints", "b")], id="taints"),
        pytest.param(
            "z1: a=1 | z2: ~b=0",
            {"containers": asking(cpu="99")},
            [("spread room", "a"), ("room taints", "b")],
            id="pairs",
        ),
        pytest.param("z1: a", {"node_selector": {"x": "y"}}, [("selection", "a")], id="a selector"),
        pytest.param(
            "z1: ~a",
            {"node_selector": {"x": "y"}, "containers": asking(cpu="99")},
            [("room taints selection", "a")],
            id="three together",
        ),
        pytest.param("", {}, [], id="no node"),
        pytest.param("z1: a=1 | z2: b", {}, None, id="a node admits it"),
        pytest.param("z1: a=1 | z2: ~b", {}, None, id="spread alone"),
    ],
)
def test_the_fewest_things_that_are_in_the_way(state, spec, expected):
    found = explain_pod(take(cluster(state), pod("app=web", constraints=(ZONES,), **spec)))
    names = found.verdict.nodes.names
    told = [
        (" ".join(way.parts), " ".join(sorted(names[slot] for slot in node_sets.to_slots(way.nodes))))
        for way in found.ways
    ]
    assert told == (expected or [])
    assert (found.cause == "other") == (expected is not None)
