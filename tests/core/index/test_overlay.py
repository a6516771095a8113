"""An overlay answers as an index that was told of the added objects, and leaves the one below as it is."""

import pytest
from build import apart, cluster, index, node, owner, running, selector
from msgspec.structs import replace

from webhook.core.api.requirements import Requirement
from webhook.core.api.resources import PODS
from webhook.core.api.selectors import compile_selector
from webhook.core.api.spread_group import GroupMeta, SpreadGroup
from webhook.core.api.storage import CsiDriverOnNode, CsiNode, CsiNodeSpec, DriverAllocatable
from webhook.core.api.types import (
    EXISTS,
    Affinity,
    ClaimSource,
    Container,
    ContainerPort,
    NodeSpec,
    NodeStatus,
    ObjectMeta,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    ResourceRequirements,
    Volume,
)
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.index.lost_nodes import terminated
from webhook.core.index.objects import Autoscaler, AutoscalerSpec, ScaleTarget
from webhook.core.index.overlay import (
    AddedNodes,
    with_declared,
    with_nodes,
    with_owners,
    with_pods,
    with_room,
    without_pods,
)

NODES = tuple(
    replace(node(name), status=NodeStatus(allocatable={"cpu": "4", "pods": "9", "example.com/gpu": "2"}))
    for name in ("n0", "n1")
)


def spec(**more):
    return {"spec": PodSpec(node_name="n1", **more)}


def volume(claim):
    return Volume(name=claim, persistent_volume_claim=ClaimSource(claim_name=claim))


FRONT = PodAffinityTerm(topology_key=HOSTNAME, label_selector=selector("tier=front"))
OBJECTS = PodAffinity(required=(PodAffinityTerm(topology_key=HOSTNAME, label_selector=selector("app=web")),))
ADDED = [
    running("plain", "n1"),
    running("elsewhere", "n1", namespace="batch"),
    replace(
        leaving := running("leaving", "n1"), metadata=replace(leaving.meta, deletion_timestamp="2026-01-01T00:00:00Z")
    ),
    replace(
        running("large", "n1"),
        **spec(
            containers=(
                Container(
                    resources=ResourceRequirements(requests={"cpu": "3", "example.com/gpu": "1"}),
                    ports=(ContainerPort(container_port=80, host_port=8080),),
                ),
            )
        ),
    ),
    replace(running("mounting", "n1"), **spec(volumes=(volume("data"), volume("logs")))),
    replace(running("objecting", "n1", "app=api"), **spec(affinity=Affinity(pod_anti_affinity=OBJECTS))),
]
BELOW = (
    *NODES,
    running("here", "n0"),
    replace(running("here-too", "n1"), **spec(volumes=(volume("data"),))),
    running("in-batch", "n0", namespace="batch"),
)
WEB = compile_selector(selector("app=web"))
QUESTIONS = {
    "count": lambda asked: asked.pods.count("shop", WEB),
    "count with terminating pods": lambda asked: asked.pods.count("shop", WEB, terminating=True),
    "count in another namespace": lambda asked: asked.pods.count("batch", WEB),
    "count of nothing": lambda asked: asked.pods.count("shop", compile_selector(None)),
    "short of cpu": lambda asked: asked.nodes.short_of((("cpu", 2000),)),
    "short of a little cpu": lambda asked: asked.nodes.short_of((("cpu", 1),)),
    "short of pods": lambda asked: asked.nodes.short_of(((PODS, 5), ("cpu", 2000))),
    "short of gpus": lambda asked: asked.nodes.short_of((("example.com/gpu", 2),)),
    "never enough": lambda asked: asked.nodes.never_enough("cpu", 5000),
    "amounts of cpu": lambda asked: asked.nodes.amounts("cpu"),
    "amounts of pods": lambda asked: asked.nodes.amounts(PODS),
    "namespaces of pods": lambda asked: set(asked.pods.namespaces()),
    "terms that match": lambda asked: sorted(asked.pods.terms_matching("shop", {"app": "web"})),
    "terms that do not": lambda asked: asked.pods.terms_matching("shop", {"app": "other"}),
    "ports": lambda asked: {slot: set(used) for slot, used in asked.pods.host_ports().items() if used},
    "users of a claim": lambda asked: asked.pods.claim_users("shop", "data"),
    "users of a claim elsewhere": lambda asked: asked.pods.claim_users("batch", "data"),
    "mounts": lambda asked: asked.pods.mounts(),
    "mounting pods": lambda asked: asked.pods.mounting(),
    "mounting pods of a node": lambda asked: asked.pods.mounting([0]),
    "nodes": lambda asked: asked.nodes.view().names,
}


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
@pytest.mark.parametrize(
    "added", [[], *([each] for each in ADDED), ADDED], ids=["none", *(each.meta.name for each in ADDED), "all"]
)
def test_added_pods_are_as_if_the_index_had_heard_of_them(added, question):
    below = index(*BELOW)
    before = question(below)
    assert question(with_pods(below, "n1", added)) == question(index(*BELOW, *added))
    assert question(below) == before


