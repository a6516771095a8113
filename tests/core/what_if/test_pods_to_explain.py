"""Which pods are asked about, and what is said of pods that are yet to be made."""

import json

import pytest
from build import default, index, namespace, owner, policy
from manifest import workload
from msgspec.structs import replace

from webhook.core.api.types import Pod, TypeMeta
from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.index.owners import controllers
from webhook.core.index.readers import decode_object
from webhook.core.policy.policy import Policy
from webhook.core.what_if.pods_to_explain import pods_of_object, waiting_pods_of
from webhook.core.workloads.reading import stated_type

ZONE = "zone hard 1 app=web"
ZONE_KEY, HOST_KEY = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
HASH = "zone hard 1 app=web keys:pod-template-hash"


def questions(manifest, configured=None, *, cluster=None, applied=False):
    known = cluster or index(namespace())
    within = Context(policy=configured or Policy(), version=RECORDED, index=known)
    raw = json.dumps(manifest).encode()
    return [*pods_of_object(raw, stated_type(raw), within, known, applied=applied)]


def notes(*arguments, **more):
    return [note for question in questions(*arguments, **more) for note in question.notes]


OBSERVES = "without default constraints of this webhook (defaults.mode is observe)"


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        pytest.param(workload("Deployment", "app=web", ZONE), [], id="nothing to say"),
        pytest.param(workload("Deployment", "app=web"), [OBSERVES], id="no constraint of its own"),
        pytest.param(
            workload("Deployment", "app=web", HASH),
            ["pod-template-hash has no value yet: the pod counts as the first of a new revision"],
            id="a revision that is yet to come",
        ),
        pytest.param(
            workload("CronJob", "app=web", ZONE, spec={"suspend": True}),
            ["suspended: its controller creates no pods"],
            id="suspended",
        ),
        pytest.param(
            workload("DaemonSet", "app=web", ZONE),
            ["no node should run a pod of the DaemonSet, so none is created; the explanation covers all nodes"],
            id="a DaemonSet and no node",
        ),
        pytest.param(
            workload("StatefulSet", "app=web", ZONE, spec={"volumeClaimTemplates": [{}]}),
            ["the claims of volumeClaimTemplates are not checked"],
            id="claims that are yet to be made",
        ),
        pytest.param(workload("StatefulSet", "app=web", ZONE), [], id="a StatefulSet without claims"),
        pytest.param(
            workload("StatefulSet", "app=web", ZONE, spec={"volumeClaimTemplates": "x"})
            | {"apiVersion": "apps.kruise.io/v1beta1"},
            [],
            id="a StatefulSet with something else in their place",
        ),
        pytest.param(
            workload("StatefulSet", "app=web", ZONE) | {"spec": {"template": {"spec": {}}}},
            [OBSERVES],
            id="a StatefulSet with little in it",
        ),
    ],
)
def test_what_is_said_of_a_pod_that_is_yet_to_be(manifest, expected):
    assert notes(manifest) == expected


class TestInjection:
    def test_what_is_injected_is_named(self):
        configured = policy(default(), default(HOST_KEY, when="ScheduleAnyway"))
        [question] = questions(workload("Deployment", "app=web"), configured)
        assert question.notes == (
            f"with constraints injected by this webhook: {ZONE_KEY} DoNotSchedule, {HOST_KEY} ScheduleAnyway",
            "pod-template-hash has no value yet: the pod counts as the first of a new revision",
        )
        assert len(question.pod.pod_spec.constraints) == 2

    def test_why_nothing_is(self):
        assert notes(workload("Deployment", "app=web", ZONE), policy()) == [
            "this webhook injects nothing: own-constraints"
        ]

    def test_a_pod_that_exists_is_taken_as_it_is(self):
        pod = workload("Pod", "app=web", meta={"uid": "u"})
        [question] = questions(pod, policy())
        assert (question.notes, question.pod.pod_spec.constraints, question.exists) == ((), (), True)
        del pod["metadata"]["uid"]
        assert [each.exists for each in questions(pod, policy(), applied=True)] == [True]
        assert [each.exists for each in questions(pod, policy())] == [False]


def test_every_template_is_a_question():
    group = {"template": {"spec": {}}}
    cluster = {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "ray", "namespace": "ml"},
        "spec": {"headGroupSpec": group, "workerGroupSpecs": [group]},
    }
    assert [each.title for each in questions(cluster)] == [
        "the next pod of RayCluster ml/ray (spec.headGroupSpec.template)",
        "the next pod of RayCluster ml/ray (spec.workerGroupSpecs[0].template)",
    ]


def test_what_has_no_template_is_no_question():
    assert questions({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}) == []


def test_names_in_titles():
    for meta, told in (({"name": "", "generateName": "gen-"}, "gen-"), ({"name": ""}, "(unnamed)")):
        assert questions(workload("Pod", "app=web", meta=meta))[0].title == f"Pod shop/{told}"


def test_owners_that_exist_are_left_as_they_are():
    known = index(namespace(), owner("Deployment/web", "app=web", replicas=7))
    questions(workload("Deployment", "app=web", ZONE), cluster=known)
    assert known.owners.get("apps/v1", "Deployment", "shop", "web").replicas == 7
    assert known.owners.get("apps/v1", "ReplicaSet", "shop", "web-not-yet-known") is not None


class TestControllers:
    def pod(self, name, by, since=None):
        kind, owned_by = by.split("/")
        meta = {"ownerReferences": [{"apiVersion": "apps/v1", "kind": kind, "name": owned_by, "controller": True}]}
        made = workload("Pod", "app=web", meta={"name": name, "creationTimestamp": since, **meta})
        return decode_object(json.dumps(made).encode(), TypeMeta(api_version="v1", kind="Pod"))

    def test_the_chain_as_far_as_it_is_known(self):
        known = index(owner("ReplicaSet/web-1", above="Deployment/web"), owner("Deployment/web", above="App/web"))
        pod = self.pod("a", "ReplicaSet/web-1")
        assert [each.kind for each in controllers(pod, known)] == ["ReplicaSet", "Deployment", "App"]
        assert [each.kind for each in controllers(pod, index())] == ["ReplicaSet"]
        assert controllers(Pod(), known) == []

    def test_a_circle_has_an_end(self):
        known = index(owner("ReplicaSet/a", above="ReplicaSet/b"), owner("ReplicaSet/b", above="ReplicaSet/a"))
        assert len(controllers(self.pod("x", "ReplicaSet/a"), known)) == 4

    def test_the_pods_that_wait_are_the_oldest_first(self):
        known = index(
            owner("ReplicaSet/web-1", above="Deployment/web"),
            self.pod("late", "ReplicaSet/web-1", "2026-01-02T00:00:00Z"),
            self.pod("early", "ReplicaSet/web-1", "2026-01-01T00:00:00Z"),
            self.pod("other", "ReplicaSet/db-1", "2025-01-01T00:00:00Z"),
        )
        found = waiting_pods_of("Deployment", "web", "shop", known)
        assert [pod.meta.name for pod in found] == ["early", "late"]
        assert waiting_pods_of("Deployment", "web", "elsewhere", known) == ()


def test_a_namespace_that_the_caller_names():
    bare = workload("Deployment", "app=web", ZONE, meta={"namespace": ""})
    known = index()
    within = Context(policy=Policy(), version=RECORDED, index=known, namespace="here")
    raw = json.dumps(bare).encode()
    [question] = pods_of_object(raw, stated_type(raw), within, known, applied=False)
    assert question.title == "the next pod of Deployment here/web"
    assert replace(question.pod.meta).namespace == "here"
