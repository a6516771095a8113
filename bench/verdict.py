"""Compare the verdict for every node with kube-scheduler's own framework, for the same cluster, in turns.

    python -m bench.verdict --oracle PROGRAM                5,000 nodes, 150,000 pods, three shapes
    python -m bench.verdict --oracle PROGRAM --shape classes --rounds 3

The Go program (from `make conformance`) makes the cluster, and times PreFilter and Filter of the scheduler's plugins
for all nodes. evenspread decides the same pods from its index. A verdict is a code for every node, and the counts.
Ratios are of medians within a run. Other load affects both sides, so our median is also compared with the scheduler's
best time. Lists and events are in processor time.
"""

import argparse
import gc
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from bench.figure import at_least
from webhook.core.api.node_selectors import compile_required_nodes
from webhook.core.api.selectors import compile_selector
from webhook.core.api.types import DO_NOT_SCHEDULE, LabelSelector, LabelSelectorRequirement, Node, Pod, Service
from webhook.core.api.version import RECORDED
from webhook.core.apiserver.admission_plugins import as_created
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.objects import Namespace
from webhook.core.scheduler.cycle import Cycle, eligible_nodes, verdict_of_plugin
from webhook.core.scheduler.plugins import pod_topology_spread
from webhook.core.scheduler.plugins.spread_constraints import SYSTEM_DEFAULTS, count_constraints
from webhook.core.scheduler.plugins.status import Code
from webhook.core.scheduler.problem import take

SHAPES = ("pareto", "statefulsets", "classes")
TARGETS = {"PodTopologySpread": 100, "all filters": 20}
WARM_UP = 20
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


class Cluster(msgspec.Struct):
    """The Go program's file, with undecoded objects."""

    nodes: list[msgspec.Raw]
    pods: list[msgspec.Raw]
    namespaces: list[msgspec.Raw]
    services: list[msgspec.Raw]
    incoming: list[msgspec.Raw]


