"""Explanations of the recorded scenarios: what they say must hold when the filters are asked once more.

Many of these scenarios are odd: nameless objects, selectors that cannot be read, quantities that overflow.
"""

import gzip
from functools import cache
from itertools import islice
from pathlib import Path

import msgspec
import pytest
from build import cluster, constraint, pod, policy
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from webhook.answers import explained as documents
from webhook.cli.commands.explain.page import render
from webhook.conformance.validate_cases import members
from webhook.conformance.verdict_cases import Scenario, read_scenario
from webhook.core.api.types import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY, NodeSpec, SpreadConstraint
from webhook.core.api.version import RECORDED
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.apiserver.decoding import DecodeError
from webhook.core.context import Context
from webhook.core.explain.explanation import explain_pod, why_minimum_stays
from webhook.core.index import node_sets
from webhook.core.scheduler.args import ArgsError
from webhook.core.scheduler.cycle import decide
from webhook.core.scheduler.plugins.spread_constraints import SYSTEM_DEFAULTS
from webhook.core.scheduler.problem import take
from webhook.core.scheduler.verdict import Cause
from webhook.core.what_if.pods_to_explain import pod_to_explain

VECTORS = Path(__file__).parents[2] / "conformance" / "vectors"
FILES = sorted(path.name for path in VECTORS.glob("verdict-*.jsonl.gz"))
VOLUMES_ALONE = "verdict-storage.jsonl.gz"
UNDECLARED = {VOLUMES_ALONE, "verdict-defaults.jsonl.gz"}  # whose pods declare no constraint
FIELDS = {field.encode_name: field.name for field in fields(SpreadConstraint)}


@cache
def explained(name):
    """One scenario in three, with its explanation."""
    found = []
    with gzip.open(VECTORS / name) as lines:
        for line in islice(lines, 0, None, 3):
            try:
                scenario = read_scenario(members(members(line)["scenario"]))
            except (DecodeError, ArgsError):
                continue
            found.append((scenario, explain_pod(take(scenario.index, scenario.pod, scenario.defaults))))
    return found


def with_constraints(pod, constraints):
    return replace(pod, spec=replace(pod.pod_spec, topology_spread_constraints=tuple(constraints) or None))


def feasible(scenario, constraints):
    """The nodes that admit the pod with these constraints, counted anew from the index."""
    pod = with_constraints(scenario.pod, constraints)
    return decide(take(scenario.index, pod, scenario.defaults)).feasible.bit_count()


def softened(pod):
    return [
        replace(each, when_unsatisfiable=SCHEDULE_ANYWAY) if each.when_unsatisfiable == DO_NOT_SCHEDULE else each
        for each in pod.pod_spec.constraints
    ]


def changed(pod, changes):
    constraints = list(pod.pod_spec.constraints)
    for each in changes:
        told = {FIELDS[each.field]: each.value} if each.field else {}
        constraints[each.index] = replace(constraints[each.index], **told) if told else None
    return [each for each in constraints if each is not None]


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
class TestRecordedScenarios:
    def test_a_pod_is_kept_away_by_spread_only_if_it_fits_without(self, name):
        causes = set()
        for scenario, found in explained(name):
            causes.add(found.cause)
            assert (found.cause is None) == bool(found.verdict.feasible)
            if found.cause is not None and scenario.pod.pod_spec.constraints:
                assert bool(feasible(scenario, softened(scenario.pod))) == (found.cause is Cause.SPREAD)
        assert {None, Cause.OTHER if name == VOLUMES_ALONE else Cause.SPREAD} <= causes

    def test_every_fix_makes_it_fit_and_no_smaller_skew_does(self, name):
        offered = set()
        for scenario, found in explained(name):
            for fix in found.fixes:
                assert feasible(scenario, changed(scenario.pod, fix.changes)) == fix.nodes > 0
                offered.update(each.field for each in fix.changes)
                if [each.field for each in fix.changes] == ["maxSkew"]:
                    [mine] = fix.changes
                    less = changed(scenario.pod, [replace(mine, value=mine.value - 1)])
                    assert not feasible(scenario, less)
        assert "whenUnsatisfiable" in offered or name in UNDECLARED

    def test_what_spread_keeps_away_can_be_helped_and_is_put_in_words(self, name):
        for _, found in explained(name):
            if found.cause is Cause.SPREAD and any(each.hard and each.index is not None for each in found.balances):
                assert found.fixes
                assert why_minimum_stays(found.blocking, found.verdict)

    def test_it_can_be_printed_and_encoded(self, name):
        for scenario, found in explained(name):
            answer = documents.AnsweredQuestion(
                pod_to_explain(scenario.pod, Context(policy=policy(), version=RECORDED)), found
            )
            assert all(line.isprintable() for line in "".join(render(answer)).splitlines())
            assert (
                msgspec.json.decode(msgspec.json.encode(documents.explained(answer)))["message"]
                == found.verdict.sentence
            )


