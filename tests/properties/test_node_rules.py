"""What the rules say of nodes is what kube-scheduler does, by the verdict engine, on any small cluster."""

import json
import re

import msgspec
import pytest
from build import ROOMY, constraint, node, running
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from manifest import PLAIN
from msgspec.structs import replace

from webhook.core.api.types import NodeSpec, NodeStatus, ObjectMeta, Pod, PodSpec, Taint, Toleration
from webhook.core.api.version import RECORDED
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.context import Context
from webhook.core.index import node_sets
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.json_edits import applied
from webhook.core.review.examination import examine
from webhook.core.rules.cluster.effect import evaluate as effects
from webhook.core.rules.cluster.topology_key import evaluate_nodes as evaluate
from webhook.core.rules.frame.subject import Subject, placed_constraints
from webhook.core.scheduler.cycle import Cycle, decide
from webhook.core.scheduler.plugins.pod_topology_spread import MISSING_LABEL
from webhook.core.scheduler.problem import take
from webhook.core.workloads.kinds import traits
from webhook.core.workloads.workload import Template, Workload

RACK = "example.com/rack"
KEYS = (ZONE, HOSTNAME, RACK)
PASSING = "node.kubernetes.io/not-ready"
FIXED = replace(PLAIN, capacity="fixed")
NOW = "2026-11-22T12:00:00Z"
quick = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


@st.composite
def nodes(draw, *, settled=False, zones=(None, "a", "a", "b", "c")):
    taints = (None, None, None, "dedicated") if settled else (None, None, None, "dedicated", PASSING)
    found = []
    for number in range(draw(st.integers(1, 5))):
        more = {key: draw(st.sampled_from(values)) for key, values in {"rack": (None, "r", "s"), "pool": "xy"}.items()}
        rack = {} if more["rack"] is None else {RACK: more["rack"]}
        made = node(f"n{number}", draw(st.sampled_from(zones)), pool=more["pool"], **rack)
        taint = draw(st.sampled_from(taints))
        spec = NodeSpec(
            taints=(Taint(key=taint, effect="NoSchedule"),) if taint else None,
            unschedulable=not settled and draw(st.integers(0, 5)) == 0,
        )
        found.append(replace(made, spec=spec, status=NodeStatus(allocatable=ROOMY)))
    return found


@st.composite
def constraints(draw, *, keys=KEYS, least_domains=0):
    hard = least_domains > 0 or draw(st.booleans())
    min_domains = st.integers(least_domains, 6) if least_domains else st.none() | st.integers(1, 4)
    policies = st.none() | st.sampled_from(["Honor", "Ignore"])
    return constraint(
        draw(st.sampled_from(keys)),
        max_skew=draw(st.integers(1, 2)),
        when="DoNotSchedule" if hard else "ScheduleAnyway",
        select="app=web",
        min_domains=draw(min_domains) if hard else None,
        node_affinity_policy=draw(policies),
        node_taints_policy=draw(policies),
    )


@st.composite
def specs(draw, *, most=2, **fields):
    declared = draw(st.lists(constraints(**fields), min_size=1, max_size=most))
    return PodSpec(
        topology_spread_constraints=tuple(declared),
        node_selector=draw(st.sampled_from([None, None, {"pool": "x"}])),
        tolerations=draw(st.sampled_from([None, None, (Toleration(operator="Exists"),)])),
    )


def clustered(found, pods=0):
    index = ClusterIndex()
    for each in found:
        index.apply("ADDED", each)
    for number in range(pods):
        index.apply("ADDED", running(f"p{number}", found[number % len(found)].name))
    return index


def incoming(spec):
    return Pod(metadata=ObjectMeta(name="new", namespace="shop", labels={"app": "web"}), spec=spec)


def said(rule, spec, index, of=evaluate):
    """The rule's findings with the constraint that each of them is about."""
    template = Template(path="spec.template.", pod=incoming(spec))
    workload = Workload(
        api_version="apps/v1",
        kind="Deployment",
        meta=ObjectMeta(),
        traits=traits(("apps", "Deployment")),
        templates=(template,),
    )
    subject = Subject(
        workload=workload,
        placed=placed_constraints(workload),
        context=Context(policy=FIXED, version=RECORDED, index=index),
    )
    answers = [each for each in of(subject) if each.rule == rule]
    return [(spec.constraints[int(re.search(r"\[(\d+)\]", each.path)[1])], each.summary) for each in answers]


