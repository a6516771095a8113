"""What rules about places say of small random clusters, against every order of placing the pods.

A number is a bound that no order passes, what is blamed is to blame, and a fix that programs apply lets all pods in,
beside those that run and anew, makes its finding go and brings no other of the family.
"""

import os
import re
from collections import Counter
from random import Random

import pytest
from manifest import FIXED
from properties.places import NOW, TooManyStatesError, World

from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.json_edits import applied
from webhook.core.review.examination import examine

FAMILY = {"tainted-nodes-counted", "zone-host-ceiling", "spread-conflicts-affinity", "zone-loss-strands-pods"}
LOSS = "zone-loss-strands-pods"
# Worlds of one test, and the first seed: both may be set for a longer run.
COUNT, SEED = int(os.environ.get("COUNT", "120")), int(os.environ.get("SEED", "0"))
PARTS = 4


def found(world, manifest):
    answer = examine(manifest, Context(policy=FIXED, index=world.index(), version=RECORDED, now=NOW))
    assert [each for each in answer.not_evaluated if each.fault] == []
    return [each for each in answer.findings if each.finding.rule in FAMILY]


def most(ends):
    return max(map(len, ends))


def fewest(ends):
    return min(map(len, ends))


def is_bounded(world, judged, random):
    """No order places more, wherever nodes that are away may be back; and without constraints one does."""
    said = int(re.search(r"at most (\d+)", judged.finding.summary)[1])
    asked = max(world.replicas, said + 1)
    for back in ((), world.away, [name for name in world.away if random.random() < 0.5]):
        assert most(world.ends(replicas=asked, ordered=False, back=back)) <= max(said, len(world.ours)), back
    assert most(world.ends(replicas=said + 1, ordered=False, spec=world.bare())) > said


def is_stranded(world, finding):
    """All fit today, and once the zone is lost so many stay Pending in every order; constraints are to blame."""
    zone, said = re.search(r"if zone (\w+) goes NotReady, at least (\d+) of", finding.summary).groups()
    lost, starts = world.in_zone(zone), world.ends()
    left = [[(ordinal, name) for ordinal, name in end if name not in lost] for end in starts]
    assert fewest(starts) == world.replicas
    assert all(most(world.ends(start=each, lost=lost)) <= world.replicas - int(said) for each in left)
    assert any(most(world.ends(start=each, lost=lost, spec=world.bare())) > world.replicas - int(said) for each in left)
    return left, lost


def is_mended(world, finding):
    """The pod spec after the fix."""
    fixed = applied(world.manifest(), finding.edits)
    spec = fixed["spec"]["template"]["spec"]
    before, after = (
        {(each.finding.rule, each.finding.key) for each in found(world, manifest)}
        for manifest in (world.manifest(), fixed)
    )
    assert (finding.rule, finding.key) not in after
    assert {rule for rule, _ in after} <= {rule for rule, _ in before}
    assert finding.rule != LOSS or LOSS not in {rule for rule, _ in after}
    for start in (None, ()):
        assert fewest(world.ends(spec=spec, start=start)) >= world.replicas
    return spec


def holds(world, random):
    """Every claim; what was said, to be counted."""
    for judged in found(world, world.manifest()):
        finding = judged.finding
        yield finding.rule
        left, lost = (), ()
        if finding.rule == LOSS:
            left, lost = is_stranded(world, finding)
        else:
            is_bounded(world, judged, random)
        if finding.edits:
            yield "fix"
            spec = is_mended(world, finding)
            assert all(fewest(world.ends(spec=spec, start=each, lost=lost)) == world.replicas for each in left)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_what_is_said_of_random_worlds(part):
    said = Counter()
    for seed in range(SEED + part * COUNT, SEED + (part + 1) * COUNT):
        random = Random(seed)  # noqa: S311 worlds, not keys
        world = World(random)
        try:
            said.update(holds(world, random))
        except TooManyStatesError:
            said["too many states"] += 1
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {world}") from error
    assert said["fix"] > 1, said
    assert said.total() > COUNT / 8, said
