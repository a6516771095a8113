"""What is in the way of a pod, and what is not."""

import pytest
from build import ROOMY, cluster, constraint, pod, running, service
from msgspec.structs import replace

from webhook.core.api.types import (
    Container,
    ContainerPort,
    NodeSpec,
    NodeStatus,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from webhook.core.api.well_known import HOSTNAME
from webhook.core.explain.explanation import _in_short, explain_pod, rejections, why_minimum_stays
from webhook.core.index import node_sets
from webhook.core.scheduler.plugins.pod_topology_spread import MISSING_LABEL, TOO_SKEWED
from webhook.core.scheduler.plugins.spread_constraints import SpreadDefaults
from webhook.core.scheduler.plugins.status import Status
from webhook.core.scheduler.problem import take
from webhook.core.scheduler.verdict import Cause

WEB = "app=web"
ZONES = constraint(select=WEB)
HOSTS = constraint(HOSTNAME, select=WEB)
SMALL = {"cpu": "2", "memory": "4Gi", "pods": "3"}


def asking(cpu="1", port=None):
    ports = None if port is None else (ContainerPort(container_port=port, host_port=port),)
    return (Container(name="c", resources=ResourceRequirements(requests={"cpu": cpu}), ports=ports),)


def judged(index, *constraints, **spec):
    return explain_pod(take(index, pod(WEB, constraints=constraints or None, **spec))).cause


@pytest.mark.parametrize(
    ("state", "constraints", "cpu", "expected"),
    [
        pytest.param("z1: a=1 | z2: b=0", (ZONES,), "1", None, id="a node admits it"),
        pytest.param("z1: a=1 | z2: ~b=0", (ZONES,), "1", Cause.SPREAD, id="a tainted zone holds the minimum"),
        pytest.param("z1: a=0 | z2: b=0", (constraint("rack", select=WEB),), "1", Cause.SPREAD, id="a key of no node"),
        pytest.param("z1: a=1 | z2: ~b=0", (), "1", None, id="the same without a constraint"),
        pytest.param("z1: ~a=1 | z2: ~b=0", (ZONES,), "1", Cause.OTHER, id="every node is tainted"),
        pytest.param("z1: a=0 | z2: b=0", (ZONES,), "9", Cause.CAPACITY, id="more than a node has"),
        pytest.param("z1: a=0 | z2: ~b=0", (), "9", Cause.CAPACITY, id="more than the node that is open has"),
        pytest.param("z1: a=1 | z2: ~b=0", (ZONES,), "9", Cause.OTHER, id="spread and capacity, neither alone"),
        pytest.param("z1: a=3 b=1 | z2: ~c=0", (ZONES,), "1", Cause.SPREAD, id="one node is full, the other open"),
        pytest.param("", (ZONES,), "1", Cause.OTHER, id="no node at all"),
    ],
)
def test_the_cause(state, constraints, cpu, expected):
    assert judged(cluster(state, resources=SMALL), *constraints, containers=asking(cpu)) == expected


def test_a_full_zone_beside_a_zone_at_its_limit_is_spread():
    index = cluster("z1: a=1 | z2: b=0")
    index.apply("ADDED", running("x", "b", "app=x", containers=asking("64")))
    assert judged(index, ZONES, containers=asking()) == Cause.SPREAD
    assert judged(index, HOSTS, containers=asking()) == Cause.SPREAD
    assert judged(index, constraint(select=WEB, max_skew=2), containers=asking()) is None


def test_a_host_port_is_capacity():
    index = cluster("z1: a=0")
    assert judged(index, ZONES, containers=asking(port=80)) is None
    index.apply("ADDED", running("x", "a", "app=x", containers=asking(port=80)))
    assert judged(index, ZONES, containers=asking(port=80)) == Cause.CAPACITY


def test_a_cordon_is_something_else():
    index = cluster("z1: a=0")
    index.apply("MODIFIED", replace(index.nodes.get("a"), spec=NodeSpec(unschedulable=True)))
    assert judged(index, ZONES) == Cause.OTHER


def test_a_selector_that_cannot_be_read_is_spread():
    assert judged(cluster("z1: a=0"), constraint(select="app=not/a/value")) == Cause.SPREAD


def test_room_that_preemption_made_for_another_stays_taken():
    index = cluster("z1: a=0", resources={"cpu": "2", "memory": "4Gi", "pods": "9"})
    waits = replace(running("first", "", "app=x", containers=asking("2")), status=PodStatus(nominated_node_name="a"))
    assert judged(index, ZONES, containers=asking()) is None
    index.apply("ADDED", waits)
    assert judged(index, ZONES, containers=asking()) == Cause.CAPACITY


def test_a_nominated_pod_counts_on_its_node():
    index, mine = cluster("z1: a=0 | z2: ~b=0"), replace(running("first", ""), spec=PodSpec())
    assert judged(index, ZONES) is None
    index.apply("ADDED", replace(mine, status=PodStatus(nominated_node_name="a")))
    assert judged(index, ZONES) == Cause.SPREAD


def explained(index, *constraints, **spec):
    return explain_pod(take(index, pod(WEB, constraints=constraints or None, **spec)))


class TestBalances:
    def test_each_constraint_with_its_domains(self):
        found = explained(
            cluster("z1: a=2 b=0 | z2: ~c=1"),
            constraint(select=WEB, when="ScheduleAnyway", max_skew=3),
            HOSTS,
            constraint("rack", select=WEB, when="ScheduleAnyway"),
            ZONES,
        )
        assert [(each.index, each.hard, dict(each.domains.counts), each.lowest) for each in found.balances] == [
            (0, False, {}, ()),
            (1, True, {"a": 2, "b": 0, "c": 1}, ("b",)),
            (2, False, {}, ()),
            (3, True, {"z1": 2, "z2": 1}, ("z2",)),
        ]
        assert found.cause is Cause.SPREAD
        assert found.blocking == found.balances[3]

    def test_a_constraint_that_asks_for_neither_is_none(self):
        found = explained(cluster("z1: a=0"), constraint(select=WEB, when="Maybe"), ZONES)
        assert [each.index for each in found.balances] == [1]
        assert found.cause is None
        assert (found.blocking, found.fixes, found.reliefs) == (None, (), ())

    def test_constraints_of_the_cluster(self):
        defaults = SpreadDefaults((constraint(), constraint(HOSTNAME, when="ScheduleAnyway")))
        index = cluster("z1: a=1 | z2: ~b=0")
        index.apply("ADDED", service("web", WEB))
        [balance] = explain_pod(take(index, pod(WEB), defaults)).balances
        assert (balance.index, balance.hard, dict(balance.domains.counts)) == (None, True, {"z1": 1, "z2": 0})
        assert explain_pod(take(index, pod(WEB))).balances == ()

    def test_a_selector_that_cannot_be_read_has_no_balance(self):
        found = explained(cluster("z1: a=0"), constraint(select="app=not/a/value"), ZONES)
        assert (found.cause, found.balances, found.blocking) == (Cause.SPREAD, (), None)


@pytest.mark.parametrize(
    ("state", "constraints", "names", "expected"),
    [
        pytest.param("z1: a=1 | z2: ~b=0", (ZONES,), True, "zone z2 (1 node, tainted) stays at 0", id="one node"),
        pytest.param("z1: a=2 | z2: ~b=1 ~c=0", (ZONES,), True, "zone z2 (2 nodes, tainted) stays at 1", id="two"),
        pytest.param("z1: a=2 | z2: ~b=1 ~c=0", (ZONES,), False, "1 zone (2 nodes, tainted) stays at 1", id="unnamed"),
        pytest.param(
            "z1: full=1 | z2: c=3", (ZONES,), True, "zone z1 (1 node, full of pods) stays at 1", id="a full node"
        ),
        pytest.param(
            "z1: a=1 b=1 | z2: ~c=0 ~d=0", (HOSTS,), True, "2 hostnames (2 nodes, tainted) stay at 0", id="many domains"
        ),
        pytest.param(
            "z1: full=3 ~b=0 | z2: c=4",
            (ZONES,),
            True,
            "zone z1 (1 full of pods, 1 tainted) stays at 3",
            id="several reasons",
        ),
        pytest.param(
            "z1: a=1 | z2: b=1",
            (constraint(select=WEB, min_domains=3),),
            True,
            "2 zones, fewer than minDomains 3: the minimum is 0",
            id="too few domains",
        ),
        pytest.param(
            "z1: a=1",
            (constraint(select=WEB, min_domains=2),),
            True,
            "1 zone, fewer than minDomains 2: the minimum is 0",
            id="one domain of two",
        ),
        pytest.param(
            "z1: a=0", (constraint("example.com/rack", select=WEB),), True, "no node has the label rack", id="no key"
        ),
    ],
)
def test_what_a_constraint_waits_for(state, constraints, names, expected):
    index = cluster(state)
    for count in (part.removeprefix("full=") for part in state.split() if part.startswith("full=")):
        index.apply(
            "MODIFIED", replace(index.nodes.get("full"), status=NodeStatus(allocatable={**ROOMY, "pods": count}))
        )
    found = explained(index, *constraints)
    assert why_minimum_stays(found.blocking, found.verdict, names=names) == expected


def test_a_full_node_and_one_that_is_too_small():
    index = cluster("z1: full=0 | z2: small=0", resources=SMALL)
    index.apply("MODIFIED", replace(index.nodes.get("full"), status=NodeStatus(allocatable={**ROOMY, "cpu": "9"})))
    index.apply("ADDED", running("other", "full", "app=other", containers=asking("8")))
    found = explained(index, ZONES, containers=asking("5"))
    assert found.cause is Cause.CAPACITY
    slots = {name: 1 << slot for slot, name in enumerate(found.verdict.nodes.names)}
    assert {each.what: each.nodes for each in found.reliefs} == {"room": slots["full"], "size": slots["small"]}


@pytest.mark.parametrize(
    ("state", "constraint", "cpu", "told", "reliefs"),
    [
        pytest.param(
            "z1: a=1 | z2: ~b=0", ZONES, "1", (Cause.SPREAD, "a"), {"toleration": "b"}, id="without the constraint"
        ),
        pytest.param("z1: a=0 | z2: b=0", ZONES, "9", (Cause.CAPACITY, "a b"), {"size": "a b"}, id="on larger nodes"),
        pytest.param("z1: a=1 | z2: ~b=0", ZONES, "9", (Cause.OTHER, "a"), {}, id="without it and with room"),
        pytest.param("z1: ~a=1 | z2: ~b=0", ZONES, "1", (Cause.OTHER, ""), {"toleration": "b"}, id="neither helps"),
        pytest.param("z1: -a=1", ZONES, "1", (Cause.OTHER, ""), {"uncordon": "a"}, id="a cordon"),
        pytest.param("z1: a=1 | z2: -b=0", ZONES, "1", (Cause.SPREAD, "a"), {"uncordon": "b"}, id="a cordoned zone"),
        pytest.param(
            "z1: a=1 | z2: -b=0 -c=0",
            ZONES,
            "1",
            (Cause.SPREAD, "a"),
            {"uncordon": "b c"},
            id="either of two cordoned nodes",
        ),
        pytest.param(
            "z1: a=0 | z2: -b=0 -c=0",
            constraint(select=WEB, node_taints_policy="Honor"),
            "9",
            (Cause.CAPACITY, "a"),
            {"size": "a"},
            id="cordons that decide what counts are not lifted together",
        ),
        pytest.param(
            "z1: a=1 -b=0 | z2: ~c=0",
            ZONES,
            "1",
            (Cause.SPREAD, "a"),
            {"toleration": "c"},
            id="a cordoned node of a zone at its limit",
        ),
        pytest.param("z1: a=0 | z2: b=1", ZONES, "1", None, {}, id="nothing is in the way"),
    ],
)
def test_what_would_admit_the_pod(state, constraint, cpu, told, reliefs):
    index = cluster(state.replace("-", ""), resources=SMALL)
    for name in (part[1] for part in state.split() if part.startswith("-")):
        index.apply("MODIFIED", replace(index.nodes.get(name), spec=NodeSpec(unschedulable=True)))
    found = explained(index, constraint, containers=asking(cpu))

    def names(nodes):
        return " ".join(sorted(found.verdict.nodes.names[slot] for slot in node_sets.to_slots(nodes)))

    assert told == (None if found.cause is None else (found.cause, names(found.otherwise)))
    assert {each.what: names(each.nodes) for each in found.reliefs} == reliefs


@pytest.mark.parametrize(
    ("plugin", "reasons", "expected"),
    [
        ("NodeName", ("node(s) didn't match the requested node name",), "of another name"),
        ("NodeUnschedulable", ("node(s) were unschedulable",), "cordoned"),
        ("TaintToleration", ("node(s) had untolerated taint {a: b}",), "tainted"),
        ("NodeAffinity", ("node(s) didn't match Pod's node affinity/selector",), "not selected"),
        ("NodePorts", ("node(s) didn't have free ports for the requested pod ports",), "with the port taken"),
        ("NodeResourcesFit", ("Insufficient cpu",), "short of cpu"),
        (
            "NodeResourcesFit",
            ("Too many pods", "Insufficient cpu", "Insufficient memory"),
            "full of pods, short of cpu, memory",
        ),
        ("PodTopologySpread", TOO_SKEWED.reasons, "over another limit"),
        ("PodTopologySpread", MISSING_LABEL.reasons, "without another key"),
        ("InterPodAffinity", ("node(s) didn't match pod anti-affinity rules",), "by pod affinity"),
        ("VolumeZone", ("node(s) had no available volume zone",), "by its volumes"),
    ],
)
def test_reasons_in_short(plugin, reasons, expected):
    assert _in_short(Status("Unschedulable", plugin, reasons)) == expected


def test_rejections_count_each_reason_once():
    found = explained(cluster("z1: a=1 b=1 | z2: ~c=0"), ZONES).verdict
    assert [(status.plugin, nodes) for status, nodes in rejections(found, found.nodes.live).items()] == [
        ("PodTopologySpread", 2),
        ("TaintToleration", 1),
    ]
    assert [*rejections(found, 1 << found.nodes.slots["c"]).values()] == [1]


def test_reasons_can_be_left_out():
    found = explained(cluster("z1: a=1 | z2: ~b=0 ~c=0"), ZONES)
    assert why_minimum_stays(found.blocking, found.verdict, reasons=False) == "zone z2 (2 nodes) stays at 0"
    assert found.blocking.name == "zone[0]"


def test_a_fix_names_its_constraint_where_two_are_hard():
    index = cluster("z1: a=1 | z2: ~b=0")
    both = explained(index, ZONES, HOSTS)
    assert [both.in_words(fix) for fix in both.fixes] == [
        "add nodeTaintsPolicy: Honor in zone[0] and hostname[1]",
        "set maxSkew: 2 in zone[0] and hostname[1]",
        "set whenUnsatisfiable: ScheduleAnyway in zone[0] and hostname[1]",
    ]
    one = explained(index, constraint(select=WEB, min_domains=3), constraint(select=WEB, when="ScheduleAnyway"))
    assert [one.in_words(fix) for fix in one.fixes] == ["set maxSkew: 2", "remove zone[0]"]
    alone = explained(cluster("z1: a=1"), constraint(select=WEB, min_domains=3))
    assert [alone.in_words(fix) for fix in alone.fixes] == [
        "set minDomains: 1",
        "set maxSkew: 2",
        "set whenUnsatisfiable: ScheduleAnyway and remove minDomains",
    ]
    default = SpreadDefaults((constraint(),))
    index.apply("ADDED", service("web", WEB))
    assert explain_pod(take(index, pod(WEB), default)).blocking.name == "zone"
