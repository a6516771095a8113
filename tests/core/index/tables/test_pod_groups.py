"""Pods grouped by labels: keys with many values stand aside, big selectors keep their counts."""

from collections import Counter
from itertools import combinations

import pytest
from build import cluster, constraint, pod, pod_names, running, selector
from msgspec import structs

from webhook.core.api.requirements import Requirement
from webhook.core.api.selectors import NOTHING, Selector, compile_selector
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.tables.pod_groups import NamespacePods


def counted(index, text, **more):
    names = index.nodes.names()
    return {
        names[slot]: pods for slot, pods in index.pods.count("shop", compile_selector(selector(text)), **more).items()
    }


def groups_of(index):
    return len(index.pods._namespaces["shop"].groups)


def test_labels_of_statefulset_pods_do_not_make_groups():
    index = ClusterIndex()
    for number in range(9):
        index.apply(
            "ADDED", running(f"db-{number}", f"n{number % 2}", f"app=db statefulset.kubernetes.io/pod-name=db-{number}")
        )
    assert groups_of(index) == 1
    assert counted(index, "app=db") == {"n0": 5, "n1": 4}
    assert counted(index, "statefulset.kubernetes.io/pod-name=db-3") == {"n1": 1}
    assert counted(index, "app=db statefulset.kubernetes.io/pod-name!=db-3") == {"n0": 5, "n1": 3}
    assert counted(index, "statefulset.kubernetes.io/pod-name") == {"n0": 5, "n1": 4}
    assert counted(index, "statefulset.kubernetes.io/pod-name=db-3 app=web") == {}


def many(index, number, *, node="n0"):
    for each in range(number):
        index.apply("ADDED", running(f"p{each}", node, f"app=a{each % 2} serial={each}"))


def test_a_key_with_a_value_for_nearly_every_pod_is_learnt():
    index = ClusterIndex(learn_at=8)
    many(index, 20)
    assert groups_of(index) == 2
    assert counted(index, "serial=3") == {"n0": 1}
    assert counted(index, "app=a1 serial!=3") == {"n0": 9}
    assert counted(index, "app=a0 serial!=3") == {"n0": 10}
    assert counted(index, "serial!=3 serial!=4") == {"n0": 18}
    index.apply("DELETED", running("p3", "n0", "app=a1 serial=3"))
    assert counted(index, "serial=3") == {}
    assert counted(index, "serial!=4") == {"n0": 18}


def test_a_key_that_was_learnt_too_early_goes_back():
    index = ClusterIndex(learn_at=4)
    for number in range(4):
        index.apply("ADDED", running(f"p{number}", "n0", f"app=a{number} tier=t{number % 2}"))
    assert groups_of(index) == 2
    for number in range(4, 100):
        index.apply("ADDED", running(f"p{number}", "n0", f"app=a{number % 5} tier=t{number % 2}"))
    assert groups_of(index) == 10
    assert counted(index, "app=a1 tier!=t1") == {"n0": 10}


@pytest.mark.parametrize(
    "text",
    [
        "app!=a1",
        "tier",
        "serial!=7 odd",
        "tier app!=a1",
        "app!=a1 app!=a2",
        "{}",
        "app=a1 serial!=7",
        "!odd",
        "!tier",
        "!serial app=a9",
    ],
)
def test_counts_of_big_selectors_follow_events(text):
    index = ClusterIndex(learn_at=10_000)
    for number in range(200):
        index.apply("ADDED", running(f"p{number}", f"n{number % 3}", f"app=a{number % 5} tier=x serial={number}"))

    def fresh():
        """The same pods, told to an index that has kept nothing."""
        other = ClusterIndex()
        for name in pod_names(index, "shop"):
            record = index.pods.record("shop", name)
            labelled = " ".join(f"{key}={value}" for key, value in record.group.labels.items())
            other.apply("ADDED", running(name, index.nodes.names()[record.slot], labelled))
        return other

    assert counted(index, text) == counted(fresh(), text)
    index.apply("ADDED", running("new", "n1", "app=a9 tier=x"))
    index.apply("DELETED", running("p9", "n0", "app=a4 tier=x serial=9"))
    index.apply("MODIFIED", running("p10", "n2", "app=a0 serial=10"))
    assert counted(index, text) == counted(fresh(), text)
    assert counted(index, text, terminating=True) == counted(fresh(), text, terminating=True)


