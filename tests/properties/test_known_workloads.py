"""After any events, the kept scans are those of a scan of everything. Each event concerns only some workloads."""

import msgspec
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from webhook.core.api.types import TypeMeta
from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.readers import decode_object
from webhook.core.policy.policy import Policy
from webhook.core.scan.facts import Changes, Outdated
from webhook.core.scan.known_workloads import KnownWorkloads, key_of_object
from webhook.core.scan.scan_context import scan_context
from webhook.core.scan.workload_scan import scan_workload

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
NODES, NAMES, NAMESPACES = ("n0", "n1", "n2"), ("web", "api"), ("shop", "bank")
SCANNED = ("Deployment", "StatefulSet")
TIMES = ("2026-11-23T11:59:00Z", "2026-11-23T12:00:00Z", "2026-11-23T12:59:30Z", "2026-11-24T01:00:00Z")
PLURALS = (*("nodes", "pods", "namespaces", "services", "deployments"), "statefulsets", "replicasets")


def made(kind, name, namespace="", *, api_version="v1", spec=None, status=None, **meta):
    whole = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace, **meta}}
    return whole | {key: value for key, value in (("spec", spec), ("status", status)) if value is not None}


def node(name, zone="a", *, cpu="4", pods="8", cordoned=False, since="2026-11-23T11:59:30Z"):
    taints = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": since}]
    spec = {"unschedulable": True, "taints": taints} if cordoned else {}
    amounts = {"cpu": cpu, "memory": "16Gi", "pods": pods}
    labels = {HOSTNAME: name} | ({ZONE: zone} if zone else {})
    return made("Node", name, labels=labels, spec=spec, status={"allocatable": amounts})


def container(cpu="1"):
    return {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}


def constraint(key=ZONE, app="web", action="DoNotSchedule", skew=1):
    selector = {"matchLabels": {"app": app}}
    return {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": action, "labelSelector": selector}


def apart(app, **more):
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": app}}, **more}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def workload(kind, name, namespace, *, app="", replicas=2, cpu="1", constraints=(), alone=False, claim=""):
    spec = {"containers": [container(cpu)], "topologySpreadConstraints": [*constraints]}
    spec |= {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]} if claim else {}
    labels = {"app": app or name}
    template = {"metadata": {"labels": labels}, "spec": spec | ({"affinity": apart(app or name)} if alone else {})}
    selector = {"matchLabels": labels}
    spec = {"replicas": replicas, "selector": selector, "template": template}
    return made(kind, name, namespace, api_version="apps/v1", uid=f"{namespace}-{name}", spec=spec)


def owned(kind, name, namespace):
    return [{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"{namespace}-{name}", "controller": True}]


def pod(
    number, name, namespace, on="", *, kind="StatefulSet", app="", cpu="1", alone=False, going=False, affinity=None
):
    spec = {"containers": [container(cpu)]} | ({"nodeName": on} if on else {})
    affinity = affinity or (apart(app or name) if alone else None)
    spec |= {"affinity": affinity} if affinity else {}
    above, labels = (f"{name}-5d", {"pod-template-hash": "5d"}) if kind == "ReplicaSet" else (name, {})
    meta = {"labels": {"app": app or name} | labels, "ownerReferences": owned(kind, above, namespace)}
    meta["uid"] = f"{namespace}-{name}{number}"
    meta |= {"deletionTimestamp": "2026-11-23T11:00:00Z"} if going else {}
    phase = {"phase": "Running" if on else "Pending"}
    return made("Pod", f"{name}-{number}", namespace, creationTimestamp=TIMES[0], spec=spec, status=phase, **meta)


def replica_set(name, namespace, replicas=3):
    whole = workload("ReplicaSet", name, namespace, replicas=replicas)
    labels = {"app": name, "pod-template-hash": "5d"}
    meta = {**whole["metadata"], "name": f"{name}-5d", "ownerReferences": owned("Deployment", name, namespace)}
    return whole | {"metadata": meta, "spec": {**whole["spec"], "selector": {"matchLabels": labels}}}


