"""Random objects beside random clusters: whatever they hold, no rule and no fix raises, and every entrance answers.

    PYTHONPATH=tests python -m properties.anything SEED SECONDS      # as make fuzz-rules

Clusters are the recorded scenarios, with fields replaced by other values; objects are workloads of every kind made
from their pods, with fields replaced, too. A world depends on its number alone.
"""

import gzip
import json
import random
import sys
import time
import traceback
from copy import deepcopy
from functools import cache
from itertools import count
from pathlib import Path

import msgspec
from build import filled

from webhook.cli.checking.levels import Level
from webhook.cli.checking.mending import mend
from webhook.cli.checking.run import examine_files
from webhook.cli.frame import Frame
from webhook.core.api.types import TypeMeta
from webhook.core.api.version import KubernetesVersion
from webhook.core.apiserver.decoding import DecodeError
from webhook.core.context import Context
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.readers import decode_object
from webhook.core.json_edits import applied
from webhook.core.policy.policy import Messages, Mode, Policy
from webhook.core.review.decision import AdmissionRequest
from webhook.core.review.examination import examine
from webhook.core.review.mutation import mutate
from webhook.core.review.review import review
from webhook.core.rules.rule_set import RULES
from webhook.core.workloads.kinds import KINDS, NATIVE, TEMPLATED
from webhook.manifests.reading.files import File

VECTORS = Path(__file__).parents[2] / "conformance" / "vectors"
CUSTOM = [kind for kind in KINDS if kind in TEMPLATED and kind not in NATIVE]
BUILT_IN = ("Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job", "CronJob")
ODD = (
    *(None, True, False, 0, 1, -1, 2**31 - 1, 2**31, 2**63, 1.5, 1e300, "", " ", "a", "web", "\x00", "é\u2028"),
    *([], {}, [None], [{}], {"": ""}, {"a": None}, "DoNotSchedule", "Honor", "Ignore", "Exists", "NotIn", "x" * 300),
    *("topology.kubernetes.io/zone", "topology.kubernetes.io/hostname", "100%", "25%", "1Gi", "-5m", "zone-a", "n1"),
)  # fmt: skip
_KINDS = {
    "nodes": "v1/Node",
    "pods": "v1/Pod",
    "namespaces": "v1/Namespace",
    "services": "v1/Service",
    "replicaSets": "apps/v1/ReplicaSet",
    "statefulSets": "apps/v1/StatefulSet",
    "replicationControllers": "v1/ReplicationController",
    "persistentVolumes": "v1/PersistentVolume",
    "persistentVolumeClaims": "v1/PersistentVolumeClaim",
    "storageClasses": "storage.k8s.io/v1/StorageClass",
    "csiNodes": "storage.k8s.io/v1/CSINode",
    "csiDrivers": "storage.k8s.io/v1/CSIDriver",
    "csiStorageCapacities": "storage.k8s.io/v1/CSIStorageCapacity",
    "volumeAttachments": "storage.k8s.io/v1/VolumeAttachment",
}


@cache
def scenarios():
    found = []
    for path in sorted(VECTORS.glob("verdict-*.jsonl.gz")):
        with gzip.open(path, "rt") as lines:
            found += list(lines)
    return found


