import pytest
from build import index, pod_names
from fuzzing.extremes import run
from msgspec import json
from msgspec.structs import replace

from webhook.core.api.spread_group import MOST_GROUPS, GroupMeta, SpreadGroup
from webhook.core.api.types import (
    Container,
    Node,
    ObjectMeta,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    Service,
    ServiceSpec,
)
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.objects import Autoscaler, AutoscalerSpec, Namespace, Owner, ScaleTarget
from webhook.core.index.tables.pod_table import PodTable

ZONE = "topology.kubernetes.io/zone"


def meta(name, namespace="", **labels):
    return ObjectMeta(name=name, namespace=namespace, labels=labels or None)


def node(name, **labels):
    return Node(metadata=ObjectMeta(name=name, labels={f"topology.kubernetes.io/{k}": v for k, v in labels.items()}))


def pod(name, phase="Running"):
    return Pod(metadata=meta(name, "shop"), status=PodStatus(phase=phase))


def deployment(name, replicas, api_version="apps/v1"):
    return Owner(api_version=api_version, kind="Deployment", meta=meta(name, "shop"), replicas=replicas)


def autoscaler(name, target, most):
    scale_target = ScaleTarget(api_version="apps/v1", kind="Deployment", name=target)
    spec = AutoscalerSpec(scale_target_ref=scale_target, max_replicas=most)
    return Autoscaler(metadata=meta(name, "shop"), spec=spec)


@pytest.mark.parametrize(
    ("events", "known"),
    [
        pytest.param([("ADDED", "a", "Running")], ["a"], id="added"),
        pytest.param([("MODIFIED", "a", "Running")], ["a"], id="modified before it was added"),
        pytest.param([("ADDED", "a", "Running"), ("ADDED", "a", "Running")], ["a"], id="added twice"),
        pytest.param([("ADDED", "a", "Running"), ("DELETED", "a", "Running")], [], id="deleted"),
        pytest.param([("DELETED", "a", "Running")], [], id="deleted and never known"),
        pytest.param([("ADDED", "a", "Running"), ("MODIFIED", "a", "Succeeded")], [], id="finished"),
        pytest.param([("ADDED", "a", "Failed")], [], id="failed before it was known"),
        pytest.param([("ADDED", "a", "Pending"), ("ADDED", "b", "Running")], ["a", "b"], id="Pending pods stay"),
    ],
)
def test_pods_after_events(events, known):
    made = ClusterIndex()
    for event, name, phase in events:
        made.apply(event, pod(name, phase))
    assert list(pod_names(made, "shop")) == known
    assert pod_names(made, "elsewhere") == ()


def test_the_newest_form_of_an_object_is_kept():
    made = index(deployment("web", 1))
    made.apply("MODIFIED", deployment("web", 5))
    assert made.owners.get("apps/v1", "Deployment", "shop", "web").replicas == 5


def test_an_owner_is_the_same_in_every_version_of_its_group():
    made = index(deployment("web", 3, "apps/v1"))
    assert made.owners.get("apps/v2", "Deployment", "shop", "web").replicas == 3
    assert made.owners.get("extensions/v1", "Deployment", "shop", "web") is None
    assert made.owners.get("apps/v1", "Deployment", "other", "web") is None


def test_namespaces_carry_their_name_as_a_label():
    made = index(Namespace(metadata=meta("shop", team="red")))
    assert made.namespaces.labels("shop") == {"kubernetes.io/metadata.name": "shop", "team": "red"}
    assert made.namespaces.labels("other") is None


def test_services_of_a_namespace():
    web = Service(metadata=meta("web", "shop"), spec=ServiceSpec(selector={"app": "web"}))
    made = index(web)
    assert made.namespaces.services("shop") == (web,)
    assert made.namespaces.services("other") == ()
    made.apply("DELETED", web)
    assert made.namespaces.services("shop") == ()


def test_the_autoscaler_of_an_owner():
    made = index(autoscaler("b", "web", 9), autoscaler("a", "web", 4), autoscaler("c", "api", 2))
    assert made.owners.autoscaler("apps/v1", "Deployment", "shop", "web").spec.max_replicas == 4
    assert made.owners.autoscaler("apps/v1", "Deployment", "shop", "other") is None
    assert made.owners.autoscaler("apps/v1", "Deployment", "other", "web") is None


@pytest.mark.parametrize(
    ("written", "least"),
    [
        pytest.param("{}", 1, id="absent: Kubernetes' default"),
        pytest.param('{"minReplicas": null}', 1, id="null: the default too"),
        pytest.param('{"minReplicas": 0}', 0, id="to zero"),
        pytest.param('{"minReplicas": 3}', 3, id="stated"),
    ],
)
def test_the_fewest_pods_of_an_autoscaler(written, least):
    assert json.decode(written, type=AutoscalerSpec).least == least


