"""Manifests after `check --add-defaults --write`, at a real API server and its controllers."""

import json
import subprocess

import pytest
import yaml
from e2e.objects import HOST, ZONE, path, workload
from e2e.served import PROGRAM
from e2e.test_defaults import service
from e2e.waiting import eventually

POLICY = {
    "apiVersion": "config.evenspread.io/v1alpha1",
    "kind": "SpreadPolicy",
    "defaults": {
        "defaultConstraints": [
            {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "hardWhenDomains": 3},
            {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "ScheduleAnyway"},
        ]
    },
}
KINDS = ("Deployment", "StatefulSet", "ReplicaSet")


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_what_is_written_is_accepted_and_spread(plane, kubectl, namespace, tmp_path, suffix):
    objects = [workload(kind, f"{kind.lower()}-web", replicas=3) for kind in KINDS]
    for each in objects:
        labels = {"app": each["metadata"]["name"]}
        each["spec"]["selector"]["matchLabels"] = each["spec"]["template"]["metadata"]["labels"] = labels
        each["metadata"]["namespace"] = namespace
    front = {**service("front", app="deployment-web"), "metadata": {"name": "front", "namespace": namespace}}
    manifests = tmp_path / f"web.{suffix}"
    listed = {"apiVersion": "v1", "kind": "List", "items": [*objects, front]}
    manifests.write_text(json.dumps(listed, indent=2) if suffix == "json" else yaml.safe_dump_all([*objects, front]))
    policy = tmp_path / "policy"
    policy.write_text(json.dumps(POLICY))
    command = [
        PROGRAM,
        "check",
        "--add-defaults",
        "--write",
        "--config",
        policy,
        "--kubeconfig",
        plane.admin,
        manifests,
    ]

    written = subprocess.run([*command, manifests], capture_output=True, text=True, timeout=60, check=False)
    applied = kubectl("apply", "--validate=strict", "-f", str(manifests))

    assert (written.returncode, len(written.stdout.splitlines())) == (0, 3), written.stderr
    assert (applied.code, applied.err) == (0, ""), applied.err
    for each in objects:
        name, revision = each["metadata"]["name"], ["pod-template-hash"] if each["kind"] == "Deployment" else []
        pods = eventually(lambda name=name: placed(plane, namespace, name), timeout=60)
        assert zones(plane, pods) == {"a", "b", "c"}
        for pod in pods:
            zone, host = pod["spec"]["topologySpreadConstraints"]
            assert (zone["topologyKey"], zone["whenUnsatisfiable"]) == (ZONE, "DoNotSchedule")
            assert (host["topologyKey"], host["whenUnsatisfiable"]) == (HOST, "ScheduleAnyway")
            assert zone.get("matchLabelKeys", []) == revision
            assert zone["labelSelector"]["matchLabels"]["app"] == name
    findings = subprocess.run([PROGRAM, "check", manifests], capture_output=True, text=True, timeout=60, check=False)
    assert findings.returncode == 0, findings.stdout


def placed(plane, namespace, app):
    """The three pods, once all have a node."""
    items = plane.api.request("GET", f"{path('Pod', namespace)}?labelSelector=app%3D{app}")["items"]
    return items if len(items) == 3 and all(pod["spec"].get("nodeName") for pod in items) else None


def zones(plane, pods):
    nodes = {each["metadata"]["name"]: each for each in plane.api.request("GET", "/api/v1/nodes")["items"]}
    return {nodes[pod["spec"]["nodeName"]]["metadata"]["labels"][ZONE] for pod in pods}
