"""What is not ours passes: every other kind, every subresource, every controller, with every rule on deny."""

import pytest
from e2e.objects import clean, constraint, path, pod, pod_spec, workload
from e2e.registration import registered
from e2e.waiting import eventually

MERGE = "application/merge-patch+json"


@pytest.fixture(name="hooked")
def _hooked(plane, namespace, denying):
    with registered(plane, namespace, denying.server):
        yield namespace


def running(plane, namespace):
    pods = plane.api.request("GET", path("Pod", namespace))["items"]
    return sum(each["status"].get("phase") in {"Running", "Succeeded"} for each in pods)


@pytest.mark.parametrize(
    ("where", "made", "pods"),
    [
        pytest.param("apps/v1/deployments", clean("Deployment"), 2, id="a Deployment"),
        pytest.param("apps/v1/statefulsets", clean("StatefulSet"), 2, id="a StatefulSet"),
        pytest.param("apps/v1/replicasets", clean("ReplicaSet"), 2, id="a ReplicaSet"),
        pytest.param("apps/v1/daemonsets", clean("DaemonSet"), 6, id="a DaemonSet"),
        pytest.param(
            "batch/v1/jobs",
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": "web"},
                "spec": {"completions": 2, "parallelism": 2, "template": {"spec": pod_spec(restartPolicy="Never")}},
            },
            2,
            id="a Job",
        ),
    ],
)
def test_pods_come_up_for(plane, hooked, where, made, pods):
    group, version, plural = where.split("/")
    created = plane.api.send("POST", f"/apis/{group}/{version}/namespaces/{hooked}/{plural}", made)
    assert (created.status, created.warnings) == (201, ()), created.message

    eventually(lambda: running(plane, hooked) == pods)


def test_a_rollout_of_a_deployment_comes_to_its_end(plane, kubectl, hooked):
    plane.api.request("POST", path("Deployment", hooked), clean("Deployment", replicas=6))
    for image in ("busybox:2", "busybox:3"):
        kubectl("-n", hooked, "set", "image", "deployment/web", f"c={image}")
        ran = kubectl("-n", hooked, "rollout", "status", "deployment/web", "--timeout=60s")
        assert ran.out.splitlines()[-1:] == ['deployment "web" successfully rolled out']
    ran = kubectl("-n", hooked, "rollout", "undo", "deployment/web")
    assert (ran.code, ran.err) == (0, "")


def test_a_pod_with_a_generated_name_is_created(plane, hooked):
    created = plane.api.request("POST", path("Pod", hooked), pod("web-", constraint()))

    assert created["metadata"]["name"].startswith("web-")


def test_a_dry_run_is_refused_like_the_real_thing_and_leaves_nothing(plane, hooked):
    where = path("Rollout", hooked)
    faulty = workload("Rollout", "web", constraint(maxSkew=0))
    dry, real = plane.api.send("POST", f"{where}?dryRun=All", faulty), plane.api.send("POST", where, faulty)
    passed = plane.api.send("POST", f"{where}?dryRun=All", clean("Rollout"))

    assert (dry.status, dry.message) == (403, real.message)
    assert (passed.status, plane.api.request("GET", where)["items"]) == (201, [])


@pytest.mark.parametrize("kind", ["Deployment", "Rollout"])
def test_the_scale_of_a_workload_is_changed(plane, hooked, kind):
    plane.api.request("POST", path(kind, hooked), clean(kind))
    where = path(kind, hooked, "web") + "/scale"

    changed = plane.api.send("PATCH", where, {"spec": {"replicas": 4}}, MERGE)

    assert (changed.status, changed.warnings, changed.body["spec"]) == (200, (), {"replicas": 4})


@pytest.mark.parametrize(
    ("suffix", "body"),
    [
        pytest.param(
            "eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web"}}, id="an eviction"
        ),
        pytest.param(
            "binding",
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": "web"},
                "target": {"apiVersion": "v1", "kind": "Node", "name": "node-a-0"},
            },
            id="a binding",
        ),
    ],
)
def test_a_pod_takes(plane, hooked, suffix, body):
    plane.api.request("POST", path("Pod", hooked), pod("web", schedulerName="none"))

    taken = plane.api.send("POST", path("Pod", hooked, "web") + f"/{suffix}", body)

    assert taken.status == 201, taken.message


def test_connecting_to_a_pod_is_not_refused_by_us(plane, kubectl, hooked):
    plane.api.request("POST", path("Pod", hooked), pod("web"))
    eventually(lambda: running(plane, hooked) == 1)

    ran = kubectl("-n", hooked, "exec", "web", "--", "true")

    # A fake node has no kubelet: the API server came past admission and failed to dial it.
    assert ran.code == 1
    assert "dial tcp 127.0.0.1:10250" in ran.err
    assert "admission webhook" not in ran.err


@pytest.mark.parametrize(
    ("where", "made"),
    [
        pytest.param(
            "/api/v1/namespaces/{}/services",
            {"kind": "Service", "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}},
            id="a Service",
        ),
        pytest.param("/api/v1/namespaces/{}/secrets", {"kind": "Secret", "stringData": {"a": "b"}}, id="a Secret"),
        pytest.param(
            "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
            {"kind": "Lease", "spec": {"holderIdentity": "x"}},
            id="a Lease",
        ),
        pytest.param(
            "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
            {"kind": "PodDisruptionBudget", "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}},
            id="a PodDisruptionBudget",
        ),
    ],
)
def test_other_kinds_are_created_and_deleted(plane, hooked, where, made):
    version = where.removeprefix("/apis/").removeprefix("/api/").partition("/namespaces")[0]
    made = {"apiVersion": version, "metadata": {"name": "other"}, **made}

    created = plane.api.send("POST", where.format(hooked), made)
    deleted = plane.api.send("DELETE", f"{where.format(hooked)}/other")

    assert (created.status, deleted.status) == (201, 200)
