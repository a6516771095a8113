"""PodTopologySpread as a filter and as a score; clusters are written ``zone: node=matching pods``, ``~`` is tainted."""

import pytest
from build import NAMESPACE, cluster, constraint, meta, node, pod, running, service
from msgspec.structs import replace

from webhook.core.api.types import LabelSelector, LabelSelectorRequirement, SpreadConstraint
from webhook.core.api.version import KubernetesVersion
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.index import node_sets
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.scheduler.cycle import Cycle
from webhook.core.scheduler.plugins.default_selector import default_selector
from webhook.core.scheduler.plugins.spread_constraints import SYSTEM_DEFAULTS, SpreadDefaults
from webhook.core.scheduler.plugins.status import OK, Status
from webhook.core.scheduler.problem import take

SKEWED = Status("Unschedulable", reasons=("node(s) didn't match pod topology spread constraints",))
NO_KEY = Status(
    "UnschedulableAndUnresolvable",
    reasons=("node(s) didn't match pod topology spread constraints (missing required label)",),
)
WEB = "app=web"


def cycle_of(index, *constraints, defaults=SYSTEM_DEFAULTS, labelled=WEB, **spec):
    incoming = pod(labelled, constraints=constraints or None, **spec)
    return Cycle(take(index, incoming, defaults))


def admitted(index, *constraints, **more):
    verdict = cycle_of(index, *constraints, **more).verdict_of("PodTopologySpread")
    return " ".join(sorted(name for name in verdict.nodes.slots if verdict.status(name) == OK))


@pytest.mark.parametrize(
    ("spread", "more", "nodes"),
    [
        pytest.param("z1: a=2 | z2: b=2 | z3: c=1", {}, "c", id="only the emptiest domain"),
        pytest.param("z1: a=3 | z2: b=1 | z3: c=1", {}, "b c", id="no worse than it is"),
        pytest.param("z1: a=2 | z2: b=2 | z3: c=2", {}, "a b c", id="an even spread admits everywhere"),
        pytest.param("z1: a=2 | z2: b=2 | z3: c=1", {"max_skew": 2}, "a b c", id="one more skew"),
        pytest.param("z1: a=2 | z2: b=2 | z3: c=2", {"max_skew": 2, "min_domains": 5}, "", id="too few domains"),
        pytest.param("z1: a=2 | z2: b=2 | z3: c=2", {"max_skew": 2, "min_domains": 3}, "a b c", id="enough domains"),
        pytest.param("z1: a=1 b=1 | z2: c=1 d=0", {}, "c d", id="a domain is all of its nodes"),
        pytest.param("z1: a=1 | z2: b=0 | c=0", {}, "b", id="a node without the key is no domain"),
        pytest.param("z1: a=1 | z2: ~b=0", {}, "b", id="a tainted node counts by default"),
        pytest.param(
            "z1: a=1 | z2: ~b=0", {"node_taints_policy": "Honor"}, "a b", id="and not where taints are honoured"
        ),
        pytest.param("z1: a=2 | z2: b=0", {"key": HOSTNAME}, "b", id="hostnames"),
        pytest.param("z1: a=1 | z2: b=0", {"select": "app=other"}, "a b", id="a pod that does not match itself"),
        pytest.param("z1: a=3 | z2: b=0", {"select": "app=web", "max_skew": 0}, "", id="a skew that nothing meets"),
    ],
)
def test_domains_that_admit_the_incoming_pod(spread, more, nodes):
    assert admitted(cluster(spread), constraint(**({"select": WEB} | more))) == nodes


def test_each_node_has_its_own_code_and_reason():
    index = cluster("z1: a=2 | z2: b=0 | c=0")
    verdict = cycle_of(index, constraint(select=WEB)).verdict_of("PodTopologySpread")
    assert [verdict.status(name) for name in "abc"] == [SKEWED, OK, NO_KEY]


def test_the_first_constraint_that_fails_names_the_reason():
    index = cluster("z1: a=2 | z2: b=0 | c=0")
    verdict = cycle_of(index, constraint(HOSTNAME, select=WEB), constraint(select=WEB)).verdict_of("PodTopologySpread")
    assert [verdict.status(name) for name in "abc"] == [SKEWED, OK, NO_KEY]
    verdict = cycle_of(index, constraint("rack", select=WEB), constraint(select=WEB)).verdict_of("PodTopologySpread")
    assert {verdict.status(name) for name in "abc"} == {NO_KEY}


def test_a_node_without_one_of_the_keys_counts_for_no_constraint():
    index = cluster("z1: a=0 | z2: b=0 | c=0")
    assert admitted(index, constraint(HOSTNAME, select=WEB)) == "a b c"
    (domains, _) = cycle_of(index, constraint(HOSTNAME, select=WEB), constraint(select=WEB)).domains
    assert domains.counts == {"a": 0, "b": 0}


