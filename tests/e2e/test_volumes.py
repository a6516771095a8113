"""What `simulate` says of Deployments with volumes, and how many of their pods the real scheduler places.

The test is the storage driver: it makes a volume for each claim whose node the scheduler chose.
"""

import json
import pathlib
import subprocess
import sys
import time

import pytest
from e2e.controlplane.up import ControlPlane
from e2e.objects import HOST, path, pods
from e2e.waiting import eventually

DRIVER = "disk.example.com"
SELECTED = "volume.kubernetes.io/selected-node"
DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
STORAGE = "/apis/storage.k8s.io/v1"
SETTLED = 12  # seconds: the scheduler tries a pod again after ten at the latest


@pytest.fixture(name="own_plane", scope="module")
def _own_plane(binaries, tmp_path_factory):
    with ControlPlane(tmp_path_factory.mktemp("ephemeral"), binaries) as plane:
        plane.add_nodes({"a": 2, "b": 1})
        plane.await_nodes()
        limits = {"node-a-0": 2, "node-a-1": 1, "node-b-0": 2}
        for node, count in limits.items():
            drivers = [{"name": DRIVER, "nodeID": node, "allocatable": {"count": count}}]
            made = {"kind": "CSINode", "metadata": {"name": node}, "spec": {"drivers": drivers}}
            plane.api.request("POST", f"{STORAGE}/csinodes", {"apiVersion": "storage.k8s.io/v1", **made})
        in_a = [{"matchLabelExpressions": [{"key": "topology.kubernetes.io/zone", "values": ["a"]}]}]
        for name, more in {"any": {"metadata": {"name": "any", "annotations": DEFAULT}}, "zone-a": {}}.items():
            made = {"kind": "StorageClass", "metadata": {"name": name}, "provisioner": DRIVER, **more}
            made |= {"apiVersion": "storage.k8s.io/v1", "volumeBindingMode": "WaitForFirstConsumer"}
            made |= {"allowedTopologies": in_a} if name == "zone-a" else {}
            plane.api.request("POST", f"{STORAGE}/storageclasses", made)
        yield plane


def claim_spec(storage_class: str | None, mode: str = "ReadWriteOnce") -> dict:
    spec = {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}}
    return spec | ({"storageClassName": storage_class} if storage_class else {})


def ephemeral(storage_class: str | None = "any") -> dict:
    return {"ephemeral": {"volumeClaimTemplate": {"spec": claim_spec(storage_class)}}}


SHARED = {"persistentVolumeClaim": {"claimName": "data"}}
DISK = {"gcePersistentDisk": {"pdName": "data"}}


def deployment(replicas: int, *volumes: dict, spread: bool = False) -> dict:
    rule = {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule"}
    labels = {"app": "web"}
    spec = {
        "containers": [{"name": "c", "image": "i"}],
        "volumes": [{"name": f"v{number}", **volume} for number, volume in enumerate(volumes)],
        "topologySpreadConstraints": [rule | {"labelSelector": {"matchLabels": labels}}] if spread else [],
    }
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def simulated(plane: ControlPlane, made: dict, folder: pathlib.Path) -> tuple[int, int]:
    """The least and the most pods that get a node."""
    manifest = folder / "deployment.json"
    manifest.write_text(json.dumps(made))
    options = ("--kubeconfig", plane.admin, "--no-config", "-o", "json")
    command = [sys.executable, "-m", "webhook", "simulate", manifest, *options]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode in {0, 1}, ran.stderr
    fits = json.loads(ran.stdout)["fits"]
    return fits["min"], fits["max"]


def provide_volumes(plane: ControlPlane) -> None:
    known = {volume["metadata"]["name"] for volume in plane.api.request("GET", "/api/v1/persistentvolumes")["items"]}
    for claim in plane.api.request("GET", CLAIMS)["items"]:
        meta, spec = claim["metadata"], claim["spec"]
        if SELECTED not in meta.get("annotations", {}) or meta["uid"] in known:
            continue
        made = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": meta["uid"]},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": spec["accessModes"],
                "storageClassName": spec["storageClassName"],
                "persistentVolumeReclaimPolicy": "Delete",
                "claimRef": {"namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]},
                "csi": {"driver": DRIVER, "volumeHandle": meta["uid"]},
            },
        }
        plane.api.request("POST", "/api/v1/persistentvolumes", made)


def placed(plane: ControlPlane) -> int:
    provide_volumes(plane)
    return sum("nodeName" in pod["spec"] for pod in pods(plane, "default"))


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        pytest.param(deployment(5, ephemeral()), 5, id="as many as the nodes can attach"),
        pytest.param(deployment(6, ephemeral(None)), 5, id="one more, with the default class"),
        pytest.param(deployment(3, ephemeral(), ephemeral()), 2, id="two volumes, which one node cannot attach"),
        pytest.param(deployment(4, ephemeral("zone-a")), 3, id="volumes only in zone a"),
        pytest.param(deployment(3, ephemeral("zone-a"), spread=True), 2, id="and the third must go to zone b"),
        pytest.param(deployment(2, SHARED), 1, id="one claim for one pod"),
        pytest.param(deployment(4, DISK), 3, id="a disk that one pod on a node can mount"),
    ],
)
def test_simulate_says_what_the_scheduler_does(own_plane, tmp_path, made, expected):
    api = own_plane.api
    if made["spec"]["template"]["spec"]["volumes"] == [{"name": "v0", **SHARED}]:
        claim = {"metadata": {"name": "data"}, "spec": claim_spec("any", "ReadWriteOncePod")}
        api.request("POST", CLAIMS, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim})
    said = simulated(own_plane, made, tmp_path)
    api.request("POST", path("Deployment", "default"), made)
    try:
        eventually(lambda: placed(own_plane) == expected, 60, 0.2)
        until = time.monotonic() + (SETTLED if expected < made["spec"]["replicas"] else 0)
        while time.monotonic() < until:
            assert placed(own_plane) == expected
            time.sleep(0.2)
    finally:
        api.request("DELETE", path("Deployment", "default", "web"))
        eventually(lambda: not pods(own_plane, "default"), 60)
        api.send("DELETE", f"{CLAIMS}/data")
        eventually(lambda: not api.request("GET", CLAIMS)["items"], 60)
        for volume in api.request("GET", "/api/v1/persistentvolumes")["items"]:
            api.request("DELETE", f"/api/v1/persistentvolumes/{volume['metadata']['name']}")
    assert said == (expected, expected)
