"""The growth of each operation with the cluster: python -m bench.growth [docs/pictures/growth.svg]

Clusters of 500 to 15,000 nodes with 30 pods a node, each in a process. Printed is the processor time or memory of each
operation and its fitted exponent: 0 is independent of the cluster, 1 is linear. The picture has a plot for each.
"""

import gc
import json
import math
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.feasibility import HOSTNAME, ROOMY, ZONE
from bench.figure import at_most
from bench.placement import TARGETS, strict, verdict
from bench.static_review import CASES, call
from bench.verdict import all_filters, resident
from webhook.admission import Engine
from webhook.core.api.types import Node, NodeStatus, ObjectMeta, Pod
from webhook.core.api.version import RECORDED
from webhook.core.apiserver.admission_plugins import as_created
from webhook.core.context import Context
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.policy.policy import Policy
from webhook.core.scan.scan_context import scan_context
from webhook.core.scan.workload_scan import scan_workload

SIZES = (500, 1_500, 5_000, 15_000)
PODS_A_NODE = PODS_A_WORKLOAD = 30
SAMPLE = 20  # workloads of a scan
REPLICAS = 1_000
GOAL = 1.1  # the highest exponent: linear, plus the noise of four points


class Operation(NamedTuple):
    """A row of the table."""

    name: str
    unit: str


OPERATIONS = {
    "verdict": Operation("verdict for one pod, all filters", "µs"),
    "review": Operation("review of two right constraints", "µs"),
    "event": Operation("event of a moved pod", "µs"),
    "scan": Operation("full scan, from a sample of 20 workloads", "s"),
    "list": Operation("first list, decoded and indexed", "s"),
    "memory": Operation("memory of the index", "MiB"),
    "simulate": Operation("simulation of 1,000 replicas", "µs"),
}


def constraints(app):
    selector = {"labelSelector": {"matchLabels": {"app": app}}, "whenUnsatisfiable": "DoNotSchedule"}
    return [{"topologyKey": key, "maxSkew": skew, **selector} for key, skew in ((ZONE, 1), (HOSTNAME, 5))]


def template(app):
    requests = {"cpu": "100m", "memory": "128Mi"}
    containers = [{"name": "c", "image": "i", "resources": {"requests": requests}}]
    return {"containers": containers, "topologySpreadConstraints": constraints(app)}


def pod(number, nodes, moved=0):
    """The JSON of a pod. The pods of a workload are on nodes next to each other, one after the other."""
    app = f"app{number // PODS_A_WORKLOAD}"
    meta = {"name": f"p{number}", "namespace": "shop", "uid": f"p{number}", "labels": {"app": app}}
    spec = template(app) | {"nodeName": f"n{(number + moved) % nodes}"}
    return json.dumps({"metadata": meta, "spec": spec, "status": {"phase": "Running"}}).encode()


def deployment(number):
    app = f"app{number}"
    pods = {"metadata": {"labels": {"app": app}}, "spec": template(app)}
    spec = {"replicas": PODS_A_WORKLOAD, "selector": {"matchLabels": {"app": app}}, "template": pods}
    meta = {"name": app, "namespace": "shop", "uid": app}
    return json.dumps({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}).encode()


def seconds(function, *arguments):
    began = time.process_time()
    function(*arguments)
    return time.process_time() - began


def median(function, *arguments, calls=30):
    return statistics.median(seconds(function, *arguments) for _ in range(calls))


def filled(nodes):
    """The index, and the figures of filling it."""
    index, decoder = ClusterIndex(RECORDED), msgspec.json.Decoder(Pod)
    before, took = resident(), 0.0
    for number in range(nodes):
        meta = ObjectMeta(name=f"n{number}", labels={HOSTNAME: f"n{number}", ZONE: "abc"[number % 3]})
        index.apply("ADDED", Node(metadata=meta, status=NodeStatus(allocatable=ROOMY)))
    for first in range(0, nodes * PODS_A_NODE, 5_000):
        page = [pod(number, nodes) for number in range(first, min(first + 5_000, nodes * PODS_A_NODE))]
        took += seconds(lambda: [index.apply("ADDED", decoder.decode(each)) for each in page])  # noqa: B023 called at once
    gc.collect()
    return index, {"list": took, "memory": resident() - before}