def autoscaler(name, namespace, most=4):
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    spec = {"scaleTargetRef": target, "maxReplicas": most}
    return made("HorizontalPodAutoscaler", name, namespace, api_version="autoscaling/v2", spec=spec)


def claim(name, namespace, volume=""):
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": volume}
    return made("PersistentVolumeClaim", name, namespace, spec=spec)


def priority(value=0):
    whole = made("PriorityClass", "p", api_version="scheduling.k8s.io/v1")
    return whole | {"value": value, "globalDefault": True}


def limits(cpu, namespace):
    return made("LimitRange", "l", namespace, spec={"limits": [{"type": "Container", "defaultRequest": {"cpu": cpu}}]})


def service(name, namespace):
    return made("Service", name, namespace, spec={"selector": {"app": name}})


class Town:
    """A cluster in the index, its objects to scan, and the kept scans of them."""

    def __init__(self, *objects):
        self.index, self.known, self.changes, self.raw = ClusterIndex(RECORDED), KnownWorkloads(), Changes(), {}
        self.now, self.policy = TIMES[1], Policy()
        for each in objects:
            self.put(each)

    def put(self, whole, what="MODIFIED"):
        raw = msgspec.json.encode(whole)
        value = decode_object(raw, TypeMeta(api_version=whole["apiVersion"], kind=whole["kind"]))
        self.index.apply(what, value)
        self.changes.add(value, deleted=what == "DELETED")
        if whole["kind"] in SCANNED:
            self.raw.pop(key_of_object(raw), None)
            if what != "DELETED":
                self.raw[key_of_object(raw)] = raw

    def within(self):
        here = Context(policy=self.policy, version=RECORDED, index=self.index, now=self.now)
        return scan_context(here)

    def looks(self, *, every=True, scan=scan_workload):
        """Scan again, like the controller. Returns the names."""
        within, known = self.within(), self.known
        known.note(self.changes.take()[0], within)
        known.drop(known.keys() - self.raw.keys())
        due = {*known.due(every=every), *(key for key, raw in self.raw.items() if known.raw(key) != raw)}
        for key in sorted(due):
            known.scan(self.raw[key], within, scan)
        return {f"{key.namespace}/{key.name}" for key in due}

    def missed(self):
        """Repeat the queries of the events so far. Return the workloads with an older answer to any query."""
        within = self.within()
        self.known.note(self.changes.take()[0], within)
        return self.known.note(EVERY, within)

    def anew(self):
        within = self.within()
        return {key: scan_workload(raw, within) for key, raw in self.raw.items()}

    def kept(self):
        return {key: self.known.scan_of(key) for key in self.raw}


