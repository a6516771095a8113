"""What rules claim of recorded worlds, against what Kubernetes' own filters came to; `make claims` asks of fresh ones.

Recorded by ``python -m conformance.claims ORACLE --record SEED COUNT FILE...``: worlds in which a rule speaks, and the
smallest worlds in which one was wrong once.
"""

from pathlib import Path

import pytest

from conformance.claims.readings import READINGS, edited
from conformance.claims.referee import Recorded, Unasked, read_cases
from conformance.claims.together import is_true, terms
from conformance.claims.verdicts import Inspection, contradictions
from conformance.claims.worlds import DEPRECATED, HOSTNAME, ZONE, plain_constraint, world

CASES = Path(__file__).parents[1] / "conformance" / "claims" / "recorded.jsonl.gz"


@pytest.mark.slow
def test_no_claim_is_contradicted():
    spoken, unasked, total = set(), 0, 0
    for of, answers in read_cases(CASES):
        inspected, total = Inspection(of, Recorded(answers)), total + 1
        try:
            assert not list(contradictions(inspected)), of["id"]
        except Unasked:  # a fix that was another when the answers were written down
            unasked += 1
        spoken |= {each.rule for each in inspected.findings}
    assert READINGS.keys() <= spoken
    assert unasked * 3 <= total, "record the cases again: see above"


def test_the_recorded_worlds_have_every_class_that_is_drawn():
    found, spec_fields = set(), set()
    for of, _ in read_cases(CASES):
        found |= {each["kind"] for each in of["objects"]} | {of["workload"]["kind"]}
        for each in of["objects"]:
            found |= {*each, *each["metadata"], *each["metadata"].get("labels", ())}
        found.add(of["workload"]["spec"].get("strategy", {}).get("type"))
        spec_fields |= (of["workload"]["spec"].get("template") or of["workload"])["spec"].keys()
    drawn = {"RuntimeClass", "SpreadGroup", "Recreate", "allowedTopologies", "deletionTimestamp", DEPRECATED}
    assert drawn <= found
    assert {"runtimeClassName", "schedulingGroup"} <= spec_fields


@pytest.mark.slow
@pytest.mark.parametrize("field", ["most", "fewest", "first"])
def test_a_wrong_answer_is_noticed(field):
    """If fewer or more pods had a place than the referee says, some claim would be contradicted."""
    wrong = 0
    for of, answers in read_cases(CASES):
        changed = {
            digest: {**answer, field: answer[field][:-1] if field == "first" else changed_number(answer, field)}
            for digest, answer in answers.items()
        }
        try:
            wrong += bool(list(contradictions(Inspection(of, Recorded(changed)))))
        except Unasked:
            continue
    assert wrong


class Answers:
    """A referee who says how many of ten pods fit in the best and in the worst order; without hard constraints all."""

    def __init__(self, most):
        self.most = most

    def place(self, question):
        hard = question["template"]["spec"]["topologySpreadConstraints"]
        placed = {"queued": 10, "staying": 0, "exact": False}
        return {**placed, "fewest": 7, "most": self.most} if hard else {**placed, "fewest": 10, "most": 10}


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        pytest.param(10, [], id="some order places all, and no page says otherwise"),
        pytest.param(9, ["zone-host-ceiling"], id="none does"),
    ],
)
def test_silence_is_wrong_only_where_no_order_places_all(most, expected):
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{number}", "labels": {HOSTNAME: f"n{number}", ZONE: zone}},
            "spec": {},
            "status": {"allocatable": {"cpu": "16", "pods": "110"}},
        }
        for number, zone in enumerate("abbbc")
    ]
    labels = {"app": "web"}
    spec = {
        "containers": [{"name": "c", "image": "registry.example/web:1"}],
        # Of pods that nobody tries the rules with an engine of their own say nothing.
        "schedulingGates": [{"name": "example.com/wait"}],
        "topologySpreadConstraints": [plain_constraint(ZONE, labels, 1), plain_constraint(HOSTNAME, labels, 2)],
    }
    body = {
        "replicas": 10,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": spec},
    }
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": body,
    }
    inspected = Inspection({"id": "order", "objects": nodes, "workload": manifest}, Answers(most))
    assert [rule for rule, *_ in contradictions(inspected)] == expected


def held(key, max_skew=1, **more):
    return terms({**plain_constraint(key, {"app": "web"}, max_skew), **more})


@pytest.mark.parametrize(
    ("words", "here", "there", "expected"),
    [
        ("zone maxSkew 1 here, 2 there", {held(ZONE)}, {held(ZONE, 2)}, True),
        ("zone maxSkew 2 here, 1 there", {held(ZONE)}, {held(ZONE, 2)}, False),
        ("zone minDomains 1 here, 3 there", {held(ZONE)}, {held(ZONE, minDomains=3)}, True),
        ("zone hard here, soft there", {held(ZONE)}, {held(ZONE, whenUnsatisfiable="ScheduleAnyway")}, True),
        ("zone soft here, hard there", {held(ZONE)}, {held(ZONE, whenUnsatisfiable="ScheduleAnyway")}, False),
        ("zone here, hostname there", {held(ZONE)}, {held(HOSTNAME)}, True),
        ("zone here, hostname there", {held(ZONE)}, {held(HOSTNAME), held("rack")}, False),
        ("zone here, zone there", {held(ZONE)}, {held("zone")}, False),
        (f"{ZONE} here, zone there", {held(ZONE)}, {held("zone")}, True),
        ("hostname only there", set(), {held(HOSTNAME)}, True),
        ("hostname only there", {held(ZONE)}, {held(HOSTNAME)}, False),
        ("hostname only here", set(), {held(HOSTNAME)}, False),
        ("something else", {held(ZONE)}, {held(ZONE, 2)}, False),
    ],
)
def test_terms_are_read_from_words(words, here, there, expected):
    assert is_true(words, here, there) == expected


def changed_number(answer, field):
    return answer["queued"] if field == "most" else min(answer[field], answer["queued"] - 1)


def test_worlds_depend_on_nothing_but_their_number():
    assert world("7", 3) == world("7", 3) != world("7", 4)


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        pytest.param([("a.b", 1)], {"a": {"b": 1, "c": [1, 2, 3]}}, id="a field"),
        pytest.param(
            [("a.c[0]", None), ("a.c[1]", None)], {"a": {"b": 0, "c": [3]}}, id="two items, by their old places"
        ),
        pytest.param([("a.d.e", 1)], {"a": {"b": 0, "c": [1, 2, 3], "d": {"e": 1}}}, id="made on the way"),
        pytest.param([("a.c[3]", 4)], {"a": {"b": 0, "c": [1, 2, 3, 4]}}, id="behind the last"),
    ],
)
def test_edits_are_applied(edits, expected):
    assert edited({"a": {"b": 0, "c": [1, 2, 3]}}, edits) == expected
