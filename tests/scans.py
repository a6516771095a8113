"""A scan of objects as the controller does it: the index first, then each raw object that is to be looked at."""

import io
import json

from manifest import PLAIN, TODAY

from webhook.core.context import Context
from webhook.core.scan.cluster_scan import cluster_scan
from webhook.core.scan.scan_context import Representatives, key_of, scan_context
from webhook.core.scan.workload_scan import scan_workload
from webhook.core.workloads.kind_fields import has_template
from webhook.core.workloads.reading import read_meta
from webhook.snapshot.load import read_snapshot


def snapshot_of(data):
    return read_snapshot(io.BufferedReader(io.BytesIO(data)), "s", keep=lambda _item: True)


def context(snapshot, policy=PLAIN):
    return Context(policy=policy, version=snapshot.index.version, index=snapshot.index, now=TODAY)


def scanned(data, policy=PLAIN, *, of_a_slice=100):
    """What a scan says of a snapshot's bytes; each slice has surroundings of its own."""
    snapshot = snapshot_of(data)
    here = context(snapshot, policy)
    with_pods = [each for each in snapshot.kept if has_template(each.of.api_version, each.of.kind, policy.workloads)]
    named = [(each, read_meta(each.raw)) for each in with_pods]
    present = {key_of(meta.namespace, each.of.api_version, each.of.kind, meta.name) for each, meta in named}
    chosen = Representatives(present, policy.workloads)
    kept = [each for each, meta in named if chosen.takes(each.of.api_version, each.of.kind, meta)]
    found = []
    for start in range(0, len(kept), of_a_slice):
        within = scan_context(here)
        found += [scan_workload(bytes(each.raw), within) for each in kept[start : start + of_a_slice]]
    return cluster_scan([each for each in found if each is not None], scan_context(here))


def lines(*objects):
    """The bytes of a snapshot of these objects; a first one of kind Snapshot is its header."""
    return "\n".join(map(json.dumps, objects)).encode() + b"\n"
