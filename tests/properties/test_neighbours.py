"""What the rule about pods of other workloads says is so when those pods are really taken out of a small cluster."""

import re

import pytest
from build import ROOMY, constraint, declared, filled, node, owner, running
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from manifest import PLAIN
from msgspec.structs import replace

from webhook.core.api.types import LabelSelector, NodeStatus, ObjectMeta, Pod, PodSpec
from webhook.core.api.version import RECORDED
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.context import Context
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.rules.cluster.shared_selectors import evaluate
from webhook.core.rules.frame.subject import Subject, placed_constraints
from webhook.core.scheduler.cycle import decide
from webhook.core.scheduler.plugins.spread_constraints import counting_selector
from webhook.core.scheduler.problem import take
from webhook.core.workloads.kinds import traits
from webhook.core.workloads.workload import Template, Workload

OWN = "app=web part=shop"
APPS = ("web", "pay", "db")
quick = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


@st.composite
def constraints(draw):
    hard = draw(st.integers(0, 3)) > 0
    return constraint(
        draw(st.sampled_from([ZONE, HOSTNAME])),
        max_skew=draw(st.integers(1, 2)),
        when="DoNotSchedule" if hard else "ScheduleAnyway",
        select=draw(st.sampled_from(["part=shop", "part=shop", "app=web"])),
        keys=draw(st.sampled_from([None, None, ("pod-template-hash",), ("part",)])),
        node_affinity_policy=draw(st.sampled_from([None, None, "Ignore"])),
    )


@st.composite
def worlds(draw):
    """Nodes, where the pods of each app are, what constraints the other apps have, and the workload's own."""
    nodes = []
    for number in range(draw(st.integers(2, 4))):
        made = node(f"n{number}", draw(st.sampled_from([None, "a", "a", "b", "b"])), pool=draw(st.sampled_from("xxy")))
        nodes.append(replace(made, status=NodeStatus(allocatable=ROOMY)))
    standing = draw(st.lists(st.tuples(st.sampled_from(APPS), st.integers(0, len(nodes) - 1)), max_size=7))
    theirs = {app: draw(st.lists(constraints(), max_size=1)) for app in APPS[1:]}
    spec = PodSpec(
        topology_spread_constraints=tuple(draw(st.lists(constraints(), min_size=1, max_size=3))),
        node_selector=draw(st.sampled_from([None, None, {"pool": "x"}])),
    )
    return nodes, standing, theirs, spec


def pods(nodes, standing):
    for number, (app, where) in enumerate(standing):
        more = " pod-template-hash=old" if app == "web" else ""
        yield app, running(f"{app}-{number}", nodes[where].name, f"app={app} part=shop{more}")


def clustered(nodes, standing, *others):
    return filled(ClusterIndex(), (*nodes, *others, *(pod for _, pod in pods(nodes, standing))))


@pytest.mark.slow
@quick
@given(worlds())
def test_the_numbers_are_those_of_the_cluster_with_the_pods_and_without(world):
    nodes, standing, theirs, spec = world
    others = [
        owner(f"Deployment/{app}", f"app={app}", declared(f"app={app} part=shop", *theirs[app])) for app in theirs
    ]
    index = clustered(nodes, standing, *others)
    labels = dict(part.split("=") for part in OWN.split())
    template = Template(path="", pod=Pod(metadata=ObjectMeta(labels=labels), spec=spec), replicas=3)
    workload = Workload(
        api_version="apps/v1",
        kind="Deployment",
        meta=ObjectMeta(name="web", namespace="shop"),
        traits=traits(("apps", "Deployment")),
        templates=(template,),
        replicas=3,
        selector=LabelSelector(match_labels={"app": "web"}),
    )
    subject = Subject(
        workload=workload,
        placed=placed_constraints(workload),
        context=Context(policy=PLAIN, version=RECORDED, index=index, offline=True),
    )
    found = list(evaluate(subject))
    assume(found)
    new = Pod(
        metadata=ObjectMeta(name="new", namespace="shop", labels=labels | {"pod-template-hash": "new"}), spec=spec
    )
    for each in found:
        told = spec.constraints[int(re.search(r"\[(\d+)\]", each.path)[1])]
        selector = counting_selector(told, labels)
        foreign = [app for app, pod in pods(nodes, standing) if app != "web" and selector.matches(pod.labels)]
        assert 0 < int(re.search(r"does not match (\d+) of the counted pods", each.detail)[1]) <= len(foreign)
        numbers = re.search(r"fits on (\d+) nodes?, but on (\d+) without", each.detail)
        event("warns" if numbers else "does not")
        if numbers:
            key = next(
                one for one in spec.constraints if one.hard and one.topology_key.rpartition("/")[2] in each.detail
            )
            lacking = [app for app in theirs if all(one.topology_key != key.topology_key for one in theirs[app])]
            left = [(app, where) for app, where in standing if app not in lacking]
            ways = [decide(take(clustered(nodes, who), new)).feasible.bit_count() for who in (standing, left)]
            assert ways == [int(numbers[1]), int(numbers[2])]