@quick
@given(nodes(), specs(), st.integers(0, 6))
def test_with_an_unknown_key_no_node_is_feasible_or_better_than_another(found, spec, pods):
    index = clustered(found, pods)
    unknown = said("topology-key-unknown", spec, index)
    event(f"{len(unknown)} unknown")
    for each, summary in unknown:
        assert not any(each.topology_key in known.labels for known in found)
        cycle = Cycle(take(index, incoming(spec)))
        feasible = cycle.verdict().feasible
        if each.hard:
            assert summary.startswith("pods stay Pending")
            assert feasible == 0
        else:
            assert len(set((cycle.scores(feasible) or {}).values())) <= 1


@quick
@given(nodes(), specs(), st.sampled_from(KEYS))
def test_a_node_with_the_key_ends_what_is_said_of_an_unknown_one(found, spec, key):
    index = clustered(found)
    before = said("topology-key-unknown", spec, index)
    index.apply("ADDED", node("new", **{key: "x"}))
    after = said("topology-key-unknown", spec, index)
    assert after == [each for each in before if each[0].topology_key not in {key, HOSTNAME}]


@pytest.mark.slow
@quick
@given(nodes(), specs(), st.integers(0, 6))
def test_nodes_that_are_shut_out_are_those_that_the_scheduler_shuts_out_for_the_key(found, spec, pods):
    index = clustered(found, pods)
    verdict = decide(take(index, incoming(spec)))
    settled = [n for n in found if not n.spec.unschedulable and not any(t.key == PASSING for t in n.taints)]
    asked = [n for n in settled if verdict.status(n.name).plugin in {"", "PodTopologySpread"}]
    for each, summary in said("topology-key-partial", spec, index):
        lacking = [n for n in asked if each.topology_key not in n.labels]
        event(summary.split()[0])
        if each.hard and " excludes " in summary:
            assert f"{len(lacking)} of {len(asked)} usable nodes" in summary
            by_itself = decide(take(index, incoming(replace(spec, topology_spread_constraints=(each,)))))
            assert {by_itself.status(n.name).reasons for n in lacking} == {MISSING_LABEL.reasons}
        elif each.hard:
            assert summary.startswith("pods stay Pending")
            assert verdict.feasible == 0


def placed_one_by_one(index, spec, replicas, random):
    """How many of the replicas find a node, each put on any that admits it."""
    for number in range(replicas):
        verdict = decide(take(index, incoming(spec)))
        feasible = [verdict.nodes.names[slot] for slot in node_sets.to_slots(verdict.feasible)]
        if not feasible:
            return number
        index.apply("ADDED", running(f"p{number}", random.choice(feasible)))
    return replicas


@pytest.mark.slow
@quick
@given(nodes(), specs(least_domains=3), st.integers(2, 9), st.randoms(use_true_random=False))
def test_min_domains_cap_as_many_as_is_said_and_the_fix_lets_all_in(found, spec, replicas, random):
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": json.loads(msgspec.json.encode(spec))},
        },
    }
    judged = examine(manifest, Context(policy=FIXED, index=clustered(found), version=RECORDED, now=NOW)).findings
    capped = [each.finding for each in judged if each.finding.rule == "min-domains-unreachable"]
    assume(capped)
    for each in capped:
        most = int(re.search(r"at most (\d+) of", each.summary)[1])
        assert placed_one_by_one(clustered(found), spec, replicas, random) <= most < replicas
        event(each.remedy.partition(" ")[0] or "no remedy")
        if each.edits:
            mended = applied(manifest, each.edits)["spec"]["template"]["spec"]
            then = replace(spec, topology_spread_constraints=None)
            if mended.get("topologySpreadConstraints"):
                then = msgspec.convert(mended, PodSpec)
            assert placed_one_by_one(clustered(found), then, replicas, random) == replicas


@pytest.mark.slow
@quick
@given(nodes(settled=True, zones=(None, "a", "a", "a")), specs(most=1, keys=(ZONE,)), st.integers(0, 9))
def test_over_one_domain_a_constraint_changes_nothing(found, spec, pods):
    index = clustered(found, pods)
    one = said("spread-without-effect", spec, index, effects)
    assume(one)
    (each, _), cycle = one[0], Cycle(take(index, incoming(spec)))
    feasible = cycle.verdict().feasible
    if each.hard:
        free = incoming(replace(spec, topology_spread_constraints=None))
        assert feasible == decide(take(index, free)).feasible
    else:
        assert len(set((cycle.scores(feasible) or {}).values())) <= 1
