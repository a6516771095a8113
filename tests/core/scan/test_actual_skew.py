"""How uneven pods stand, counted again by hand."""

import json

import msgspec
import pytest
from build import NAMESPACE, cluster, constraint, pod, running, service
from cli.snapshots import running as running_object
from cli.snapshots import snapshot
from hypothesis import given
from hypothesis import strategies as st
from manifest import PLAIN, TODAY, workload
from scans import context, snapshot_of

from webhook.core.api.selectors import selector_from_labels
from webhook.core.api.version import RECORDED
from webhook.core.api.well_known import HOSTNAME
from webhook.core.context import Context
from webhook.core.defaulting.injection import Injection
from webhook.core.defaulting.record import InjectionRecord
from webhook.core.pods_to_create.next_pod import NextPod, PodSource
from webhook.core.policy.policy import Policy
from webhook.core.scan.actual_skew import actual_skews, domain_text, skews_of_templates
from webhook.core.scan.scan_context import scan_context
from webhook.core.workloads.reading import read_workload
from webhook.core.workloads.workload import Template

WEB = "app=web"
ZONES = constraint(select=WEB)
TAINTS_HONORED = constraint(select=WEB, node_taints_policy="Honor")
SOFT_HOSTS = constraint(HOSTNAME, when="ScheduleAnyway", select=WEB)
AT_LEAST_4 = constraint(select=WEB, min_domains=4)


def stand(state, *constraints, injected=False, services=()):
    index = cluster(state)
    for each in services:
        index.apply("ADDED", each)
    incoming = pod(WEB, constraints=constraints or None)
    workload = read_workload(msgspec.to_builtins(incoming) | {"apiVersion": "v1", "kind": "Pod"})
    next_pod = NextPod(
        source=PodSource(workload=workload, template=Template(path="", pod=incoming), namespace=NAMESPACE),
        sent=incoming,
        pod=incoming,
        injected=Injection(constraints=(), record=InjectionRecord(revision="x")) if injected else None,
        unknown=(),
        context=Context(policy=Policy(), version=RECORDED, index=index),
    )
    found = actual_skews(next_pod, selector_from_labels({"app": "web"}))
    return [(each.name, each.skew, each.above, str(each.origin)) for each in found]


@pytest.mark.parametrize(
    ("state", "constraints", "expected"),
    [
        pytest.param("z1: a=1 | z2: b=1", [ZONES], [("zone[0]", 0, False, "declared")], id="even"),
        pytest.param("z1: a=2 | z2: b=1", [ZONES], [("zone[0]", 1, False, "declared")], id="as far as maxSkew"),
        pytest.param("z1: a=3 | z2: b=1", [ZONES], [("zone[0]", 2, True, "declared")], id="after a scale-down"),
        pytest.param("z1: a=1 | z2: b=1 | z3: c=0", [ZONES], [("zone[0]", 1, False, "declared")], id="an empty zone"),
        pytest.param("z1: a=2 | z2: ~b=0", [ZONES], [("zone[0]", 2, True, "declared")], id="a tainted zone counts"),
        pytest.param("z1: a=2 | z2: ~b=0", [TAINTS_HONORED], [("zone[0]", 0, False, "declared")], id="unless honored"),
        pytest.param("z1: a=1 | z2: b=1", [AT_LEAST_4], [("zone[0]", 1, False, "declared")], id="too few: minimum 0"),
        pytest.param("a=2", [ZONES], [("zone[0]", None, False, "declared")], id="no node has the key"),
        pytest.param(
            "z1: a=2 b=0 | z2: c=2",
            [SOFT_HOSTS, ZONES],
            [("hostname[0]", 2, True, "declared"), ("zone[1]", 0, False, "declared")],
            id="soft and hard, in the pod's order",
        ),
        pytest.param("z1: a=2 | z2: b=0", [], [], id="without constraints, and nothing selects the pods"),
    ],
)
def test_each_constraint(state, constraints, expected):
    assert stand(state, *constraints) == expected


def test_the_schedulers_defaults_where_it_can_deduce_a_selector():
    found = stand("z1: a=7 | z2: b=1", services=[service("web", WEB)])
    assert found == [("hostname", 6, True, "scheduler-default"), ("zone", 6, True, "scheduler-default")]


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        pytest.param("a=4 | b=0", [("hostname", 4, True), ("zone", None, False)], id="no node has a zone"),
        pytest.param("z1: a=1 | z2: b=1 | c=5", [("hostname", 4, True), ("zone", 0, False)], id="one node has none"),
    ],
)
def test_each_of_the_schedulers_own_defaults_counts_nodes_with_its_key_alone(state, expected):
    found = stand(state, services=[service("web", WEB)])
    assert [each[:3] for each in found] == expected


def test_declared_soft_constraints_count_only_nodes_with_all_their_keys():
    soft_zones = constraint(when="ScheduleAnyway", select=WEB)
    found = stand("z1: a=1 | z2: b=1 | c=5", SOFT_HOSTS, soft_zones)
    assert [each[:3] for each in found] == [("hostname[0]", 0, False), ("zone[1]", 0, False)]


def test_constraints_that_are_not_the_templates():
    assert stand("z1: a=1 | z2: b=1", ZONES, injected=True) == [("zone[0]", 0, False, "injected")]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=6), st.integers(1, 4))