def test_only_running_pods_of_the_namespace_count():
    index = cluster("z1: a=0 | z2: b=0")
    index.apply("ADDED", running("elsewhere", "a", namespace="batch"))
    leaving = running("leaving", "a")
    index.apply(
        "ADDED", replace(leaving, metadata=replace(leaving.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
    )
    finished = running("finished", "a")
    index.apply("ADDED", replace(finished, status=replace(finished.status, phase="Succeeded")))
    index.apply("ADDED", running("other", "a", "app=api"))
    index.apply("ADDED", running("lost", "gone"))
    (domains,) = cycle_of(index, constraint(select=WEB)).domains
    assert (domains.counts, domains.global_minimum, domains.self_match) == ({"z1": 0, "z2": 0}, 0, 1)
    index.apply("ADDED", running("counts", "a"))
    (domains,) = cycle_of(index, constraint(select=WEB)).domains
    assert domains.counts == {"z1": 1, "z2": 0}


@pytest.mark.parametrize(
    ("version", "nodes"),
    [
        pytest.param(KubernetesVersion(1, 37), "a b", id="counts no pod up to 1.37"),
        pytest.param(KubernetesVersion(1, 38), "b", id="counts all pods from 1.38"),
    ],
)
def test_the_empty_selector(version, nodes):
    index = cluster("z1: a=3 | z2: b=0")
    index.version = version
    assert admitted(index, constraint(select="{}")) == nodes


def test_a_null_selector_counts_nothing_and_asks_for_the_key():
    assert (
        admitted(
            cluster("z1: a=3 | z2: b=0 | c=0"),
            SpreadConstraint(max_skew=1, topology_key=ZONE, when_unsatisfiable="DoNotSchedule"),
        )
        == "a b"
    )


def test_match_label_keys_narrow_the_selector():
    index = cluster("z1: a=0 | z2: b=0")
    for number in range(3):
        index.apply("ADDED", running(f"old-{number}", "a", "app=web pod-template-hash=old"))
    wanted = constraint(select=WEB, keys=("pod-template-hash", "absent"))
    assert admitted(index, wanted, labelled="app=web pod-template-hash=new") == "a b"
    assert admitted(index, wanted, labelled="app=web pod-template-hash=old") == "b"


def test_affinity_decides_which_nodes_are_domains():
    index = cluster("z1: a=1 | z2: b=0")
    index.apply("ADDED", node("c", "z3", pool="spot"))
    only_a_b = {"node_selector": {ZONE: "z1"}}
    assert admitted(index, constraint(select=WEB), **only_a_b) == "a b c"
    ignoring = constraint(select=WEB, node_affinity_policy="Ignore")
    assert admitted(index, ignoring, **only_a_b) == "b c"


def test_a_selector_that_cannot_be_read_fails_the_attempt():
    broken = SpreadConstraint(
        max_skew=1,
        topology_key=ZONE,
        when_unsatisfiable="DoNotSchedule",
        label_selector=LabelSelector(match_expressions=(LabelSelectorRequirement(key="a", operator="Near"),)),
    )
    verdict = cycle_of(cluster("z1: a=1"), broken).verdict()
    text = (
        'running PreFilter plugin "PodTopologySpread": get constraints from pod: obtaining pod\'s hard topology '
        'spread constraints: "Near" is not a valid label selector operator'
    )
    assert verdict.pre_filter == Status("Error", "PodTopologySpread", (text,))
    assert verdict.sentence == ""


LISTED = SpreadDefaults((SpreadConstraint(max_skew=1, topology_key=ZONE, when_unsatisfiable="DoNotSchedule"),))


@pytest.mark.parametrize(
    ("own", "services", "nodes"),
    [
        pytest.param((), ["app=web"], "b", id="a service gives the selector"),
        pytest.param((), ["app=other"], "a b", id="no service selects the pod"),
        pytest.param((), [], "a b", id="nothing gives a selector"),
        pytest.param(
            (constraint(select=WEB, when="ScheduleAnyway"),), ["app=web"], "a b", id="own constraints replace them"
        ),
    ],
)
def test_default_constraints(own, services, nodes):
    index = cluster("z1: a=1 | z2: b=0")
    for number, select in enumerate(services):
        index.apply("ADDED", service(f"s{number}", select))
    assert admitted(index, *own, defaults=LISTED) == nodes


def test_the_selector_of_defaults_lists_pairs_as_often_as_they_were_found():
    index = ClusterIndex()
    index.apply("ADDED", service("s", "app=web"))
    assert default_selector(meta("p", labelled="app=web tier=x"), NAMESPACE, index).text == "app=web"
    assert default_selector(meta("p", labelled="tier=x"), NAMESPACE, index).empty


def scores(index, *constraints, feasible=None, **more):
    cycle = cycle_of(index, *constraints, **more)
    slots = cycle.problem.nodes.slots
    return cycle.scores(node_sets.from_slots([slots[name] for name in feasible or slots], cycle.problem.nodes.size))


@pytest.mark.parametrize(
    ("spread", "constraints", "expected"),
    [
        pytest.param(
            "z1: a=1 | z2: b=2",
            [constraint(HOSTNAME, when="ScheduleAnyway", select=WEB)],
            {"a": 100, "b": 33},
            id="the worst of two hostnames has more than 0",
        ),
        pytest.param(
            "z1: a=0 | z2: b=0",
            [constraint(when="ScheduleAnyway", select=WEB)],
            {"a": 100, "b": 100},
            id="nothing to tell them apart",
        ),
        pytest.param(
            "z1: a=2 b=0 | z2: c=0",
            [constraint(when="ScheduleAnyway", select=WEB)],
            {"a": 0, "b": 0, "c": 100},
            id="a zone is all of its nodes",
        ),
        pytest.param(
            "z1: a=2 | b=0",
            [constraint(when="ScheduleAnyway", select=WEB)],
            {"a": 100, "b": 0},
            id="a node without the key has 0",
        ),
        pytest.param("z1: a=2 | z2: b=0", [constraint(select=WEB)], None, id="no soft constraint"),
    ],
)
def test_scores(spread, constraints, expected):
    assert scores(cluster(spread), *constraints) == expected


def test_system_defaults_score_nodes_without_a_zone_too():
    index = cluster("z1: a=2 b=0 | c=0")
    index.apply("ADDED", service("s", "app=web"))
    assert scores(index) == {"a": 16, "b": 41, "c": 100}
    assert scores(index, feasible=["a"]) == {"a": 100}