GOING = [
    replace(each, metadata=replace(each.meta, deletion_timestamp="2026-01-01T00:00:00Z", labels={"app": "web"}))
    for each in ADDED
    if each.meta.namespace == "shop"
]
NAMED = {
    "pods by selector": lambda asked: list(asked.pods.matching("shop", WEB)),
    "pods that object": lambda asked: list(asked.pods.objecting("shop", {"app": "web"})),
    "a pod": lambda asked: asked.pods.on_node("shop", "large"),
    "another pod": lambda asked: asked.pods.on_node("shop", "here"),
    "a pod elsewhere": lambda asked: asked.pods.on_node("batch", "large"),
}


@pytest.mark.parametrize("question", [*QUESTIONS.values(), *NAMED.values()], ids=[*QUESTIONS, *NAMED])
@pytest.mark.parametrize(
    "going", [[], *([each] for each in GOING), GOING], ids=["none", *(each.meta.name for each in GOING), "all"]
)
def test_terminated_pods_are_as_if_the_index_had_never_heard_of_them(going, question):
    below = index(*BELOW, *going)
    before = question(below)
    assert question(terminated(below, "shop", WEB)) == question(index(*BELOW))
    assert question(below) == before


def test_overlays_lie_on_each_other():
    below = index(*BELOW)
    once = with_pods(below, "n1", ADDED[:1])
    assert with_pods(once, "n0", ADDED[:1]).pods.count("shop", WEB) == {0: 2, 1: 2}
    assert once.pods.count("shop", WEB) == {0: 1, 1: 2}


def test_added_owners_replace_those_of_the_same_name():
    below = cluster("z1: a=1")
    for each in (owner("Deployment/web", replicas=1), owner("Deployment/other"), owner("StatefulSet/web")):
        below.apply("ADDED", each)
    above = with_owners(below, [owner("Deployment/web", replicas=5), owner("ReplicaSet/web-1")])
    assert above.owners.get("apps/v1beta1", "Deployment", "shop", "web").replicas == 5
    assert above.owners.get("apps/v1", "Deployment", "shop", "other") == owner("Deployment/other")
    assert above.owners.get("apps/v1", "Deployment", "batch", "web") is None
    assert {(each.kind, each.meta.name, each.replicas) for each in above.owners.of_namespace("shop")} == {
        ("Deployment", "web", 5),
        ("Deployment", "other", None),
        ("StatefulSet", "web", None),
        ("ReplicaSet", "web-1", None),
    }
    assert above.owners.of_namespace("batch") == ()
    assert below.owners.get("apps/v1", "Deployment", "shop", "web").replicas == 1


def test_declared_objects_replace_those_of_the_same_name():
    below = cluster("z1: a=1")
    for each in (scaler("a", "web", 5), scaler("c", "api", 7), group("new", "2"), group("old", "1")):
        below.apply("ADDED", each)
    above = with_declared(below, [scaler("a", "api", 8), scaler("d", "job", 9)], [group("new", "0"), group("more")])
    most = {name: above.owners.autoscaler("apps/v2", "Deployment", "shop", name) for name in ("web", "api", "job", "x")}
    assert most == {"web": None, "api": scaler("a", "api", 8), "job": scaler("d", "job", 9), "x": None}
    assert above.owners.autoscaler("apps/v1", "Deployment", "batch", "job") is None
    assert above.namespaces.groups("shop") == (group("more"), group("new", "0"), group("old", "1"))
    assert above.namespaces.all_groups() == {"shop": above.namespaces.groups("shop")}
    assert above.namespaces.groups("batch") == ()
    assert below.namespaces.groups("shop") == (group("old", "1"), group("new", "2"))
    assert below.owners.autoscaler("apps/v1", "Deployment", "shop", "web") == scaler("a", "web", 5)
    assert with_declared(below, [], []) is below


