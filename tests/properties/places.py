"""Small random clusters with one workload, and every order of placing its pods with the real filters."""

import copy
from collections import Counter

from msgspec import convert

from webhook.core.api.storage import Claim, PersistentVolume, StorageClass
from webhook.core.api.types import Node, ObjectMeta, Pod
from webhook.core.api.version import RECORDED
from webhook.core.apiserver.admission_plugins import as_created
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.objects import Autoscaler, AutoscalerSpec, ScaleTarget
from webhook.core.scheduler.cycle import decide
from webhook.core.scheduler.problem import take

KEYS = {"zone": "topology.kubernetes.io/zone", "hostname": "kubernetes.io/hostname", "rack": "rack"}
ZONE, HOSTNAME = KEYS["zone"], KEYS["hostname"]
OWN = {"app": "web", "team": "shop"}
LOST = {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}
YOUNG = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule", "timeAdded": "2026-11-21T11:50:00Z"}
NOW = "2026-11-21T12:00:00Z"
DEDICATED = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
LATE = {"metadata": {"name": "late"}, "provisioner": "disks", "volumeBindingMode": "WaitForFirstConsumer"}
SHAPES = (("zone",), ("zone",), ("hostname",), ("rack",), ("zone", "hostname"), ("hostname", "zone"), ("zone", "rack"))
MOST_STATES = 4000


class TooManyStatesError(Exception):
    """More than are looked at."""


def _node(random, name, cpu, *, racks):
    labels = {HOSTNAME: name}
    if random.random() < 0.96:
        labels[ZONE] = random.choice("aabbc")
    if racks and random.random() < 0.9:
        labels["rack"] = random.choice("xy")
    if random.random() < 0.4:
        labels["disk"] = "ssd"
    spec = {"taints": [taint for taint, often in ((DEDICATED, 0.2), (YOUNG, 0.1)) if random.random() < often]}
    if random.random() < 0.1:
        spec["unschedulable"] = True
    allocatable = {"cpu": str(random.choice(cpu)), "memory": "64Gi", "pods": "110"}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"allocatable": allocatable}}


