"""Objects that were faulty before the webhook came: everything but a new fault is let through.

Every rule is on deny, the webhook sees every request of the namespace, and its errors would be refusals.
"""

import json

import pytest
from e2e.objects import HOST, constraint, path, pod, workload
from e2e.registration import registered
from e2e.waiting import eventually

# Legal and wrong: the first selects other pods, the second has a key that no longer means anything.
OTHERS = constraint(whenUnsatisfiable="ScheduleAnyway", labelSelector={"matchLabels": {"app": "other"}})
OUTDATED = constraint(whenUnsatisfiable="ScheduleAnyway", topologyKey="failure-domain.beta.kubernetes.io/zone")
MERGE = "application/merge-patch+json"


@pytest.fixture(name="old_deployment")
def _old_deployment(plane, namespace, denying):
    plane.api.request("POST", path("Deployment", namespace), workload("Deployment", "old", OTHERS, OUTDATED))
    eventually(lambda: available(plane, namespace) == 2)
    with registered(plane, namespace, denying.server):
        yield namespace


@pytest.fixture(name="old_rollout")
def _old_rollout(plane, namespace, denying):
    broken = workload("Rollout", "old", constraint(maxSkew=0))
    broken["metadata"]["finalizers"] = ["example.com/kept"]
    plane.api.request("POST", path("Rollout", namespace), broken)
    with registered(plane, namespace, denying.server):
        yield namespace
        plane.api.send("PATCH", path("Rollout", namespace, "old"), {"metadata": {"finalizers": None}}, MERGE)


def available(plane, namespace, name="old"):
    status = plane.api.request("GET", path("Deployment", namespace, name))["status"]
    settled = status.get("updatedReplicas") == status.get("replicas")
    return status.get("availableReplicas") if settled else None


def gone(plane, where):
    return lambda: plane.api.send("GET", where).status == 404


def test_the_same_deployment_would_not_be_created_today(plane, old_deployment):
    refused = plane.api.send(
        "POST", path("Deployment", old_deployment), workload("Deployment", "new", OTHERS, OUTDATED)
    )

    assert (refused.status, refused.body["reason"]) == (403, "Forbidden")


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["annotate", "deployment/old", "note=x"], id="annotated"),
        pytest.param(["label", "deployment/old", "team=x"], id="labelled"),
        pytest.param(["scale", "deployment/old", "--replicas=3"], id="scaled"),
        pytest.param(["patch", "deployment/old", "-p", '{"spec": {"replicas": 3}}'], id="scaled by a patch"),
        pytest.param(["rollout", "restart", "deployment/old"], id="restarted"),
        pytest.param(["set", "image", "deployment/old", "c=busybox:2"], id="given another image"),
        pytest.param(["rollout", "pause", "deployment/old"], id="paused"),
        pytest.param(["delete", "deployment/old", "--cascade=foreground", "--timeout=60s"], id="deleted in foreground"),
        pytest.param(["delete", "deployment/old", "--cascade=orphan", "--timeout=60s"], id="deleted without its pods"),
    ],
)
def test_an_old_faulty_deployment_can_be(kubectl, old_deployment, arguments):
    ran = kubectl("-n", old_deployment, *arguments)

    assert ran.code == 0, ran


def test_an_old_faulty_deployment_rolls_out_to_the_end(plane, kubectl, old_deployment):
    kubectl("-n", old_deployment, "rollout", "restart", "deployment/old")
    ran = kubectl("-n", old_deployment, "rollout", "status", "deployment/old", "--timeout=60s")

    assert ran.out.splitlines()[-1:] == ['deployment "old" successfully rolled out']
    assert available(plane, old_deployment) == 2
    sets = plane.api.request("GET", path("ReplicaSet", old_deployment))["items"]
    assert sorted(item["spec"]["replicas"] for item in sets) == [0, 2]


def test_an_old_faulty_deployment_gets_its_lost_pods_back(plane, kubectl, old_deployment):
    kubectl("-n", old_deployment, "delete", "pods", "--all", "--now")

    eventually(lambda: available(plane, old_deployment) == 2)


def test_a_further_fault_of_an_old_faulty_deployment_is_refused(plane, old_deployment):
    worse = [OTHERS, OUTDATED, constraint(topologyKey=HOST, labelSelector={"matchLabels": {"app": "third"}})]
    change = {"spec": {"template": {"spec": {"topologySpreadConstraints": worse}}}}

    refused = plane.api.send("PATCH", path("Deployment", old_deployment, "old"), change, MERGE)

    assert (refused.status, "hostname[2]" in refused.message, "zone[0]" in refused.message) == (403, True, False)


def test_a_namespace_with_an_old_faulty_deployment_is_deleted(plane, old_deployment):
    plane.api.request("DELETE", f"/api/v1/namespaces/{old_deployment}")

    # The namespace controller takes ten seconds whatever there is.
    eventually(gone(plane, f"/api/v1/namespaces/{old_deployment}"), 40, 0.2)


