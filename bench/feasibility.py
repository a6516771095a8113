"""Measure the dry run of a pod in a whole review, from bytes to bytes, with a large cluster.

    python -m bench.feasibility [NODES]

The cluster has 30 pods a node in services of Pareto sizes, and three zones. Between two reviews an event changes a pod,
as the watch does. Every pod has a hard constraint. In the case ``spread``, the nodes of one zone are tainted.
"""

import json
import random
import statistics
import sys
import time

from msgspec.structs import replace

from webhook.admission import Engine, answer
from webhook.admission_request import decode_review
from webhook.core.api.types import Container, Node, NodeSpec, NodeStatus, ObjectMeta, Pod, PodSpec, Taint
from webhook.core.api.version import RECORDED
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.policy.policy import Mode, Policy
from webhook.core.rules.rule_set import RULES

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
ROOMY = {"cpu": "64", "memory": "256Gi", "pods": "110"}
ROUNDS = 400
TAINT = NodeSpec(taints=(Taint(key="dedicated", value="x", effect="NoSchedule"),))


def cluster(nodes, rng):
    """Return nodes in three zones, the last tainted, 30 pods a node, and the sizes of the services by name."""
    index = ClusterIndex()
    for number in range(nodes):
        zone = "abc"[number % 3]
        labels = {HOSTNAME: f"n{number}", ZONE: zone}
        node = Node(metadata=ObjectMeta(name=f"n{number}", labels=labels), status=NodeStatus(allocatable=ROOMY))
        index.apply("ADDED", replace(node, spec=TAINT) if zone == "c" else node)
    sizes = {}
    for number in range(nodes * 30):
        app = f"app-{min(int(rng.paretovariate(0.7)), nodes * 4 // 5)}"
        sizes[app] = sizes.get(app, 0) + 1
        index.apply("ADDED", running(f"p{number}", app, untainted(rng, nodes)))
    return index, sizes


def untainted(rng, nodes):
    """Return the name of a node in one of the first two zones."""
    return f"n{rng.randrange((nodes + 1) // 3) * 3 + rng.randrange(2)}"


def running(name, app, node):
    meta = ObjectMeta(name=name, namespace="bench", uid=name, labels={"app": app})
    return Pod(metadata=meta, spec=PodSpec(node_name=node, containers=(Container(name="c"),)))


def review(app, key, max_skew, **more):
    """Return a review of a bare pod with a hard constraint."""
    spread = {"maxSkew": max_skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", **more}
    spread["labelSelector"] = {"matchLabels": {"app": app}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "new", "namespace": "bench", "labels": {"app": app}}}
    pod["spec"] = {"topologySpreadConstraints": [spread], "containers": [{"name": "c", "image": "x"}]}
    asked = {"uid": "u", "operation": "CREATE", "namespace": "bench", "object": pod}
    asked["kind"] = {"group": "", "version": "v1", "kind": "Pod"}
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}).encode()


def measure(engine, bodies, index, rng, nodes):
    """Return the processor time of each review in µs, and the verdicts of the dry runs."""
    times, found = [], set()
    for number in range(ROUNDS):
        index.apply("MODIFIED", running(f"p{number}", "app-1", untainted(rng, nodes)))
        body = bodies[number % len(bodies)]
        began = time.thread_time_ns()
        decision = answer("validate", decode_review(body), engine, now="2026-01-01").decision
        times.append((time.thread_time_ns() - began) / 1e3)
        found.add(
            "-" if decision.feasibility is None else f"{decision.feasibility.verdict} {decision.feasibility.cause}"
        )
    return times, found


def main():
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    rng = random.Random(7)  # noqa: S311 - any cluster will do
    index, sizes = cluster(nodes, rng)
    apps = sorted(sizes, key=sizes.get, reverse=True)[:: max(1, len(sizes) // 40)]
    silent = Policy(rules={rule.id: Mode.OFF for rule in RULES if rule.id != "replicas-do-not-fit"})
    engine = Engine(policy=silent, version=RECORDED, index=index)
    shapes = {
        "no constraint": [review(app, ZONE, 1).replace(b"DoNotSchedule", b"ScheduleAnyway") for app in apps],
        "fits, zones": [review(app, ZONE, 10**6) for app in apps],
        "fits, hostnames": [review(app, HOSTNAME, 10**6) for app in apps],
        "spread, zones": [review(app, ZONE, 1) for app in apps],
        "the largest, zones": [review(apps[0], ZONE, 1)],
        "the largest, hosts": [review(apps[0], HOSTNAME, 1)],
    }
    print(f"{nodes:,} nodes, {nodes * 30:,} pods, {len(sizes):,} services; {ROUNDS} reviews each, processor time")
    for name, bodies in shapes.items():
        times, found = measure(engine, bodies, index, rng, nodes)
        p99 = sorted(times)[int(len(times) * 0.99)]
        print(f"{name:18} p50 {statistics.median(times):8.0f} µs  p99 {p99:8.0f} µs  {', '.join(sorted(found))}")


if __name__ == "__main__":
    main()
