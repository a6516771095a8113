"""The feed: every kind into one index, readiness, and what is said of each kind."""

import asyncio
import threading
import time
from math import inf

import pytest
from build import pod_names
from cluster.api import FakeApi, refuse
from cluster.following import QUICK, contents, eventually, feeding, server

from webhook.cluster.feed import Feed
from webhook.cluster.resources import BUILT_IN_RESOURCES, watched
from webhook.core.api.version import RECORDED, KubernetesVersion
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.owners import Awaited
from webhook.core.policy.defaults import Defaults
from webhook.core.policy.policy import Policy
from webhook.core.workloads.custom_kinds import EmbeddedKind

POD = {"spec": {"nodeName": "n1"}}
GROUP = {"selector": {"matchLabels": {"app": "web"}}, "shard": {"label": "shard"}} | {
    "expected": {"shards": 3, "podsPerShard": 2}
}
THING = EmbeddedKind(
    api_version="argoproj.io/v1alpha1", kind="Rollout", template_path="spec.template", replicas_path="spec.replicas"
)


@pytest.fixture(name="api")
def _api():
    with FakeApi() as api:
        fill(api)
        yield api


def fill(api):
    api.put("nodes", "n1", metadata={"labels": {"topology.kubernetes.io/zone": "a"}})
    api.put("namespaces", "shop", metadata={"labels": {"team": "web"}})
    api.put("services", "web", "shop", spec={"selector": {"app": "web"}})
    for kind in ("replicasets", "statefulsets", "deployments"):
        api.put(kind, "web", "shop", spec={"replicas": 3, "selector": {"matchLabels": {"app": "web"}}})
    api.put("replicationcontrollers", "old", "shop", spec={"replicas": 1, "selector": {"app": "old"}})
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    api.put("horizontalpodautoscalers", "web", "shop", spec={"scaleTargetRef": target, "maxReplicas": 9})
    api.put("pods", "web-0", "shop", metadata={"labels": {"app": "web"}}, **POD)
    api.put("persistentvolumeclaims", "data", "shop", spec={"volumeName": "v1", "storageClassName": "fast"})
    api.put("persistentvolumes", "v1", spec={"claimRef": {"namespace": "shop", "name": "data"}})
    api.put("storageclasses", "fast", provisioner="disks.example")
    drivers = [{"name": "disks.example", "allocatable": {"count": 8}}]
    api.put("csinodes", "n1", spec={"drivers": drivers})
    api.put("csidrivers", "disks.example", spec={"storageCapacity": True})
    api.put("csistoragecapacities", "c", "shop", storageClassName="fast", capacity="1Gi")
    source = {"persistentVolumeName": "v1"}
    api.put("volumeattachments", "a", spec={"attacher": "disks.example", "nodeName": "n1", "source": source})
    api.put("limitranges", "small", "shop", spec={"limits": [{"type": "Container", "defaultRequest": {"cpu": "1"}}]})
    api.put("priorityclasses", "high", value=7, preemptionPolicy="Never")
    api.put("runtimeclasses", "boxed", overhead={"podFixed": {"cpu": "1"}})
    api.put("spreadgroups", "cache", "shop", spec=GROUP, status={"revision": "7f3a"})


def from_scratch(api, folder):
    with feeding(api, folder) as feed:
        eventually(lambda: feed.synced)
        return contents(feed.index)


def test_every_kind_comes_into_the_index(api, tmp_path):
    with feeding(api, tmp_path) as feed:
        eventually(lambda: feed.synced)
        index = feed.index
        scaler = index.owners.autoscaler("apps/v1", "Deployment", "shop", "web")
        eventually(lambda: feed.version is not None)

    assert [node.name for node in index.nodes.all()] == ["n1"]
    assert set(index.nodes.view().column("topology.kubernetes.io/zone").values) == {"a"}
    assert index.namespaces.labels("shop") == {"kubernetes.io/metadata.name": "shop", "team": "web"}
    assert [service.spec.selector for service in index.namespaces.services("shop")] == [{"app": "web"}]
    assert pod_names(index, "shop") == ("web-0",)
    assert sorted((owner.api_version, owner.kind, owner.replicas) for owner in index.owners.of_namespace("shop")) == [
        ("apps/v1", "Deployment", 3),
        ("apps/v1", "ReplicaSet", 3),
        ("apps/v1", "StatefulSet", 3),
        ("v1", "ReplicationController", 1),
    ]
    assert scaler.spec.max_replicas == 9
    assert index.volumes.claim("shop", "data").spec.volume_name == "v1"
    assert index.volumes.volume("v1").spec.claim_ref.name == "data"
    assert index.volumes.storage_class("fast").provisioner == "disks.example"
    assert index.volumes.attach_limits() == {"n1": {"disks.example": 8}}
    assert index.volumes.drivers()["disks.example"].spec.storage_capacity
    assert [each.limit for each in index.volumes.capacities("fast")] == ["1Gi"]
    assert index.volumes.attachments() == {"n1": 1}
    facts = index.namespaces.admission_facts("shop", "high", "boxed")
    assert [item.requests for each in facts.limit_ranges for item in each.spec.limits] == [{"cpu": "1"}]
    assert (facts.priority_class.value, facts.runtime_class.overhead.pod_fixed) == (7, {"cpu": "1"})
    assert [(each.meta.name, each.status.revision) for each in index.namespaces.groups("shop")] == [("cache", "7f3a")]
    assert feed.version == index.version == KubernetesVersion(1, 34, 2)
    assert index.lacks(*(resource.name for resource in BUILT_IN_RESOURCES)) == ""


