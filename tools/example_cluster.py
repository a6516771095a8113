"""Writes cluster.jsonl, a snapshot of a cluster that does not exist: ``python -m tools.example_cluster``.

Twelve nodes: four in each of zones a and b, three in c, of which one is cordoned and one is tainted for GPUs, and one
at the edge without a zone. The workloads below are what teams run there, each with its remark; placement is by hand,
as their constraints allow it. Equal input gives equal bytes: uids and names come from hashes.
"""

import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

_FILE = Path(__file__).parents[1] / "webhook" / "example" / "cluster.jsonl"
_Json = Mapping[str, object]

TAKEN_AT = "2026-11-20T09:00:00Z"
# There are none of most.
_RESOURCES = (
    *("nodes", "namespaces", "services", "replicasets", "statefulsets", "deployments", "replicationcontrollers"),
    *("pods", "horizontalpodautoscalers", "persistentvolumeclaims", "persistentvolumes", "storageclasses", "csinodes"),
    *("csidrivers", "csistoragecapacities", "volumeattachments"),
    *("limitranges", "priorityclasses", "runtimeclasses", "spreadgroups", "daemonsets", "jobs", "cronjobs"),
)
_ZONE = "topology.kubernetes.io/zone"
_REGION = "topology.kubernetes.io/region"
_HOSTNAME = "kubernetes.io/hostname"
_NAMESPACES: Mapping[str, Mapping[str, str]] = {
    "batch": {},
    "data": {"team": "storage"},
    "ingress": {"team": "platform"},
    "kube-system": {},
    "legacy": {"evenspread.io/ceiling": "audit"},
    "monitoring": {"team": "platform"},
    "payments": {"team": "payments", "tier": "critical"},
    "shop": {"team": "shop"},
}
_NODES = {
    **{f"worker-{zone}{number}": zone for zone in "ab" for number in (1, 2, 3, 4)},
    "worker-c1": "c",
    "worker-c2": "c",
    "gpu-c1": "c",
    "edge-1": "",
}
_TAINTS: Mapping[str, _Json] = {
    "worker-c2": {
        "key": "node.kubernetes.io/unschedulable",
        "effect": "NoSchedule",
        "timeAdded": "2026-11-19T16:20:00Z",
    },
    "gpu-c1": {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"},
}
_API_VERSIONS = {"Job": "batch/v1", "ReplicationController": "v1", "Rollout": "argoproj.io/v1alpha1"}
_REVISION_LABELS = {"Deployment": "pod-template-hash", "Rollout": "rollouts-pod-template-hash"}


_HARD = "DoNotSchedule"
_SOFT = "ScheduleAnyway"


def _spread(key: str, when: str, counts: str | None, *, skew: int = 1, by_revision: bool = False) -> _Json:
    """A constraint. Shape: ``counts`` is ``key=value``; empty is the empty selector, None is null."""
    constraint: dict[str, object] = {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when}
    if counts is not None:
        constraint["labelSelector"] = {"matchLabels": dict([counts.split("=")])} if counts else {}
    if by_revision:
        constraint["matchLabelKeys"] = ["pod-template-hash"]
    return constraint


# kube-scheduler's own words for the Pending pods below, from running it on this cluster.
_SHORT_OF_ROOM = (
    "0/12 nodes are available: 1 node(s) didn't match pod topology spread constraints (missing required label), "
    "1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, 4 Insufficient cpu, "
    "5 node(s) didn't match pod topology spread constraints."
)
_EMPTY_NODES_COUNT = (
    "0/12 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, "
    "10 node(s) didn't match pod topology spread constraints."
)


class _Team(Struct, frozen=True, kw_only=True):
    """One workload. Shape: ``on`` names the nodes of its pods, ``worker-`` left out; the rest of them is Pending."""

    namespace: str
    kind: str
    name: str
    replicas: int
    on: str
    constraints: tuple[_Json, ...] = ()
    labels: Mapping[str, str] = {}
    cpu: str = "200m"
    service: bool = True
    phase: str = "Running"
    revision: str = ""
    why_pending: str = ""
    pending_since: str = ""

    @property
    def pod_labels(self) -> dict[str, str]:
        """What the template says; the application's name unless it says otherwise."""
        return dict(self.labels) or {"app": self.name}


TEAMS = (
    # Nothing declared: kube-scheduler's own defaults spread it, and autoscalers do not know that.
    _Team(
        namespace="shop",
        kind="Deployment",
        name="web",
        replicas=6,
        on="a1 a2 a3 b1 b2 c1",
        cpu="250m",
        revision="6d9f7c5b8",
    ),
    # As it should be.
    _Team(
        namespace="shop",
        kind="Deployment",
        name="checkout",
        replicas=5,
        on="a2 a3 b2 b3 c1",
        cpu="500m",
        constraints=(
            _spread(_ZONE, _HARD, "app=checkout", by_revision=True),
            _spread(_HOSTNAME, _SOFT, "app=checkout", by_revision=True),
        ),
    ),
    # A typing error: it counts pods that nobody runs, so every zone always looks empty.
    _Team(
        namespace="shop",
        kind="Deployment",
        name="cart",
        replicas=4,
        on="a1 a2 a3 a4",
        constraints=(_spread(_ZONE, _HARD, "app=carts"),),
    ),
    # Nothing declared and nothing left of it after last week's node pool upgrade: one zone, two nodes.
    _Team(namespace="shop", kind="Deployment", name="catalog", replicas=3, on="b1 b1 b2"),
    # A null selector matches no pod.
    _Team(
        namespace="shop",
        kind="StatefulSet",
        name="search",
        replicas=3,
        on="a4 a4 b4",
        cpu="500m",
        constraints=(_spread(_ZONE, _SOFT, None),),
    ),
    # Old and new pods are counted together: every rollout ends uneven.
    _Team(
        namespace="shop",
        kind="Rollout",
        name="recommendations",
        replicas=4,
        on="a1 b3 b4 c1",
        constraints=(_spread(_ZONE, _HARD, "app=recommendations"),),
    ),
    # Zone c has room for one: its other nodes are cordoned and tainted, and still count as domain.
    _Team(
        namespace="payments",
        kind="Deployment",
        name="ledger",
        replicas=7,
        on="a3 a4 b3 b4 c1",
        cpu="1",
        constraints=(_spread(_ZONE, _HARD, "app=ledger", by_revision=True),),
        why_pending=_SHORT_OF_ROOM,
        pending_since="2026-11-20T05:47:00Z",
    ),
    # One pod a node, as long as a node stays empty: the two nodes that no pod may use do.
    _Team(
        namespace="payments",
        kind="Deployment",
        name="fraud-scoring",
        replicas=12,
        on="a1 a2 a3 a4 b1 b2 b3 b4 c1 edge-1",
        cpu="100m",
        constraints=(_spread(_HOSTNAME, _HARD, "app=fraud-scoring", by_revision=True),),
        why_pending=_EMPTY_NODES_COUNT,
        pending_since="2026-11-20T08:21:00Z",
    ),
    # Three brokers, three zones, and it waits rather than share one.
    _Team(
        namespace="data",
        kind="StatefulSet",
        name="kafka",
        replicas=3,
        on="a1 b1 c1",
        cpu="1",
        constraints=({**_spread(_ZONE, _HARD, "app=kafka"), "minDomains": 3},),
    ),
    # Shards of one Redis, which count each other but do not agree on how to spread.
    _Team(
        namespace="data",
        kind="StatefulSet",
        name="redis-shard-0",
        replicas=3,
        on="a2 b2 b3",
        labels={"app": "redis", "redis.example/shard": "0"},
        constraints=(_spread(_ZONE, _HARD, "app=redis", skew=2),),
    ),
    _Team(
        namespace="data",
        kind="StatefulSet",
        name="redis-shard-1",
        replicas=3,
        on="a3 a4 b4",
        labels={"app": "redis", "redis.example/shard": "1"},
        constraints=(_spread(_HOSTNAME, _HARD, "app=redis"),),
    ),
    # No node has this key: topology.kubernetes.io goes with zone and region.
    _Team(
        namespace="data",
        kind="StatefulSet",
        name="postgres",
        replicas=2,
        on="b1 b1",
        cpu="500m",
        constraints=(_spread("topology.kubernetes.io/hostname", _SOFT, "app=postgres"),),
    ),
    # Both on one node.
    _Team(namespace="monitoring", kind="StatefulSet", name="prometheus", replicas=2, on="b4 b4", cpu="500m"),
    # A key that nodes have not had since 1.17.
    _Team(
        namespace="monitoring",
        kind="StatefulSet",
        name="alertmanager",
        replicas=3,
        on="a2 a4 b2",
        cpu="50m",
        constraints=(_spread("failure-domain.beta.kubernetes.io/zone", _SOFT, "app=alertmanager"),),
    ),
    # One replica has nothing to spread.
    _Team(
        namespace="monitoring",
        kind="Deployment",
        name="grafana",
        replicas=1,
        on="a1",
        constraints=(_spread(_ZONE, _HARD, "app=grafana", by_revision=True),),
    ),
    _Team(
        namespace="monitoring",
        kind="DaemonSet",
        name="node-exporter",
        replicas=12,
        on="a1 a2 a3 a4 b1 b2 b3 b4 c1 c2 gpu-c1 edge-1",
        cpu="50m",
        service=False,
    ),
    # Its zone constraint switched the scheduler's own spreading over nodes off: two on one.
    _Team(
        namespace="ingress",
        kind="Deployment",
        name="ingress-nginx",
        replicas=3,
        on="a2 b2 b2",
        labels={"app.kubernetes.io/name": "ingress-nginx"},
        constraints=(_spread(_ZONE, _SOFT, "app.kubernetes.io/name=ingress-nginx", by_revision=True),),
    ),
    # An empty selector counts no pod in this release, and every pod of the namespace in the next.
    _Team(
        namespace="legacy",
        kind="ReplicationController",
        name="reports",
        replicas=2,
        on="a3 a3",
        constraints=(_spread(_HOSTNAME, _HARD, ""),),
    ),
    _Team(namespace="batch", kind="Job", name="import-catalog", replicas=3, on="a4 b3 b4", cpu="500m", service=False),
    _Team(
        namespace="batch", kind="Job", name="nightly-29384", replicas=2, on="a1 b1", service=False, phase="Succeeded"
    ),
    _Team(
        namespace="kube-system",
        kind="Deployment",
        name="coredns",
        replicas=2,
        on="a1 b1",
        labels={"k8s-app": "kube-dns"},
    ),
)


class _Made(Struct, frozen=True, kw_only=True):
    """An object's identity, for its metadata and for the references to it."""

    namespace: str
    kind: str
    name: str

    @property
    def api_version(self) -> str:
        """The version that serves its kind."""
        return _API_VERSIONS.get(self.kind, "apps/v1")

    @property
    def uid(self) -> str:
        """Equal for equal names."""
        return str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{self.kind}.{self.name}.{self.namespace}"))

    def meta(self, **more: object) -> dict[str, object]:
        """The metadata of the object."""
        where = {"namespace": self.namespace} if self.namespace else {}
        return {"name": self.name, **where, "uid": self.uid, **more}

    def reference(self) -> _Json:
        """The owner reference to it, as a controller."""
        told = {"apiVersion": self.api_version, "kind": self.kind, "name": self.name, "uid": self.uid}
        return {**told, "controller": True, "blockOwnerDeletion": True}


def snapshot_lines() -> Iterator[_Json]:
    """The header, then every object."""
    yield {"kind": "Snapshot", "kubernetesVersion": "v1.37.1", "takenAt": TAKEN_AT, "resources": _RESOURCES}
    for name, labels in _NAMESPACES.items():
        meta = _Made(namespace="", kind="Namespace", name=name).meta(
            labels={"kubernetes.io/metadata.name": name, **labels}
        )
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
    for name, where in _NODES.items():
        yield _node(name, where)
    for team in TEAMS:
        yield from _workload(team)
    yield _autoscaler(namespace="shop", name="web", least=6, most=12)


def _node(name: str, where: str) -> _Json:
    labels = {_HOSTNAME: name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", **_place(where)}
    spec: dict[str, object] = {"taints": [_TAINTS[name]]} if name in _TAINTS else {}
    if name == "worker-c2":
        spec["unschedulable"] = True
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": _Made(namespace="", kind="Node", name=name).meta(labels=labels),
        "spec": spec,
        "status": {
            "allocatable": {"cpu": "3920m", "memory": "15076Mi", "ephemeral-storage": "95Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _place(where: str) -> dict[str, str]:
    """The labels of a place: nodes have them, and pods since they were bound."""
    return {_REGION: "eu-central-1"} | ({_ZONE: f"eu-central-1{where}"} if where else {})


def _workload(team: _Team) -> Iterator[_Json]:
    if team.service:
        meta = _Made(namespace=team.namespace, kind="Service", name=team.name).meta()
        spec = {"selector": team.pod_labels, "ports": [{"port": 80}]}
        yield {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}
    owner, labels = _Made(namespace=team.namespace, kind=team.kind, name=team.name), team.pod_labels
    yield _controller(team, owner, labels)
    if team.kind in _REVISION_LABELS:
        revision = team.revision or _hash(team.name, 9)
        above, owner = owner, _Made(namespace=team.namespace, kind="ReplicaSet", name=f"{team.name}-{revision}")
        labels = {**labels, _REVISION_LABELS[team.kind]: revision}
        group = "deployment.kubernetes.io" if team.kind == "Deployment" else "rollout.argoproj.io"
        desired = {f"{group}/desired-replicas": str(team.replicas)}
        yield _controller(team, owner, labels, annotations=desired, ownerReferences=[above.reference()])
    places = team.on.split()
    for number in range(team.replicas):
        yield _pod(team, owner, labels, number, places[number] if number < len(places) else None)


def _controller(team: _Team, made: _Made, labels: dict[str, str], **meta: object) -> _Json:
    counts = {"DaemonSet": {}, "Job": {"parallelism": team.replicas}}.get(made.kind, {"replicas": team.replicas})
    selected = {"batch.kubernetes.io/controller-uid": made.uid} if made.kind == "Job" else labels
    over = {"succeeded": team.replicas, "conditions": [{"type": "Complete", "status": "True"}]}
    return {
        "apiVersion": made.api_version,
        "kind": made.kind,
        "metadata": made.meta(labels=labels, **meta),
        "spec": {
            **counts,
            "selector": selected if made.kind == "ReplicationController" else {"matchLabels": selected},
            "template": {"metadata": {"labels": labels}, "spec": _pod_spec(team, team.constraints)},
        },
        **({"status": over} if made.kind == "Job" and team.phase == "Succeeded" else {}),
    }


def _pod(team: _Team, owner: _Made, labels: dict[str, str], number: int, place: str | None) -> _Json:
    ordinal = str(number) if team.kind == "StatefulSet" else _hash(f"{owner.name}/{number}", 5)
    made = _Made(namespace=team.namespace, kind="Pod", name=f"{owner.name}-{ordinal}")
    added = {
        "StatefulSet": {"apps.kubernetes.io/pod-index": ordinal, "statefulset.kubernetes.io/pod-name": made.name},
        "Job": {"batch.kubernetes.io/controller-uid": owner.uid, "batch.kubernetes.io/job-name": team.name},
    }.get(team.kind, {})
    node = place if place in _NODES or place is None else f"worker-{place}"
    where = {} if node is None else _place(_NODES[node])
    created = {"creationTimestamp": team.pending_since} if node is None else {}
    status = (
        _pending(team) if node is None else {"phase": team.phase, "conditions": [{"type": "Ready", "status": "True"}]}
    )
    spec = _pod_spec(team, [_merged(constraint, labels) for constraint in team.constraints])
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": made.meta(labels={**labels, **added, **where}, **created, ownerReferences=[owner.reference()]),
        "spec": spec if node is None else {**spec, "nodeName": node},
        "status": status,
    }


def _merged(constraint: _Json, labels: Mapping[str, str]) -> _Json:
    """The constraint as the API server stores it in a pod: with matchLabelKeys in the selector as well."""
    selector, keys = constraint.get("labelSelector"), constraint.get("matchLabelKeys")
    if not isinstance(selector, dict) or not isinstance(keys, list):
        return constraint
    added = [{"key": key, "operator": "In", "values": [labels[key]]} for key in keys if key in labels]
    return {**constraint, "labelSelector": {**selector, "matchExpressions": added}}


def _pod_spec(team: _Team, constraints: Sequence[_Json]) -> dict[str, object]:
    container = {
        "name": "main",
        "image": f"registry.example/{team.name}:1.4.2",
        "resources": {"requests": {"cpu": team.cpu, "memory": "256Mi"}},
    }
    declared = {"topologySpreadConstraints": constraints} if constraints else {}
    anywhere = {"tolerations": [{"operator": "Exists"}]} if team.kind == "DaemonSet" else {}
    return {"containers": [container], **declared, **anywhere, "schedulerName": "default-scheduler"}


def _pending(team: _Team) -> _Json:
    why = {"reason": "Unschedulable", "message": team.why_pending}
    return {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", **why}]}


def _autoscaler(*, namespace: str, name: str, least: int, most: int) -> _Json:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": _Made(namespace=namespace, kind="HorizontalPodAutoscaler", name=name).meta(),
        "spec": {"scaleTargetRef": target, "minReplicas": least, "maxReplicas": most},
    }


def _hash(text: str, length: int) -> str:
    """As Kubernetes writes hashes: no vowels, nothing that looks like another character."""
    alphabet = "bcdfghjklmnpqrstvwxz2456789"
    return "".join(alphabet[byte % len(alphabet)] for byte in hashlib.sha256(text.encode()).digest()[:length])


def text() -> str:
    """The file."""
    return "".join(json.dumps(value, separators=(",", ":")) + "\n" for value in snapshot_lines())


if __name__ == "__main__":
    _FILE.write_text(text(), encoding="utf-8")
