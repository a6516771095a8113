"""What a scan says of every workload is what audit says of the same cluster, and skews are what they are by hand."""

import random
from collections import Counter
from pathlib import Path

import pytest
from build import default, policy
from cli.snapshots import HOSTNAME, ZONE, node
from manifest import PLAIN, TODAY
from scans import lines, scanned

from webhook.cli.checking.whole_cluster import examine_cluster
from webhook.cli.frame import Frame
from webhook.cluster.resources import BUILT_IN_RESOURCES
from webhook.manifests.reading.files import File

EXAMPLE = Path(__file__).parents[3] / "webhook" / "example" / "cluster.jsonl"
HEADER = {
    "kind": "Snapshot",
    "kubernetesVersion": "v1.37.1",
    "resources": [each.name for each in BUILT_IN_RESOURCES],
}
SEEDS = range(40)


def any_cluster(seed):
    """A small cluster: some zones, workloads with and without constraints, pods that run, wait, leave, or are alone."""
    rng = random.Random(seed)  # noqa: S311 - any cluster will do
    nodes = [f"n{number}" for number in range(rng.randint(2, 7))]
    yield HEADER
    for name in nodes:
        made = node(name, rng.choice(["a", "b", "c", ""]), tainted=rng.random() < 0.15, cordoned=rng.random() < 0.1)
        made["metadata"]["labels"]["disk"] = rng.choice(["ssd", "hdd"])
        yield made
    for number in range(rng.randint(1, 5)):
        yield from any_workload(rng, f"app{number}", nodes)


def any_workload(rng, name, nodes):
    labels, namespace = {"app": name}, rng.choice(["shop", "pay"])
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": rng.choice(["100m", "1", "3"])}}}]}
    keys = rng.sample([ZONE, HOSTNAME, "disk"], rng.randint(0, 2))
    if keys:
        spec["topologySpreadConstraints"] = [any_constraint(rng, key, labels) for key in keys]
    if rng.random() < 0.3:
        spec["nodeSelector"] = {"disk": "ssd"}
    kind, hashed = rng.choice(["Deployment", "StatefulSet"]), labels
    meta = {"name": name, "namespace": namespace, "uid": f"u-{name}"}
    template = {"metadata": {"labels": labels}, "spec": spec}
    replicas = rng.randint(1, 6)
    of = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    present = rng.random() < 0.8
    if present:
        yield {"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": of}
    holder = (kind, name)
    if kind == "Deployment":
        hashed = labels | {"pod-template-hash": "5d"}
        holder = ("ReplicaSet", f"{name}-5d")
        above = {"name": holder[1], "namespace": namespace, "uid": f"u-{name}-5d", "ownerReferences": [by(kind, name)]}
        if rng.random() < 0.8:
            yield {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "metadata": above,
                "spec": of | {"selector": {"matchLabels": hashed}},
            }
    for ordinal in range(rng.randint(0, replicas + 1)):
        mine = {"name": f"{name}-{ordinal}", "namespace": namespace, "labels": hashed, "uid": f"p-{name}-{ordinal}"}
        if rng.random() < 0.9:
            mine["ownerReferences"] = [by(*holder)]
        if rng.random() < 0.1:
            mine |= {"deletionTimestamp": "2026-11-22T00:00:00Z"}
        where = {} if rng.random() < 0.2 else {"nodeName": rng.choice(nodes)}
        status = {"phase": "Running" if where else "Pending"}
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": mine, "spec": spec | where, "status": status}


def by(kind, name):
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"u-{name}", "controller": True}


def any_constraint(rng, key, labels):
    found = {"topologyKey": key, "maxSkew": rng.randint(1, 2), "labelSelector": {"matchLabels": labels}}
    found["whenUnsatisfiable"] = rng.choice(["DoNotSchedule", "ScheduleAnyway"])
    if rng.random() < 0.2:
        found["nodeTaintsPolicy"] = "Honor"
    if rng.random() < 0.2:
        found["nodeAffinityPolicy"] = "Ignore"
    if found["whenUnsatisfiable"] == "DoNotSchedule" and rng.random() < 0.2:
        found["minDomains"] = rng.randint(1, 4)
    return found