def test_the_index_judges_as_the_release_that_was_asked_for(api, tmp_path):
    feed = Feed(server(api, tmp_path), BUILT_IN_RESOURCES, timing=QUICK, as_version=KubernetesVersion(1, 32))
    assert all(feed.index.lacks(resource.name) == f"{resource.name}: not listed" for resource in BUILT_IN_RESOURCES)
    feed.start()
    try:
        eventually(lambda: feed.synced and feed.version == KubernetesVersion(1, 34, 2))
    finally:
        feed.stop()

    assert feed.index.version == KubernetesVersion(1, 32)


def test_a_release_that_is_not_supported_is_said_once(api, tmp_path, caplog):
    def old(handler, _):
        handler.json(200, {"gitVersion": "v1.30.14"})
        return True

    api.strike("other", old, resource="version", times=99)
    with feeding(api, tmp_path) as feed:
        eventually(lambda: feed.synced and api.count("other", "version") > 1)
        said = [(record.getMessage(), record.fields) for record in caplog.records if "release" in record.getMessage()]
    text = "the API server's release: Kubernetes 1.30 is not supported. Use 1.31 to 1.37, or 1.38 as announced"
    assert said == [(text, {"release": "v1.30.14", "judged_as": "1.37"})]
    assert (feed.version, feed.index.version) == (None, RECORDED)


def test_it_is_not_ready_before_the_last_required_kind_is_listed(api, tmp_path):
    held = threading.Event()

    def hold(*_):
        held.wait(10)
        return False

    api.strike("list", hold, times=10**6, resource="replicasets")
    with feeding(api, tmp_path) as feed:
        eventually(lambda: sum(each.synced for each in feed.watch_states()) == len(BUILT_IN_RESOURCES) - 1)
        assert not feed.synced
        held.set()
        eventually(lambda: feed.synced)


@pytest.mark.parametrize(
    ("what", "fault"),
    [
        pytest.param("forbidden", '403 horizontalpodautoscalers is forbidden: User "u" cannot list', id="forbidden"),
        pytest.param("absent", "404 the server could not find the requested resource", id="not served"),
    ],
)
def test_an_optional_kind_is_done_without_and_said(api, tmp_path, what, fault):
    getattr(api, what).add("horizontalpodautoscalers")
    with feeding(api, tmp_path) as feed:
        eventually(lambda: feed.synced and _of(feed, "horizontalpodautoscalers").off)
        assert _of(feed, "horizontalpodautoscalers").fault.startswith(fault)
        lacking = {resource.name for resource in BUILT_IN_RESOURCES if feed.index.lacks(resource.name)}
        assert lacking == {"horizontalpodautoscalers"}
        getattr(api, what).clear()
        eventually(lambda: feed.index.owners.autoscaler("apps/v1", "Deployment", "shop", "web") is not None)
        eventually(lambda: not feed.index.lacks("horizontalpodautoscalers"))


@pytest.mark.slow
def test_an_extension_that_is_not_installed_has_no_objects_and_nothing_is_missing(api, tmp_path):
    api.absent.add("spreadgroups")
    api.forbidden.add("spreadgroups")  # as the chart's role is without it
    with feeding(api, tmp_path) as feed:
        eventually(lambda: feed.synced)
        state = _of(feed, "spreadgroups")
        # An alert tells of an age above a minute.
        assert (state.off, state.fault, state.age) == (True, "", 0.0)
        assert (feed.index.lacks("spreadgroups"), feed.index.namespaces.groups("shop")) == ("", ())
        api.absent.clear()
        eventually(lambda: _of(feed, "spreadgroups").fault.startswith("403 spreadgroups is forbidden"))
        api.forbidden.clear()
        eventually(lambda: len(feed.index.namespaces.groups("shop")) == 1)
        api.absent.add("spreadgroups")  # the definition goes, and all groups with it
        api.drop_connections()
        eventually(lambda: not feed.index.namespaces.groups("shop"))
        assert feed.index.lacks("spreadgroups") == ""


def _of(feed, resource):
    return {each.resource: each for each in feed.watch_states()}[resource]


