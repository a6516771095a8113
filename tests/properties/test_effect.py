"""A constraint that is said to have no effect has none, by the verdict engine, on any small cluster."""

import pytest
from build import ROOMY, constraint, filled, node, running
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from manifest import PLAIN
from msgspec.structs import replace

from webhook.core.api.types import (
    Affinity,
    LabelSelector,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeSpec,
    NodeStatus,
    ObjectMeta,
    Pod,
    PodSpec,
    Taint,
    Toleration,
)
from webhook.core.api.version import RECORDED
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.context import Context
from webhook.core.index import node_sets
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.rules.cluster.effect import NO_EFFECT, evaluate
from webhook.core.rules.frame.subject import Subject, placed_constraints
from webhook.core.scheduler.cycle import Cycle, decide
from webhook.core.scheduler.problem import take
from webhook.core.workloads.kinds import traits
from webhook.core.workloads.workload import Strategy, Template, Workload

FIXED = replace(PLAIN, capacity="fixed")
OWN = LabelSelector(match_labels={"app": "web"})
quick = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


@st.composite
def nodes(draw):
    found = []
    for number in range(draw(st.integers(1, 5))):
        made = node(f"n{number}", draw(st.sampled_from([None, "a", "a", "b", "c"])), pool=draw(st.sampled_from("xy")))
        tainted = draw(st.integers(0, 4)) == 0
        spec = NodeSpec(taints=(Taint(key="dedicated", effect="NoSchedule"),) if tainted else None)
        found.append(replace(made, spec=spec, status=NodeStatus(allocatable=ROOMY)))
    return found


@st.composite
def specs(draw, most_skew):
    declared = []
    for _ in range(draw(st.integers(1, 2))):
        hard = draw(st.booleans())
        made = constraint(
            draw(st.sampled_from([ZONE, HOSTNAME])),
            max_skew=draw(st.integers(1, most_skew)),
            when="DoNotSchedule" if hard else "ScheduleAnyway",
            select=draw(st.sampled_from(["app=web", "app=web", "part=shop"])),
            min_domains=draw(st.none() | st.integers(1, 3)) if hard else None,
            node_affinity_policy=draw(st.sampled_from([None, None, "Honor", "Ignore"])),
            node_taints_policy=draw(st.sampled_from([None, "Honor"])),
        )
        declared.append(made)
    return PodSpec(
        topology_spread_constraints=tuple(declared),
        node_selector=draw(st.sampled_from([None, None, {"pool": "x"}])),
        tolerations=draw(st.sampled_from([None, None, (Toleration(operator="Exists"),)])),
    )


def clustered(found):
    return filled(ClusterIndex(), found)


def incoming(spec):
    return Pod(metadata=ObjectMeta(name="new", namespace="shop", labels={"app": "web", "part": "shop"}), spec=spec)


def idle(spec, index, kind, replicas, strategy=None):
    """The constraints that are said to have no effect."""
    template = Template(path="spec.template.", pod=incoming(spec), replicas=replicas)
    meta = ObjectMeta(name="web", namespace="shop")
    workload = Workload(
        api_version="apps/v1",
        kind=kind,
        meta=meta,
        traits=traits(("apps", kind)),
        templates=(template,),
        replicas=replicas,
        selector=OWN,
        strategy=strategy,
    )
    subject = Subject(
        workload=workload,
        placed=placed_constraints(workload),
        context=Context(policy=FIXED, version=RECORDED, index=index),
    )
    answers = [each for each in evaluate(subject) if each.rule == NO_EFFECT.id]
    return [int(each.path[-2]) for each in answers if "has no effect" in each.summary]


def without(spec, number):
    rest = [each for place, each in enumerate(spec.constraints) if place != number]
    return replace(spec, topology_spread_constraints=tuple(rest))


def assert_changes_nothing(index, spec, number):
    """The same nodes are feasible and, of soft constraints, equally good."""
    declared = spec.constraints[number]
    cycle = Cycle(take(index, incoming(spec)))
    feasible = cycle.verdict().feasible
    if declared.hard:
        assert feasible == decide(take(index, incoming(without(spec, number)))).feasible
    elif feasible.bit_count() > 1:
        alone = replace(spec, topology_spread_constraints=(declared,))
        scores = Cycle(take(index, incoming(alone))).scores(feasible) or {}
        assert len(set(scores.values())) <= 1
    return feasible


def pinned(spec, name):
    """As the DaemonSet's controller writes it."""
    field = NodeSelectorRequirement(key="metadata.name", operator="In", values=(name,))
    terms = (NodeSelectorTerm(match_fields=(field,)),)
    return replace(
        spec, affinity=Affinity(node_affinity=NodeAffinity(required=NodeSelector(node_selector_terms=terms)))
    )


@quick
@given(nodes(), specs(2), st.lists(st.integers(0, 4), max_size=6))
def test_a_daemonsets_pods_go_to_their_nodes_with_it_and_without(found, spec, others):
    index = clustered(found)
    told = idle(spec, index, "DaemonSet", None)
    assume(told)
    for number, where in enumerate(others):
        index.apply("ADDED", running(f"other-{number}", found[where % len(found)].name, "app=web part=shop"))
    event(f"{len(told)} of {len(spec.constraints)}")
    free = replace(spec, topology_spread_constraints=None)
    for name in (each.name for each in found):
        slot = 1 << index.nodes.view().slots[name]
        if decide(take(index, incoming(pinned(free, name)))).feasible & slot:
            for number in told:
                assert_changes_nothing(index, pinned(spec, name), number)


KINDS = (("StatefulSet", 0), ("Deployment", 1), ("Deployment", 2), ("Deployment", "25%"), ("Deployment", "100%"))


@pytest.mark.slow
@quick
@given(nodes(), specs(6), st.integers(1, 5), st.sampled_from(KINDS), st.randoms(use_true_random=False))
def test_too_few_pods_are_placed_as_if_it_were_not_there(found, spec, replicas, made_by, random):
    index, (kind, surge) = clustered(found), made_by
    strategy = Strategy(type="RollingUpdate", max_surge=surge) if surge else None
    told = idle(spec, index, kind, replicas, strategy)
    assume(told)
    event(f"{kind} of {replicas}")
    most = replicas + (surge if isinstance(surge, int) else -(-replicas * int(surge[:-1]) // 100))
    names, standing = index.nodes.view().names, {}
    for number in range(3 * replicas):
        if len(standing) >= most or (standing and random.random() < 0.2):
            index.apply("DELETED", standing.pop(random.choice(sorted(standing))))
        feasible = [assert_changes_nothing(index, spec, each) for each in told]
        if not feasible[0]:
            break
        where = names[random.choice([*node_sets.to_slots(feasible[0])])]
        standing[f"p{number}"] = running(f"p{number}", where, "app=web part=shop")
        index.apply("ADDED", standing[f"p{number}"])
