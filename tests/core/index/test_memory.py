"""Whatever objects say, the index takes memory in proportion to them, and gives it back when they are gone."""

import msgspec
import pytest
from build import apart, node, running, selector

from bench.index_memory import KINDS, cluster, fields, measured, objects, weight
from webhook.core.api.selectors import compile_selector
from webhook.core.api.types import (
    Container,
    LabelSelector,
    LabelSelectorRequirement,
    NodeStatus,
    PodAffinityTerm,
    ResourceRequirements,
)
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.nodes import NO_NODE
from webhook.core.index.tables import shrinking as tables

SIZE = 2048  # bytes of the repeated field
LARGE = {"Pod", "PersistentVolume"}  # of many fields
# An object of a few bytes may hold this many: its own tables, and what those of the index grew by.
ROOM = 16 * 1024


@pytest.mark.parametrize(
    "kind", [pytest.param(each, id=each[1], marks=[pytest.mark.slow] if each[1] in LARGE else []) for each in KINDS]
)
def test_every_field_takes_in_proportion_and_gives_back(kind):
    index = cluster(200)
    for path in fields(*kind):
        for bound in (False, True) if kind[1] == "Pod" else (False,):
            made, size = objects(*kind, path, SIZE, bound=bound)
            held, left = measured(index, made)
            assert held < 24 * size + ROOM, path
            assert left < ROOM, path


def asking(name, names, on="n0"):
    requests = dict.fromkeys(names, "1")
    made = running(name, on)
    containers = (Container(name="c", resources=ResourceRequirements(requests=requests)),)
    return msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, containers=containers))


def offering(name, **amounts):
    made = node(name)
    return type(made)(metadata=made.metadata, status=NodeStatus(allocatable={"pods": "9", **amounts}))


def test_resources_that_no_node_offers_have_no_column():
    index = cluster(50)
    empty = weight(index)
    pods = [asking(f"p{each}", [f"made.up/{each}-{number}" for number in range(500)], "node-1") for each in range(4)]
    for each in pods:
        index.apply("ADDED", each)
    table = index.nodes
    assert set(table.free) == {"pods", "cpu", "memory", "ephemeral-storage"}
    assert table._short_of("made.up/1-2", 1) == (0, -1, *[0] * 48)
    assert table.never_enough("made.up/1-2", 1) == (0,) * 50
    assert table.amounts("made.up/1-2")[0][1] == -1
    for each in pods:
        index.apply("DELETED", each)
    assert weight(index) < empty + ROOM


def test_a_resource_that_nodes_come_to_offer_is_less_what_pods_hold_already():
    index = ClusterIndex()
    for each in (offering("a"), offering("b"), asking("p", ["e.io/gpu"], "a"), offering("a", **{"e.io/gpu": "4"})):
        index.apply("ADDED", each)
    table = index.nodes
    assert table.amounts("e.io/gpu") == ((3, 0), (4, 0))
    index.apply("ADDED", asking("q", ["e.io/gpu"], "a"))
    assert table._short_of("e.io/gpu", 1) == (2, 0)
    assert table.never_enough("e.io/gpu", 1) == (4, 0)
    index.apply("ADDED", offering("a"))
    assert "e.io/gpu" not in table.free
    assert table._short_of("e.io/gpu", 1) == (-2, 0)
    index.apply("DELETED", offering("a"))
    assert table._short_of("e.io/gpu", 1) == (NO_NODE - 2, 0)


def test_only_the_columns_that_were_asked_for_last_are_kept():
    index = ClusterIndex()
    names = [f"e.io/{number}" for number in range(40)]
    index.apply("ADDED", offering("a", **dict.fromkeys(names, "2")))
    index.apply("ADDED", asking("p", names, "a"))
    for name in names:
        assert index.nodes._short_of(name, 2) == (1,)
    assert len(index.nodes.free) == 36
    assert [index.nodes.amounts(name) for name in names] == [((1,), (2,))] * 40


def test_slots_of_nodes_that_never_were_are_given_back():
    index = cluster(3)
    empty = weight(index)
    for number in range(400):
        index.apply("ADDED", running(f"p{number}", f"ghost-{number}"))
    index.apply("ADDED", node("late"))
    for number in range(400):
        index.apply("DELETED", running(f"p{number}", f"ghost-{number}"))
    assert index.nodes.view().slots["late"] == 403
    index.apply("DELETED", node("late"))
    assert len(index.nodes.names()) == 3
    assert weight(index) < empty + ROOM
    index.apply("ADDED", node("next"))
    assert index.nodes.view().slots["next"] == 3


