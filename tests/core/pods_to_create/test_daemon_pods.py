"""Where a DaemonSet wants its pods, and what the pod for a node looks like."""

import pytest
from build import cluster, pod, requiring
from msgspec.structs import replace

from webhook.core.api.types import (
    Affinity,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeSpec,
    Taint,
)
from webhook.core.explain.explanation import explain_pod
from webhook.core.index import node_sets
from webhook.core.pods_to_create.daemon_pods import pod_for_node, target_node, wanted_nodes, with_daemon_tolerations
from webhook.core.scheduler.problem import take

NODE = "node.kubernetes.io/"


def tainted(*taints):
    """Nodes a, b and c, of which c has these taints."""
    index = cluster("z1: a b | z2: c")
    found = tuple(Taint(key=key, effect=effect) for key, effect in (each.split(":") for each in taints))
    index.apply("MODIFIED", replace(index.nodes.get("c"), spec=NodeSpec(taints=found, unschedulable=True)))
    return index


def zones(*values):
    condition = NodeSelectorRequirement(key="topology.kubernetes.io/zone", operator="In", values=values)
    terms = (NodeSelectorTerm(match_expressions=(condition,)),)
    return requiring(*terms)


@pytest.mark.parametrize(
    ("taints", "spec", "expected"),
    [
        pytest.param((), {}, "a b c", id="all nodes, cordoned ones too"),
        pytest.param((f"{NODE}unschedulable:NoSchedule",), {}, "a b c", id="a cordon"),
        pytest.param((f"{NODE}not-ready:NoExecute",), {}, "a b c", id="a node that is not ready yet"),
        pytest.param((f"{NODE}unreachable:NoExecute", f"{NODE}unreachable:NoSchedule"), {}, "a b", id="unreachable"),
        pytest.param((f"{NODE}disk-pressure:NoSchedule",), {}, "a b c", id="pressure"),
        pytest.param((f"{NODE}network-unavailable:NoSchedule",), {}, "a b", id="no network"),
        pytest.param((f"{NODE}network-unavailable:NoSchedule",), {"host_network": True}, "a b c", id="none needed"),
        pytest.param(("dedicated:NoSchedule",), {}, "a b", id="a taint"),
        pytest.param((), {"node_selector": {"topology.kubernetes.io/zone": "z2"}}, "c", id="a selector"),
        pytest.param((), {"affinity": zones("z1")}, "a b", id="affinity"),
        pytest.param((), {"node_name": "b"}, "b", id="a name"),
        pytest.param((), {"node_name": "x"}, "", id="a name of no node"),
    ],
)
def test_the_nodes_that_should_run_it(taints, spec, expected):
    view = tainted(*taints).nodes.view()
    found = wanted_nodes(with_daemon_tolerations(pod("app=agent", **spec)), view)
    assert " ".join(sorted(view.names[slot] for slot in node_sets.to_slots(found))) == expected


def test_the_pod_of_a_node_goes_there_only():
    index = tainted()
    made = pod_for_node(with_daemon_tolerations(pod("app=agent", affinity=zones("z1"))), "c")
    assert target_node(made) == "c"
    found = explain_pod(take(index, made), index).verdict
    assert [found.nodes.names[slot] for slot in node_sets.to_slots(found.feasible)] == ["c"]


def field(key, operator, value):
    condition = NodeSelectorRequirement(key=key, operator=operator, values=(value,))
    terms = (NodeSelectorTerm(match_fields=(condition,)),)
    return requiring(*terms)


@pytest.mark.parametrize(
    "affinity",
    [None, Affinity(), zones("z1"), field("metadata.uid", "In", "a"), field("metadata.name", "NotIn", "a")],
    ids=["no affinity", "an empty one", "a zone", "another field", "not one node"],
)
def test_a_pod_for_any_node_names_none(affinity):
    assert target_node(pod("app=web", affinity=affinity)) is None
