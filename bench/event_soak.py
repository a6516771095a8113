"""A day of watch events in minutes: python -m bench.event_soak [--events 10000000]

Pods are replaced under new names, nodes send heartbeats, are cordoned and replaced, and workloads are scaled. After
every 10,000 events, the workloads with changed facts are scanned again, as the controller does. The output has the
memory of the process every two simulated hours: flat from the fourth reading on, with all nodes replaced. Last, every
workload is scanned anew: no kept scan may differ.
"""

import argparse
import gc
import sys
import time
from datetime import UTC, datetime, timedelta

from bench.audit import lines
from bench.scan import SCANNED
from bench.updates import WatchedCluster
from bench.verdict import resident
from webhook.core.scan.known_workloads import key_of_object
from webhook.core.scan.workload_scan import scan_workload

BEGIN = datetime(2026, 11, 23, tzinfo=UTC)
HOURS, BETWEEN_SCANS, READINGS = 24, 10_000, 12
WARM, GROWTH = 3, 0.03  # readings until all nodes are replaced, and the most growth of memory after them


class Day(WatchedCluster):
    """A cluster with events of its nodes, pods and workloads."""

    def __init__(self, workloads):
        super().__init__()
        self.events, self.now = 0, BEGIN
        self.raw, self.pods, self.nodes, self.workloads = {}, [], [], []
        for made in lines(workloads):
            if made["kind"] == "Pod":
                self.pods.append(made)
            elif made["kind"] == "Node":
                self.nodes.append(made)
            elif made["kind"] in SCANNED:
                self.workloads.append(made)
            if made["kind"] != "Snapshot":
                self.tell("ADDED", made)

    def tell(self, event, made):
        raw = super().tell(event, made)
        if made["kind"] in SCANNED:
            self.raw[key_of_object(raw)] = raw
        self.events += 1

    def happen(self):
        """One thing that happens in a cluster, in one to three events."""
        chance = self.rng.random()
        if chance < 0.5:
            self.replace_pod()
        elif chance < 0.97:
            self.tell("MODIFIED", self.rng.choice(self.nodes))
        elif chance < 0.98:
            self.cordon()
        elif chance < 0.985:
            self.replace_node()
        else:
            self.scale()

    def replace_pod(self):
        at = self.rng.randrange(len(self.pods))
        old, name = self.pods[at], f"pod-{self.events:x}"
        new = old | {"metadata": old["metadata"] | {"name": name, "uid": name}}
        waiting = {name: value for name, value in old["spec"].items() if name != "nodeName"}
        self.tell("DELETED", old)
        self.tell("ADDED", new | {"spec": waiting, "status": {"phase": "Pending"}})
        self.pods[at] = new | {"spec": waiting | {"nodeName": self.rng.choice(self.nodes)["metadata"]["name"]}}
        self.tell("MODIFIED", self.pods[at])

    def cordon(self):
        at = self.rng.randrange(len(self.nodes))
        taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
        closed = {"unschedulable": True, "taints": [taint]}
        self.nodes[at] = self.nodes[at] | {"spec": {} if self.nodes[at].get("spec") else closed}
        self.tell("MODIFIED", self.nodes[at])

    def replace_node(self):
        at, name = self.rng.randrange(len(self.nodes)), f"node-{self.events:x}"
        old = self.nodes[at]
        labels = old["metadata"]["labels"] | {"kubernetes.io/hostname": name}
        self.nodes[at] = old | {"metadata": old["metadata"] | {"name": name, "labels": labels}}
        self.tell("DELETED", old)
        self.tell("ADDED", self.nodes[at])

    def scale(self):
        at = self.rng.randrange(len(self.workloads))
        spec = self.workloads[at]["spec"] | {"replicas": self.rng.randint(1, 20)}
        self.workloads[at] = self.workloads[at] | {"spec": spec}
        self.tell("MODIFIED", self.workloads[at])

    def within(self):
        return self.noted(self.now.strftime("%Y-%m-%dT%H:%M:%SZ"))

    def scan_changed(self):
        within, known = self.within(), self.known
        due = {*known.due(every=True), *(key for key, raw in self.raw.items() if known.raw(key) != raw)}
        for key in sorted(due):
            known.scan(self.raw[key], within, scan_workload)
        return len(due)

    def differing(self):
        """The workloads with another scan than a new one."""
        within = self.within()
        new = {key: scan_workload(raw, within) for key, raw in self.raw.items()}
        return [*self.known.take_differing(), *(key for key in new if self.known.scan_of(key) != new[key])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--workloads", type=int, default=100)
    asked = parser.parse_args()
    day, began, scanned, memory = Day(asked.workloads), time.monotonic(), 0, []
    first = day.events
    print(f"{len(day.nodes):,} nodes, {len(day.pods):,} pods, {asked.workloads:,} workloads")
    while (done := day.events - first) < asked.events:
        day.now = BEGIN + timedelta(hours=HOURS * done / asked.events)
        until = day.events + BETWEEN_SCANS
        while day.events < until:
            day.happen()
        scanned += day.scan_changed()
        if done * READINGS // asked.events >= len(memory):
            gc.collect()
            memory.append(resident())
            spent = time.monotonic() - began
            print(f"{day.now:%H:%M}  {done:>12,} events  {memory[-1]:6.1f} MiB  {spent:6.0f} s", flush=True)
    differing = day.differing()
    growth = max(memory[WARM:]) / memory[WARM] - 1
    print(f"{scanned:,} scans, {len(differing)} differ from a full scan; memory at most {growth:+.1%}")
    sys.exit(bool(differing) or growth > GROWTH)


if __name__ == "__main__":
    main()
