"""Explanations of the recorded scenarios: what they say must hold when the filters are asked once more.

Half of these scenarios are odd: nameless objects, selectors that cannot be read, quantities that overflow.
"""

import gzip
from itertools import islice
from pathlib import Path

import pytest
from msgspec.structs import replace

from webhook.cli.deciding import members
from webhook.cli.scenarios import read_scenario
from webhook.core.args import ArgsError
from webhook.core.decoding import DecodeError
from webhook.core.explain import Cause, cause
from webhook.core.model import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY
from webhook.core.verdict import decide, take

VECTORS = Path(__file__).parents[2] / "conformance" / "vectors"


def scenarios(name):
    with gzip.open(VECTORS / name) as lines:
        for line in islice(lines, 0, None, 3):
            try:
                yield read_scenario(members(members(line)["scenario"]))
            except (DecodeError, ArgsError):
                continue


def soft(pod):
    constraints = tuple(
        replace(each, when_unsatisfiable=SCHEDULE_ANYWAY) if each.when_unsatisfiable == DO_NOT_SCHEDULE else each
        for each in pod.pod_spec.constraints
    )
    return replace(pod, spec=replace(pod.pod_spec, topology_spread_constraints=constraints or None))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.name for path in VECTORS.glob("verdict-*.jsonl.gz")))
def test_a_pod_is_kept_away_by_spread_only_if_it_fits_without(name):
    found = set()
    for scenario in scenarios(name):
        problem = take(scenario.index, scenario.pod, scenario.defaults)
        verdict = decide(problem)
        said = cause(problem, verdict)
        found.add(said)
        assert (said is None) == bool(verdict.feasible)
        if said is not None and scenario.pod.pod_spec.constraints:
            fits = bool(decide(take(scenario.index, soft(scenario.pod), scenario.defaults)).feasible)
            assert fits == (said == Cause.SPREAD)
    assert {None, Cause.SPREAD} <= found
