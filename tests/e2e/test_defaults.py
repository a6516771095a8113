"""Pods that declare no constraint get the configured ones on their way into a real API server."""

import json

import pytest
from e2e.objects import HOST, ZONE, constraint, path, pod, workload
from e2e.registration import registered
from e2e.served import certified, serving
from e2e.waiting import eventually

DEFAULTS = {
    "defaults": {
        "mode": "inject",
        "defaultConstraints": [
            {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"},
            {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "ScheduleAnyway"},
        ],
    }
}


def service(name, **selector):
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": selector, "ports": [{"port": 80}]},
    }


def snapshot(plane, namespace):
    """What the webhook must know of a cluster to deduce selectors, in its own file format."""
    listed = {
        "v1 Namespace": "/api/v1/namespaces",
        "v1 Node": "/api/v1/nodes",
        "v1 Service": path("Service", namespace),
        "apps/v1 Deployment": path("Deployment", namespace),
        "apps/v1 ReplicaSet": path("ReplicaSet", namespace),
    }
    lines = [{"kind": "Snapshot", "kubernetesVersion": "v1.37.1", "takenAt": "2026-01-01T00:00:00Z"}]
    for named, where in listed.items():
        version, kind = named.split()
        lines += [{"apiVersion": version, "kind": kind, **item} for item in plane.api.request("GET", where)["items"]]
    return "\n".join(map(json.dumps, lines))


@pytest.fixture(name="defaulted")
def _defaulted(plane, namespace, tmp_path):
    """A Deployment and a Service from before the webhook, and the webhook with a snapshot that has them."""
    plane.api.request("POST", path("Service", namespace), service("bare", tier="bare"))
    plane.api.request("POST", path("Deployment", namespace), workload("Deployment", "web", replicas=6))
    eventually(lambda: len(pods(plane, namespace)) == 6)
    (tmp_path / "cluster.jsonl").write_text(snapshot(plane, namespace))
    flags = certified(tmp_path, plane.authority)
    with (
        serving(tmp_path, DEFAULTS, f"--snapshot={tmp_path}/cluster.jsonl", *flags) as webhook,
        registered(plane, namespace, webhook.server),
    ):
        yield namespace


def pods(plane, namespace, phase="Running"):
    return [
        item
        for item in plane.api.request("GET", path("Pod", namespace))["items"]
        if item["status"].get("phase") == phase
    ]


def test_the_pods_of_a_deployment_get_the_defaults(plane, kubectl, defaulted):
    kubectl("-n", defaulted, "delete", "pods", "--all", "--now")
    made = eventually(lambda: len(all_pods := pods(plane, defaulted)) == 6 and all_pods)

    revision = made[0]["metadata"]["labels"]["pod-template-hash"]
    # The API server itself merges matchLabelKeys into the selector of what it stores.
    selector = {
        "matchLabels": {"app": "web"},
        "matchExpressions": [{"key": "pod-template-hash", "operator": "In", "values": [revision]}],
    }
    common = {"maxSkew": 1, "labelSelector": selector, "matchLabelKeys": ["pod-template-hash"]}
    expected = [
        {**common, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"},
        {**common, "topologyKey": HOST, "whenUnsatisfiable": "ScheduleAnyway"},
    ]
    assert [item["spec"]["topologySpreadConstraints"] for item in made] == [expected] * 6
    injected = json.loads(made[0]["metadata"]["annotations"]["evenspread.io/injected"])
    assert [each["topologyKey"] for each in injected["constraints"]] == [ZONE, HOST]
    zones = sorted(item["spec"]["nodeName"].split("-")[1] for item in made)
    assert zones == ["a", "a", "b", "b", "c", "c"]


def test_the_workload_itself_is_never_changed(plane, defaulted):
    where = path("Deployment", defaulted, "web")
    change = {"metadata": {"annotations": {"note": "x"}}}
    changed = plane.api.request("PATCH", where, change, "application/merge-patch+json")

    assert "topologySpreadConstraints" not in changed["spec"]["template"]["spec"]
    assert set(changed["metadata"]["annotations"]) == {"note", "deployment.kubernetes.io/revision"}


BARE = {"labels": {"tier": "bare"}}
OPTED_OUT = {**BARE, "annotations": {"evenspread.io/skip": "true"}}


@pytest.mark.parametrize(
    ("metadata", "own", "keys"),
    [
        pytest.param(BARE, (), [ZONE, HOST], id="a bare pod of a Service: both"),
        pytest.param({"labels": {"tier": "other"}}, (), [], id="a pod that nothing selects: none"),
        pytest.param(BARE, (constraint(maxSkew=5),), [ZONE], id="a pod with a constraint: its own"),
        pytest.param(OPTED_OUT, (), [], id="a pod that opted out: none"),
    ],
)
def test_a_pod_without_an_owner_gets_what_the_scheduler_would_assume(plane, defaulted, metadata, own, keys):
    bare = pod("bare", *own)
    bare["metadata"] |= metadata

    made = plane.api.request("POST", path("Pod", defaulted), bare)

    constraints = made["spec"].get("topologySpreadConstraints", [])
    assert [each["topologyKey"] for each in constraints] == keys
    injected = keys == [ZONE, HOST]
    assert ("evenspread.io/injected" in made["metadata"].get("annotations", {})) == injected
    if injected:
        assert [each["labelSelector"] for each in constraints] == [{"matchLabels": {"tier": "bare"}}] * 2


def test_pods_of_an_owner_that_is_not_known_pass_as_they_are(plane, kubectl, defaulted):
    """The ReplicaSet of a new revision is younger than the snapshot."""
    kubectl("-n", defaulted, "rollout", "restart", "deployment/web")
    ran = kubectl("-n", defaulted, "rollout", "status", "deployment/web", "--timeout=60s")

    assert ran.out.splitlines()[-1:] == ['deployment "web" successfully rolled out']
    assert [item["spec"].get("topologySpreadConstraints") for item in pods(plane, defaulted)] == [None] * 6
