"""Which nodes Karpenter's own code takes for recorded pods, beside kube-scheduler's; `make readers` asks of fresh ones.

Recorded by ``conformance/readers.sh SEED COUNT PYTHON conformance/readers/recorded.jsonl.gz``.
"""

import json
from collections import Counter

import pytest

from conformance.readers.__main__ import read
from conformance.readers.questions import FAMILIES, next_pod
from conformance.readers.said import of_karpenter
from webhook.conformance.validate_cases import members
from webhook.conformance.verdict_cases import read_scenario
from webhook.core.scheduler.cycle import decide
from webhook.core.scheduler.problem import take

# Of 600, by family: docs/exactness.md says why.
UNSAID = {
    "one constraint on zones": 4,
    "hostname": 13,
    "ScheduleAnyway": 47,
    "minDomains": 4,
    "policies": 18,
    "matchLabelKeys": 7,
    "selectors without conditions": 1,
    "two keys": 11,
}


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


def test_where_karpenter_takes_other_nodes_the_rule_speaks(cases):
    """But for what the page says that it is silent about."""
    unsaid = Counter(each["asked"]["family"] for each in cases if other_nodes(each) and not of_karpenter(each["asked"]))
    assert unsaid == UNSAID
    assert {each["asked"]["family"] for each in cases} == FAMILIES.keys()