def measured(nodes):
    """Every figure of one size."""
    gc.set_threshold(100_000)
    index, figures = filled(nodes)
    gc.freeze()
    incoming = as_created(msgspec.json.decode(pod(0, nodes), type=Pod), RECORDED)
    engine = Engine(policy=Policy(), version=RECORDED, index=index)
    here = scan_context(Context(policy=Policy(), version=RECORDED, index=index, now="2026-11-23T12:00:00Z"))
    workloads = nodes * PODS_A_NODE // PODS_A_WORKLOAD
    scanned = [deployment(number) for number in range(0, workloads, workloads // SAMPLE)][:SAMPLE]
    moved = [msgspec.json.decode(pod(number * 7, nodes, moved=3), type=Pod) for number in range(2_000)]
    call(CASES["two right constraints"], engine)
    scan_workload(scanned[0], here)
    events = seconds(lambda: [index.apply("MODIFIED", each) for each in moved])
    return figures | {
        "verdict": median(all_filters, index, incoming) * 1e6,
        "review": median(call, CASES["two right constraints"], engine) * 1e6,
        "event": events / len(moved) * 1e6,
        "scan": seconds(lambda: [scan_workload(each, here) for each in scanned]) / SAMPLE * workloads,
        "simulate": median(verdict, index, [(strict(incoming), REPLICAS)]) * 1e6,
    }


def exponent(values):
    """The slope of the line through the logarithms: least squares. The values are those of the first sizes."""
    x, y = [math.log(size) for size in SIZES[: len(values)]], [math.log(value) for value in values]
    return statistics.linear_regression(x, y).slope


WIDTH, HEIGHT, LEFT, TOP, MARGIN = 250, 170, 46, 40, 20


def plot(operation, values, column, row):
    """One plot as SVG. Both axes are logarithmic, with the same decades in every plot."""
    lowest = math.floor(math.log10(min(values)))
    decades = max(2, math.ceil(math.log10(max(values)) - lowest))

    def point(size, value):
        x = LEFT + math.log(size / SIZES[0]) / math.log(SIZES[-1] / SIZES[0]) * (WIDTH - LEFT - 20)
        return x, TOP + (1 - (math.log10(value) - lowest) / decades) * (HEIGHT - TOP - 30)

    points = [point(size, value) for size, value in zip(SIZES, values, strict=True)]
    made = [f'<g transform="translate({column * WIDTH} {row * HEIGHT})">']
    made.append(f'<text x="{LEFT}" y="16" class="name">{operation.name}</text>')
    made.append(f'<text x="{LEFT}" y="31">exponent {exponent(values):.2f}</text>')
    for decade in range(decades + 1):
        _, y = point(SIZES[0], 10 ** (lowest + decade))
        made.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - 20}"/>')
        label = f"{10.0 ** (lowest + decade):g} {operation.unit}"
        made.append(f'<text x="{LEFT - 4}" y="{y + 3:.1f}" text-anchor="end">{label}</text>')
    for size, (x, _) in zip(SIZES, points, strict=True):
        made.append(f'<text x="{x:.1f}" y="{HEIGHT - 14}" text-anchor="middle">{size:,}</text>')
    made.append(f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>')
    made += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in points]
    return "\n".join([*made, "</g>"])


STYLE = """\
text { font: 10px sans-serif; fill: #333 } .name { font-weight: bold } .grid { stroke: #ccc }
polyline { fill: none; stroke: #3367d6; stroke-width: 2 } circle { fill: #3367d6 } svg { background: #fff }"""


def picture(table):
    """All plots in one SVG, three in a row."""
    rows = -(-len(table) // 3)
    plots = [plot(OPERATIONS[key], values, at % 3, at // 3) for at, (key, values) in enumerate(table.items())]
    width, height = 3 * WIDTH + MARGIN, rows * HEIGHT
    size = f'viewBox="-{MARGIN} 0 {width} {height}" width="{width}" height="{height}"'
    background = f'<rect x="-{MARGIN}" width="100%" height="100%" fill="#fff"/>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="Growth with the number of nodes">'
    return "\n".join([head, f"<style>\n{STYLE}\n</style>", background, *plots, "</svg>", ""])


def grown(sizes):
    """The figures of each size, by operation."""
    made = []
    for nodes in sizes:
        command = [sys.executable, "-m", "bench.growth", "--measure", str(nodes)]
        made.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))  # noqa: S603 ours
    return {key: [figures[key] for figures in made] for key in OPERATIONS}


def figures():
    """Yield the figures without the largest size, to save time."""
    table = grown(SIZES[:-1])
    for key, values in table.items():
        yield at_most(f"growth: {OPERATIONS[key].name}", exponent(values), GOAL, "(exponent)")
    yield at_most("simulation of 1,000 replicas, 5,000 nodes", table["simulate"][-1] / 1e3, TARGETS[REPLICAS], "ms")


def main():
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measured(int(sys.argv[2]))))
        return
    table = grown(SIZES)
    print(f"{'operation':42}", *(f"{f'{nodes:,} nodes':>13}" for nodes in SIZES), f"{'exponent':>9}")
    for key, values in table.items():
        operation = OPERATIONS[key]
        print(
            f"{f'{operation.name}, {operation.unit}':42}",
            *(f"{value:13.1f}" for value in values),
            f"{exponent(values):9.2f}",
        )
    for path in sys.argv[1:]:
        Path(path).write_text(picture(table))


if __name__ == "__main__":
    main()
