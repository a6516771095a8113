"""The chart with two replicas under its memory limit, beside a large cluster, and what it takes."""

import contextlib
import json
import pathlib
import re
import subprocess
from typing import NamedTuple

from chart.rendered import CHART
from e2e.attacks.crowd import copied, first_node, first_pod
from e2e.controlplane.up import ControlPlane
from e2e.kubelet import Container, Kubelet
from e2e.registration import GROUP
from e2e.waiting import eventually

from webhook.core.rules.cluster.replica_range import MINIMUM
from webhook.core.rules.rule_set import RULES

NAMESPACE = "evenspread"
CROWD, NORMAL, BESIDE, TENANT = "crowd", "shop", "beside", "tenant"
MORE_TENANTS = tuple(f"{TENANT}-{number}" for number in range(4))
NAMES = [f"evenspread-webhook.{NAMESPACE}.svc"]
ROLE = "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/{}"
# The bystander's two replicas are right, although the large cluster has three zones.
VALUES = {
    "config": {"ceiling": "deny", "rules": {rule.id: "deny" for rule in RULES} | {MINIMUM.id: "audit"}},
    "webhook": {"excludedNamespaces": [BESIDE, CROWD]},
    # The Secret below: nothing but the two replicas is to run.
    "certificates": {"mode": "existingSecret"},
    "controller": {"scan": {"enabled": False}},
}
# They would take processor time for what is none of the webhook's, and judge nothing of it.
READ = 180  # seconds until the replicas know 150,000 pods
STALE = 10  # seconds: a sixth of maxStaleness, and longer than a watch takes to open again
BYSTANDING = ("kube-scheduler", "kube-controller-manager", "kwok")


class Standing(NamedTuple):
    """What one replica has."""

    processes: int
    descriptors: int
    connections: int
    resident: float  # MiB


def prepared(plane: ControlPlane) -> None:
    """Namespaces, a tenant's rights, and what the large cluster is copied from."""
    for name in (NAMESPACE, CROWD, NORMAL, BESIDE, TENANT, *MORE_TENANTS):
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        plane.api.request("POST", "/api/v1/namespaces", namespace)
        where = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        eventually(lambda where=where: plane.api.send("GET", where).status == 200)
    everything = [
        {"apiGroups": ["", "apps", "argoproj.io", "jobset.x-k8s.io"], "verbs": ["create"], "resources": ["*"]}
    ]
    for name in (TENANT, *MORE_TENANTS):
        _made(plane, name, "Role", {"rules": everything})
        subject = {"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}
        reference = {"kind": "Role", "name": TENANT, "apiGroup": "rbac.authorization.k8s.io"}
        _made(plane, name, "RoleBinding", {"subjects": [subject], "roleRef": reference})
    first_node(plane)
    first_pod(plane, CROWD)


def _made(plane: ControlPlane, namespace: str, kind: str, fields: dict) -> None:
    made = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": TENANT}, **fields}
    plane.api.request("POST", ROLE.format(namespace, kind.lower() + "s"), made)


@contextlib.contextmanager
def installed(plane: ControlPlane, folder: pathlib.Path, *, nodes: int, pods: int, apps: int):
    """The replicas, once they know the large cluster; nothing but them and the API server takes time after that."""
    certificate, key = plane.authority.issue("webhook", names=tuple(NAMES))
    data = {"tls.crt": certificate, "tls.key": key, "ca.crt": plane.authority.pem}
    secret = {
        "metadata": {"name": "evenspread-webhook-tls"},
        "stringData": {name: each.decode() for name, each in data.items()},
    }
    where = f"/api/v1/namespaces/{NAMESPACE}/secrets"
    plane.api.request("POST", where, {"apiVersion": "v1", "kind": "Secret", **secret})
    values = folder / "values.json"
    values.write_text(json.dumps(VALUES))
    helm = [plane.binaries / "helm", "install", "evenspread", CHART, "-n", NAMESPACE, "-f", values, "--wait"]
    environment = {"HOME": str(folder), "KUBECONFIG": str(plane.admin), "PATH": "/usr/bin:/bin"}
    subprocess.run(helm, env=environment, check=True, stdout=subprocess.DEVNULL, timeout=90)
    slices = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"

    def reachable():
        found = plane.api.request("GET", slices)["items"]
        return sum(len(each["endpoints"] or ()) for each in found) == 2

    eventually(reachable, 30)
    kubelet = Kubelet(plane, NAMESPACE, folder / "pods")
    try:
        for name in BYSTANDING:
            plane.kill(name)
        copied(plane, CROWD, nodes=nodes, pods=pods, apps=apps)
        kubelet.sync(READ)
        yield kubelet.containers
    finally:
        kubelet.stop()


def under(plane: ControlPlane, policy: str) -> None:
    """The chart's value `webhook.failurePolicy`, once it is in effect."""
    where = f"{GROUP}/validatingwebhookconfigurations/evenspread"
    change = [{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": policy}]
    plane.api.request("PATCH", where, change, "application/json-patch+json")


def blind(replica: Container) -> list[str]:
    """The kinds that the replica has received nothing of for a while, or not all of, as its metrics say."""
    page = replica.get("/metrics")[1]
    found = re.findall(r"^(evenspread_cluster_(age_seconds|left_out_objects){.*} (\S+))$", page, re.MULTILINE)
    assert sum('"pods"' in line for line, *_ in found) == 2
    return [line for line, what, value in found if float(value) > (STALE if what == "age_seconds" else 0)]


def standing(replica: Container) -> Standing:
    members = replica.group.members
    page = replica.get("/metrics")[1]
    connections = re.search(r"^evenspread_open_connections (\S+)$", page, re.MULTILINE)
    return Standing(
        len(members),
        sum(len([*pathlib.Path(f"/proc/{pid}/fd").iterdir()]) for pid in members),
        int(float(connections[1])) if connections else -1,
        replica.group.anonymous,
    )