def anti(name, *terms):
    made = running(name, "n0", "app=web")
    affinity = apart(*terms)
    return msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, affinity=affinity))


def term(namespaces, values):
    among = LabelSelectorRequirement(key="app", operator="In", values=tuple(values))
    select = LabelSelector(match_expressions=(among,))
    return PodAffinityTerm(label_selector=select, topology_key="zone", namespaces=tuple(namespaces))


@pytest.mark.parametrize(("namespaces", "values"), [(300, 300), (1, 300), (300, 1), (4, 4), (16, 2)])
def test_a_term_is_found_without_an_entry_for_each_namespace_and_value(namespaces, values):
    index = cluster(1)
    empty = weight(index)
    made = anti("p", term([f"ns{each}" for each in range(namespaces)], [f"v{each}" for each in range(values)]))
    index.apply("ADDED", made)
    assert weight(index) - empty < 300 * (namespaces + values) + ROOM
    found = [
        len(index.pods.terms_matching(namespace, {"app": value}))
        for namespace, value in (("ns0", "v0"), ("ns0", "other"), ("other", "v0"))
    ]
    assert found == [1, 0, 0]
    index.apply("DELETED", made)
    assert index.pods.terms_matching("ns0", {"app": "v0"}) == []
    assert weight(index) < empty + ROOM


def test_pods_with_very_many_labels_are_counted_all_the_same():
    index = ClusterIndex()
    many = " ".join(f"label-{each}=v" for each in range(60))
    index.apply("ADDED", running("a", "n0", f"app=web {many}"))
    index.apply("ADDED", running("b", "n0", "app=web"))
    index.apply("ADDED", running("c", "n0", "app=api"))

    def counted(text):
        return index.pods.count("shop", compile_selector(selector(text))).get(0, 0)

    asked = ("app=web", "label-7=v", "label-7=w", "label-7", "!label-7", "app!=web", "label-7!=v", "app")
    assert [counted(text) for text in asked] == [2, 1, 0, 1, 2, 1, 2, 3]
    index.apply("DELETED", running("a", "n0"))
    assert [counted(text) for text in asked] == [1, 0, 0, 0, 2, 1, 2, 2]


def test_a_namespace_forgets_what_it_has_learnt_of_pods_that_are_gone():
    index = ClusterIndex(learn_at=8)
    for number in range(64):
        index.apply("ADDED", running(f"p{number}", "n0", f"app=a{number % 2} serial={number} odd={number % 3}"))
    space = index.pods._namespaces["shop"]
    assert "serial" in space._many_valued
    for number in range(3, 64):
        index.apply("DELETED", running(f"p{number}", "n0"))
    assert "serial" not in space._many_valued
    assert (len(space.groups), space._aside, space._learn_at) == (3, {}, 8)
    assert index.pods.count("shop", compile_selector(selector("serial=1"))) == {0: 1}


def test_a_key_that_nobody_has_any_more_is_no_longer_known():
    index = ClusterIndex(learn_at=8)
    for number in range(20):
        index.apply("ADDED", running(f"p{number}", "n0", f"serial={number}"))
    for number in range(20):
        index.apply("MODIFIED", running(f"p{number}", "n0", "app=web"))
    assert "serial" not in index.pods._namespaces["shop"]._many_valued


def test_counts_of_endless_selectors_are_not_kept():
    index = ClusterIndex(learn_at=10_000)
    for number in range(100):
        index.apply("ADDED", running(f"p{number}", "n0", f"app=a{number}"))
    space = index.pods._namespaces["shop"]
    values = tuple(f"a{each}" for each in range(90))
    among = LabelSelector(match_expressions=(LabelSelectorRequirement(key="app", operator="In", values=values),))
    assert index.pods.count("shop", compile_selector(among)) == {0: 90}
    assert not space._kept


def test_a_table_that_is_mostly_empty_is_made_anew():
    table = {number: number for number in range(10_000)}
    members = set(range(10_000))
    for number in range(9_990):
        tables.drop(table, number)
        tables.discard(members, number)
    assert table == {number: number for number in range(9_990, 10_000)}
    assert members == set(table)
    assert weight([table, members]) < ROOM
    assert tables.drop_under({}, "a", "b") is None


def test_long_texts_are_not_shared():
    longest = "x" * 63
    assert tables.shared(longest) is tables.shared("".join(longest))
    long = "x" * 64
    assert tables.shared(long) is long
