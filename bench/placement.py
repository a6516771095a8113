"""Compare the verdict on every order of a whole workload with two programs that place pods one by one.

    python -m bench.placement --oracle PROGRAM [--what-if PROGRAM] [--rounds 5]

All programs get the same cluster of 5,000 nodes with 150,000 pods, and a pod with hard zone and host constraints. The
Go program (from `make conformance`) calls kube-scheduler's framework for each replica, and takes the first feasible
node. `--what-if` is sigs.k8s.io/scheduler-library (`bench/what_if/build.sh`), also with one greedy order. Neither
covers other orders. evenspread copies the facts about the pod from the index, builds the game, and decides for all
orders.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from msgspec.structs import replace

from bench.figure import at_most
from bench.verdict import dump, load
from webhook.core.api.types import (
    Affinity,
    LabelSelector,
    Node,
    NodeStatus,
    ObjectMeta,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    SpreadConstraint,
)
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.placement.game_from_cluster import PodBatch, game_of
from webhook.core.placement.simulation import simulate
from webhook.core.scheduler.problem import take

TARGETS = {100: 2, 1_000: 10, 5_000: 50}  # replicas -> ms
REDIS_MS, TIMES_FASTER = 50, 1_000
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def redis():
    """Return three shards of two pods in three zones of two nodes. Some orders get stuck."""
    index = ClusterIndex()
    for zone in "abc":
        for number in range(2):
            name = f"{zone}{number}"
            room = NodeStatus(allocatable={"cpu": "8", "memory": "32Gi", "pods": "110"})
            index.apply("ADDED", Node(ObjectMeta(name=name, labels={HOSTNAME: name, ZONE: zone}), status=room))
    return index, [(shard_pod(shard), 2) for shard in "abc"]


def shard_pod(shard):
    own, everyone = LabelSelector(match_labels={"shard": shard}), LabelSelector(match_labels={"app": "redis"})
    apart = PodAffinity(required=(PodAffinityTerm(label_selector=own, topology_key=ZONE),))
    spread = tuple(
        SpreadConstraint(topology_key=key, max_skew=skew, when_unsatisfiable="DoNotSchedule", label_selector=everyone)
        for key, skew in ((HOSTNAME, 1), (ZONE, 2))
    )
    meta = ObjectMeta(name="redis", namespace="shop", labels={"app": "redis", "shard": shard})
    return Pod(meta, PodSpec(topology_spread_constraints=spread, affinity=Affinity(pod_anti_affinity=apart)))


def verdict(index, pods):
    batches = [PodBatch(problem=take(index, pod), pods=many, in_turn=len(pods) > 1) for pod, many in pods]
    return simulate(game_of(batches, index))


def strict(pod):
    """Return the pod with maxSkew 1 in every constraint."""
    spread = tuple(replace(each, max_skew=1) for each in pod.pod_spec.constraints)
    return replace(pod, spec=replace(pod.pod_spec, topology_spread_constraints=spread))


def best(rounds, index, pods):
    """Return the median time in ms, and the verdict."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        found = verdict(index, pods)
        times.append((time.perf_counter() - began) * 1e3)
    return statistics.median(times), found


def asked(*command):
    """Run another program. Returns its number of placed pods, and its time in ms."""
    printed = subprocess.run([*map(str, command)], check=True, capture_output=True, text=True).stdout  # noqa: S603  our own
    answer = json.loads(printed)
    return answer["placed"], answer["seconds"] * 1e3


def figures():
    index, pods = redis()
    times = []
    for _ in range(9):
        began = time.process_time()
        verdict(index, pods)
        times.append((time.process_time() - began) * 1e3)
    return [at_most("Redis, 3 shards of 2 pods on 6 nodes, every order", statistics.median(times), REDIS_MS, "ms")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--what-if")
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cluster.json"
        dump(chosen.oracle, path, 5_000)
        index, (incoming, *_), *_ = load(path)
        pod = strict(incoming)
        for replicas, target in TARGETS.items():
            took, found = best(chosen.rounds, index, [(pod, replicas)])
            print(f"{replicas:>5,} replicas: {took:6.2f} ms (goal {target}), {found.verdict}, {found.fewest} placed")
            if replicas == 1_000:
                ours = took
        took, found = best(chosen.rounds, *redis())
        print(f"Redis: {took:.1f} ms (goal {REDIS_MS}), {found.verdict}, {found.states} states")
        peers = {"framework, once a replica": (chosen.oracle, "bench", "--load", path, "--place", 1_000)}
        if chosen.what_if:
            peers["scheduler-library"] = (chosen.what_if, path, 1_000)
        for name, command in peers.items():
            placed, took = asked(*command)
            print(f"{name}: {placed:,} placed, {took:,.0f} ms, {took / ours:,.0f} times (goal {TIMES_FASTER:,})")


if __name__ == "__main__":
    main()
