"""Explanations of the recorded scenarios: what they say must hold when the filters are asked once more.

Many of these scenarios are odd: nameless objects, selectors that cannot be read, quantities that overflow.
"""

import gzip
from functools import cache
from itertools import islice
from pathlib import Path

import pytest
from msgspec.structs import fields, replace

from webhook.cli.deciding import members
from webhook.cli.scenarios import read_scenario
from webhook.core.args import ArgsError
from webhook.core.decoding import DecodeError
from webhook.core.explain import Cause, explain, standstill
from webhook.core.model import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY, SpreadConstraint
from webhook.core.verdict import decide, take

VECTORS = Path(__file__).parents[2] / "conformance" / "vectors"
FILES = sorted(path.name for path in VECTORS.glob("verdict-*.jsonl.gz"))
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
            found.append((scenario, explain(take(scenario.index, scenario.pod, scenario.defaults))))
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
        assert {None, Cause.SPREAD} <= causes

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
        assert "whenUnsatisfiable" in offered or name == "verdict-defaults.jsonl.gz"  # whose pods declare nothing

    def test_what_spread_keeps_away_can_be_helped_and_is_put_in_words(self, name):
        for _, found in explained(name):
            if found.cause is Cause.SPREAD and any(each.hard and each.index is not None for each in found.balances):
                assert found.fixes
                assert standstill(found.blocking, found.verdict)