class World:
    """A cluster, an object, an older version of it, and what both are judged by."""

    def __init__(self, number):
        rng = random.Random(number)  # noqa: S311 nothing secret
        scenario = _plain(rng) if rng.random() < _PLAIN else json.loads(rng.choice(scenarios()))["scenario"]
        labels = scenario["pod"].get("metadata", {}).get("labels") or {}
        self.object = _workload(scenario, labels, rng)
        self.old = _changed(json.loads(json.dumps(self.object)), rng, rng.randint(0, 2))
        others = [_workload(scenario, labels, rng, kind) for kind in ("Deployment", "StatefulSet") * rng.randint(0, 2)]
        self.values = None if rng.random() < 0.1 else _values(scenario, others, rng)
        self.object = _changed(self.object, rng, rng.choice((0, 0, 0, 0, 1, 1, 2, 4)))
        self.version = KubernetesVersion(1, rng.randint(31, 38))
        self.policy = Policy(
            ceiling=rng.choice([*Mode]),
            rules={rule.id: rng.choice([*Mode]) for rule in RULES if rng.random() < 0.5},
            capacity=rng.choice(("auto", "fixed", "growing")),
            messages=Messages(detail=rng.choice(("own-namespace", "full", "minimal"))),
        )
        self.now = rng.choice(("", "2026-11-22T10:00:00Z"))

    @property
    def index(self):
        """A new index of the cluster; None where there is none."""
        return None if self.values is None else filled(ClusterIndex(KubernetesVersion(1, 37)), self.values)


