"""Which workloads get a repair, and which pods their PodDisruptionBudgets keep."""

import json

import msgspec
import pytest
from build import cluster, running, terminating
from manifest import PLAIN, RECENT, workload

from webhook.core.api.storage import Claim, CsiNode, StorageClass
from webhook.core.api.types import Pod, TypeMeta
from webhook.core.context import Context
from webhook.core.pods_to_create.next_pod import PodSource, next_pod_of
from webhook.core.pods_to_remove.disruption_budget import DisruptionBudget
from webhook.core.pods_to_remove.eviction_search import NoPlan
from webhook.core.pods_to_remove.rebalancing import repair_plan
from webhook.core.workloads.reading import read_exactly, read_workload
from webhook.core.workloads.workload import selector_of

ZONE = "zone hard 1 app=web"
UNEVEN = "a: a0=3 | b: b0=1 | c: c0"
NEAR = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/os", "labelSelector": {"matchLabels": {"app": "web"}}}
        ]
    }
}


def object_of(kind="StatefulSet", *, replicas=4, claims=(), affinity=None):
    more = {"affinity": affinity} if affinity else {}
    made = workload(kind, "app=web", ZONE, meta={"name": "web", "namespace": "shop"}, replicas=replicas, **more)
    if claims:
        made["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": name}} for name in claims]
    return made


def budget(select="app=web", allowed=0, *, namespace="shop", generation=1, observed=1):
    selector = None if select is None else {"matchLabels": dict([select.split("=")])} if select else {}
    return {
        "metadata": {"namespace": namespace, "generation": generation},
        "spec": {"selector": selector},
        "status": {"disruptionsAllowed": allowed, "observedGeneration": observed},
    }


def repair(state=UNEVEN, *budgets, made=None, pods=(), labelled="", known=True):
    index = cluster(state, labelled=labelled)
    for each in pods:
        index.apply("ADDED", each)
    made = made or object_of()
    context = Context(policy=PLAIN, version=RECENT, index=index, namespace="shop")
    stated = TypeMeta(api_version=made["apiVersion"], kind=made["kind"])
    value, _ = read_exactly(msgspec.Raw(json.dumps(made).encode()), stated)
    of = read_workload(value, (), api_version=stated.api_version, kind=stated.kind)
    source = PodSource(workload=of, template=of.templates[0], namespace="shop", applied=True)
    own = selector_of(of) if known else None
    return repair_plan(next_pod_of(source, context), own, [msgspec.convert(each, DisruptionBudget) for each in budgets])


@pytest.mark.parametrize(
    ("budgets", "evicted"),
    [
        pytest.param((), ["a0-0"], id="no budget"),
        pytest.param((budget(allowed=1),), ["a0-0"], id="a budget that allows a disruption"),
        pytest.param((budget(namespace="other"),), ["a0-0"], id="a budget of another namespace"),
        pytest.param((budget("app=db"),), ["a0-0"], id="a budget of other pods"),
        pytest.param((budget(None),), ["a0-0"], id="the null selector matches no pod"),
        pytest.param((budget("app=!"),), ["a0-0"], id="an invalid selector matches no pod"),
        pytest.param((budget(),), None, id="a budget that allows none"),
        pytest.param((budget(""),), None, id="the empty selector matches every pod"),
        pytest.param((budget(allowed=1, generation=2),), None, id="a status of an older generation"),
        pytest.param((budget(allowed=1), budget(allowed=1)), None, id="two budgets of one pod"),
    ],
)
def test_budgets(budgets, evicted):
    plan = repair(UNEVEN, *budgets)
    assert plan.reason is (NoPlan.BUDGETS if evicted is None else None)
    assert [step.pod for step in plan.evictions] == (evicted or [])


def test_a_budget_that_changes_nothing_is_not_the_reason():
    assert repair("a: a0=4 | b: ~b0", budget()).reason is NoPlan.PENDING


SCRATCH = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "late"}}}}]


@pytest.mark.parametrize(
    ("most", "mode", "reason"),
    [
        pytest.param(9, "WaitForFirstConsumer", None, id="enough for old and new pods"),
        pytest.param(4, "WaitForFirstConsumer", NoPlan.VOLUMES, id="near the attach limit"),
        pytest.param(9, "Immediate", NoPlan.VOLUMES, id="made before the pod has a node"),
    ],
)
def test_ephemeral_volumes(most, mode, reason):
    made = object_of("Deployment")
    made["spec"]["template"]["spec"]["volumes"] = SCRATCH
    late = {"metadata": {"name": "late"}, "provisioner": "disks", "volumeBindingMode": mode}
    drivers = [{"name": "disks", "allocatable": {"count": most}}]
    volumes = [msgspec.convert({"metadata": {"name": "a0"}, "spec": {"drivers": drivers}}, CsiNode)]
    # One running pod mounts three volumes.
    spec = {"nodeName": "a0", "containers": [{"name": "c"}], "volumes": []}
    spec["volumes"] = [{"name": f"v{n}", "persistentVolumeClaim": {"claimName": f"c{n}"}} for n in range(3)]
    other = {"metadata": {"name": "other", "namespace": "shop"}, "spec": spec}
    claims = [
        msgspec.convert(
            {"metadata": {"name": f"c{n}", "namespace": "shop"}, "spec": {"storageClassName": "late"}}, Claim
        )
        for n in range(3)
    ]
    objects = [msgspec.convert(late, StorageClass), *volumes, *claims, msgspec.convert(other, Pod)]
    assert repair(made=made, pods=objects).reason is reason


def revision(name, on, value, key="controller-revision-hash"):
    return running(name, on, f"app=web {key}={value}")


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        pytest.param({"made": object_of("ReplicaSet")}, None, id="a ReplicaSet"),
        pytest.param({"made": object_of("Deployment")}, None, id="a Deployment"),
        pytest.param({"made": object_of("CloneSet")}, NoPlan.CONTROLLER, id="a kind of an operator"),
        pytest.param({"known": False}, NoPlan.CONTROLLER, id="no selector"),
        pytest.param({"made": object_of(claims=["data"])}, NoPlan.VOLUMES, id="a StatefulSet with volumes"),
        pytest.param({"made": object_of(replicas=5)}, NoPlan.UNSETTLED, id="a pod is missing"),
        pytest.param({"made": object_of(replicas=None), "state": "a: a0=1"}, None, id="no number is 1"),
        pytest.param({"pods": [terminating("web-9", "b0")]}, NoPlan.UNSETTLED, id="a pod terminates"),
        pytest.param(
            {"state": "a: a0=3 | b: b0", "pods": [running("web-9", "gone")]}, NoPlan.UNSETTLED, id="a node is gone"
        ),
        pytest.param(
            {"state": "a: a0=3 | b: b0", "pods": [revision("web-9", "a0", "new")]}, None, id="one revision is known"
        ),
        pytest.param(
            {"state": "a: a0=2 | b: b0", "pods": [revision("web-8", "a0", "new"), revision("web-9", "a0", "old")]},
            NoPlan.ROLLOUT,
            id="two revisions",
        ),
        pytest.param(
            {"made": object_of(affinity=NEAR), "labelled": "kubernetes.io/os=linux"},
            NoPlan.AFFINITY,
            id="pods that follow each other",
        ),
    ],
)
def test_which_workloads(facts, reason):
    assert repair(**facts).reason is reason
