"""Columns of labels over many nodes, and sets of nodes that labels choose."""

import pytest
from build import constraint, node, pod, running
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from webhook.core.api.node_selectors import FieldRequirement, NodeTerm
from webhook.core.api.requirements import Requirement
from webhook.core.api.types import Node, NodeSpec, NodeStatus, ObjectMeta, Taint
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.index import node_sets
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.nodes import NO_NODE, NodeView
from webhook.core.scheduler.cycle import Cycle
from webhook.core.scheduler.plugins.node_selection import nodes_meeting, nodes_of_terms
from webhook.core.scheduler.problem import take


def racks(pairs):
    """Two nodes a rack: more hostnames and racks than a column keeps sets for."""
    index = ClusterIndex()
    for number in range(2 * pairs):
        index.apply("ADDED", node(f"n{number}", f"z{number % 3}", rack=f"r{number // 2}", size=str(number)))
    return index


def chosen(view, nodes):
    return [view.names[slot] for slot in node_sets.to_slots(nodes)]


@pytest.mark.parametrize("key", [HOSTNAME, "rack"])
def test_domains_of_keys_with_many_values(key):
    index = racks(70)
    for number in range(140):
        index.apply("ADDED", running(f"p{number}", f"n{number}"))
    index.apply("ADDED", running("extra", "n9"))
    cycle = Cycle(take(index, pod("app=web", constraints=(constraint(key, select="app=web"),))))
    verdict = cycle.verdict_of("PodTopologySpread")
    rejected = [name for name in verdict.nodes.slots if verdict.status(name).code == "Unschedulable"]
    assert rejected == (["n9"] if key == HOSTNAME else ["n8", "n9"])
    (domains,) = cycle.domains
    assert (domains.global_minimum, len(domains.counts)) == ((1, 140) if key == HOSTNAME else (2, 70))


def test_a_node_without_the_key_is_in_no_domain():
    index = racks(70)
    index.apply("ADDED", Node(metadata=ObjectMeta(name="bare")))
    cycle = Cycle(take(index, pod("app=web", constraints=(constraint("rack", select="app=web"),))))
    verdict = cycle.verdict_of("PodTopologySpread")
    assert [name for name in verdict.nodes.slots if verdict.status(name).code != "Success"] == ["bare"]
    assert len(cycle.domains[0].counts) == 70
    view = index.nodes.view()
    assert chosen(view, nodes_meeting(view, Requirement("rack", "In", ("r4",)))) == ["n8", "n9"]


@pytest.mark.parametrize("key", [HOSTNAME, "rack"])
def test_node_policies_leave_domains_out(key):
    index = racks(70)
    near = pod(
        "app=web", constraints=(constraint(key, select="app=web"),), node_selector={"topology.kubernetes.io/zone": "z0"}
    )
    (domains,) = Cycle(take(index, near)).domains
    assert len(domains.counts) == 47


@pytest.mark.parametrize(
    ("requirement", "nodes"),
    [
        (Requirement("size", "Gt", ("137",)), ["n138", "n139"]),
        (Requirement("size", "Lt", ("2",)), ["n0", "n1"]),
        (Requirement("rack", "In", ("r1", "r69", "none")), ["n2", "n3", "n138", "n139"]),
        (Requirement("absent", "Exists"), []),
    ],
    ids=["above", "below", "one of some", "a label that no node has"],
)
def test_requirements_on_keys_with_many_values(requirement, nodes):
    view = racks(70).nodes.view()
    assert chosen(view, nodes_meeting(view, requirement)) == nodes
    assert nodes_meeting(view, Requirement("rack", "DoesNotExist")) == 0
    assert nodes_meeting(view, Requirement("rack", "NotIn", ("r0",))).bit_count() == 138


@pytest.mark.parametrize(
    ("condition", "nodes"),
    [
        (FieldRequirement("metadata.name", "n1", equal=True), ["n1"]),
        (FieldRequirement("metadata.name", "n1", equal=False), ["n0"]),
        (FieldRequirement("metadata.uid", "x", equal=True), []),
        (FieldRequirement("metadata.uid", "x", equal=False), ["n0", "n1"]),
    ],
    ids=["the name", "another name", "a field that nodes lack", "not that of a field that nodes lack"],
)
def test_conditions_on_fields(condition, nodes):
    view = racks(1).nodes.view()
    assert chosen(view, nodes_of_terms(view, [NodeTerm(fields=(condition,))])) == nodes
    assert chosen(view, nodes_of_terms(view, [NodeTerm(fields=(condition,))], by_labels=True)) == ["n0", "n1"]
    assert nodes_of_terms(view, [NodeTerm(invalid=True)]) == 0


def test_a_view_forgets_what_was_asked_of_it_long_ago():
    column = racks(70).nodes.view().column("rack")
    asked = [column.domains(1 << slot) for slot in range(40)]
    assert [column.domains(1 << slot) for slot in range(40)] == asked
    assert len(column._domains) <= 17


def test_room_is_measured_again_before_it_is_believed():
    index = ClusterIndex()
    for name in "ab":
        made = node(name)
        index.apply("ADDED", type(made)(metadata=made.metadata, status=NodeStatus(allocatable={"pods": "2"})))
    table = index.nodes
    assert table._short_of("pods", 2) is None
    index.apply("ADDED", running("p", "a"))
    assert table._short_of("pods", 2) == (1, 2)
    index.apply("DELETED", running("p", "a"))
    assert table._short_of("pods", 2) is None
    assert table._short_of("example.com/gpu", 1) == (0, 0)
    index.apply("DELETED", index.nodes.get("b"))
    assert table._short_of("example.com/gpu", 1) == (0, NO_NODE)
    index.apply("DELETED", node("never-there"))
    assert len(index.nodes.view()) == 1


