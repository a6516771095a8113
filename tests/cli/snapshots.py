"""Snapshot files for tests, in the notation of ``build.cluster``."""

import json

from manifest import workload

from webhook.cluster.resources import BUDGETS, BUILT_IN_RESOURCES

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def snapshot(state, *objects, version="v1.37.1", cpu="4", taken_at=None):
    """``z1: a=2 | z2: ~b=0``: the bytes of a snapshot with these nodes and pods ``app=web``, and with more objects."""
    resources = [resource.name for resource in (*BUILT_IN_RESOURCES, BUDGETS)]
    lines = [{"kind": "Snapshot", "kubernetesVersion": version, "resources": resources, "takenAt": taken_at}]
    for part in state.split("|"):
        zone, _, written = part.rpartition(":")
        for entry in written.split():
            name, _, pods = entry.lstrip("~-").partition("=")
            lines.append(node(name, zone.strip(), tainted=entry[0] == "~", cordoned=entry[0] == "-", cpu=cpu))
            lines += [running(f"{name}-{number}", name) for number in range(int(pods or 0))]
    return "\n".join(json.dumps(each) for each in (*lines, *objects)).encode() + b"\n"


def node(name, zone="", *, tainted=False, cordoned=False, cpu="4"):
    labels = {HOSTNAME: name} | ({ZONE: zone} if zone else {})
    spec = {"taints": [{"key": "dedicated", "effect": "NoSchedule"}]} if tainted else {}
    spec |= {"unschedulable": True} if cordoned else {}
    status = {"allocatable": {"cpu": cpu, "memory": "16Gi", "pods": "110"}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": status,
    }


def running(name, on):
    found = waiting(name)
    return {**found, "spec": {**found["spec"], "nodeName": on}, "status": {"phase": "Running"}}


def waiting(name, *constraints, namespace="shop", owner=None, since=None, cpu=None, **spec):
    """A Pending pod ``app=web``; ``owner`` is ``ReplicaSet/web-1``."""
    meta = {"name": name, "namespace": namespace, "uid": f"uid-{name}"}
    if owner:
        kind, owned_by = owner.split("/")
        meta["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": kind, "name": owned_by, "controller": True}]
    if since:
        meta["creationTimestamp"] = since
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}} if cpu else {}}]
    made = workload("Pod", "app=web", *constraints, meta=meta, containers=containers, **spec)
    return {**made, "status": {"phase": "Pending"}}


def owned(kind, name, above=None, **spec):
    """A ReplicaSet or its Deployment, without a template."""
    meta = {"name": name, "namespace": "shop"}
    if above:
        kind_above, name_above = above.split("/")
        meta["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": kind_above, "name": name_above, "controller": True}
        ]
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": spec}
