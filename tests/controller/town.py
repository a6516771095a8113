"""A small cluster in the fake API server, and one replica that scans it."""

import contextlib
import threading

from cluster.api import FakeApi
from cluster.following import eventually, server

from webhook.controller.figures import ScanFigures
from webhook.controller.scan import Scanner
from webhook.controller.scan_inputs import ScanSettings
from webhook.core.policy.policy import Policy
from webhook.core.scan.workload_scan import scan_workload

ZONE = "topology.kubernetes.io/zone"
HARD = {
    "maxSkew": 1,
    "topologyKey": ZONE,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}
NOW = "2026-11-23T12:00:00Z"


@contextlib.contextmanager
def town():
    """An API server with reports and rollouts, a node in each of three zones, and a namespace."""
    with FakeApi(tls=False) as api:
        api.absent -= {"reports", "rollouts"}
        add_nodes(api)
        api.put("namespaces", "shop")
        yield api


def add_nodes(api, zones="abc"):
    for zone in zones:
        amounts = {"cpu": "8", "memory": "16Gi", "pods": "110"}
        labels = {ZONE: zone, "kubernetes.io/hostname": f"n-{zone}"}
        status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
        api.put("nodes", f"n-{zone}", metadata={"labels": labels}, spec={}, status=status)


def add_workload(api, name="web", namespace="shop", *, replicas=3, constraint=HARD, app="web", kind="deployments"):
    spec = {"containers": [{"name": "c", "image": "busybox"}], "topologySpreadConstraints": [constraint]}
    return api.put(
        kind,
        name,
        namespace,
        spec={
            "replicas": replicas,
            "selector": {"matchLabels": {"app": app}},
            "template": {"metadata": {"labels": {"app": app}}, "spec": spec},
        },
    )


def owned_by(owner):
    """The owner references of what it made."""
    meta = owner["metadata"]
    said = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"]}
    return [{**said, "controller": True}]


def add_pods(api, places, owner=None, namespace="shop", *, app="web", constraint=HARD, created=NOW):
    """Pods by their node; "" for one that waits."""
    for number, node in enumerate(places):
        spec = {"containers": [{"name": "c", "image": "busybox"}], "topologySpreadConstraints": [constraint]}
        status = {"phase": "Running"} if node else {"phase": "Pending", "conditions": [UNSCHEDULABLE]}
        meta = {"labels": {"app": app}, "creationTimestamp": created}
        if owner is not None:
            meta["ownerReferences"] = owned_by(owner)
        name = f"{app}-{number}"
        api.put("pods", name, namespace, metadata=meta, spec=spec | ({"nodeName": node} if node else {}), status=status)


UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


def add_set(api, places, name="web", namespace="shop", *, constraint=HARD, created=NOW):
    """A StatefulSet, and its pods by their nodes."""
    made = add_workload(
        api, name, namespace, replicas=len(places), constraint=constraint, app=name, kind="statefulsets"
    )
    add_pods(api, places, made, namespace, app=name, constraint=constraint, created=created)


def add_deployment(api, places, name="web", namespace="shop", *, constraint=HARD):
    """A Deployment, its ReplicaSet, and its pods by their nodes."""
    made = add_workload(api, name, namespace, replicas=len(places), constraint=constraint, app=name)
    meta = {"labels": {"app": name}, "ownerReferences": owned_by(made)}
    sets = api.put("replicasets", f"{name}-1", namespace, **{**made, "metadata": meta})
    add_pods(api, places, sets, namespace, app=name, constraint=constraint)


class Replica:
    """One that leads until it is told otherwise, and scans when the test says so."""

    def __init__(self, api, folder, *, now=1_795_435_260.0, **settings):
        self.leads = True
        self.now = now  # a minute after NOW
        self.evaluate = scan_workload
        self.policy = Policy()
        self.clock = lambda: self.now
        self.scanner = Scanner(
            server(api, folder),
            ScanSettings(**{"full_interval": 300.0, "share": 1.0, **settings}),
            "one",
            leading=lambda: self.leads,
            policy=lambda: self.policy,
            clock=lambda: self.clock(),  # noqa: PLW0108 tests replace it
            evaluate=lambda raw, within: self.evaluate(raw, within),  # noqa: PLW0108 tests replace it
        )

    def turn(self, seconds=30):
        """Do what is due after these seconds."""
        self.now += seconds
        self.scanner.turn()

    def scans(self):
        """Turn until one more full scan has come to its end."""
        before = self.scanner.latest
        self.now += 300
        eventually(lambda: self.scanner.turn() and self.scanner.latest is not before)
        return self.scanner.latest.scan

    def updates(self, seconds=10):
        """Turn once, after the time between two updates: a full scan is not due."""
        self.now += seconds
        self.scanner.turn()
        assert not self.scanner.fault
        return self.scanner.latest.scan

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.scanner.stop()
        self.leads = False
        self.scanner.turn()
        assert not [each for each in threading.enumerate() if each.name.startswith("cluster-")]


def figures(replica):
    """The samples of the scanner's metrics, by name and label values."""
    return {
        (each.name, *each.labels.values()): each.value
        for family in ScanFigures(replica.scanner).collect()
        for each in family.samples
    }
