"""Measure a background scan of a large cluster: python -m bench.scan [--workloads 5500]

The cluster of `bench.audit` has 5,000 nodes in three zones, and 5,500 Deployments and StatefulSets with their pods. The
process does the leading controller's work without requests: it evaluates every workload in slices, and makes its report
and its events. The output has the processor time and resident memory of the process, and the JSON size of the reports
of 1,000 workloads.
"""

import argparse
import resource
import time
from datetime import UTC, datetime

import msgspec

from bench.audit import lines
from webhook.cli.output.long_runs import collect_rarely
from webhook.core.api.types import TypeMeta
from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.readers import decode_object
from webhook.core.policy.policy import Policy
from webhook.core.scan.cluster_scan import cluster_scan
from webhook.core.scan.scan_context import scan_context
from webhook.core.scan.workload_scan import scan_workload
from webhook.report.documents import ReportApi, content_hash, report
from webhook.report.scanned import notices, report_content

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
SCANNED = ("Deployment", "StatefulSet")
SLICE = 20  # workloads


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", type=int, default=5_500)
    collect_rarely()
    index, raw, pods = ClusterIndex(RECORDED), [], 0
    for made in lines(parser.parse_args().workloads):
        if made["kind"] == "Snapshot":
            continue
        encoded = msgspec.json.encode(made)
        pods += made["kind"] == "Pod"
        if made["kind"] in SCANNED:
            raw.append(encoded)
        index.apply(
            "ADDED", decode_object(msgspec.Raw(encoded), TypeMeta(api_version=made["apiVersion"], kind=made["kind"]))
        )
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    here = Context(policy=Policy(), version=RECORDED, index=index, now="2026-11-23T12:00:00Z")
    began, found, sizes, longest = time.process_time(), [], [], 0.0
    for first in range(0, len(raw), SLICE):
        at = time.process_time()
        within = scan_context(here)
        slice_ = [scan_workload(each, within) for each in raw[first : first + SLICE]]
        longest = max(longest, time.process_time() - at)
        for each in slice_:
            wanted = report_content(each)
            if wanted is not None:
                document = report(wanted, ReportApi.OPEN_REPORTS, 1)
                content_hash(document)
                sizes.append(len(msgspec.json.encode(document)))
            [*notices(each, NOW)]
        found += slice_
    cluster_scan(found, scan_context(here))
    seconds = time.process_time() - began
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{len(raw):,} workloads, {pods:,} pods: {seconds:.1f} s of one core, {seconds / len(raw) * 1000:.1f} ms each"
    )
    print(f"{SLICE} workloads at once: at most {longest:.2f} s; memory {held:.0f} MiB before, {most:.0f} MiB after")
    share = len(sizes) / len(raw)
    print(f"{len(sizes):,} reports ({share:.0%}), {sum(sizes) / len(raw):.0f} KB for 1,000 workloads")


if __name__ == "__main__":
    main()
