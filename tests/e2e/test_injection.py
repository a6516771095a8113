"""Who gets defaults from a webhook that watches the cluster, and where the scheduler puts their pods."""

import pytest
from e2e.injected import REPLICAS, constraints, create, pods, records, running, skew, spreading
from e2e.objects import ZONE, constraint, pod, pod_spec, workload
from e2e.waiting import eventually

SKIP = {"evenspread.io/skip": "true"}

# -- who gets which selector, and where the pods go

# Towards zone a, and towards each other: without a hard constraint the scheduler puts all of them there.
DRAWN = {
    "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "preference": {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}}
        ]
    },
    "podAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "weight": 100,
                "podAffinityTerm": {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}},
            }
        ]
    },
}


def drawn(kind, **labels):
    """A workload whose pods would rather be in one zone."""
    template = {"metadata": {"labels": {"app": "web", **labels}}, "spec": pod_spec(affinity=DRAWN)}
    made = workload(kind, "web", replicas=REPLICAS)
    made["spec"] |= {"template": template}
    return made


def of_controller(kind):
    made = drawn(kind)
    if kind == "ReplicationController":
        made |= {"apiVersion": "v1"}
        made["spec"]["selector"] = {"app": "web"}
    return made


def job():
    made = drawn("Job", lasting="yes") | {"apiVersion": "batch/v1"}
    del made["spec"]["selector"], made["spec"]["replicas"]
    made["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    made["spec"] |= {"parallelism": REPLICAS, "completions": REPLICAS}
    return made


def of_rollout(rollout):
    """The ReplicaSet that Argo's controller makes of a Rollout."""
    revision = {"rollouts-pod-template-hash": "5b6c7d8e9"}
    made = drawn("ReplicaSet", **revision)
    made["metadata"] |= {
        "name": "web-5b6c7d8e9",
        "labels": revision,
        "annotations": {"rollout.argoproj.io/desired-replicas": str(REPLICAS)},
        "ownerReferences": [
            {
                "apiVersion": "argoproj.io/v1alpha1",
                "kind": "Rollout",
                "name": "web",
                "uid": rollout["metadata"]["uid"],
                "controller": True,
            }
        ],
    }
    made["spec"]["selector"] = {"matchLabels": {"app": "web", **revision}}
    return made


@pytest.mark.parametrize(
    ("kind", "selects", "keys"),
    [
        pytest.param("Deployment", ("app", "pod-template-hash"), ("pod-template-hash",), id="Deployment"),
        pytest.param("StatefulSet", ("app",), (), id="StatefulSet"),
        pytest.param("ReplicationController", ("app",), (), id="ReplicationController"),
        pytest.param("Job", ("batch.kubernetes.io/controller-uid",), (), id="Job"),
        pytest.param(
            "Rollout", ("app", "rollouts-pod-template-hash"), ("rollouts-pod-template-hash",), id="Rollout's ReplicaSet"
        ),
    ],
)
def test_the_scheduler_spreads_pods_by_the_defaults_that_they_got(plane, shop, kind, selects, keys):
    if kind == "Rollout":
        create(plane, shop, of_rollout(create(plane, shop, workload("Rollout", "web", replicas=REPLICAS))))
    else:
        create(plane, shop, job() if kind == "Job" else of_controller(kind))
    found = running(plane, shop)

    labels = found[0]["metadata"]["labels"]
    expected = spreading({key: labels[key] for key in selects}, keys)
    assert [constraints(made) for made in found] == [expected] * REPLICAS
    assert records(found) == REPLICAS
    assert skew(found) == 0


def test_without_the_defaults_the_same_pods_are_all_in_one_zone(plane, namespace):
    create(plane, namespace, drawn("Deployment"))
    found = running(plane, namespace)

    assert (records(found), skew(found)) == (0, REPLICAS)


# -- who gets nothing


def annotated(where):
    made = workload("Deployment", "web")
    (made["metadata"] if where == "workload" else made["spec"]["template"]["metadata"])["annotations"] = SKIP
    return made


def with_spec(**changes):
    made = workload("Deployment", "web")
    made["spec"]["template"]["spec"] |= changes
    return made


def daemon_set():
    made = workload("DaemonSet", "web")
    del made["spec"]["replicas"]
    return made


@pytest.mark.parametrize(
    "case",
    [
        pytest.param((annotated("template"), 2, "opted-out"), id="the pod says so"),
        pytest.param((annotated("workload"), 2, "opted-out"), id="the Deployment says so"),
        pytest.param((workload("Deployment", "web", replicas=1), 1, "one-replica"), id="one replica"),
        pytest.param((daemon_set(), 6, "daemon-set"), id="a DaemonSet"),
        pytest.param((workload("Deployment", "web", constraint(maxSkew=5)), 2, "own-constraints"), id="constraints"),
        pytest.param((with_spec(nodeName="node-a-0"), 2, "has-node-name"), id="a node"),
        pytest.param((with_spec(schedulerName="other"), 2, "other-scheduler"), id="another scheduler"),
    ],
)
def test_pods_that_are_left_alone(plane, shop, webhook, case):
    made, count, reason = case
    before = webhook.metric("evenspread_injections_skipped_total", f'reason="{reason}"')
    create(plane, shop, made)
    found = eventually(lambda: len(found := pods(plane, shop, phase=None)) == count and found)

    own = made["spec"]["template"]["spec"].get("topologySpreadConstraints", [])
    assert [constraints(each) for each in found] == [own] * count
    assert records(found) == 0
    assert webhook.metric("evenspread_injections_skipped_total", f'reason="{reason}"') - before >= count


def test_pods_of_a_kind_that_is_not_built_in_are_left_alone(plane, shop):
    owner = create(plane, shop, workload("Rollout", "web"))
    made = pod("web")
    made["metadata"]["ownerReferences"] = [
        {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "web", "uid": owner["metadata"]["uid"]}
        | {"controller": True}
    ]
    assert records([create(plane, shop, made)]) == 0


def test_a_namespace_without_defaults(plane, shop):
    """An override of the policy says so of namespaces with a label."""
    patch = {"metadata": {"labels": {"defaults": "none"}}}
    plane.api.request("PATCH", f"/api/v1/namespaces/{shop}", patch, "application/merge-patch+json")
    create(plane, shop, workload("Deployment", "web"))

    assert records(running(plane, shop, 2)) == 0