constraints = st.lists(
    st.builds(
        constraint,
        st.sampled_from([ZONE, HOSTNAME]),
        st.sampled_from(NAMES),
        st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
        st.integers(1, 2),
    ),
    max_size=2,
)
names, spaces, cpus = st.sampled_from(NAMES), st.sampled_from(NAMESPACES), st.sampled_from(["1", "3", "500m"])
zones = st.sampled_from(["a", "b", ""])
objects = st.one_of(
    st.builds(node, st.sampled_from(NODES), zones, cpu=cpus, cordoned=st.booleans(), since=st.sampled_from(TIMES)),
    *[
        st.builds(
            workload,
            st.sampled_from(SCANNED),
            *(names, spaces),
            replicas=st.integers(0, 4),
            cpu=cpus,
            constraints=constraints,
            alone=st.booleans(),
            app=st.sampled_from(NAMES),
            claim=st.sampled_from(["", "", "data"]),
        )
    ]
    * 2,
    *[
        st.builds(
            pod,
            *(st.integers(0, 3), names, spaces, st.sampled_from([*NODES, "", "gone"])),
            kind=st.sampled_from(["StatefulSet", "ReplicaSet"]),
            app=st.sampled_from(NAMES),
            cpu=cpus,
            alone=st.booleans(),
            going=st.booleans(),
        )
    ]
    * 3,
    st.builds(pod, st.just(2), names, spaces, kind=st.sampled_from(["StatefulSet", "ReplicaSet"]), cpu=cpus),
    st.builds(
        pod,
        *(st.integers(0, 1), st.just("lone"), st.just("zoo"), st.sampled_from(NODES)),
        affinity=st.builds(
            lambda app, labels: apart(app, namespaceSelector={"matchLabels": labels}),
            names,
            st.sampled_from([{}, {"team": "web"}]),
        ),
    ),
    st.builds(claim, st.just("data"), spaces, st.sampled_from(["", "pv"])),
    st.builds(replica_set, names, spaces, st.integers(0, 3)),
    st.builds(autoscaler, names, spaces, st.integers(1, 6)),
    st.builds(service, names, spaces),
    st.builds(limits, cpus, spaces),
    st.builds(priority, st.integers(0, 2)),
    st.builds(lambda name, team: made("Namespace", name, labels={"team": team}), spaces, names),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), objects),
        st.tuples(st.just("put"), objects),
        st.tuples(st.just("gone"), objects),
        st.tuples(st.just("look"), st.booleans()),
        st.tuples(st.just("time"), st.sampled_from(TIMES)),
        st.tuples(st.just("missing"), st.sampled_from(PLURALS)),
        st.tuples(st.just("known"), st.sampled_from(PLURALS)),
    ),
    min_size=2,
    max_size=12,
)


def town_of_four():
    """Four workloads of each sort, most of their pods on three nodes, and some facts of admission."""
    places = {"web": ("n0", "n1", ""), "api": ("n1", "n2", "n0")}
    return [
        *(node("n0", "a"), node("n1", "b", cpu="3"), node("n2", "a", cordoned=True)),
        *(made("Namespace", name, labels={"team": "red"}) for name in NAMESPACES),
        workload("Deployment", "web", "shop", replicas=3, constraints=[constraint()]),
        workload("StatefulSet", "api", "shop", replicas=4, constraints=[constraint(HOSTNAME, "api", skew=2)]),
        workload("Deployment", "web", "bank", replicas=2, alone=True, cpu="500m"),
        workload("StatefulSet", "api", "bank", app="web", constraints=[constraint(action="ScheduleAnyway")]),
        *(replica_set("web", name) for name in NAMESPACES),
        *(
            pod(number, name, namespace, on, kind="ReplicaSet" if name == "web" else "StatefulSet")
            for namespace in NAMESPACES
            for name, nodes in places.items()
            for number, on in enumerate(nodes)
        ),
        *(priority(0), limits("1", "bank"), autoscaler("web", "shop"), service("web", "bank")),
    ]


EVERY = {("", ""), *((view, "") for view in ("nodes", "pods", "namespaces", "volumes"))} | {
    (view, namespace) for view in ("pods", "owners") for namespace in (*NAMESPACES, "zoo")
}
CURRENT = Outdated(frozenset(), frozenset())


def apply(town, what, how):
    if what in ("put", "gone"):
        town.put(how, "MODIFIED" if what == "put" else "DELETED")
    elif what == "time":
        town.now = how
    elif what == "missing":
        town.index.mark_missing(how, "403")
    elif what == "known":
        town.index.mark_known(how)
    else:
        town.looks(every=how)


@pytest.mark.slow
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=100)
@given(st.lists(objects, max_size=4), steps)
def test_after_any_events_the_kept_scans_are_those_of_a_full_scan(beginning, then):
    town = Town(*town_of_four(), *beginning)
    town.looks()
    for what, how in then:
        apply(town, what, how)
        assert town.missed() == CURRENT
    event(f"{len(town.looks())} of {len(town.raw)} scanned again")
    assert town.kept() == town.anew()
    assert town.known.take_differing() == []
