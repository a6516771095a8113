"""How often a rolling update ends further apart than maxSkew, on a real control plane.

    PYTHONPATH=tests python -m e2e.rollouts [--runs 20] [--replicas 3 4 …] [--zones 2 3 4] [--ready 1 3]

Each run makes a Deployment of the default strategy with one hard constraint over zones, maxSkew 1, in a namespace of
its own, waits until it runs, changes an annotation of its template once, waits until the rollout is complete, and
counts the pods in each zone. Zones have two equal, empty nodes; pods take `--ready` seconds, evenly spread between the
two numbers, to become ready (`--ready 0 0`: at once). A few runs are under way at a time, so that their pods share
nodes. Prints a table for docs/rules/rollouts.md: how many runs ended beyond maxSkew, and the largest difference.
"""

import argparse
import itertools
import pathlib
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter

import yaml
from e2e.controlplane.up import ControlPlane, built
from e2e.objects import ZONE, constraint, path, workload
from e2e.waiting import eventually, within

ZONES = "abcdef"
_MOST_SECONDS = 180
_MERGE = "application/merge-patch+json"


def slow(stages: str, least: float, most: float) -> str:
    """kwok's stages, with pods that take so many seconds to become ready."""
    made = list(yaml.safe_load_all(stages))
    ready = next(stage for stage in made if stage["metadata"]["name"] == "pod-ready")
    ready["spec"]["delay"] = {"durationMilliseconds": int(least * 1000), "jitterDurationMilliseconds": int(most * 1000)}
    return yaml.safe_dump_all(made)


def deployment(replicas: int, zones: int, keys: list[str] | None) -> dict:
    """Of so many replicas over the first zones."""
    made = workload("Deployment", "web", constraint(matchLabelKeys=keys), replicas=replicas)
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": list(ZONES[:zones])}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    made["spec"]["template"]["spec"]["affinity"] = {"nodeAffinity": affinity}
    return made


def is_complete(made: dict) -> bool:
    """As `kubectl rollout status` has it."""
    wanted, status = made["spec"]["replicas"], made.get("status", {})
    seen = status.get("observedGeneration", 0) >= made["metadata"]["generation"]
    counts = [status.get(name, 0) for name in ("updatedReplicas", "replicas", "availableReplicas")]
    return seen and counts == [wanted] * 3


def spread(api, namespace: str, zones: int) -> int:
    """The difference between the zone with the most pods and the one with the fewest."""
    items = api.request("GET", path("Pod", namespace))["items"]
    standing = Counter(
        each["spec"]["nodeName"].split("-")[1] for each in items if "deletionTimestamp" not in each["metadata"]
    )
    counts = [standing[zone] for zone in ZONES[:zones]]
    return max(counts) - min(counts)


def rolled_out(api, namespace: str, replicas: int, zones: int, keys: list[str] | None) -> tuple[int, int]:
    """The difference before the rollout, and after it."""
    api.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    try:
        eventually(lambda: api.send("GET", f"/api/v1/namespaces/{namespace}/serviceaccounts/default").status == 200)
        api.request("POST", path("Deployment", namespace), deployment(replicas, zones, keys))
        web = path("Deployment", namespace, "web")
        within(_MOST_SECONDS, lambda: is_complete(api.request("GET", web)), every=0.1)
        before = spread(api, namespace, zones)
        template = {"metadata": {"annotations": {"rolled": "out"}}}
        api.request("PATCH", web, {"spec": {"template": template}}, _MERGE)
        within(_MOST_SECONDS, lambda: is_complete(api.request("GET", web)), every=0.1)
        return before, spread(api, namespace, zones)
    finally:
        api.request("DELETE", path("Deployment", namespace, "web"))
        api.send("DELETE", f"/api/v1/namespaces/{namespace}")


def measured(plane, asked: argparse.Namespace) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """What the runs came to, by replicas and zones."""
    shapes = list(itertools.product(asked.replicas, asked.zones))
    found: dict[tuple[int, int], list[tuple[int, int]]] = {shape: [] for shape in shapes}
    left: queue.SimpleQueue = queue.SimpleQueue()
    for number in range(asked.runs):
        for shape in shapes:
            left.put((number, shape))

    def work() -> None:
        api = plane.connect()
        while True:
            try:
                number, (replicas, zones) = left.get_nowait()
            except queue.Empty:
                return
            namespace = f"run-{replicas}-{zones}-{number}"
            try:
                found[replicas, zones].append(rolled_out(api, namespace, replicas, zones, asked.keys))
            except AssertionError as error:
                print(f"{namespace}: not complete: {error}", file=sys.stderr)
            print(f"{left.qsize()} to go", file=sys.stderr)

    workers = [threading.Thread(target=work) for _ in range(asked.at_once)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    return found


def table(found: dict[tuple[int, int], list[tuple[int, int]]], max_skew: int = 1) -> str:
    """In Markdown: a line for each number of replicas, a column for each number of zones."""
    replicas, zones = (sorted({shape[place] for shape in found}) for place in (0, 1))
    lines = ["| replicas | " + " | ".join(f"{number} zones" for number in zones) + " |"]
    lines.append("|---:|" + "---:|" * len(zones))
    for number in replicas:
        cells = []
        for many in zones:
            ends = [after for _, after in found[number, many]]
            beyond = sum(end > max_skew for end in ends)
            worst = f", skew {max(ends)}" if beyond else ""
            cells.append(f"{beyond} of {len(ends)}{worst}")
        lines.append(f"| {number} | " + " | ".join(cells) + " |")
    runs = [after for each in found.values() for _, after in each]
    beyond = sum(end > max_skew for end in runs)
    uneven = sum(before > max_skew for each in found.values() for before, _ in each)
    lines += ["", f"In all {beyond} of {len(runs)} ({100 * beyond / max(len(runs), 1):.0f} %); {uneven} began beyond."]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--replicas", type=int, nargs="+", default=[*range(3, 13)])
    parser.add_argument("--zones", type=int, nargs="+", default=[2, 3, 4])
    parser.add_argument("--ready", type=float, nargs=2, default=[1, 3])
    parser.add_argument("--at-once", type=int, default=12)
    parser.add_argument("--keys", nargs="*", help="matchLabelKeys of the constraint")
    asked = parser.parse_args()
    binaries = built()
    began = time.time()
    with tempfile.TemporaryDirectory() as folder:
        here = pathlib.Path(folder)
        (here / "kwok.yaml").write_text(slow((binaries / "kwok-stages.yaml").read_text(), *asked.ready))
        with ControlPlane(here, binaries) as plane:
            plane.add_nodes(dict.fromkeys(ZONES[: max(asked.zones)], 2))
            plane.await_nodes()
            found = measured(plane, asked)
    version = subprocess.run([binaries / "kube-scheduler", "--version"], check=True, capture_output=True, text=True)
    print(f"{version.stdout.strip()}, {time.strftime('%-d %B %Y')}, {time.time() - began:.0f} s")
    print(f"    python -m e2e.rollouts {' '.join(sys.argv[1:])}\n")
    print(table(found))


if __name__ == "__main__":
    main()