def _constraint(random, key):
    found = {
        "maxSkew": random.choice([1, 1, 1, 2]),
        "topologyKey": KEYS[key],
        "whenUnsatisfiable": random.choice(["DoNotSchedule"] * 3 + ["ScheduleAnyway"]),
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    if found["whenUnsatisfiable"] == "DoNotSchedule" and random.random() < 0.2:
        found["minDomains"] = random.choice([2, 3])
    for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if random.random() < 0.45:
            found[name] = random.choice(["Honor", "Ignore"])
    return found


def _term(kind, key, labels):
    required = [{"topologyKey": KEYS[key], "labelSelector": {"matchLabels": labels}}]
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def _template(random, keys):
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    spec = {"topologySpreadConstraints": [_constraint(random, key) for key in keys], "containers": [container]}
    if random.random() < 0.25:
        spec["nodeSelector"] = {"disk": "ssd"}
    chance = random.random()
    if chance < 0.15:
        spec["affinity"] = _term("podAntiAffinity", "hostname", random.choice([OWN, {"app": "web"}]))
    elif chance < 0.2:
        spec["affinity"] = _term("podAntiAffinity", random.choice(["zone", "rack"]), OWN)
    elif chance < 0.27:
        spec["affinity"] = _term("podAffinity", random.choice(["zone", "hostname"]), OWN)
    if random.random() < 0.07:
        container["ports"] = [{"containerPort": 80, "hostPort": 80}]
    if random.random() < 0.1:
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    return {"metadata": {"labels": OWN}, "spec": spec}


class World:
    """A cluster and a workload, as JSON.

    Shape: ``theirs`` are nodes with pods of others and the labels of these; ``ours`` maps ordinals of the workload's
    pods that run to nodes. ``volumes`` has, by ordinal, the zone or node of a claim's volume, "" for a claim whose
    volume comes with its pod; None for a workload without.
    """

    def __init__(self, random):
        cpu = random.choice([(64,), (64,), (1, 2, 3), (2, 64)])
        keys = random.choice(SHAPES)
        self.nodes = [_node(random, f"n{number}", cpu, racks="rack" in keys) for number in range(random.randint(2, 6))]
        self.names = [each["metadata"]["name"] for each in self.nodes]
        self.replicas = random.randint(2, 5)
        self.kind = random.choice(["Deployment", "Deployment", "StatefulSet"])
        self.template = _template(random, keys)
        self.most = self.replicas + random.randint(1, 2) if random.random() < 0.15 else None
        others = random.choice([0, 0, 0, 1, 3])
        labels = [{"app": "web", "team": "other"}, {"app": "other"}]
        self.theirs = [(random.choice(self.names), random.choice(labels)) for _ in range(others)]
        self.ordered = self.kind == "StatefulSet" and random.random() < 0.5
        self.volumes = self._volumes(random) if self.kind == "StatefulSet" and random.random() < 0.8 else None
        self.ours = self._running(random, random.choice([0, 0, 0, self.replicas, random.randint(0, self.replicas)]))

    def _volumes(self, random):
        zones = sorted({each["metadata"]["labels"].get(ZONE, "") for each in self.nodes} - {""})
        places = random.choice([zones, zones, self.names])
        return [random.choice([*places, *places, ""]) for _ in range(8)]

    def _running(self, random, many):
        """Anywhere, or where the scheduler would have placed them."""
        anywhere, found = random.random() < 0.5, {}
        for ordinal in range(many):
            self.ours = found
            fitting = [each for each in self.names if self._reaches(ordinal, each)]
            if not anywhere:
                fitting = self.feasible(sorted(found.items()), ordinal, self.template["spec"])
            if fitting:
                found[ordinal] = random.choice(fitting)
        return found

    def _reaches(self, ordinal, name):
        return self.alike(ordinal) in {"", name, self.nodes[self.names.index(name)]["metadata"]["labels"].get(ZONE)}

    def alike(self, ordinal):
        """What pods have in common that may be exchanged for each other."""
        return "" if self.volumes is None else self.volumes[ordinal]

    def in_zone(self, zone):
        return [each["metadata"]["name"] for each in self.nodes if each["metadata"]["labels"].get(ZONE) == zone]

    @property
    def hard(self):
        return [each for each in self.constraints if each["whenUnsatisfiable"] == "DoNotSchedule"]

    @property
    def constraints(self):
        return self.template["spec"]["topologySpreadConstraints"]

    @property
    def away(self):
        """The nodes that are taken to be back soon."""
        specs = [(each["metadata"]["name"], each["spec"]) for each in self.nodes]
        return [name for name, spec in specs if spec.get("unschedulable") or YOUNG in spec["taints"]]

    def bare(self):
        """The pod spec without hard constraints."""
        return {
            **self.template["spec"],
            "topologySpreadConstraints": [c for c in self.constraints if c not in self.hard],
        }

    def manifest(self):
        spec = {"replicas": self.replicas, "selector": {"matchLabels": OWN}, "template": copy.deepcopy(self.template)}
        if self.volumes is not None:
            spec["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": {"storageClassName": "late"}}]
            spec["podManagementPolicy"] = "OrderedReady" if self.ordered else "Parallel"
        meta = {"name": "web", "namespace": "shop"}
        return {"apiVersion": "apps/v1", "kind": self.kind, "metadata": meta, "spec": spec}

    def index(self, own=None, *, lost=(), back=()):
        """The cluster with these pods of the workload, where some nodes are lost with all their pods, and some back."""
        made = ClusterIndex()
        for value in self._objects(self.ours.items() if own is None else own, lost, back):
            made.apply("ADDED", value)
        return made

    def _objects(self, own, lost, back):
        for each in self.nodes:
            name, spec = each["metadata"]["name"], each["spec"]
            if name in back:
                spec = {"taints": [taint for taint in spec["taints"] if taint is not YOUNG]}
            if name in lost:
                spec = {**spec, "taints": [*spec["taints"], LOST]}
            yield convert({**each, "spec": spec}, Node)
        containers = {"containers": self.template["spec"]["containers"]}
        for number, (on, labels) in enumerate(self.theirs):
            if on not in lost:
                yield _placed(f"theirs-{number}", on, labels, containers)
        for ordinal, on in own:
            spec = {**self._spec(self.template["spec"], ordinal), "topologySpreadConstraints": []}
            yield as_created(_placed(f"web-{ordinal}", on, OWN, spec), RECORDED)
        if self.volumes is not None:
            yield convert(LATE, StorageClass)
            for ordinal, where in enumerate(self.volumes):
                yield from _volume(ordinal, where)
        if self.most:
            target = ScaleTarget(api_version="apps/v1", kind=self.kind, name="web")
            spec = AutoscalerSpec(scale_target_ref=target, max_replicas=self.most)
            yield Autoscaler(metadata=ObjectMeta(name="web", namespace="shop"), spec=spec)

    def _spec(self, spec, ordinal):
        if self.volumes is None:
            return spec
        return {**spec, "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": f"data-web-{ordinal}"}}]}

    def feasible(self, on, ordinal, spec, **how):
        """The nodes that a pod may go to beside the others."""
        meta = {"name": f"web-{ordinal}", "namespace": "shop", "labels": OWN}
        pod = as_created(convert({"metadata": meta, "spec": self._spec(spec, ordinal)}, Pod), RECORDED)
        verdict = decide(take(self.index(on, **how), pod))
        return [name for name in self.names if verdict.status(name).code == "Success"]

    def ends(self, *, spec=None, replicas=None, start=None, ordered=None, **how):
        """Where the pods stand when no other finds a place, in every order: pairs of an ordinal and a node."""
        spec = self.template["spec"] if spec is None else spec
        replicas = self.replicas if replicas is None else replicas
        ordered = self.ordered if ordered is None else ordered
        seen, ends, left = set(), {}, [tuple(sorted(self.ours.items()) if start is None else start)]
        while left:
            on = left.pop()
            state = frozenset(Counter((self.alike(number), name) for number, name in on).items())
            key = frozenset(on) if ordered and self.volumes is not None else state
            if key in seen:
                continue
            if len(seen) >= MOST_STATES:
                raise TooManyStatesError
            seen.add(key)
            moves = list(self._moves(on, replicas, spec, ordered=ordered, **how))
            left += moves
            if not moves:
                ends[key] = on
        return list(ends.values())

    def _moves(self, on, replicas, spec, *, ordered, **how):
        missing = [number for number in range(replicas) if number not in dict(on)]
        # Pods with the same volumes' places are alike; in order, each waits for the one before it.
        tried = missing[:1] if ordered else {self.alike(number): number for number in reversed(missing)}.values()
        for number in tried:
            for name in self.feasible(on, number, spec, **how):
                yield tuple(sorted((*on, (number, name))))

    def __repr__(self):
        return str(
            {
                "kind": self.kind,
                "replicas": f"{self.replicas}, most {self.most}",
                "nodes": [
                    (each["metadata"]["labels"], each["spec"], each["status"]["allocatable"]["cpu"])
                    for each in self.nodes
                ],
                "pods": (self.theirs, self.ours),
                "volumes": (self.volumes, self.ordered),
                "spec": self.template["spec"],
            }
        )


def _placed(name, on, labels, spec):
    meta = {"name": name, "namespace": "shop", "uid": name, "labels": labels}
    return convert({"metadata": meta, "spec": {**spec, "nodeName": on}, "status": {"phase": "Running"}}, Pod)


def _volume(ordinal, where):
    claim = {"metadata": {"name": f"data-web-{ordinal}", "namespace": "shop"}, "spec": {"storageClassName": "late"}}
    if where:
        claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        claim["spec"]["volumeName"] = f"pv-{ordinal}"
        term = {"key": HOSTNAME if where.startswith("n") else ZONE, "operator": "In", "values": [where]}
        affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}}
        yield convert({"metadata": {"name": f"pv-{ordinal}"}, "spec": {"nodeAffinity": affinity}}, PersistentVolume)
    yield convert(claim, Claim)