def test_a_view_knows_the_label_keys_of_its_nodes():
    index = ClusterIndex()
    index.apply("ADDED", node("n1", "a", rack="r1"))
    index.apply("ADDED", node("n2", "b", rack="r2"))
    before = index.nodes.view()
    index.apply("DELETED", node("n1", "a", rack="r1"))
    assert index.nodes.view().keys == {HOSTNAME, "topology.kubernetes.io/zone", "rack"} == before.keys
    index.apply("MODIFIED", node("n2"))
    assert index.nodes.view().keys == {HOSTNAME}
    index.apply("DELETED", node("n2"))
    index.apply("DELETED", node("n2"))
    assert index.nodes.view().keys == frozenset()


def everything(view):
    """All that can be asked of a view."""
    columns = [view.column(key) for key in (HOSTNAME, ZONE)]
    asked = [(each.domain_of, each.values, each.present, each.sets) for each in columns]
    computed = view.slots, view.taint_classes, view.soft_taint_classes, view.unschedulable
    return asked, computed, view.names, view.labels, view.live, view.keys


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["n0", "n1", "n2", "n3"]),
            st.sampled_from([None, "a", "b"]),
            st.sampled_from([None, "dedicated", "batch"]),
            st.sampled_from(["NoSchedule", "PreferNoSchedule"]),
            st.sampled_from(["put", "put", "cordon", "remove"]),
            st.booleans(),
        ),
        max_size=12,
    )
)
@settings(max_examples=150, deadline=None)
def test_a_view_inherits_only_what_still_holds(changes):
    index = ClusterIndex()
    for name, zone, taint, effect, what, looks in changes:
        taints = (Taint(key=taint, effect=effect),) if taint else None
        made = replace(node(name, zone), spec=NodeSpec(taints=taints, unschedulable=what == "cordon"))
        index.apply("DELETED" if what == "remove" else "MODIFIED", made)
        if looks:
            table = index.nodes
            assert everything(index.nodes.view()) == everything(NodeView(table._rows, table._live, table._keys))


def test_a_taint_leaves_the_columns_as_they_are():
    index = racks(2)
    before = index.nodes.view()
    columns = [before.column(key) for key in (HOSTNAME, "rack")]
    known = before.slots, before.taint_classes
    index.apply("MODIFIED", replace(index.nodes.get("n1"), spec=NodeSpec(taints=(Taint(key="t", effect="NoExecute"),))))
    after = index.nodes.view()
    assert all(after.column(column.key) is column for column in columns)
    assert after.slots is known[0]
    assert (len(known[1]), len(after.taint_classes)) == (0, 1)
    index.apply("MODIFIED", node("n1", "z1", rack="other"))
    assert [index.nodes.view().column(column.key) is column for column in columns] == [True, False]


def test_what_is_left_of_a_view_is_kept_for_whoever_asks_again():
    index = racks(3)
    index.apply("DELETED", node("n5"))
    view, failing, taints = index.nodes.view(), 0b100011, (Taint(key="t", effect="NoExecute"),)
    everything(view)
    gone, tainted = view.losing(failing), view.losing(failing, taints)
    for each in (gone, tainted):
        assert everything(each) == everything(NodeView(each.rows(0, each.size), each.live, each.keys))
    assert (chosen(view, gone.live), gone.taint_classes) == (["n2", "n3", "n4"], ())
    assert (tainted.live, tainted.taint_classes) == (view.live, ((taints, 0b11),))
    assert tainted.column(HOSTNAME) is view.column(HOSTNAME)
    assert (view.losing(failing), view.losing(failing, taints)) == (gone, tainted)
    for nodes in range(100):
        view.losing(nodes)
    assert len(view._after) <= 32


def test_columns_that_nobody_asks_for_any_more_do_not_stay_for_ever():
    index = ClusterIndex()
    for number in range(200):
        index.apply("MODIFIED", node("n1", "z1", rack=f"r{number}", **{f"key-{each}": "a" for each in range(200)}))
        index.nodes.view().column(f"key-{number}")
    assert len(index.nodes.view()._columns) <= 65


def test_of_a_label_that_no_node_has_nothing_is_kept():
    index = racks(3)
    view = index.nodes.view()
    column = view.column("shelf")
    assert (column.key, column.values, column.present, list(column.domain_of)) == ("shelf", (), 0, [-1] * view.size)
    assert (column.domain_count(view.live), column.domains(view.live), column.with_value("a")) == (0, frozenset(), 0)
    for number in range(200):
        view.column(f"key-{number}")
    assert not view._columns


def test_a_view_made_of_the_rows_of_another_is_the_same():
    index = racks(3)
    index.apply(
        "ADDED",
        Node(
            metadata=ObjectMeta(name="tainted"),
            spec=NodeSpec(unschedulable=True, taints=(Taint(key="a", effect="NoSchedule"),)),
        ),
    )
    index.apply("DELETED", node("n1"))
    view = index.nodes.view()
    made = NodeView([*view.rows(0, 2), *view.rows(2, 100)], view.live, view.keys)
    assert (made.names, made.labels, made.live, made.keys) == (view.names, view.labels, view.live, view.keys)
    assert (made.taint_classes, made.unschedulable, made.slots) == (view.taint_classes, view.unschedulable, view.slots)
    assert made.column("rack").values == view.column("rack").values
