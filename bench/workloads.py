"""Measure how often the verdict on a whole workload stays unknown at admission.

    python -m bench.workloads [SEED] [COUNT]

The cluster has 5,000 unequal nodes in three zones (sizes, taints, cordons, pools of few nodes, each filled at random).
The workloads have 2 to 200 replicas, some already running: hard constraints on zones, hosts or both, requests of all
sizes, node affinity to few nodes, tolerations, anti-affinity. Every second workload nearly fills a pool of unequal
nodes in unequal zones, and is drawn until no closed form decides it, so orders matter. The effort is that of a review,
in numbers, so a run gives the same results on any machine.
"""

import random
import statistics
import sys
import time
from collections import Counter

import msgspec

from webhook.core.api.types import Node, Pod
from webhook.core.api.version import RECORDED
from webhook.core.apiserver.admission_plugins import as_created
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.placement.closed_forms import same_in_every_order
from webhook.core.placement.game_from_cluster import PodBatch, game_of
from webhook.core.placement.placement_verdict import Effort, PlacementVerdict
from webhook.core.placement.simulation import simulate
from webhook.core.scheduler.problem import take

NODES, OTHERS = 5_000, 30_000
ADMISSION = Effort(states=300, orders=20, moves=2_000)
ZONE, HOSTNAME, POOL = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "example.com/pool"
CPU = ("100m", "250m", "500m", "1", "2", "4", "8", "16")
TIGHT = 100  # pools
_DECODE = {kind: msgspec.json.Decoder(kind) for kind in (Node, Pod)}


def made(kind, manifest):
    return _DECODE[kind].decode(msgspec.json.encode(manifest))


def node(rng, number, pool=None):
    """Return a node. A node of a tight ``pool`` has room for one to six pods of a CPU."""
    labels = {HOSTNAME: f"n{number}", ZONE: rng.choice("aaabbc")}
    if pool is not None or rng.random() < 0.1:
        labels[POOL] = f"p{int(rng.paretovariate(0.6)) % 60}" if pool is None else pool
    cpu = rng.choice([4, 8, 16, 32, 64]) if pool is None else rng.randint(1, 6)
    room = {"cpu": str(cpu), "memory": "256Gi", "pods": rng.choice(["30", "110", "250"])}
    key = "dedicated" if pool is None else "tight"
    taints = [{"key": key, "value": "x", "effect": "NoSchedule"}] if pool or rng.random() < 0.15 else None
    spec = {"taints": taints, "unschedulable": rng.random() < 0.02}
    return made(
        Node, {"metadata": {"name": f"n{number}", "labels": labels}, "spec": spec, "status": {"allocatable": room}}
    )


def pod(name, labels, cpu, **spec):
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}]
    meta = {"name": name, "namespace": "shop", "uid": name, "labels": labels}
    return {"metadata": meta, "spec": {"containers": containers, **spec}}


def filled(rng):
    """Return the cluster, and the capacity of each tight pool in pods of a CPU."""
    index, tight, number = ClusterIndex(), {}, 0
    for pool in range(TIGHT):
        name, number_of = f"t{pool}", rng.choice([3, 4, 6, 8, 12, 24, 48])
        for _ in range(number_of):
            one = node(rng, number, name)
            index.apply("ADDED", one)
            tight[name] = tight.get(name, 0) + int(one.status.allocatable["cpu"])
            number += 1
    loose = range(number, NODES)
    for each in loose:
        index.apply("ADDED", node(rng, each))
    for each in range(OTHERS):
        where = f"n{rng.choice(loose)}"
        index.apply("ADDED", made(Pod, pod(f"other-{each}", {"app": "other"}, rng.choice(CPU[:6]), nodeName=where)))
    return index, tight, loose


def spread(rng, labels, keys, skews):
    selector = {"labelSelector": {"matchLabels": labels}, "whenUnsatisfiable": "DoNotSchedule"}
    return [{"topologyKey": key, "maxSkew": rng.choice(skews), **selector} for key in keys]


