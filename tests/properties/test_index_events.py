"""The index after any sequence of events answers as one that saw only what is left of it."""

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from bench.index_memory import weight
from webhook.core.api.selectors import compile_selector
from webhook.core.api.types import (
    Affinity,
    Container,
    ContainerPort,
    LabelSelector,
    LabelSelectorRequirement,
    Node,
    NodeSpec,
    NodeStatus,
    ObjectMeta,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    SpreadConstraint,
    Taint,
)
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.objects import Namespace
from webhook.core.scheduler.cycle import Cycle
from webhook.core.scheduler.plugins.spread_constraints import SYSTEM_DEFAULTS
from webhook.core.scheduler.problem import take

NAMES = ("a", "b", "c", "d", "e", "f")
NODES = ("n0", "n1", "n2")
NAMESPACES = ("shop", "batch")
POD_NAME = "statefulset.kubernetes.io/pod-name"

selectors = st.sampled_from(
    [
        LabelSelector(match_labels={"app": "web"}),
        LabelSelector(),
        LabelSelector(match_expressions=(LabelSelectorRequirement(key="tier", operator="Exists"),)),
        LabelSelector(match_expressions=(LabelSelectorRequirement(key="tier", operator="NotIn", values=("x",)),)),
        LabelSelector(match_expressions=(LabelSelectorRequirement(key=POD_NAME, operator="In", values=("a", "c")),)),
        LabelSelector(match_expressions=(LabelSelectorRequirement(key=POD_NAME, operator="NotIn", values=("b",)),)),
        LabelSelector(match_expressions=(LabelSelectorRequirement(key=POD_NAME, operator="Exists"),)),
        LabelSelector(
            match_labels={"app": "web"},
            match_expressions=(LabelSelectorRequirement(key="tier", operator="DoesNotExist"),),
        ),
        LabelSelector(match_expressions=(LabelSelectorRequirement(key="id", operator="In", values=("1", "2", "3")),)),
        LabelSelector(match_expressions=(LabelSelectorRequirement(key="id", operator="NotIn", values=("1", "4")),)),
        None,
    ]
)
label_sets = st.fixed_dictionaries(
    {"app": st.sampled_from(["web", "api"])},
    optional={
        "tier": st.sampled_from(["x", "y"]),
        "id": st.sampled_from([str(number) for number in range(9)]),
        POD_NAME: st.sampled_from(NAMES),
    },
)
terms = st.builds(
    PodAffinityTerm,
    label_selector=selectors,
    topology_key=st.sampled_from([ZONE, HOSTNAME]),
    namespaces=st.sampled_from([None, ("shop",), ("shop", "batch")]),
    namespace_selector=st.sampled_from([None, LabelSelector(), LabelSelector(match_labels={"team": "red"})]),
)
containers = st.builds(
    Container,
    name=st.just("c"),
    resources=st.builds(
        ResourceRequirements,
        requests=st.sampled_from([None, {"cpu": "1"}, {"cpu": "500m", "memory": "1Gi"}, {"example.com/gpu": "1"}]),
    ),
    ports=st.sampled_from([None, (ContainerPort(container_port=80, host_port=80),)]),
)


@st.composite
def pods(draw, **fixed):
    anti = PodAffinity(required=(draw(terms),)) if draw(st.booleans()) else None
    return Pod(
        metadata=ObjectMeta(
            name=fixed.get("name", draw(st.sampled_from(NAMES))),
            namespace=draw(st.sampled_from(NAMESPACES)),
            uid=draw(st.sampled_from(["1", "2", "3"])),
            labels=draw(label_sets),
            deletion_timestamp=draw(st.sampled_from([None, None, None, "2026-01-01T00:00:00Z"])),
        ),
        spec=PodSpec(
            node_name=draw(st.sampled_from([*NODES, *NODES, "gone", None])),
            containers=(draw(containers),),
            affinity=Affinity(pod_anti_affinity=anti),
        ),
        status=PodStatus(phase=draw(st.sampled_from(["Running", "Running", "Running", "Succeeded"]))),
    )