def dump(oracle, path, nodes):
    """Let the Go program write a cluster: 30 pods a node, services of Pareto sizes, 200 incoming pods."""
    sizes = {"--nodes": nodes, "--pods": nodes * 30, "--services": max(1, nodes * 4 // 5), "--incoming": 200}
    flags = [str(word) for pair in sizes.items() for word in pair]
    subprocess.run([oracle, "bench", "--dump", str(path), *flags], check=True)  # noqa: S603 - our own program


def reshape(path, shape):
    """Turn the Go program's cluster into another shape, in place."""
    rng = random.Random(7)  # noqa: S311 - any cluster will do
    cluster = json.loads(path.read_bytes())
    {"statefulsets": statefulsets, "classes": classes}[shape](cluster, rng)
    path.write_text(json.dumps(cluster))


def statefulsets(cluster, rng):
    """Give three pods in ten the labels of a StatefulSet's pods."""
    chosen = {service["metadata"]["name"] for service in cluster["services"] if rng.random() < 0.3}
    ordinals = {}
    for pod in (*cluster["pods"], *cluster["incoming"]):
        labels = pod["metadata"]["labels"]
        app = labels["app"]
        if app in chosen:
            ordinal = ordinals[app] = ordinals.get(app, -1) + 1
            del labels["pod-template-hash"]
            labels["controller-revision-hash"] = f"{app}-6d4cf56db6"
            labels["statefulset.kubernetes.io/pod-name"] = f"{app}-{ordinal}"
            labels["apps.kubernetes.io/pod-index"] = str(ordinal)


def classes(cluster, rng):
    """Add forty classes of nodes (taints, sizes, pools), and 5,000 pods with anti-affinity by host."""
    for number, node in enumerate(cluster["nodes"]):
        kind = number % 40
        node["metadata"]["labels"] |= {"pool": f"pool-{kind % 8}", "disktype": "ssd" if kind % 3 else "hdd"}
        if kind % 5 == 0:
            node["spec"]["taints"] = [{"key": "dedicated", "value": f"team-{kind // 5}", "effect": "NoSchedule"}]
        if kind % 13 == 0:
            node["spec"]["unschedulable"] = True
        amounts = {"cpu": str(4 + 2 * kind), "memory": f"{16 + 8 * kind}Gi", "pods": str(60 + kind * 4)}
        node["status"]["allocatable"] = node["status"]["capacity"] = amounts
    for pod in rng.sample(cluster["pods"], min(5000, len(cluster["pods"]) // 30)):
        term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": pod["metadata"]["labels"]["app"]}}}
        pod["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    for pod in cluster["incoming"]:
        spec = pod["spec"]
        spec["containers"][0]["resources"]["requests"] = {"cpu": rng.choice(["100m", "2", "8"]), "memory": "1Gi"}
        spec["tolerations"] = [{"key": "dedicated", "operator": "Equal", "value": f"team-{rng.randrange(8)}"}]
        pools = rng.sample([f"pool-{number}" for number in range(8)], 6)
        expression = {"key": "pool", "operator": "In", "values": pools}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        for constraint in spec["topologySpreadConstraints"]:
            constraint["nodeTaintsPolicy"] = "Honor"


def resident():
    """Unit: MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4 / 1024


def load(path):
    cluster = msgspec.json.decode(path.read_bytes(), type=Cluster)
    gc.collect()
    gc.freeze()
    before, index = resident(), ClusterIndex()
    decode = {kind: msgspec.json.Decoder(kind) for kind in (Node, Namespace, Service, Pod)}
    for raws, kind in ((cluster.nodes, Node), (cluster.namespaces, Namespace), (cluster.services, Service)):
        for raw in raws:
            index.apply("ADDED", decode[kind].decode(raw))
    started = time.thread_time()
    for raw in cluster.pods:
        index.apply("ADDED", decode[Pod].decode(raw))
    seconds = time.thread_time() - started
    gc.collect()
    gc.freeze()
    facts = {"list s": round(seconds, 2), "µs/pod": round(seconds / len(cluster.pods) * 1e6, 1)}
    facts |= {"MiB": round(resident() - before)}
    incoming = [as_created(decode[Pod].decode(raw), RECORDED) for raw in cluster.incoming]
    return index, incoming, cluster, facts


def codes(verdict):
    """The scheduling status of each node slot as a byte.

    0 feasible, 1 Unschedulable, 2 UnschedulableAndUnresolvable, 3 error, 4 no node.
    """
    # A set is printed as binary digits, and a table turns its ones into the code's number. The sets are disjoint, so OR
    # combines the rows.
    size, sets = verdict.nodes.size, [0, 0, 0]
    for status, members in verdict.failed:
        sets[_NUMBERS[status.code] - 1] |= members
    sets.append(((1 << size) - 1) & ~verdict.nodes.live)
    total = 0
    for number, members in enumerate(sets, start=1):
        if members:
            digits = format(members, f"0{size}b").encode().translate(_TABLES[number])
            total |= int.from_bytes(digits, "little")
    return total.to_bytes(size, "little")[::-1]


_NUMBERS = {Code.UNSCHEDULABLE: 1, Code.UNRESOLVABLE: 2, Code.ERROR: 3}
_TABLES = tuple(bytes(number if char == ord("1") else 0 for char in range(256)) for number in range(5))


def spread_only(index, pod):
    counted = count_constraints(pod, DO_NOT_SCHEDULE, index, SYSTEM_DEFAULTS, RECORDED)
    nodes, required = (
        index.nodes.view(),
        compile_required_nodes(pod.pod_spec.node_selector, pod.pod_spec.affinity),
    )
    ran, _ = pod_topology_spread.run_filter(counted, pod.labels, eligible_nodes(pod, nodes, required))
    return codes(verdict_of_plugin(ran, nodes))


def all_filters(index, pod):
    return codes(Cycle(take(index, pod)).verdict())


def measure(index, incoming, decide):
    """Return the wall-clock and thread time of each pod, in µs."""
    for pod in incoming[:WARM_UP]:
        decide(index, pod)
    times = []
    for pod in incoming:
        started, own = time.perf_counter_ns(), time.thread_time_ns()
        decide(index, pod)
        own, clock = time.thread_time_ns() - own, time.perf_counter_ns() - started
        times.append((clock / 1e3, own / 1e3))
    return times


def quantile(times, part):
    return sorted(times)[min(len(times) - 1, int(len(times) * part))]


_TIMES = re.compile(r"^\s+(PodTopologySpread|all default filters)\s.*min (\d+)\s+p50 (\d+)\s+p99 (\d+)", re.MULTILINE)


def measure_scheduler(oracle, path, parallelism):
    """Return the scheduler's shortest verdict, p50 and p99, in µs."""
    command = [oracle, "bench", "--load", str(path), "--parallelism", str(parallelism)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603  our own program
    return {name.replace("default ", ""): tuple(map(int, times)) for name, *times in _TIMES.findall(printed)}


def compare(oracle, path, rounds, *, beside=True):
    index, incoming, cluster, facts = load(path)
    ours, theirs = {name: [] for name in TARGETS}, {name: [] for name in TARGETS}
    for _ in range(rounds):
        ours["PodTopologySpread"] += measure(index, incoming, spread_only)
        ours["all filters"] += measure(index, incoming, all_filters)
        if beside:
            for name, times in measure_scheduler(oracle, path, 1).items():
                theirs[name].append(times)
    for name, times in ours.items():
        clock, own = zip(*times, strict=True)
        row = [f"{name:<18}", f"p50 {quantile(clock, 0.5):6.0f} p99 {quantile(clock, 0.99):6.0f}"]
        row.append(f"of processor time {quantile(own, 0.5):6.0f} {quantile(own, 0.99):6.0f}")
        if theirs[name]:
            least, p50, p99 = (statistics.median(column) for column in zip(*theirs[name], strict=True))
            row.append(f"scheduler min {least:6.0f} p50 {p50:6.0f} p99 {p99:6.0f}")
            ratio, surely = p50 / quantile(clock, 0.5), least / quantile(clock, 0.5)
            row.append(f"{ratio:5.0f} times (its best by our median {surely:5.0f}; wanted {TARGETS[name]})")
        print("  ", "  ".join(row), flush=True)
    print("  ", events(index, cluster), facts, flush=True)


def events(index, cluster):
    """Return the cost of a decoded watch event, in µs."""
    decoder = msgspec.json.Decoder(Pod)
    some = random.Random(3).sample(cluster.pods, min(5000, len(cluster.pods)))  # noqa: S311 - any pods will do
    pods = [decoder.decode(raw) for raw in some]
    found = {}
    for name, kind in (("again", "MODIFIED"), ("delete", "DELETED"), ("add", "ADDED")):
        started = time.thread_time()
        for pod in pods:
            index.apply(kind, pod)
        found[f"event {name} µs"] = round((time.thread_time() - started) / len(pods) * 1e6, 1)
    return found


def expressions():
    """Measure a selector with matchExpressions only, in a namespace of 40,000 label sets."""
    for key, values in (("instance", 40_000), ("build", 200)):
        index, number = ClusterIndex(), 40_000
        for pod in range(number):
            labels = {"app": f"a{pod % 200}", "shard": str(pod // 200 % 200), key: str(pod % values)}
            meta = {"name": f"p{pod}", "namespace": "one", "labels": labels}
            spec = {"nodeName": f"n{pod % 5000}", "containers": [{"name": "c"}]}
            index.apply("ADDED", msgspec.convert({"metadata": meta, "spec": spec}, Pod))
        expression = LabelSelectorRequirement(key=key, operator="NotIn", values=("7", "8"))
        other = LabelSelectorRequirement(key="app", operator="Exists")
        selector = compile_selector(LabelSelector(match_expressions=(expression, other)))
        times = []
        for _ in range(4):
            started = time.perf_counter()
            index.pods.count("one", selector)
            times.append((time.perf_counter() - started) * 1e3)
        print(f"   40,000 label sets by {key}: cold {times[0]:.2f} ms, repeated {min(times[1:]):.2f} ms")


def figures():
    """Return the ratios of one shape, in one round."""
    build = Path(__file__).parents[1] / "conformance" / "build.sh"
    oracle = subprocess.run([build], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()  # noqa: S603 ours
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "cluster.json"
        dump(oracle, path, 5000)
        index, incoming, _, _ = load(path)
        theirs = measure_scheduler(oracle, path, 1)
    found = []
    for name, decide in (("PodTopologySpread", spread_only), ("all filters", all_filters)):
        ours = quantile([clock for clock, _ in measure(index, incoming, decide)], 0.5)
        label = f"kube-scheduler's time for a verdict, {name}"
        found.append(at_least(label, theirs[name][1] / ours, TARGETS[name], "times"))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--oracle", help="the Go program; without it only our side is measured, on --load")
    parser.add_argument("--load", type=Path, help="a cluster that `oracle bench --dump` wrote")
    parser.add_argument("--shape", choices=SHAPES, action="append")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    if options.load:
        print(options.load)
        compare(options.oracle, options.load, options.rounds, beside=bool(options.oracle))
        return
    if not options.oracle:
        sys.exit("either --oracle or --load is needed")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "cluster.json"
        for shape in options.shape or SHAPES:
            dump(options.oracle, path, 5000)
            if shape != "pareto":
                reshape(path, shape)
            print(f"{shape}: 5,000 nodes, 150,000 pods")
            compare(options.oracle, path, options.rounds)
    expressions()


if __name__ == "__main__":
    main()