def test_a_declared_autoscaler_replaces_one_of_another_name_for_its_target():
    """KEDA names the autoscaler of a ScaledObject differently."""
    below = cluster("z1: a=1")
    below.apply("ADDED", scaler("keda-hpa-web", "web", 10))
    above = with_declared(below, [scaler("web", "web", 50)], [])
    assert above.owners.autoscaler("apps/v1", "Deployment", "shop", "web") == scaler("web", "web", 50)


def scaler(name, target, most):
    spec = AutoscalerSpec(
        scale_target_ref=ScaleTarget(api_version="apps/v1", kind="Deployment", name=target), max_replicas=most
    )
    return Autoscaler(metadata=ObjectMeta(name=name, namespace="shop"), spec=spec)


def group(name, created=None):
    return SpreadGroup(metadata=GroupMeta(name=name, namespace="shop", creation_timestamp=created))


# One workload's pods, which are all alike, and pods of others beside them.
LIKE = replace(
    running("web", "n0"),
    **spec(
        containers=(
            Container(
                resources=ResourceRequirements(requests={"cpu": "1", "example.com/gpu": "1"}),
                ports=(ContainerPort(container_port=80, host_port=8080),),
            ),
        ),
        affinity=Affinity(pod_anti_affinity=OBJECTS),
    ),
)
OTHERS = (
    *NODES,
    running("other", "n0", "app=api"),
    running("elsewhere", "n0", namespace="batch"),
    replace(running("sidecar", "n0"), spec=PodSpec(node_name="n0", containers=(Container(name="c"),))),
)
OWN = compile_selector(selector("app=web tier=own"))


def owned(name, on):
    """A pod of the workload."""
    return replace(LIKE, metadata=running(name, on, "app=web tier=own").meta, spec=replace(LIKE.spec, node_name=on))


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
@pytest.mark.parametrize("on", [(), ("n0",), ("n0", "n1", "n1")], ids=["none", "one", "three"])
def test_without_its_pods_a_workload_is_as_if_they_had_never_run(on, question):
    below = index(*OTHERS, *(owned(f"web-{number}", each) for number, each in enumerate(on)))
    before = question(below)
    like = replace(LIKE, metadata=running("web", "n0", "app=web tier=own").meta)
    assert question(without_pods(below, like, OWN, below.pods.count("shop", OWN))) == question(index(*OTHERS))
    assert question(below) == before


def test_pods_that_requested_more_free_no_more_than_the_node_has():
    below = index(*NODES, running("web-0", "n0", "app=web tier=own"))
    like = replace(LIKE, metadata=running("web", "n0", "app=web tier=own").meta)
    free, allocatable = without_pods(below, like, OWN, {0: 3}).nodes.amounts("cpu")
    assert (free, allocatable) == ((4000, 4000), (4000, 4000))


def test_anti_affinity_of_others_over_the_same_key_stays():
    other = replace(owned("other", "n0"), metadata=running("other", "n0", "app=api").meta)
    below = index(*NODES, owned("web-0", "n0"), owned("web-1", "n1"), other)
    like = replace(LIKE, metadata=running("web", "n0", "app=web tier=own").meta)
    for gone, left in (({0: 1, 1: 1}, {0: 1}), ({0: 9}, {0: 2, 1: 1})):
        [(_, counts)] = without_pods(below, like, OWN, gone).pods.terms_matching("shop", {"app": "web"})
        assert counts == left
    separate = replace(other, spec=replace(other.spec, affinity=apart(FRONT)))
    below = index(*NODES, owned("web-0", "n0"), owned("web-1", "n1"), separate)
    answers = without_pods(below, like, OWN, {0: 1, 1: 1}).pods.terms_matching("shop", {"app": "web", "tier": "front"})
    assert answers == [(HOSTNAME, {0: 1})]


