"""Verdicts on whole workloads: known answers, each worked out by hand or published elsewhere."""

import pytest
from build import cluster, constraint, pod
from msgspec.structs import replace

from webhook.core.api.types import (
    Affinity,
    LabelSelector,
    PodAffinity,
    PodAffinityTerm,
)
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.placement.crowds import Party, game_of
from webhook.core.placement.simulation import Outcome, simulate
from webhook.core.scheduler.problem import take

ZONES_OF_TWO = "a: a0=0 a1=0 | b: b0=0 b1=0 | c: c0=0 c1=0"


def spread(key, max_skew=1, select="app=web"):
    return constraint(key, max_skew=max_skew, select=select)


def simulated(text, replicas, *constraints):
    """A workload of equal pods in the cluster."""
    index = cluster(text)
    party = Party(problem=take(index, pod(constraints=constraints)), pods=replicas)
    return simulate(game_of([party], index))


@pytest.mark.parametrize(
    ("zones", "ceiling"),
    [
        pytest.param("a: a0=0 | b: b0=0 b1=0 b2=0 b3=0", 3, id="1 and 4 nodes"),
        pytest.param("a: a0=0 | b: b0=0 b1=0", 5, id="1 and 2 nodes"),
        pytest.param("a: a0=0 a1=0 | b: b0=0 b1=0 b2=0", 9, id="2 and 3 nodes"),
    ],
)
def test_zone_and_host_ceilings(zones, ceiling):
    found = simulated(zones, 20, spread(ZONE), spread(HOSTNAME))
    assert (found.outcome, found.fewest, found.most) == (Outcome.NO_FIT, ceiling, ceiling)
    assert simulated(zones, ceiling, spread(ZONE), spread(HOSTNAME)).outcome is Outcome.FITS


def test_equal_zones_have_no_ceiling():
    assert simulated(ZONES_OF_TWO, 60, spread(ZONE), spread(HOSTNAME)).outcome is Outcome.FITS


def redis(host_skew, *, in_turn=True):
    """Three shards of two pods, a shard's pods in different zones; the spread constraints count all shards."""
    index = cluster(ZONES_OF_TWO)
    parties = []
    for shard in "abc":
        term = PodAffinityTerm(label_selector=LabelSelector(match_labels={"shard": shard}), topology_key=ZONE)
        one = pod(
            f"app=redis shard={shard}",
            constraints=(spread(HOSTNAME, host_skew, "app=redis"), spread(ZONE, 2, "app=redis")),
            affinity=Affinity(pod_anti_affinity=PodAffinity(required=(term,))),
        )
        parties.append(Party(problem=take(index, one), pods=2, in_turn=in_turn))
    return game_of(parties, index)


def test_redis_can_get_stuck():
    found = simulate(redis(1))
    assert (found.outcome, found.wanted, found.fewest, found.most) == (Outcome.STUCK, 6, 5, 6)
    assert found.stuck == pytest.approx(133 / 810)
    assert [(step.party, step.node) for step in found.witness] == [
        (0, "a0"), (0, "b0"), (1, "a1"), (1, "b1"), (2, "c0")
    ]  # fmt: skip


def test_redis_fits_with_room_on_hosts():
    found = simulate(redis(2))
    assert (found.outcome, found.fewest, found.witness) == (Outcome.FITS, 6, ())


def test_an_ordinal_without_a_place_holds_the_others():
    index = cluster("a: a0=0 | b: b0=0")
    problem = take(index, pod())
    shut_out = Party(problem=problem, pods=1, nodes=0)
    waiting = Party(problem=problem, pods=3, behind=0)
    found = simulate(game_of([shut_out, waiting], index))
    assert (found.outcome, found.most) == (Outcome.NO_FIT, 0)
    alone = simulate(game_of([shut_out, replace(waiting, behind=None)], index))
    assert (alone.outcome, alone.most) == (Outcome.NO_FIT, 3)
