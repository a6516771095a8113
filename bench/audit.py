"""How long `evenspread audit` of a large cluster takes, by its parts: python -m bench.audit [--workloads 3000]

A snapshot of 5,000 nodes in three zones and 3,000 Deployments and StatefulSets of 2 to 200 pods in 300 namespaces; of
ten four declare nothing, two a soft constraint on zones, two a hard one, one hard ones on zones and hosts, and one
keeps its pods on different hosts. Processor time of one process, and the part of it that the loss of each zone takes.
"""

import argparse
import json
import random
import tempfile
import time
from pathlib import Path

from webhook.cli.checking import whole_cluster
from webhook.cli.checking.frame import Frame
from webhook.cli.terminal import collect_rarely
from webhook.cluster.resources import BUILT_IN_RESOURCES
from webhook.core.policy.policy import Policy
from webhook.core.scan import workload_scan
from webhook.core.scan.zone_losses import zone_losses
from webhook.manifests.reading.files import read_files

NODES, ZONES, NAMESPACES = 5_000, "abc", 300
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
SHAPES = ("none",) * 4 + ("soft",) * 2 + ("hard",) * 2 + ("both", "apart")
TODAY = "2026-11-23"
HOLDER = {"Deployment": "ReplicaSet", "StatefulSet": "StatefulSet"}


def lines(workloads):
    """The snapshot, object by object."""
    rng = random.Random(5)  # noqa: S311 - any cluster will do
    yield {"kind": "Snapshot", "kubernetesVersion": "v1.37.1", "resources": [each.name for each in BUILT_IN_RESOURCES]}
    for number in range(NODES):
        labels = {HOSTNAME: f"n{number}", ZONE: ZONES[number % len(ZONES)]}
        room = {"cpu": str(rng.choice([16, 32, 64])), "memory": "256Gi", "pods": "250"}
        yield named("v1", "Node", f"n{number}", "", labels=labels) | {"status": {"allocatable": room}}
    for number in range(NAMESPACES):
        yield named("v1", "Namespace", f"ns{number}", "")
    for number in range(workloads):
        yield from workload(rng, number)


def named(api_version, kind, name, namespace, **meta):
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace, **meta}}


def workload(rng, number):
    name, namespace, kind = f"app{number}", f"ns{number % NAMESPACES}", rng.choice(["Deployment"] * 4 + ["StatefulSet"])
    labels, replicas = {"app": name}, round(2 * 100 ** (rng.random() ** 2))
    request = {"cpu": rng.choice(["50m", "100m", "250m"]), "memory": "128Mi"}
    template = {"containers": [{"name": "c", "image": "i", "resources": {"requests": request}}]}
    template |= spreading(SHAPES[number % len(SHAPES)], labels)
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}}
    spec["template"] = {"metadata": {"labels": labels}, "spec": template}
    yield named("apps/v1", kind, name, namespace, uid=name) | {"spec": spec}
    owner, hashed = name, labels
    if kind == "Deployment":
        owner, hashed = f"{name}-5d", labels | {"pod-template-hash": "5d"}
        own = spec | {"selector": {"matchLabels": hashed}, "template": {"metadata": {"labels": hashed}}}
        yield named("apps/v1", "ReplicaSet", owner, namespace, uid=owner, ownerReferences=[owned(kind, name)]) | {
            "spec": own
        }
    first = rng.randrange(NODES)
    for ordinal in range(replicas):
        where = {"nodeName": f"n{(first + 7 * ordinal) % NODES}"}  # 7: the next zone, another host
        meta = {"uid": f"{name}-{ordinal}", "labels": hashed, "ownerReferences": [owned(HOLDER[kind], owner)]}
        running = {"spec": template | where, "status": {"phase": "Running"}}
        yield named("v1", "Pod", f"{name}-{ordinal}", namespace, **meta) | running


def owned(kind, name):
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": name, "controller": True}


def spreading(shape, labels):
    """The part of a pod's spec that says where pods go."""
    if shape == "apart":
        term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": labels}}
        return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    keys = {"soft": (ZONE,), "hard": (ZONE,), "both": (ZONE, HOSTNAME)}.get(shape, ())
    action = "ScheduleAnyway" if shape == "soft" else "DoNotSchedule"
    same = {"maxSkew": 1, "whenUnsatisfiable": action, "labelSelector": {"matchLabels": labels}}
    return {"topologySpreadConstraints": [{"topologyKey": key, **same} for key in keys]} if keys else {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", type=int, default=3_000)
    workloads = parser.parse_args().workloads
    collect_rarely()
    spent = []

    def timed(*arguments):
        began = time.process_time()
        found = zone_losses(*arguments)
        spent.append(time.process_time() - began)
        return found

    workload_scan.zone_losses = timed
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cluster.jsonl"
        with path.open("w") as file:
            file.writelines(f"{json.dumps(each)}\n" for each in lines(workloads))
        began = time.process_time()
        result = whole_cluster.examine_cluster(list(read_files([str(path)])), Frame(policy=Policy(), today=TODAY))
        whole = time.process_time() - began
    print(f"{result.objects:,} objects, {workloads:,} workloads on {NODES:,} nodes: {whole:.1f} s of processor time")
    print(f"of these {sum(spent):.1f} s for the loss of each zone, {sum(spent) / workloads * 1e3:.1f} ms a workload")
    for each in result.scan.zones:
        print(f"zone {each.zone}: {each.unreachable} unreachable, {each.gone} gone of {each.wanted:,} pods")


if __name__ == "__main__":
    main()
