"""Random small clusters with a Deployment whose constraints others read too, deterministic in seed, family and number.

A question is plain JSON: ``{"id", "family", "nodes", "pods", "deployment"}``. Nodes have room for everything, so that nothing but
constraints, taints and node affinity decides.
"""

import json
import random

from conformance.claims.worlds import HASH, HOSTNAME, NAMESPACE, OLD_HASH, RACK, ZONE

HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
LABELS = {"app": "web"}
OWNER = f"web-{HASH}"
TAINTS = (
    ("dedicated", "NoSchedule"),
    ("dedicated", "NoExecute"),
    ("dedicated", "PreferNoSchedule"),
)


def constraint(key, when=HARD, skew=1, selector=LABELS, **more):
    found = {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when, **more}
    return found if selector is None else found | {"labelSelector": {"matchLabels": selector} if selector else {}}


def node(rng, number, zone, *, tainted=0.0, racks=0.0):
    labels = {HOSTNAME: f"n{number}", ZONE: zone, "pool": rng.choice("xy")}
    if rng.random() < racks:
        labels[RACK] = rng.choice(["r1", "r2"])
    spec = {}
    if rng.random() < tainted:
        key, effect = rng.choice(TAINTS)
        spec = {"taints": [{"key": key, "effect": effect}]}
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number}", "labels": labels}, "spec": spec, "status": status}


def pod(name, on, labels, template, *, owner=OWNER, namespace=NAMESPACE):
    """A running pod of a ReplicaSet, with the constraints of its template as kube-apiserver stores them."""
    meta = {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}", "labels": labels}
    meta["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": f"uid-{owner}", "controller": True}]
    spec = {**json.loads(json.dumps(template)), "nodeName": on}
    for each in spec.get("topologySpreadConstraints", ()):
        merge_keys(each, labels)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Running"}}


def merge_keys(written, labels):
    """matchLabelKeys in the selector, as kube-apiserver stores them since 1.34."""
    for key in written.get("matchLabelKeys", ()):
        if key in labels:
            condition = {"key": key, "operator": "In", "values": [labels[key]]}
            written.setdefault("labelSelector", {}).setdefault("matchExpressions", []).append(condition)


def affinity(*terms):
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def plain(rng, nodes):
    return {"topologySpreadConstraints": [constraint(ZONE, skew=rng.choice([1, 1, 2]))]}


def hostname(rng, nodes):
    return {"topologySpreadConstraints": [constraint(HOSTNAME, skew=rng.choice([1, 1, 2]))]}


def soft(rng, nodes):
    return {"topologySpreadConstraints": [constraint(rng.choice([ZONE, HOSTNAME]), SOFT, rng.choice([1, 2]))]}


def min_domains(rng, nodes):
    return {"topologySpreadConstraints": [constraint(rng.choice([ZONE, ZONE, HOSTNAME]), minDomains=rng.choice([1, 2, 3, 4, 5]))]}


def policies(rng, nodes):
    """Either policy, on tainted and on chosen nodes."""
    more = {}
    if rng.random() < 0.6:
        more["nodeTaintsPolicy"] = rng.choice(["Honor", "Ignore"])
    if rng.random() < 0.6:
        more["nodeAffinityPolicy"] = rng.choice(["Honor", "Ignore"])
    spec = {"topologySpreadConstraints": [constraint(ZONE, **more)]}
    chosen = rng.random()
    if chosen < 0.3:
        spec["nodeSelector"] = {"pool": "x"}
    elif chosen < 0.5:
        spec["affinity"] = affinity({"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a", "b"]}]})
    elif chosen < 0.6:
        spec["affinity"] = affinity(*({"matchExpressions": [{"key": "pool", "operator": "In", "values": [each]}]} for each in "xy"))
    if rng.random() < 0.3:
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    return spec


def match_label_keys(rng, nodes):
    return {"topologySpreadConstraints": [constraint(rng.choice([ZONE, ZONE, HOSTNAME]), matchLabelKeys=["pod-template-hash"])]}