nodes = st.builds(
    Node,
    metadata=st.builds(
        ObjectMeta,
        name=st.sampled_from(NODES),
        labels=st.sampled_from(
            [
                {ZONE: "z1", HOSTNAME: "h1"},
                {ZONE: "z2", HOSTNAME: "h2"},
                {HOSTNAME: "h3"},
                {ZONE: "z1", HOSTNAME: "h1b"},
            ]
        ),
    ),
    spec=st.sampled_from(
        [None, NodeSpec(taints=(Taint(key="k", value="v", effect="NoSchedule"),)), NodeSpec(unschedulable=True)]
    ),
    status=st.sampled_from(
        [
            NodeStatus(allocatable={"cpu": "2", "memory": "4Gi", "pods": "3", "example.com/gpu": "1"}),
            NodeStatus(allocatable={"cpu": "64", "memory": "64Gi", "pods": "110"}),
        ]
    ),
)
constraints = st.lists(
    st.builds(
        SpreadConstraint,
        max_skew=st.integers(1, 2),
        topology_key=st.sampled_from([ZONE, HOSTNAME]),
        when_unsatisfiable=st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
        label_selector=selectors,
        node_taints_policy=st.sampled_from([None, "Honor"]),
    ),
    min_size=1,
    max_size=2,
).map(tuple)
puts = st.tuples(st.just("put"), pods())
steps = st.one_of(
    puts,
    st.tuples(st.just("put again"), st.integers(0, 7)),
    st.tuples(st.just("label"), st.integers(0, 7), label_sets),
    st.tuples(st.just("bind"), st.integers(0, 7), st.sampled_from(NODES)),
    st.tuples(st.just("delete"), st.integers(0, 7)),
    st.tuples(st.just("delete another of that name"), st.integers(0, 7)),
    st.tuples(st.just("create again"), st.integers(0, 7), pods()),
    st.tuples(st.just("node"), nodes),
    st.tuples(st.just("node gone"), st.sampled_from(NODES)),
    st.tuples(st.just("relist"), st.booleans()),
    st.tuples(st.just("ask"), constraints),
)
beginnings = st.lists(st.tuples(st.just("node"), nodes), min_size=3, max_size=5)
histories = st.tuples(
    beginnings, st.lists(puts, min_size=6, max_size=14), st.lists(steps, min_size=8, max_size=24)
).map(lambda parts: [step for part in parts for step in part])


class Truth:
    """What the API server has, and an index that hears of it."""

    def __init__(self):
        self.pods, self.nodes = {}, {}
        self.index = ClusterIndex(learn_at=4)

    def put(self, pod, kind="MODIFIED"):
        self.pods[pod.meta.namespace, pod.meta.name] = pod
        self.index.apply(kind, pod)

    def chosen(self, number):
        return list(self.pods.values())[number % len(self.pods)] if self.pods else None

    def step(self, what, *how):
        if what == "put":
            namespace, name = how[0].meta.namespace, how[0].meta.name
            uid = self.pods[namespace, name].meta.uid + "8" if (namespace, name) in self.pods else how[0].meta.uid
            self.put(replace(how[0], metadata=replace(how[0].metadata, uid=uid)), "ADDED")
        elif what == "node":
            self.nodes[how[0].name] = how[0]
            self.index.apply("ADDED", how[0])
        elif what == "node gone":
            self.nodes.pop(how[0], None)
            self.index.apply("DELETED", Node(metadata=ObjectMeta(name=how[0])))
        elif what == "ask":
            verdict_of(self.index, incoming(how[0]))
        elif what == "relist":
            self.relist(in_order=how[0])
        elif (pod := self.chosen(how[0])) is not None:
            self.change(what, pod, *how[1:])

    def change(self, what, pod, *how):
        meta = pod.meta
        if what == "put again":
            self.index.apply("MODIFIED", pod)
            self.index.apply("ADDED", pod)
        elif what == "label":
            self.put(replace(pod, metadata=replace(meta, labels=how[0])))
        elif what == "bind":
            labels = {**(meta.labels or {}), ZONE: "z1"}
            self.put(replace(pod, metadata=replace(meta, labels=labels), spec=replace(pod.spec, node_name=how[0])))
        elif what == "delete":
            del self.pods[meta.namespace, meta.name]
            self.index.apply("DELETED", pod)
        elif what == "delete another of that name":
            self.index.apply("DELETED", replace(pod, metadata=replace(meta, uid=meta.uid + "0")))
        else:
            again = replace(how[0].metadata, namespace=meta.namespace, name=meta.name, uid=meta.uid + "9")
            self.put(replace(how[0], metadata=again), "ADDED")
            self.index.apply("DELETED", pod)

    def relist(self, *, in_order):
        listed = list(self.pods.values())
        for pod in listed if in_order else reversed(listed):
            self.index.apply("ADDED", pod)

    def told_anew(self, **more):
        index = ClusterIndex(**more)
        for node in self.nodes.values():
            index.apply("ADDED", node)
        for pod in self.pods.values():
            index.apply("ADDED", pod)
        add_namespaces(index)
        return index