def _plain(rng):
    """A small cluster in which most of what one could place fits; a pod with hard constraints."""
    nodes, pods, volumes = [], [], []
    for zone in "abc"[: rng.choice((1, 2, 3, 3))]:
        for number in range(rng.randint(1, 3)):
            name = f"{zone}{number}"
            labels = {"topology.kubernetes.io/zone": zone, "kubernetes.io/hostname": name, "disk": rng.choice("sh")}
            taint = {"key": rng.choice(_TAINTS), "effect": "NoSchedule", "timeAdded": "2026-11-22T08:00:00Z"}
            spec = {"taints": [taint]} if rng.random() < 0.2 else {"unschedulable": rng.random() < 0.1}
            room = {"cpu": rng.choice(("1", "8")), "memory": "8Gi", "pods": "20"}
            nodes.append({"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"allocatable": room}})
            for other in range(rng.randint(0, 2)):
                meta = {
                    "name": f"{rng.choice(('web', 'p'))}-{len(pods)}",
                    "namespace": "shop",
                    "labels": {"app": rng.choice(("web", "db"))},
                }
                pods.append({"metadata": meta, "spec": {"nodeName": name, "containers": [{"name": str(other)}]}})
        terms = [{"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}]}]
        spec = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}, "accessModes": ["ReadWriteOnce"]}
        volumes.append({"metadata": {"name": f"pv-{zone}"}, "spec": spec})
    spec = {
        "containers": [{"name": "c", "resources": {"requests": {"cpu": rng.choice(("100m", "3"))}}}],
        "topologySpreadConstraints": _once([_constraint(rng) for _ in range(rng.randint(1, 3))]),
    }
    if rng.random() < 0.3:
        spec["nodeSelector"] = rng.choice(
            ({"disk": "s"}, {"disk": "x"}, {"topology.kubernetes.io/zone": rng.choice("abx")})
        )
    if rng.random() < 0.3:
        term = {"topologyKey": rng.choice(_KEYS), "labelSelector": {"matchLabels": {"app": "web"}}}
        which = rng.choice(("podAffinity", "podAntiAffinity"))
        spec["affinity"] = {which: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pod = {"metadata": {"labels": {"app": "web"}, "namespace": "shop"}, "spec": spec}
    return {"pod": pod, "nodes": nodes, "pods": pods, "persistentVolumes": volumes}


def _once(constraints):
    """The last for each key and action, as the API server wants it."""
    return [*{(each["topologyKey"], each["whenUnsatisfiable"]): each for each in constraints}.values()]


def _constraint(rng):
    found = {
        "maxSkew": rng.randint(1, 3),
        "topologyKey": rng.choice((*_KEYS, *_KEYS, *_KEYS, "rack")),
        "whenUnsatisfiable": rng.choice(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": {"matchLabels": {"app": rng.choice(("web", "web", "web", "db"))}},
    }
    for field, values in _MORE.items():
        if rng.random() < 0.25 and (field != "minDomains" or found["whenUnsatisfiable"] == "DoNotSchedule"):
            found[field] = rng.choice(values)
    return found


_PLAIN = 0.6
_KEYS = ("topology.kubernetes.io/zone", "kubernetes.io/hostname")
_TAINTS = ("node.kubernetes.io/unschedulable", "node.kubernetes.io/unreachable", "gpu", "karpenter.sh/disrupted")
_MORE = {
    "minDomains": (1, 2, 4),
    "nodeAffinityPolicy": ("Honor", "Ignore"),
    "nodeTaintsPolicy": ("Honor", "Ignore"),
    "matchLabelKeys": (["pod-template-hash"], ["app"], ["tier"]),
}


def _workload(scenario, labels, rng, kind=None):
    built_in = [(None, each) for each in BUILT_IN]
    common = [(None, "StatefulSet"), (None, "Deployment")] * 6
    group, kind = ("", kind) if kind else rng.choice([*built_in, *built_in, *common, *CUSTOM])
    pod = json.loads(json.dumps(scenario["pod"]))
    template = {"metadata": {"labels": labels}, "spec": pod.get("spec") or {}}
    meta = {"name": rng.choice(("web", "db", "a" * 70)), "namespace": pod.get("metadata", {}).get("namespace", "shop")}
    replicas = rng.choice((None, 0, 1, 2, 3, 5, 9, 40))
    if kind == "Pod":
        return {"apiVersion": "v1", "kind": kind, "metadata": {**meta, "labels": labels}, "spec": template["spec"]}
    if group:
        layout = KINDS[group, kind].layout
        value = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": meta}
        for site in layout.sites:
            _put(value, site.template.replace("[*]", ".0").replace("*", "worker").split("."), template)
        if layout.selector:
            _put(value, layout.selector.split("."), {"matchLabels": labels})
        value["spec"]["replicas"] = replicas
        return value
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    if kind == "ReplicationController":
        spec["selector"] = labels
    if kind in {"Job", "CronJob"}:
        spec = {"parallelism": replicas, "template": template}
        spec = spec if kind == "Job" else {"jobTemplate": {"spec": spec}}
    if kind == "StatefulSet":
        claims = [each["metadata"]["name"] for each in scenario.get("persistentVolumeClaims") or ()]
        meta["name"] = rng.choice((*claims, "web")).rpartition("-")[2] or "web"
        spec["volumeClaimTemplates"] = [{"metadata": {"name": rng.choice((*claims, "data")).partition("-")[0]}}]
        spec["ordinals"] = {"start": rng.choice((0, 1, 5))}
        scenario.setdefault("persistentVolumeClaims", []).extend(_claims(scenario, spec, meta, rng))
    version = {"Job": "batch/v1", "CronJob": "batch/v1", "ReplicationController": "v1"}.get(kind, "apps/v1")
    return {"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec}


def _claims(scenario, spec, meta, rng):
    """Claims of some of the set's pods, bound to volumes that are there."""
    volumes = [each["metadata"]["name"] for each in scenario.get("persistentVolumes") or ()] or ["gone"]
    name = spec["volumeClaimTemplates"][0]["metadata"]["name"]
    for ordinal in range(rng.randint(0, 3)):
        modes = [rng.choice(("ReadWriteOnce", "ReadWriteOncePod"))]
        yield {
            "metadata": {
                "name": f"{name}-{meta['name']}-{ordinal}",
                "namespace": meta["namespace"],
                "annotations": {"pv.kubernetes.io/bind-completed": "yes"} if rng.random() < 0.9 else {},
            },
            "spec": {"volumeName": rng.choice(volumes), "accessModes": modes},
        }


def _put(value, path, leaf):
    *above, last = path
    for name, following in zip(above, path[1:], strict=True):
        child = [{}] if following == "0" else {}
        value = value[0] if name == "0" else value.setdefault(name, child)
    value[0 if last == "0" else last] = leaf


def places(value, found, depth=0):
    """Every place of a value: its container and key."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        found.append((value, key))
        if depth < 14:
            places(child, found, depth + 1)
    return found


def _changed(value, rng, times):
    for _ in range(times):
        found = [each for each in places(value, []) if each[1] not in {"apiVersion", "kind"}]
        if not found:
            break
        container, key = rng.choice(found)
        what = rng.random()
        if what < 0.2:
            del container[key]
        elif what < 0.35:
            other, name = rng.choice(found)
            container[key] = other[name] if other is not container else None
            value = json.loads(json.dumps(value)) if _is_tree(value) else value
        elif isinstance(container, list) and what < 0.5:
            container.append(container[key])
        else:
            container[key] = deepcopy(rng.choice(ODD))
    return value if _is_tree(value) else {"apiVersion": "v1", "kind": "Pod"}


def _is_tree(value):
    try:
        json.dumps(value)
    except (ValueError, RecursionError):
        return False
    return True


def _values(scenario, others, rng):
    """The objects of the cluster, as an index takes them."""
    entries = [(each, _KINDS[field]) for field in _KINDS for each in scenario.get(field) or ()]
    entries += [(each, f"{each['apiVersion']}/{each['kind']}") for each in others]
    found = []
    for value, named in entries:
        api_version, _, kind = named.rpartition("/")
        odd = _changed(value, rng, 1) if rng.random() < 0.1 else value
        try:
            read = decode_object(msgspec.Raw(json.dumps(odd).encode()), TypeMeta(api_version=api_version, kind=kind))
        except (ValueError, RecursionError):
            continue  # as the feed, which leaves out what it cannot read
        if read is not None:
            found.append(read)
    return found


def requests(world):
    """The review of the world's object when it is created, and when it replaces the old one."""
    group, _, version = world.object["apiVersion"].rpartition("/")
    raw, old = json.dumps(world.object).encode(), json.dumps(world.old).encode()
    for operation, before in (("CREATE", None), ("UPDATE", old)):
        yield AdmissionRequest(
            uid="u", operation=operation, group=group, version=version, kind=world.object["kind"], namespace="shop",
            name="web", object=raw, old_object=before,
        )  # fmt: skip


def faults(number):
    """What was raised in this world, as text; what a rule raised is told by the rule."""
    world = World(number)
    index, seen = world.index, []
    context = Context(policy=world.policy, index=index, version=world.version, now=world.now)
    try:
        found = examine(world.object, context)
        seen += [each for each in found.not_evaluated if each.fault]
        for each in found.findings:
            applied(world.object, each.finding.edits)
    except DecodeError:
        pass
    frame = Frame(policy=world.policy, today="2026-11-22", asked_version=world.version, index=index)
    mended = mend([File("a.json", json.dumps(world.object).encode())], frame, lowest=Level.AUDIT).files[0]
    failures = examine_files([File("a.json", mended.after)], frame).failures
    for request in requests(world):
        seen += [each for each in review(request, context).not_evaluated if each.fault]
        mutate(request, context, waited=True)
    raised = [(each.rule, each.fault) for each in seen] + [(each.rule, each.error) for each in failures]
    return [f"{rule}: {''.join(traceback.format_exception(error))}" for rule, error in raised]


def hunt(find, noun, verdict, also=lambda: ""):
    """Print what `find` returns or raises for each number, until the seconds of the command line have passed."""
    seed, seconds = int(sys.argv[1]), float(sys.argv[2])
    until, bad = time.monotonic() + seconds, 0
    for number in count(seed * 1_000_000_000):
        if time.monotonic() > until:
            break
        try:
            found = find(number)
        except Exception:  # noqa: BLE001 it is what is looked for
            found = [traceback.format_exc()]
        if found:
            bad += 1
            print(f"{noun} {number}:", *found, sep="\n", flush=True)  # noqa: T201 its output
    done = f"{number - seed * 1_000_000_000:,} {noun}s in {seconds:.0f} s{also()}"
    print(f"seed {seed}: {done}, {bad} {verdict}")  # noqa: T201
    sys.exit(bool(bad))


if __name__ == "__main__":
    hunt(faults, "world", "in which something raised")