@pytest.mark.parametrize(
    ("suffix", "change"),
    [
        pytest.param("", {"metadata": {"annotations": {"note": "x"}}}, id="annotated"),
        pytest.param("", {"spec": {"replicas": 5}}, id="scaled by a patch"),
        pytest.param("/scale", {"spec": {"replicas": 5}}, id="scaled"),
        pytest.param("/status", {"status": {"replicas": 2}}, id="given a status"),
        pytest.param("", {"spec": {"template": {"metadata": {"annotations": {"at": "now"}}}}}, id="restarted"),
        pytest.param("", {"spec": {"paused": True}}, id="paused"),
    ],
)
def test_an_old_broken_rollout_can_be(plane, old_rollout, suffix, change):
    changed = plane.api.send("PATCH", path("Rollout", old_rollout, "old") + suffix, change, MERGE)

    assert changed.status == 200, changed.message


def test_an_old_broken_rollout_loses_its_finalizer_and_goes(plane, old_rollout):
    where = path("Rollout", old_rollout, "old")
    deleted = plane.api.request("DELETE", where, {"propagationPolicy": "Foreground"})
    assert deleted["metadata"]["deletionTimestamp"]

    for finalizers in (["foregroundDeletion"], None):
        plane.api.send("PATCH", where, {"metadata": {"finalizers": finalizers}}, MERGE)

    eventually(gone(plane, where))


def test_a_further_fault_of_an_old_broken_rollout_is_refused(plane, old_rollout):
    worse = [constraint(maxSkew=0), constraint(topologyKey=HOST, maxSkew=-1)]
    change = {"spec": {"template": {"spec": {"topologySpreadConstraints": worse}}}}

    refused = plane.api.send("PATCH", path("Rollout", old_rollout, "old"), change, MERGE)

    assert (refused.status, "topologySpreadConstraints[1].maxSkew: Invalid value: -1" in refused.message) == (403, True)


def test_an_old_rollout_of_the_wrong_types_loses_its_finalizer(plane, namespace, denying):
    broken = workload("Rollout", "old", constraint(maxSkew="1"))
    broken["metadata"]["finalizers"] = ["example.com/kept"]
    where = path("Rollout", namespace, "old")
    plane.api.request("POST", path("Rollout", namespace), broken)
    with registered(plane, namespace, denying.server):
        plane.api.request("PATCH", where, {"metadata": {"annotations": {"note": "x"}}}, MERGE)
        plane.api.request("DELETE", where)
        plane.api.request("PATCH", where, {"metadata": {"finalizers": None}}, MERGE)

        eventually(gone(plane, where))


EPHEMERAL = {"spec": {"ephemeralContainers": [{"name": "e", "image": "busybox"}]}}


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["annotate", "pod/old", "note=x"], id="annotated"),
        pytest.param(["label", "pod/old", "team=x"], id="labelled"),
        pytest.param(["set", "image", "pod/old", "c=busybox:2"], id="given another image"),
        pytest.param(["patch", "pod/old", "--subresource=ephemeralcontainers", "-p", EPHEMERAL], id="debugged"),
        pytest.param(["delete", "pod/old", "--timeout=60s"], id="deleted"),
    ],
)
def test_an_old_faulty_pod_can_be(plane, kubectl, namespace, denying, arguments):
    plane.api.request("POST", path("Pod", namespace), pod("old", OTHERS))
    with registered(plane, namespace, denying.server):
        ran = kubectl("-n", namespace, *(each if isinstance(each, str) else json.dumps(each) for each in arguments))

    assert ran.code == 0, ran


def test_an_old_faulty_stateful_set_leaves_its_pods_behind(plane, kubectl, namespace, denying):
    plane.api.request("POST", path("StatefulSet", namespace), workload("StatefulSet", "old", OTHERS))
    eventually(lambda: len(plane.api.request("GET", path("Pod", namespace))["items"]) == 2)
    with registered(plane, namespace, denying.server):
        ran = kubectl("-n", namespace, "delete", "statefulset/old", "--cascade=orphan", "--timeout=60s")
        left = plane.api.request("GET", path("Pod", namespace))["items"]

    assert ran.code == 0, ran
    assert [(each["metadata"]["name"], "ownerReferences" in each["metadata"]) for each in left] == [
        ("old-0", False),
        ("old-1", False),
    ]


@pytest.mark.parametrize(
    "how", [("apply",), ("apply", "--server-side", "--force-conflicts"), ("replace",)], ids=" ".join
)
def test_the_manifest_of_an_old_faulty_deployment_is_put_there_again(kubectl, old_deployment, how):
    again = workload("Deployment", "old", OTHERS, OUTDATED, replicas=3)
    again["spec"]["template"]["spec"]["containers"][0]["image"] = "busybox:2"

    ran = kubectl("-n", old_deployment, *how, "-f", "-", stdin=again)

    assert ran.code == 0, ran