def tight_workload(rng, number, tight):
    """Return the pod and replicas of a workload that nearly fills its pool."""
    labels, pool = {"app": f"app-{number}"}, rng.choice([*tight])
    given = spread(rng, labels, (ZONE, HOSTNAME), [1, 2, 2, 3])
    spec = {"nodeSelector": {POOL: pool}, "tolerations": [{"key": "tight", "operator": "Exists"}]}
    one = made(Pod, pod("w", labels, "1", topologySpreadConstraints=given, **spec))
    return as_created(one, RECORDED), min(200, max(2, round(tight[pool] * rng.uniform(0.05, 0.7)))), 0


def undecided(rng, number, index, tight):
    """Return a tight workload without a closed form, if some attempts find one."""
    for _ in range(30):
        found = tight_workload(rng, number, tight)
        if same_in_every_order(game_of([PodBatch(problem=take(index, found[0]), pods=found[1])], index).game) is None:
            break
    return found


def workload(rng, number):
    """Return its pod, its pending replicas, and its running replicas."""
    labels = {"app": f"app-{number}"}
    keys = rng.choice([(ZONE,), (HOSTNAME,), (ZONE, HOSTNAME), (ZONE, HOSTNAME), (ZONE, HOSTNAME)])
    spec = {"topologySpreadConstraints": spread(rng, labels, keys, [1, 1, 2, 5])}
    if rng.random() < 0.3:
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    if rng.random() < 0.3:
        for each in spec["topologySpreadConstraints"]:
            each["nodeTaintsPolicy"] = "Honor"
    affinity = {}
    if rng.random() < 0.4:
        pools = [f"p{rng.randrange(60)}" for _ in range(rng.choice([1, 2, 5]))]
        wanted = [{"matchExpressions": [{"key": POOL, "operator": "In", "values": pools}]}]
        affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": wanted}}
    if rng.random() < 0.1:
        apart = [{"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": labels}}]
        affinity["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": apart}
    made_pod = made(Pod, pod("w", labels, rng.choice(CPU), affinity=affinity, **spec))
    replicas = round(2 * 100 ** rng.random())
    return as_created(made_pod, RECORDED), replicas, rng.choice([0, 0, replicas // 2])


def main():
    seed, count = map(int, (*sys.argv[1:], *("13", "1000")[len(sys.argv) - 1 :]))
    rng = random.Random(seed)  # noqa: S311 - any workloads will do
    (index, tight, loose), outcomes, times, unknown = filled(rng), Counter(), [], []
    for number in range(count):
        incoming, replicas, there = undecided(rng, number, index, tight) if number % 2 else workload(rng, number)
        for each in range(there):
            one = pod(f"app-{number}-{each}", dict(incoming.labels), "100m", nodeName=f"n{rng.choice(loose)}")
            index.apply("ADDED", made(Pod, one))
        began = time.perf_counter()
        batch = PodBatch(problem=take(index, incoming), pods=replicas)
        of = game_of([batch], index)
        found = simulate(of, ADMISSION)
        times.append((time.perf_counter() - began) * 1e3)
        outcomes[found.verdict] += 1
        if found.verdict is PlacementVerdict.UNKNOWN:
            unknown.append((number, replicas, len(of.game.classes), of.game.pod_classes))
    print(f"{count:,} workloads of seed {seed} on {NODES:,} unequal nodes:", end=" ")
    print(", ".join(f"{outcomes[each]} {each}" for each in PlacementVerdict), end="; ")
    cuts = statistics.quantiles(times, n=100)
    print(f"unknown {outcomes[PlacementVerdict.UNKNOWN] / count:.1%}; p50 {cuts[49]:.1f} ms, p99 {cuts[98]:.1f} ms")
    return unknown


if __name__ == "__main__":
    main()