def audited(data, given):
    return examine_cluster([File("s.jsonl", data)], Frame(policy=given, today=TODAY))


DEFAULTED = policy(default(when="ScheduleAnyway"), mode="observe")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.sampled
def test_scan_and_audit_agree_on_random_clusters(seed):
    data, given = lines(*any_cluster(seed)), PLAIN if seed % 2 else DEFAULTED
    audit, scan = audited(data, given), scanned(data, given, of_a_slice=1 + seed % 3)
    assert audit.scan == scan
    assert not audit.failures
    assert rows(audit) == findings(scan)


def test_scan_and_audit_agree_on_the_example():
    data = EXAMPLE.read_bytes()
    audit, scan = audited(data, PLAIN), scanned(data, PLAIN)
    assert audit.scan == scan
    assert rows(audit) == findings(scan)


def rows(audit):
    """What the rows of audit say, workload by workload."""
    named = ((each.manifest.kind, each.manifest.namespace, each.manifest.name, each.judged) for each in audit.rows)
    return Counter((*name, told.finding.rule, told.finding.path, str(told.mode)) for *name, told in named)


def findings(scan):
    return Counter(
        (each.kind, each.namespace, each.name, told.finding.rule, told.finding.path, str(told.mode))
        for each in scan.workloads
        for told in each.findings
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_skews_are_what_they_are_by_hand(seed):
    objects = [*any_cluster(seed)]
    compared = 0
    for each in scanned(lines(*objects)).workloads:
        if each.kind not in {"Deployment", "StatefulSet"}:
            continue
        (written,) = [
            made
            for made in objects
            if (made["kind"], made.get("metadata", {}).get("name")) == (each.kind, each.name)
            and made["metadata"]["namespace"] == each.namespace
        ]
        spec = written["spec"]["template"]["spec"]
        declared = spec.get("topologySpreadConstraints", [])
        told = [skew for skew in each.skews if skew.origin == "declared"]
        assert [skew.topology_key for skew in told] == [constraint["topologyKey"] for constraint in declared]
        for skew, constraint in zip(told, declared, strict=True):
            assert by_hand(objects, each.namespace, spec, constraint) == (dict(skew.domains), skew.skew), skew
            compared += 1
    assert compared or seed not in {1, 2, 3}


def by_hand(objects, namespace, spec, constraint):
    """Domains and skew of one constraint, counted in the raw objects as the scheduler's documentation says."""
    same = [
        each["topologyKey"]
        for each in spec["topologySpreadConstraints"]
        if each["whenUnsatisfiable"] == constraint["whenUnsatisfiable"]
    ]
    domains, of = {}, {}
    for each in objects:
        if each["kind"] == "Node" and eligible(each, same, spec, constraint):
            of[each["metadata"]["name"]] = each["metadata"]["labels"][constraint["topologyKey"]]
            domains[of[each["metadata"]["name"]]] = 0
    wanted = constraint["labelSelector"]["matchLabels"]
    for each in objects:
        if each["kind"] == "Pod" and each["metadata"]["namespace"] == namespace and each["spec"].get("nodeName") in of:
            meta = each["metadata"]
            if "deletionTimestamp" not in meta and wanted.items() <= meta["labels"].items():
                domains[of[each["spec"]["nodeName"]]] += 1
    if not domains:
        return {}, None
    too_few = len(domains) < constraint.get("minDomains", 1)
    return domains, max(domains.values()) - (0 if too_few else min(domains.values()))


def eligible(made, keys, spec, constraint):
    """A cordon alone is no taint; the API server's node controller adds one."""
    labels, taints = made["metadata"]["labels"], made["spec"].get("taints")
    chosen = constraint.get("nodeAffinityPolicy") == "Ignore" or spec.get("nodeSelector", {}).items() <= labels.items()
    shunned = constraint.get("nodeTaintsPolicy") == "Honor" and taints
    return all(key in labels for key in keys) and chosen and not shunned
