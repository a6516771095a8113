"""Which nodes Karpenter's own code takes for recorded pods, beside kube-scheduler's; `make readers` asks of fresh ones.

Recorded by ``conformance/readers.sh SEED COUNT PYTHON conformance/readers/recorded.jsonl.gz``.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

from conformance.claims.worlds import HOSTNAME
from conformance.readers.__main__ import read, table_of_evictions
from conformance.readers.__main__ import table as karpenter_table
from conformance.readers.questions import FAMILIES, next_pod
from conformance.readers.repairs import LEFT_OUT, plan_of, table_of_repairs
from conformance.readers.rounds import EVICTED, VERDICT, course, together
from conformance.readers.said import of_descheduler, of_karpenter
from webhook.conformance.validate_cases import members
from webhook.conformance.verdict_cases import read_scenario
from webhook.core.scheduler.cycle import decide
from webhook.core.scheduler.problem import take

# Of 600, by family: docs/exactness.md says why.
UNSAID = {
    "hostname": 3,
    "ScheduleAnyway": 38,
    "matchLabelKeys": 1,
    "selectors without conditions": 1,
    "two keys": 6,
}

pytestmark = pytest.mark.slow


@pytest.fixture(name="cases", scope="module")
def _cases():
    return read()


def other_nodes(case):
    return set(case["kube"]) != set(case["first"])


def test_we_take_the_nodes_that_kube_scheduler_takes(cases):
    for case in cases:
        asked = case["asked"]
        scenario = {"id": "", "nodes": asked["nodes"], "pods": asked["pods"], "pod": next_pod(asked)}
        read_as = read_scenario(members(json.dumps(scenario).encode()))
        verdict = decide(take(read_as.index, read_as.pod, read_as.defaults))
        assert sorted(verdict.nodes.names_of(verdict.feasible)) == case["kube"], asked["id"]


@pytest.mark.slow
def test_where_karpenter_takes_other_nodes_the_rule_speaks(cases):
    """But for what the page says that it is silent about."""
    unsaid = Counter(each["asked"]["family"] for each in cases if other_nodes(each) and not of_karpenter(each["asked"]))
    assert unsaid == UNSAID
    assert {each["asked"]["family"] for each in cases} == FAMILIES.keys()


@pytest.mark.slow
def test_where_the_rule_is_silent_only_the_pods_of_the_moment_decide(cases):
    """A soft constraint, for which there is a place at last; or hosts that have maxSkew pods already."""
    for each in cases:
        if other_nodes(each) and not of_karpenter(each["asked"]):
            constraints = each["asked"]["deployment"]["spec"]["template"]["spec"]["topologySpreadConstraints"]
            if any(one["whenUnsatisfiable"] == "ScheduleAnyway" for one in constraints):
                assert each["relaxed"]
                assert each["solved"]["pending"] == 0
            else:
                (constraint,) = (one for one in constraints if one["topologyKey"] == HOSTNAME)
                on_hosts = hosts(each["asked"], constraint["labelSelector"].get("matchLabels", {}))
                assert constraint["maxSkew"] <= max(on_hosts)


def hosts(asked, labels):
    """How many pods with these labels each node has."""
    counted = Counter(
        pod["spec"]["nodeName"] for pod in asked["pods"] if labels.items() <= pod["metadata"]["labels"].items()
    )
    return [counted[node["metadata"]["name"]] for node in asked["nodes"]]


@pytest.mark.slow
def test_where_the_descheduler_does_not_come_to_an_end_the_rule_speaks(cases):
    """But for one that counts pods of others alone, of which `selector-not-self` speaks."""
    endless = [each["asked"] for each in cases if each["evicting"]["evicted"][-1]]
    assert [each["id"] for each in endless if not of_descheduler(each)] == ["15/selectors without conditions/43"]
    assert len(endless) == 9


@pytest.mark.slow
@pytest.mark.parametrize("table", [karpenter_table, table_of_evictions, table_of_repairs])
def test_the_page_has_the_tables(cases, table):
    page = (Path(__file__).parents[1] / "docs" / "exactness.md").read_text(encoding="utf-8")
    assert "\n".join(table(cases)) in page


class Program:
    """One that answers at once, with whatever `answer` makes of a question; it is asked for all courses together."""

    def __init__(self, answer):
        self.answer, self.asked = answer, []

    def __call__(self, questions):
        self.asked.append(len(questions))
        return [self.answer(each) for each in questions]


def test_a_course_ends_when_nothing_is_evicted():
    """Two pods on n1, and a scheduler that puts each on n2 while the descheduler takes one from n1 once."""
    spread = {"topologySpreadConstraints": [{"maxSkew": 1}], "nodeName": "n1"}
    pods = [{"metadata": {"name": name}, "spec": spread} for name in ("a", "b")]
    out = {"code": "Unschedulable", "plugin": "PodTopologySpread"}
    scheduler = Program(
        lambda asked: {"nodes": {"n1": out, "n2": {}}, "best": ["n2"] if len(asked["pods"]) == 1 else []}
    )
    descheduler = Program(lambda asked: {"evicted": [each["metadata"]["name"] for each in asked["pods"][:1]]})
    asked = {"id": "x", "nodes": [], "pods": pods}
    gentle = Program(lambda _: {"evicted": []})

    [found, other] = together([course(asked), course(asked)], {VERDICT: scheduler, EVICTED: descheduler})
    assert found == other
    assert found["outOfPlace"] == ["a", "b"]
    assert found["evicted"] == [1] * 10
    assert found["pending"] == 0
    assert set(scheduler.asked) == set(descheduler.asked) == {2}
    [found] = together([course(asked)], {VERDICT: scheduler, EVICTED: gentle})
    assert (found["evicted"], found["first"], found["still"]) == ([0], [], 2)


def test_where_the_descheduler_repairs_a_cluster_it_needs_no_fewer_evictions(cases):
    for each in cases:
        runs, plan = each["evicting"], plan_of(each["asked"])
        is_repaired = not runs["pending"] and not runs["still"] and not runs["evicted"][-1]
        if is_repaired and each["asked"]["family"] not in LEFT_OUT:
            assert plan.reason is not None or len(plan.evictions) <= sum(runs["evicted"]), each["asked"]["id"]
            assert plan.proven