def test_as_counted_by_hand(pods, max_skew):
    state = " | ".join(f"z{number}: n{number}={count}" for number, count in enumerate(pods))
    [found] = stand(state, constraint(max_skew=max_skew, select=WEB))
    assert found == ("zone[0]", max(pods) - min(pods), max(pods) - min(pods) > max_skew, "declared")


def skews(of, within):
    return [each for _, _, found in skews_of_templates(of, within, stand_in=False) for each in found]


def test_the_skews_of_one_workloads_templates():
    state = snapshot_of(snapshot("a: a0=3 | b: b0=1", workload("Deployment", "app=web", "zone hard 1 app=web")))
    (item,) = [each for each in state.kept if each.of.kind == "Deployment"]
    made = read_workload(item.raw, api_version="apps/v1", kind="Deployment")
    found = skews(made, scan_context(context(state)))
    assert [(each.skew, each.above, each.hard) for each in found] == [(2, True, True)]
    state.index.mark_missing("pods", "403 Forbidden")
    assert skews(made, scan_context(context(state))) == []
    alone = read_workload(json.dumps(running_object("a", "a0")).encode(), api_version="v1", kind="Pod")
    assert skews(alone, scan_context(context(state))) == []


ONE = "app=redis shard=one"
HELD = {"a0": (ONE, ONE, "app=redis shard=two"), "b0": (ONE, "app=redis shard=two", "role=cache app=web")}


@pytest.mark.parametrize(
    ("spread", "held", "pods", "text"),
    [
        pytest.param(
            "zone hard 1 app=redis shard=one", HELD, ({"a": 2, "b": 1}, {}, {"a": 2, "b": 1}), "a 2, b 1", id="its own"
        ),
        pytest.param(
            "zone hard 1 app=redis",
            HELD,
            ({"a": 3, "b": 2}, {"a": 1, "b": 1}, {"a": 2, "b": 1}),
            "a 3, b 2; 2 of 5 counted pods belong to other workloads",
            id="every shard's",
        ),
        pytest.param(
            "zone hard 1 app=redis",
            {"a0": (ONE,), "b0": ("app=redis shard=two",)},
            ({"a": 1, "b": 1}, {"b": 1}, {"a": 1}),
            "a 1, b 1; 1 of 2 counted pods belongs to other workloads",
            id="one of others",
        ),
        pytest.param(
            "zone hard 1 app=cart",
            HELD,
            ({"a": 0, "b": 0}, {}, {"a": 2, "b": 1}),
            "a 0, b 0; none of its own 3 pods is counted",
            id="none of its own",
        ),
        pytest.param(
            "zone hard 1 app=web",
            HELD,
            ({"a": 0, "b": 1}, {"b": 1}, {"a": 2, "b": 1}),
            "a 0, b 1; 1 of 1 counted pod belongs to other workloads; none of its own 3 pods is counted",
            id="only others'",
        ),
        pytest.param(
            "zone hard 1 role=cache",
            {"a0": (f"{ONE} role=cache", ONE), "b0": ("role=cache", f"{ONE} role=cache")},
            ({"a": 1, "b": 2}, {"b": 1}, {"a": 2, "b": 1}),
            "a 1, b 2; 1 of 3 counted pods belongs to other workloads; 1 of its own 3 pods is not counted",
            id="a label of some of its own and of others",
        ),
        pytest.param(
            "zone hard 1 app=redis shard=one hash=new",
            {"a0": (f"{ONE} hash=old", f"{ONE} hash=new"), "b0": (f"{ONE} hash=new", f"{ONE} hash=old")},
            ({"a": 1, "b": 1}, {}, {"a": 2, "b": 2}),
            "a 1, b 1; 2 of its own 4 pods are not counted",
            id="one revision",
        ),
        pytest.param(
            "zone hard 1 app=redis",
            {"a0": (ONE,), "bare": (ONE, "app=redis shard=two")},
            ({"a": 1, "b": 0}, {}, {"": 1, "a": 1}),
            "a 1, b 0; 2 pods on nodes excluded from the count",
            id="on a node without the key",
        ),
        pytest.param(
            "zone hard 1 {}",
            HELD,
            ({"a": 0, "b": 0}, {}, {"a": 2, "b": 1}),
            "a 0, b 0; none of its own 3 pods is counted",
            id="an empty selector counts nothing",
        ),
    ],
)
def test_its_own_pods_are_told_from_others(spread, held, pods, text):
    """``pods`` are those that are counted, of these those of others, and its own."""
    counted, others, own = pods
    index = cluster("a: a0 | b: b0 | bare")
    for on, labels in held.items():
        for number, labelled in enumerate(labels):
            index.apply("ADDED", running(f"{on}-{number}", on, labelled, namespace="shop"))
    made = json.dumps(workload("StatefulSet", ONE, spread, selector=ONE)).encode()
    read = read_workload(made, api_version="apps/v1", kind="StatefulSet")
    within = scan_context(Context(policy=PLAIN, version=RECORDED, index=index, now=TODAY))
    [found] = skews(read, within)
    assert (found.domains, found.others, found.own) == (counted, others, own)
    assert domain_text(found) == text
    # Each counted pod is its own or another's, and each of its own is counted or not.
    beside = sum(found.outside.values())
    assert sum(counted.values()) - sum(others.values()) <= sum(own.values()) - found.uncounted
    assert sum(own.values()) - found.uncounted <= sum(counted.values()) - sum(others.values()) + beside