def test_domains_are_the_values_that_nodes_have():
    made = index(node("n1", zone="a"), node("n2", zone="b"), node("n3", zone="a"), node("n4", region="r"))
    assert set(made.nodes.view().column(ZONE).values) == {"a", "b"}
    assert set(made.nodes.view().column("rack").values) == frozenset()


def test_domains_follow_their_nodes():
    made = index(node("n1", zone="a"), node("n2", zone="a"))
    made.apply("MODIFIED", node("n1", zone="b"))
    assert set(made.nodes.view().column(ZONE).values) == {"a", "b"}
    made.apply("DELETED", node("n2", zone="a"))
    made.apply("DELETED", node("n2", zone="a"))
    assert set(made.nodes.view().column(ZONE).values) == {"b"}
    made.apply("DELETED", node("n1", zone="b"))
    assert set(made.nodes.view().column(ZONE).values) == frozenset()
    assert (made.nodes.all(), made.nodes.get("n1")) == ((), None)


def test_namespaces_known_by_what_is_in_them():
    made = index(Namespace(metadata=meta("idle")), pod("a"), node("n1"))
    assert made.known_namespaces() == ("idle", "shop")


@pytest.mark.parametrize(
    ("known", "lacking", "asked", "answer"),
    [
        pytest.param([node("n1")], {}, ["nodes", "pods"], "", id="all is known, and there are no pods"),
        pytest.param([], {}, ["pods", "nodes"], "no nodes known", id="a cluster has nodes"),
        pytest.param([], {}, ["pods"], "", id="nodes are not asked for"),
        pytest.param([], {"nodes": "403 Forbidden"}, ["nodes"], "nodes: 403 Forbidden", id="the reason is known"),
        pytest.param([node("n1")], {"pods": "none in the file"}, ["nodes", "pods"], "pods: none in the file", id="one"),
        pytest.param([node("n1")], {"pods": "none here"}, ["nodes"], "", id="another resource"),
    ],
)
def test_what_is_missing_is_told_from_what_is_not_there(known, lacking, asked, answer):
    made = index(*known)
    for resource, why in lacking.items():
        made.mark_missing(resource, why)
    assert made.lacks(*asked) == answer
    for resource in lacking:
        made.mark_known(resource)
    assert "known" in made.lacks(*asked) or not made.lacks(*asked)


def waiting(name, node):
    return Pod(metadata=meta(name, "shop"), status=PodStatus(phase="Pending", nominated_node_name=node))


def test_what_is_nominated_for_a_node_follows_its_pods():
    made = index(waiting("a", "n1"), waiting("b", "n1"), waiting("c", "n2"))
    made.apply("DELETED", waiting("a", "n1"))
    assert {node: [each.meta.name for each in pods] for node, pods in made.pods.nominated().items()} == {
        "n1": ["b"],
        "n2": ["c"],
    }
    made.apply("DELETED", waiting("b", "n1"))
    assert [*made.pods.nominated()] == ["n2"]


def test_temporary_pods_leave_no_trace_even_after_an_error():
    known = ClusterIndex()
    for name in ("a", "b", "c"):
        known.apply("ADDED", waiting(name, "n1"))
    before = known.pods.waiting("shop"), known.pods.nominated(), pod_names(known, "shop")

    def placed(name):
        made = waiting(name, "n1")
        return replace(made, spec=replace(made.pod_spec, node_name="n1"))

    def interrupted():
        with known.temporary_pods() as add:
            add(placed("b"))
            add(placed("new"))
            assert {*pod_names(known, "shop")} == {"a", "b", "c", "new"}
            assert [pod.meta.name for pod in known.pods.waiting("shop")] == ["a", "c"]
            raise ValueError("interrupted")

    with pytest.raises(ValueError, match="interrupted"):
        interrupted()
    assert (known.pods.waiting("shop"), known.pods.nominated(), pod_names(known, "shop")) == before


def test_pods_of_a_lower_priority_by_node():
    there = ClusterIndex()
    for name, on, priority in (("x", "n0", None), ("y", "n1", 10), ("z", "n1", -1)):
        there.apply("ADDED", Pod(metadata=meta(name, "shop"), spec=PodSpec(node_name=on, priority=priority)))
    assert {slot: [each for each, _ in pods] for slot, pods in there.pods.lower(10).items()} == {0: [0], 1: [-1]}
    assert there.pods.lower(-1) == {}