INDEX, PLACE = "apps.kubernetes.io/pod-index", "topology.kubernetes.io/zone"
ASKED = (
    ("app", "In", ("a0",)),
    ("app", "NotIn", ("a1", "a2")),
    (INDEX, "In", ("0",)),
    (INDEX, "In", ("1", "nobody's", "2", "1")),
    (INDEX, "NotIn", ("0", "3")),
    (PLACE, "In", ("za", "zb")),
    (PLACE, "In", ("zb", "zc")),
    (PLACE, "NotIn", ("za",)),
    (PLACE, "NotIn", ("zb", "zb")),
    (PLACE, "Exists", ()),
)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_values_that_stand_aside_are_counted_as_pod_by_pod(number):
    """Every selector of so many requirements, before and after events."""
    index, labelled, terminating = ClusterIndex(), dict[str, dict[str, str]](), set()
    for each in range(300):
        labels = {"app": f"a{each % 3}", INDEX: str(each % 7), PLACE: f"z{'abc'[each % 5 % 3]}"}
        for key in [key for place, key in enumerate((INDEX, PLACE)) if each % (11 + place) == 0]:
            del labels[key]
        labelled[f"p{each}"] = labels
        here = running(f"p{each}", f"n{each % 4}", " ".join(f"{key}={value}" for key, value in labels.items()))
        index.apply("ADDED", here)
        if each % 13 == 0:
            terminating.add(f"p{each}")
            leaving = structs.replace(here.metadata, deletion_timestamp="2026-11-24T00:00:00Z")
            index.apply("MODIFIED", structs.replace(here, metadata=leaving))
    names = index.nodes.names()

    def one_by_one(wanted, *, leaving):
        found = Counter(
            f"n{int(name[1:]) % 4}"
            for name, labels in labelled.items()
            if (leaving or name not in terminating)
            and all(
                key in labels if how == "Exists" else (labels.get(key) in values) == (how == "In")
                for key, how, values in wanted
            )
        )
        return dict(found)

    for _ in range(2):
        for wanted in combinations(ASKED, number):
            asked = Selector(requirements=tuple(Requirement(*each) for each in wanted))
            for leaving in (False, True, False):
                counts = index.pods.count("shop", asked, terminating=leaving)
                assert {names[slot]: pods for slot, pods in counts.items()} == one_by_one(wanted, leaving=leaving)
            assert index.pods.count_unspread("shop", asked) == sum(one_by_one(wanted, leaving=False).values())
        for each in range(0, 300, 3):
            index.apply("DELETED", running(f"p{each}", f"n{each % 4}"))
            labelled.pop(f"p{each}", None)


def test_two_labels_that_most_pods_have():
    index = ClusterIndex(learn_at=10_000)
    for number in range(200):
        index.apply("ADDED", running(f"p{number}", "n0", f"app=web tier=t{number % 2} serial={number}"))
        index.apply("ADDED", running(f"q{number}", "n1", f"app=db tier=t{number % 2} serial=q{number}"))
    assert counted(index, "app=web tier=t1") == {"n0": 100}


def test_only_so_many_selectors_are_kept():
    space = NamespacePods()
    index = ClusterIndex(learn_at=10_000)
    many(index, 100)
    for number in range(30):
        counted(index, f"app!=b{number}")
    assert len(index.pods._namespaces["shop"]._kept) == 8
    assert space.remove("nobody") is None


def test_a_slot_is_used_again_when_node_and_pods_are_gone():
    index = ClusterIndex()
    index.apply("ADDED", running("p", "gone"))
    assert index.nodes.names() == ("gone",)
    index.apply("DELETED", running("p", "gone"))
    index.apply("ADDED", running("q", "next"))
    assert index.nodes.names() == ("next",)
    assert counted(index, "app=web") == {"next": 1}
    index.apply("ADDED", pod("app=web"))
    assert index.pods.waiting("shop")[0].meta.name == "web-0"
    assert index.pods.waiting("elsewhere") == ()


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        pytest.param("app=web", 2, id="those without a constraint"),
        pytest.param("app!=web", 1, id="of other labels"),
        pytest.param("apps.kubernetes.io/pod-index=1", 1, id="by a value that differs from pod to pod"),
        pytest.param("apps.kubernetes.io/pod-index!=1 app=web", 1, id="by any other value"),
        pytest.param("app=none", 0, id="none"),
    ],
)
def test_pods_without_a_constraint(select, expected):
    made = cluster("z1: a | z2: b")
    pods = [
        ("app=web apps.kubernetes.io/pod-index=0", {}),
        ("app=web apps.kubernetes.io/pod-index=1", {}),
        ("app=web apps.kubernetes.io/pod-index=2", {"topology_spread_constraints": (constraint(select="app=web"),)}),
        ("app=db", {}),
    ]
    for number, (labelled, more) in enumerate(pods):
        made.apply("ADDED", running(f"p{number}", "a", labelled, **more))
    gone = running("p9", "a", "app=web")
    made.apply("ADDED", gone)
    made.apply("DELETED", gone)
    assert made.pods.count_unspread("shop", compile_selector(selector(select))) == expected
    assert made.pods.count_unspread("elsewhere", compile_selector(selector(select))) == 0
    assert made.pods.count_unspread("shop", NOTHING) == 0