def selectors(rng, nodes):
    """Selectors without conditions, and one that the pods do not match."""
    selector = rng.choice([None, {}, {"app": "other"}])
    return {"topologySpreadConstraints": [constraint(rng.choice([ZONE, HOSTNAME]), rng.choice([HARD, SOFT]), selector=selector)]}


def two_keys(rng, nodes):
    both = [constraint(ZONE), constraint(rng.choice([RACK, RACK, HOSTNAME]), rng.choice([HARD, HARD, SOFT]), rng.choice([1, 2]))]
    return {"topologySpreadConstraints": both}


def match_fields(rng, nodes):
    """Conditions on the names of nodes."""
    names = [each["metadata"]["name"] for each in nodes]
    field = {"key": "metadata.name", "operator": rng.choice(["In", "NotIn"]), "values": [rng.choice(names)]}
    return {"topologySpreadConstraints": [constraint(ZONE)], "affinity": affinity({"matchFields": [field]})}


def twins(rng, nodes):
    """Two constraints that differ in what they ask for, not in what they count."""
    one, other = constraint(ZONE, minDomains=rng.choice([1, 3, 4])), constraint(ZONE, SOFT)
    return {"topologySpreadConstraints": rng.choice([[one, other], [other, one]])}


FAMILIES = {
    "one constraint on zones": plain,
    "hostname": hostname,
    "ScheduleAnyway": soft,
    "minDomains": min_domains,
    "policies": policies,
    "matchLabelKeys": match_label_keys,
    "selectors without conditions": selectors,
    "two keys": two_keys,
    "matchFields": match_fields,
    "two of a key": twins,
}
# Names of families for the page. The recorded cases keep the short ones.
SHOWN = {
    "hostname": "one constraint on hostnames",
    "policies": "nodeAffinityPolicy, nodeTaintsPolicy",
    "two keys": "two constraints, two keys",
    "two of a key": "two constraints on one key",
}


def question(seed, family, number):
    """The question of a number: it depends on nothing drawn for another."""
    rng = random.Random(f"{seed}/{family}/{number}")
    zones = "abcd"[: rng.randint(2, 4)]
    tainted = 0.4 if family == "policies" else 0.1
    racks = 0.7 if family == "two keys" else 0.0
    nodes = [node(rng, place, zones[place] if place < len(zones) else rng.choice(zones), tainted=tainted, racks=racks)
             for place in range(rng.randint(len(zones), len(zones) + 3))]  # fmt: skip
    spec = {"containers": [{"name": "c", "image": "i"}], **FAMILIES[family](rng, nodes)}
    pods = []
    for place in range(rng.randint(0, 2 * len(nodes))):
        labels = LABELS | {"pod-template-hash": HASH if rng.random() < 0.7 else OLD_HASH}
        owner = f"web-{labels['pod-template-hash']}"
        pods.append(pod(f"web-{place}", rng.choice(nodes)["metadata"]["name"], labels, spec, owner=owner))
    for place in range(rng.randint(0, 3)):
        bare = {"containers": spec["containers"]}
        pods.append(pod(f"other-{place}", rng.choice(nodes)["metadata"]["name"], {"app": "other"}, bare, owner="other-1"))
    template = {"metadata": {"labels": LABELS}, "spec": spec}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": NAMESPACE, "uid": "uid-web"},
        "spec": {"replicas": rng.randint(1, 8), "selector": {"matchLabels": LABELS}, "template": template},
    }
    return {"id": f"{seed}/{family}/{number}", "family": family, "nodes": nodes, "pods": pods, "deployment": deployment}


def next_pod(asked):
    """The pod that the Deployment's ReplicaSet makes, as it is posted."""
    template = json.loads(json.dumps(asked["deployment"]["spec"]["template"]))
    labels = template["metadata"]["labels"] | {"pod-template-hash": HASH}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": OWNER, "uid": f"uid-{OWNER}", "controller": True}
    meta = {"generateName": f"{OWNER}-", "namespace": NAMESPACE, "labels": labels, "ownerReferences": [owner]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}