def told_of_nodes():
    """An index with two nodes of a zone, and what it would be with more nodes like the second in another zone."""
    offers = NodeStatus(allocatable={"cpu": "4", "pods": "9", "example.com/gpu": "2"})
    there = [replace(node(name, "a"), status=offers) for name in ("n0", "n1")]
    pods = [replace(running("x", "n1"), **spec(containers=ADDED[3].pod_spec.containers))]
    more = [replace(node(f"n1-added-{number}", zone), status=offers) for number, zone in ((1, "b"), (2, "b"), (3, "a"))]
    below = index(*there, *pods)
    overlay = with_nodes(below, [AddedNodes(1, 2, {ZONE: "b"}), AddedNodes(1, 1)])
    return overlay, index(*there, *pods, *more), below


def test_nodes_that_are_added_are_as_if_they_were_there():
    overlay, there, below = told_of_nodes()
    assert overlay.nodes.view().rows(0, 5) == there.nodes.view().rows(0, 5)
    assert (overlay.nodes.view().live, overlay.nodes.view().keys) == (there.nodes.view().live, there.nodes.view().keys)
    for resource in ("cpu", PODS, "example.com/gpu", "example.com/none"):
        assert overlay.nodes.amounts(resource) == there.nodes.amounts(resource)
        for amount in (0, 1, 3, 5000):
            assert overlay.nodes.short_of(((resource, amount),)) == there.nodes.short_of(((resource, amount),))
            assert overlay.nodes.never_enough(resource, amount) == there.nodes.never_enough(resource, amount)
    assert len(below.nodes.view()) == 2
    assert overlay.pods.count("shop", compile_selector(selector("app=web"))) == {1: 1}


def test_nodes_without_a_hostname_get_none_and_limits_are_those_of_the_model():
    bare = replace(node("n0"), metadata=replace(node("n0").metadata, labels={}))
    installed = CsiNode(
        metadata=ObjectMeta(name="n0"),
        spec=CsiNodeSpec(drivers=(CsiDriverOnNode(name="csi", allocatable=DriverAllocatable(count=2)),)),
    )
    below = index(bare, node("n1"), installed)
    overlay = with_nodes(below, [AddedNodes(0, 1), AddedNodes(1, 1)])
    assert overlay.nodes.view().labels[2] == {}
    assert overlay.volumes.attach_limits()["n0-added-1"] == below.volumes.attach_limits()["n0"]
    assert overlay.volumes.nodes_with_driver("csi") == {"n0", "n0-added-1"}


def test_a_node_may_be_another():
    below = index(replace(node("n0"), spec=NodeSpec(unschedulable=True)), node("n1"))
    (row,) = below.nodes.view().rows(0, 1)
    assert row is not None
    overlay = with_nodes(below, changed={0: row._replace(unschedulable=False)})
    assert (overlay.nodes.view().unschedulable, below.nodes.view().unschedulable) == (0, 1)


def test_what_is_free_besides():
    below = index(*NODES, replace(running("x", "n1"), **spec(containers=ADDED[3].pod_spec.containers)))
    overlay = with_room(below, {1: {"cpu": 2000}})
    assert overlay.nodes.amounts("cpu") == ((4000, 3000), (4000, 4000))
    assert overlay.nodes.short_of((("cpu", 3000),)) == {}
    gpus = ("example.com/gpu", 2)
    assert overlay.nodes.short_of((("cpu", 3001), gpus)) == {"cpu": (4000, 3000), **below.nodes.short_of((gpus,))}


@pytest.mark.parametrize("further", [(), (Requirement("shard", EXISTS),)], ids=["as it is", "with any shard"])
def test_many_workloads_without_their_pods_are_counted_in_time(further):
    """Each of 200 layers asked all below it for pods of two workloads at once, of which there are none."""
    below = index(*NODES, *(running(f"s-{each}-0", "n0", f"app=web shard={each}") for each in range(200)))
    without = below
    for each in range(199):
        own, like = compile_selector(selector(f"app=web shard={each}")), running("s", "n0", f"app=web shard={each}")
        without = without_pods(without, like, own, {0: 1})
    asked = []
    counted = below.pods.count
    below.pods.count = lambda *given, **more: asked.append(given) or counted(*given, **more)
    assert without.pods.count("shop", compile_selector(selector("app=web")).joined(further)) == {0: 1}
    assert len(asked) == 200