def add_namespaces(index):
    index.apply("ADDED", Namespace(metadata=ObjectMeta(name="shop", labels={"team": "red"})))


def incoming(wanted, anti=None):
    return Pod(
        metadata=ObjectMeta(name="new", namespace="shop", labels={"app": "web", "tier": "x"}),
        spec=PodSpec(
            topology_spread_constraints=wanted,
            affinity=Affinity(pod_anti_affinity=anti),
            containers=(
                Container(
                    resources=ResourceRequirements(requests={"cpu": "1", "memory": "1Gi", "example.com/gpu": "1"}),
                    ports=(ContainerPort(container_port=80, host_port=80),),
                ),
            ),
        ),
    )


def verdict_of(index, pod):
    cycle = Cycle(take(index, pod, SYSTEM_DEFAULTS))
    verdict = cycle.verdict()
    names = [name for name, slot in verdict.nodes.slots.items() if verdict.nodes.live >> slot & 1]
    alone = {
        plugin: cycle.verdict_of(plugin)
        for plugin in ("PodTopologySpread", "NodeResourcesFit", "NodePorts", "InterPodAffinity")
    }
    return (
        verdict.sentence,
        {name: verdict.status(name) for name in names},
        {plugin: {name: found.status(name) for name in names} for plugin, found in alone.items()},
        [dict(domains.counts) for domains in cycle.domains],
        cycle.scores(verdict.nodes.live),
    )


def recounted(truth, namespace, selector, *, leaving):
    """Matching pods by node, one pod after the other."""
    compiled, found = compile_selector(selector), {}
    for pod in truth.pods.values():
        on = pod.spec.node_name
        counts = on and pod.status.phase == "Running" and (leaving or pod.meta.deletion_timestamp is None)
        if counts and pod.meta.namespace == namespace and compiled.matches(pod.labels):
            found[on] = found.get(on, 0) + 1
    return found


@pytest.mark.slow
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(histories, constraints, st.one_of(st.none(), st.builds(lambda t: PodAffinity(required=(t,)), terms)))
def test_an_index_after_events_decides_as_one_told_anew(history, wanted, anti):
    truth = Truth()
    add_namespaces(truth.index)
    for step in history:
        truth.step(*step)
    event(f"{min(len(truth.pods), 8)} pods")
    pod = incoming(wanted, anti)
    assert verdict_of(truth.index, pod) == verdict_of(truth.told_anew(), pod)


@pytest.mark.slow
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(histories, selectors, st.booleans())
def test_counts_after_events_are_those_of_a_naive_recount(history, selector, leaving):
    truth = Truth()
    for step in history:
        truth.step(*step)
    for namespace in NAMESPACES:
        counts = truth.index.pods.count(namespace, compile_selector(selector), terminating=leaving)
        names = truth.index.nodes.names()
        assert {names[slot]: number for slot, number in counts.items()} == recounted(
            truth, namespace, selector, leaving=leaving
        )


# Room for tables that are not quite full, counts that are kept for selectors asked for, and spare slots.
SLACK = 8 * 1024


@pytest.mark.slow
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(histories, constraints)
def test_an_index_after_events_takes_no_more_memory_than_one_told_anew(history, wanted):
    truth = Truth()
    add_namespaces(truth.index)
    for step in history:
        truth.step(*step)
    anew = truth.told_anew(learn_at=4)
    for index in (truth.index, anew):
        verdict_of(index, incoming(wanted))
    assert truth.index.known_namespaces() == anew.known_namespaces()
    assert weight(truth.index) <= weight(anew) + SLACK
