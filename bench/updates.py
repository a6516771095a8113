"""Compare an update of the background scan with a full scan: python -m bench.updates [--workloads 5500]

The cluster is that of `bench.audit`: 5,000 nodes in three zones, 5,500 Deployments and StatefulSets and their pods.
After a full scan, a pod of one workload in a hundred moves to another node, and an update follows. Last, every node
sends a heartbeat. The output has the processor time of the process, and the memory of results and facts.
"""

import argparse
import json
import random
import time

import msgspec

from bench.audit import NODES, lines
from bench.scan import SCANNED, SLICE
from bench.verdict import resident
from webhook.cli.output.long_runs import collect_rarely
from webhook.core.api.types import TypeMeta
from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.readers import decode_object
from webhook.core.policy.policy import Policy
from webhook.core.scan.cluster_scan import cluster_scan
from webhook.core.scan.facts import Changes
from webhook.core.scan.known_workloads import KnownWorkloads
from webhook.core.scan.scan_context import scan_context
from webhook.core.scan.workload_scan import scan_workload


class WatchedCluster:
    """An index that gets events, the changes that they make, and the kept scans."""

    def __init__(self):
        self.index, self.known, self.changes = ClusterIndex(RECORDED), KnownWorkloads(), Changes()
        self.rng = random.Random(5)  # noqa: S311 any events will do

    def tell(self, event, made):
        """Apply the event of an object. Returns the object's JSON."""
        raw = msgspec.json.encode(made)
        value = decode_object(raw, TypeMeta(api_version=made["apiVersion"], kind=made["kind"]))
        self.index.apply(event, value)
        self.changes.add(value, deleted=event == "DELETED")
        return raw

    def noted(self, now):
        """Find the workloads with changed facts. Returns the context of their scan."""
        within = scan_context(Context(policy=Policy(), version=RECORDED, index=self.index, now=now))
        self.known.note(self.changes.take()[0], within)
        return within


class Cluster(WatchedCluster):
    def __init__(self, workloads):
        super().__init__()
        self.raw, self.pods, self.nodes = [], {}, []
        for number, made in enumerate(lines(workloads)):
            if made["kind"] == "Pod" and made["metadata"]["name"].endswith("-0"):
                self.pods[number] = msgspec.json.encode(made)
            if made["kind"] == "Node":
                self.nodes.append(made)
            if made["kind"] in SCANNED:
                self.raw.append(msgspec.json.encode(made))
            if made["kind"] != "Snapshot":
                self.put(made)
        self.update([])

    def put(self, made):
        self.tell("MODIFIED", made)

    def update(self, raw):
        """Scan these objects, and those with changed facts. Returns how many more wait for the next interval."""
        within, known = self.noted("2026-11-23T12:00:00Z"), self.known
        due = [*raw, *(known.raw(key) for key in known.due(every=False))]
        for start in range(0, len(due), SLICE):
            for each in due[start : start + SLICE]:
                known.scan(each, within, scan_workload)
        if due:
            cluster_scan(known.scans(), within)
        return len(due), len(known.due(every=True))


def timed(ask, *arguments):
    began = time.process_time()
    answer = ask(*arguments)
    return time.process_time() - began, answer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", type=int, default=5_500)
    workloads = parser.parse_args().workloads
    collect_rarely()
    cluster = Cluster(workloads)
    before = resident()
    full, _ = timed(cluster.update, cluster.raw)
    print(f"a full scan of {workloads:,} workloads: {full:.1f} s, {resident() - before:.0f} MiB of results and facts")
    for pod in cluster.rng.sample(list(cluster.pods.values()), workloads // 100):
        moved = json.loads(pod)
        moved["spec"]["nodeName"] = f"n{cluster.rng.randrange(NODES)}"
        cluster.put(moved)
    seconds, (scanned, wait) = timed(cluster.update, [])
    share, later = seconds / full, wait / workloads
    print(f"a pod of 1 % of them moved: {scanned} scanned, {seconds:.2f} s, {share:.1%} of a full scan")
    print(f"{wait} wait for the interval, because the free room of some node changed: {later:.1%} of a full scan")
    for node in cluster.nodes:
        cluster.put(node)
    seconds, (scanned, _) = timed(cluster.update, [])
    print(f"a heartbeat of every node: {scanned} scanned, {seconds * 1e3:.1f} ms in each update of 10 s")


if __name__ == "__main__":
    main()