def group(name, created="", namespace="shop"):
    return SpreadGroup(metadata=GroupMeta(name=name, namespace=namespace, creation_timestamp=created or None))


def test_groups_are_sorted_once_until_one_of_their_namespace_changes():
    found = index(group("a"), group("b"), group("a", namespace="other"))
    before, elsewhere = found.namespaces.groups("shop"), found.namespaces.groups("other")
    assert found.namespaces.groups("shop") is before
    assert found.namespaces.all_groups()["shop"] is before
    found.apply("MODIFIED", group("b", "2026-01-01"))
    assert found.namespaces.groups("shop") is not before
    assert found.namespaces.groups("other") is elsewhere
    found.apply("DELETED", group("a", namespace="other"))
    assert found.namespaces.groups("other") == ()


def test_groups_of_a_namespace_the_oldest_first_and_no_more_than_count():
    found = index(group("b", "2026-01-02T00:00:00Z"), group("a", "2026-01-02T00:00:00Z"), group("z", "2026-01-01"))
    assert [each.meta.name for each in found.namespaces.groups("shop")] == ["z", "a", "b"]
    found.apply("DELETED", group("a"))
    assert [each.meta.name for each in found.namespaces.groups("shop")] == ["z", "b"]
    assert found.namespaces.groups("other") == ()
    for number in range(40):
        found.apply("ADDED", group(f"late-{number:02}", "2026-02-01T00:00:00Z"))
    assert [each.meta.name for each in found.namespaces.groups("shop")[:3]] == ["z", "b", "late-00"]
    assert len(found.namespaces.groups("shop")) == MOST_GROUPS
    assert {namespace: len(of) for namespace, of in found.namespaces.all_groups().items()} == {"shop": 42}


def asking(name, *amounts):
    containers = tuple(
        Container(name=f"c{number}", resources=ResourceRequirements(requests={"cpu": each}))
        for number, each in enumerate(amounts)
    )
    return Pod(metadata=meta(name, "shop"), spec=PodSpec(node_name="n", containers=containers))


@pytest.mark.parametrize(
    "amounts",
    [
        pytest.param(["1e999", "1m"], id="a sum of more than 1,000 digits"),
        pytest.param(["9" * 999], id="999 digits"),
        pytest.param(["1e999"] * 1000 + ["1n"], id="1,001 containers"),
        pytest.param(["-1e999", "-1m"], id="below zero"),
        pytest.param(["no amount", "1m"], id="no amount at all"),
    ],
)
def test_a_pod_is_applied_whatever_it_requests(amounts):
    made = index(node("n"))
    assert made.apply("ADDED", asking("huge", *amounts)) == ""
    assert pod_names(made, "shop") == ("huge",)
    assert made.apply("DELETED", asking("huge", *amounts)) == ""
    assert made.nodes.amounts("cpu") == ((0,), (0,))


def test_an_object_that_raises_is_left_out_and_what_was_known_of_it_too(monkeypatch):
    """There is no such object that we know of: the fault is made."""
    made = index(node("n"), asking("a", "1"), asking("b", "1"))
    put = PodTable.put

    def faulty(self, pod, key, version):
        if key == "a":
            raise OverflowError("too\nlarge")
        return put(self, pod, key, version)

    monkeypatch.setattr(PodTable, "put", faulty)
    assert made.apply("MODIFIED", asking("a", "2")) == "OverflowError: too large"
    assert made.apply("MODIFIED", asking("b", "2")) == ""
    assert pod_names(made, "shop") == ("b",)
    assert made.nodes.amounts("cpu") == ((-2000,), (0,))


@pytest.mark.parametrize("on", ["n", None], ids=["on a node", "waiting"])
def test_a_pod_that_is_left_out_takes_the_earlier_one_of_its_name_along(monkeypatch, on):
    """A list brings the new pod without the deletion of the old one."""
    old, new = (
        Pod(metadata=ObjectMeta(name="a", namespace="shop", uid=uid), spec=PodSpec(node_name=on)) for uid in "12"
    )
    made = index(node("n"), old)
    assert pod_names(made, "shop") == ("a",)
    monkeypatch.setattr(PodTable, "put", lambda *_: 1 / 0)
    assert made.apply("ADDED", new).startswith("ZeroDivision")
    assert pod_names(made, "shop") == ()


@pytest.mark.parametrize("seed", range(2))
def test_any_field_of_any_object_may_be_at_its_extreme(seed):
    decoded, left = run(seed, 1500)
    assert decoded == 1500
    assert left < 64 * 1024