@st.composite
def clusters(draw):
    """Up to three zones and nodes without one, some tainted, some cordoned."""
    nodes, written, cordoned = 0, [], []
    for zone in draw(st.lists(st.sampled_from(["a", "b", "c", ""]), min_size=1, max_size=4, unique=True)):
        entries = []
        for _ in range(draw(st.integers(1, 3))):
            nodes += 1
            entries.append(f"{draw(st.sampled_from(['', '', '~']))}n{nodes}={draw(st.integers(0, 3))}")
            if draw(st.integers(0, 4)) == 0:
                cordoned.append(f"n{nodes}")
        written.append(f"{zone}: {' '.join(entries)}" if zone else " ".join(entries))
    # Nodes without a zone stand before any colon.
    index = cluster(" | ".join(sorted(written, key=lambda part: ":" in part)))
    for name in cordoned:
        node = index.nodes.get(name)
        index.apply("MODIFIED", replace(node, spec=NodeSpec(taints=node.spec.taints, unschedulable=True)))
    return index


spreads = st.builds(
    constraint,
    st.sampled_from([ZONE, HOSTNAME, "rack"]),
    max_skew=st.integers(1, 3),
    when=st.sampled_from([DO_NOT_SCHEDULE, DO_NOT_SCHEDULE, SCHEDULE_ANYWAY]),
    select=st.sampled_from(["app=web", "app=db", "{}", None]),
    min_domains=st.none() | st.integers(1, 4),
    node_taints_policy=st.sampled_from([None, "Honor", "Ignore"]),
    node_affinity_policy=st.sampled_from([None, "Honor", "Ignore"]),
)
pods = st.builds(
    pod,
    constraints=st.lists(spreads, max_size=3).map(tuple),
    node_selector=st.sampled_from([None, None, {ZONE: "a"}, {HOSTNAME: "n1"}]),
)


@pytest.mark.slow
@given(clusters(), pods)
def test_what_is_said_of_any_pod_holds(index, incoming):
    scenario = Scenario(index, incoming, SYSTEM_DEFAULTS)
    found = explain_pod(take(index, incoming))
    assert (found.cause is None) == bool(found.verdict.feasible)
    if found.cause is not None:
        assert bool(feasible(scenario, softened(incoming))) == (found.cause is Cause.SPREAD)
    assert bool(found.fixes) == (found.cause is Cause.SPREAD)
    for fix in found.fixes:
        assert feasible(scenario, changed(incoming, fix.changes)) == fix.nodes > 0
    for relief in found.reliefs:
        if relief.what == "toleration":
            tolerations = (*(incoming.pod_spec.tolerations or ()), *relief.tolerations)
            tolerant = replace(incoming, spec=replace(incoming.pod_spec, tolerations=tolerations))
            assert decide(take(index, tolerant)).feasible == relief.nodes != 0
            continue
        assert relief.what == "uncordon"  # there is room everywhere
        for name in (found.verdict.nodes.names[slot] for slot in node_sets.to_slots(relief.nodes)):
            node = index.nodes.get(name)
            index.apply("MODIFIED", replace(node, spec=NodeSpec(taints=node.spec.taints)))
            assert decide(take(index, incoming)).feasible
            index.apply("MODIFIED", node)
    if found.blocking is not None:
        assert why_minimum_stays(found.blocking, found.verdict)
    kept_out = {slot for each in found.obstacles for slot in node_sets.to_slots(each.nodes)}
    assert kept_out == {*node_sets.to_slots(found.verdict.nodes.live & ~found.verdict.feasible)}
    assert bool(found.ways) == (found.cause is Cause.OTHER and found.verdict.nodes.live != 0)