def test_a_required_kind_that_is_forbidden_keeps_it_from_being_ready(api, tmp_path):
    api.forbidden.add("pods")
    with feeding(api, tmp_path) as feed:
        eventually(lambda: sum(each.synced for each in feed.watch_states()) == len(BUILT_IN_RESOURCES) - 1)
        assert not feed.synced
        assert feed.age == inf
        said = 'cannot list resource "pods"; grant list and watch of pods'
        eventually(lambda: _of(feed, "pods").fault.endswith(said))
        api.forbidden.clear()
        eventually(lambda: feed.synced)


@pytest.mark.slow
def test_losing_the_api_server_leaves_what_is_known_and_its_age(api, tmp_path):
    with feeding(api, tmp_path) as feed:
        eventually(lambda: feed.synced)
        eventually(lambda: all(each.age == 0.0 for each in feed.watch_states()))
        assert feed.age == 0.0
        before = contents(feed.index)
        api.strike("any", refuse(500), times=10**6)
        api.drop_connections()
        eventually(lambda: min(each.age for each in feed.watch_states()) > 0.3)
        assert 0.3 < feed.age < inf
        assert contents(feed.index) == before
        assert feed.synced
        api.faults.clear()
        api.put("pods", "late", "shop", **POD)
        eventually(lambda: len(pod_names(feed.index, "shop")) == 2)
        eventually(lambda: max(each.age for each in feed.watch_states()) < 0.3)


@pytest.mark.slow
def test_kinds_may_change_in_any_order_and_it_ends_as_from_scratch(api, tmp_path):
    """Pods before their nodes and namespaces, owners after their pods, twice."""
    with feeding(api, tmp_path) as feed:
        eventually(lambda: feed.synced)
        for _ in range(2):
            api.put("pods", "early", "new", metadata={"labels": {"app": "x"}}, spec={"nodeName": "n2"})
            api.put("replicasets", "x", "new", spec={"replicas": 2})
            api.put("namespaces", "new")
            api.put("nodes", "n2")
            api.delete("nodes", "n1")
        api.delete("services", "web", "shop")
        eventually(lambda: not feed.index.namespaces.services("shop") and len(feed.index.nodes.all()) == 1)
        eventually(lambda: contents(feed.index) == from_scratch(api, tmp_path))


def test_owners_of_configured_kinds_are_found_by_discovery(api, tmp_path):
    api.absent.clear()
    api.put("rollouts", "web", "shop", spec={"replicas": 5, "template": {"spec": {"containers": []}}})
    policy = Policy(workloads=(THING,), defaults=Defaults(owners=(("example.com/v1", "Unknown"),)))
    with feeding(api, tmp_path, watched(policy)) as feed:
        eventually(lambda: feed.index.owners.get("argoproj.io/v1alpha1", "Rollout", "shop", "web") is not None)
        owner = feed.index.owners.get("argoproj.io/v1alpha1", "Rollout", "shop", "web")

    assert owner.replicas == 5
    assert [each.kind for each in watched(policy)][len(BUILT_IN_RESOURCES) :] == ["Rollout"]


def test_a_configured_kind_that_does_not_exist_is_done_without(api, tmp_path):
    with feeding(api, tmp_path, watched(Policy(workloads=(THING,)))) as feed:
        eventually(lambda: feed.synced and feed.watch_states()[-1].off)
        state = feed.watch_states()[-1]

    assert (state.resource, state.off) == ("Rollout.argoproj.io", True)
    assert state.fault == "404 the server could not find the requested resource"


def test_it_stops_at_once(api, tmp_path):
    feed = Feed(server(api, tmp_path), BUILT_IN_RESOURCES, timing=QUICK)
    feed.start()
    eventually(lambda: feed.synced)
    began = time.monotonic()
    feed.stop()

    assert time.monotonic() - began < 2.0
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("cluster-")] == []


class NotingIndex(ClusterIndex):
    """Notes the threads that change it."""

    def __init__(self):
        super().__init__(RECORDED)
        self.threads = set()

    def apply(self, *change):
        self.threads.add(threading.get_ident())
        return super().apply(*change)

    def mark_known(self, resource):
        self.threads.add(threading.get_ident())
        super().mark_known(resource)


@pytest.mark.slow
def test_with_a_loop_the_index_changes_in_it_and_nowhere_else(api, tmp_path):
    index = NotingIndex()

    async def follow():
        feed = Feed(server(api, tmp_path), BUILT_IN_RESOURCES, timing=QUICK)
        feed.index = index
        feed.start(asyncio.get_running_loop())
        woken = asyncio.Event()
        late = Awaited(api_version="apps/v1", kind="ReplicaSet", namespace="shop", name="late")
        try:
            await asyncio.to_thread(eventually, lambda: feed.synced)
            with feed.arrivals.expecting(late, woken.set):
                api.put("replicasets", "late", "shop", spec={"replicas": 2})
                await asyncio.wait_for(woken.wait(), 20)
            return contents(index)
        finally:
            await asyncio.to_thread(feed.stop)

    found = asyncio.run(follow())
    assert index.threads == {threading.get_ident()}
    assert found == from_scratch(api, tmp_path)
