"""Measure `evenspread audit` of a large cluster by its parts: python -m bench.audit [--times 2]

The snapshot has 5,000 nodes in three zones, and 3,000 Deployments and StatefulSets of 2 to 200 pods in 300 namespaces.
Of ten workloads, four have no constraint, two a soft zone constraint, two a hard zone constraint, one hard zone and
host constraints, and one pod anti-affinity by host. ``--times`` multiplies their pods. The output is the processor time
of the process, of the scan (without the reading of the snapshot), and of the simulated zone losses in it.
"""

import argparse
import json
import random
import resource
import tempfile
import time
from pathlib import Path

from webhook.cli.checking import whole_cluster
from webhook.cli.frame import Frame
from webhook.cli.output.long_runs import collect_rarely
from webhook.cluster.resources import BUILT_IN_RESOURCES
from webhook.core.policy.policy import Policy
from webhook.core.scan import workload_scan
from webhook.manifests.reading.files import read_files

NODES, ZONES, NAMESPACES = 5_000, "abc", 300
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
SHAPES = ("none",) * 4 + ("soft",) * 2 + ("hard",) * 2 + ("both", "apart")
TODAY = "2026-11-23"
HOLDER = {"Deployment": "ReplicaSet", "StatefulSet": "StatefulSet"}


def lines(workloads, times=1):
    """Yield the lines of the snapshot."""
    rng = random.Random(5)  # noqa: S311 - any cluster will do
    yield {"kind": "Snapshot", "kubernetesVersion": "v1.37.1", "resources": [each.name for each in BUILT_IN_RESOURCES]}
    for number in range(NODES):
        labels = {HOSTNAME: f"n{number}", ZONE: ZONES[number % len(ZONES)]}
        room = {"cpu": str(rng.choice([16, 32, 64])), "memory": "256Gi", "pods": "250"}
        yield named("v1", "Node", f"n{number}", "", labels=labels) | {"status": {"allocatable": room}}
    for number in range(NAMESPACES):
        yield named("v1", "Namespace", f"ns{number}", "")
    for number in range(workloads):
        yield from workload(rng, number, times)


def named(api_version, kind, name, namespace, **meta):
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace, **meta}}


def workload(rng, number, times):
    name, namespace, kind = f"app{number}", f"ns{number % NAMESPACES}", rng.choice(["Deployment"] * 4 + ["StatefulSet"])
    labels, replicas = {"app": name}, times * round(2 * 100 ** (rng.random() ** 2))
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
    """Return the part of a pod's spec about its placement."""
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
    parser.add_argument("--times", type=int, default=1)
    asked = parser.parse_args()
    workloads = asked.workloads
    collect_rarely()
    scanning, losing = [], []

    def timed(function, spent):
        def called(*arguments, **more):
            began = time.process_time()
            found = function(*arguments, **more)
            spent.append(time.process_time() - began)
            return found

        return called

    workload_scan.zone_losses = timed(workload_scan.zone_losses, losing)
    for name in ("scan_context", "scan_object", "cluster_scan"):
        setattr(whole_cluster, name, timed(getattr(whole_cluster, name), scanning))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cluster.jsonl"
        with path.open("w") as file:
            file.writelines(f"{json.dumps(each)}\n" for each in lines(workloads, asked.times))
        began = time.process_time()
        result = whole_cluster.examine_cluster(list(read_files([str(path)])), Frame(policy=Policy(), today=TODAY))
        whole = time.process_time() - began
    print(f"{result.objects:,} objects, {workloads:,} workloads on {NODES:,} nodes: {whole:.1f} s of processor time")
    per = sum(scanning) / workloads * 1e3
    print(f"the scan {sum(scanning):.1f} s, {per:.1f} ms a workload; of it the loss of zones {sum(losing):.1f} s")
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB at most, with the text of the snapshot")
    for each in result.scan.zones:
        print(f"zone {each.zone}: {each.unreachable} unreachable, {each.gone} gone of {each.wanted:,} pods")


if __name__ == "__main__":
    main()
