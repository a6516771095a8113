"""The nodes that nodeSelector and required node affinity leave."""

import msgspec
import pytest
from build import index, labels, node
from msgspec.structs import replace

from webhook.core.api.node_selectors import compile_required_nodes
from webhook.core.api.types import Affinity, Node, NodeSpec, ObjectMeta, Taint
from webhook.core.budget import OutOfTimeError, time_limit
from webhook.core.scheduler.plugins.node_ports import run_node_ports
from webhook.core.scheduler.plugins.node_selection import settled_nodes, tolerated_nodes, usable_nodes


def nodes(node_selector="", *terms):
    """Each term as ``(expressions, fields)``, every condition as ``key Operator values…``."""

    def conditions(written):
        split = [each.split(" ") for each in written]
        return [{"key": key, "operator": operator, "values": values} for key, operator, *values in split]

    selector_terms = [
        {"matchExpressions": conditions(expressions), "matchFields": conditions(fields)}
        for expressions, fields in terms
    ]
    required = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": selector_terms}}
    }
    affinity = msgspec.convert(required, Affinity) if terms else None
    return compile_required_nodes(labels(node_selector), affinity)


NO_TERMS = msgspec.convert(
    {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}, Affinity
)


@pytest.mark.parametrize(
    ("required", "usable", "unusable"),
    [
        pytest.param(nodes("zone=a"), ["n zone=a x=y"], ["n zone=b", "n"], id="nodeSelector"),
        pytest.param(nodes(""), ["n", "n zone=a"], [], id="no requirement"),
        pytest.param(nodes("", (["zone In a b"], [])), ["n zone=b"], ["n zone=c", "n"], id="In"),
        pytest.param(
            nodes("", (["zone NotIn a"], [])), ["n", "n zone=b"], ["n zone=a"], id="NotIn holds without the key"
        ),
        pytest.param(nodes("", (["zone Exists"], [])), ["n zone="], ["n"], id="Exists"),
        pytest.param(nodes("", (["zone DoesNotExist"], [])), ["n"], ["n zone="], id="DoesNotExist"),
        pytest.param(nodes("", (["cores Gt 7"], [])), ["n cores=8", "n cores=0010"], ["n cores=7", "n"], id="Gt"),
        pytest.param(nodes("", (["cores Lt 7"], [])), ["n cores=6"], ["n cores=7", "n cores=six"], id="Lt"),
        pytest.param(
            nodes("", (["cores Gt 7"], [])), ["n cores=8"], ["n cores=99999999999999999999"], id="Gt stays in 64 bits"
        ),
        pytest.param(nodes("", (["cores Gt seven"], [])), [], ["n cores=8"], id="Gt of no number never matches"),
        pytest.param(nodes("", (["cores Gt 7 8"], [])), [], ["n cores=9"], id="Gt of two numbers never matches"),
        pytest.param(nodes("", (["a Like b"], [])), [], ["n a=b"], id="an unknown operator never matches"),
        pytest.param(
            nodes("", (["a In bad!"], []), (["b In c"], [])), ["n b=c"], ["n a=bad!"], id="an invalid term only"
        ),
        pytest.param(nodes("", (["a In 1", "b In 2"], [])), ["n a=1 b=2"], ["n a=1"], id="conditions are ANDed"),
        pytest.param(nodes("", (["a In 1"], []), (["b In 2"], [])), ["n a=1", "n b=2"], ["n"], id="terms are ORed"),
        pytest.param(nodes("", ([], [])), [], ["n"], id="a term without conditions matches no node"),
        pytest.param(nodes("a=1", (["b In 2"], [])), ["n a=1 b=2"], ["n a=1", "n b=2"], id="both"),
        pytest.param(nodes("", ([], ["metadata.name In n"])), ["n"], ["m"], id="a name"),
        pytest.param(nodes("", ([], ["metadata.name NotIn n"])), ["m"], ["n"], id="not a name"),
        pytest.param(nodes("", ([], ["metadata.name In n m"])), [], ["n"], id="two names never match"),
        pytest.param(nodes("", ([], ["metadata.name Exists n"])), [], ["n"], id="Exists is not for fields"),
        pytest.param(nodes("", ([], ["metadata.uid In n"])), [], ["n"], id="other fields have no value"),
        pytest.param(nodes("", (["a In 1"], ["metadata.name In n"])), ["n a=1"], ["m a=1", "n"], id="label and name"),
        pytest.param(nodes("", ([], ["metadata.name In n"])), [" x=y"], [], id="a node without a name has no fields"),
        pytest.param(compile_required_nodes(None, NO_TERMS), [], ["n"], id="no terms match no node"),
        pytest.param(compile_required_nodes(None, Affinity()), ["n"], [], id="affinity without node affinity"),
    ],
)
def test_the_nodes_that_a_pod_may_use(required, usable, unusable):
    def admits(node):
        name, _, rest = node.partition(" ")
        only = index(Node(metadata=ObjectMeta(name=name, labels=labels(rest)))).nodes.view()
        return usable_nodes(only, required) == only.live

    assert [admits(node) for node in usable] == [True] * len(usable)
    assert [admits(node) for node in unusable] == [False] * len(unusable)


@pytest.mark.parametrize(
    "loop",
    [
        pytest.param(lambda view: tolerated_nodes(view, None), id="taints to tolerate"),
        pytest.param(settled_nodes, id="taints of nodes that are down"),
        pytest.param(lambda _: run_node_ports([("", "TCP", 80)], {0: [], 1: []}), id="host ports in use"),
    ],
)
def test_a_loop_over_the_cluster_ends_with_the_time(loop):
    tainted = [NodeSpec(taints=(Taint(key=f"k{number}", effect="NoSchedule"),)) for number in range(3)]
    view = index(*(replace(node(f"n{number}"), spec=spec) for number, spec in enumerate(tainted))).nodes.view()
    loop(view)
    with time_limit(iter([False, True]).__next__), pytest.raises(OutOfTimeError):
        loop(view)
