"""Rolling updates: the worst that every order and every choice of old pods to delete can come to."""

import pytest
from build import cluster, constraint, pod

from webhook.core.api.well_known import ZONE
from webhook.core.placement.game_from_cluster import PodBatch, game_of
from webhook.core.placement.placement_verdict import PlacementVerdict
from webhook.core.placement.rolling_update import RolloutRules
from webhook.core.placement.search import search, worst_skew
from webhook.core.placement.simulation import simulate
from webhook.core.scheduler.problem import take

TWO_ZONES, THREE_ZONES = "a: a0=0 a1=0 | b: b0=0 b1=0", "a: a0=0 | b: b0=0 | c: c0=0"


def revision(index, name, *, by_revision=False, **more):
    select = f"app=web hash={name}" if by_revision else "app=web"
    return take(index, pod(f"app=web hash={name}", constraints=(constraint(ZONE, select=select, **more),)))


def rollout(text, replicas, surge, unavailable, *, on=None, **more):
    """From one revision, evenly on the first node of each zone or as said, to another."""
    index = cluster(text)
    zones = text.count(":")
    on = on or {f"{zone}0": replicas // zones for zone in "abc"[:zones]}
    slots = index.nodes.view().slots
    leaving = {slots[name]: many for name, many in on.items()}
    old = PodBatch(problem=revision(index, "old", **more), pods=0, leaving=leaving)
    new = PodBatch(problem=revision(index, "new", **more), pods=replicas)
    rules = RolloutRules(old=0, new=1, replicas=replicas, surge=surge, unavailable=unavailable)
    return game_of([old, new], index, rollout=rules)


@pytest.mark.parametrize(
    ("zones", "replicas", "surge", "unavailable", "worst"),
    [
        pytest.param(TWO_ZONES, 12, 3, 3, 4, id="a quarter more, a quarter less"),
        pytest.param(TWO_ZONES, 12, 1, 0, 2, id="one more"),
        pytest.param(TWO_ZONES, 12, 12, 0, 6, id="all at once"),
        pytest.param(TWO_ZONES, 12, 0, 1, 0, id="one less"),
        pytest.param(THREE_ZONES, 9, 3, 2, 3, id="three zones: a quarter more, a quarter less"),
        pytest.param(THREE_ZONES, 9, 1, 0, 2, id="three zones: one more"),
        pytest.param(THREE_ZONES, 9, 9, 0, 4, id="three zones: all at once"),
        pytest.param(THREE_ZONES, 9, 0, 1, 0, id="three zones: one less"),
    ],
)
def test_worst_final_skew(zones, replicas, surge, unavailable, worst):
    game = rollout(zones, replicas, surge, unavailable).game
    found = search(game, 1_000)
    assert (found.exact, found.stuck) == (True, 0)
    assert worst_skew(game, 1, found.ends) == worst


def test_revisions_that_count_alone_stay_even():
    game = rollout(TWO_ZONES, 12, 12, 0, by_revision=True).game
    assert worst_skew(game, 1, search(game, 1_000).ends) == 0


@pytest.mark.parametrize(
    ("text", "on", "outcome", "steps"),
    [
        pytest.param("a: a0=0 | b: b0=0", {"a0": 1, "b0": 1}, PlacementVerdict.FITS, [], id="even zones"),
        # The tainted zone holds the minimum at 0, and the old pods fill the other one.
        pytest.param(
            "a: a0=0 | b: ~b0=0", {"a0": 2}, PlacementVerdict.NO_FIT, [], id="a tainted zone, no old pod may go"
        ),
    ],
)
def test_a_domain_without_room_wedges_a_rollout(text, on, outcome, steps):
    found = simulate(rollout(text, 2, 1, 0, on=on))
    assert found.verdict is outcome
    assert (found.skew is None) is (outcome is PlacementVerdict.NO_FIT)  # of no order that finishes nothing can be said
    assert [(step.batch, step.node, step.gone) for step in found.witness] == steps


def test_an_eligible_host_without_room_counts_for_the_skew():
    """The tainted host never gets a new pod; nor need the second, if both find a place on the first."""
    game = rollout("a: a0=0 | b: b0=0 | c: ~c0=1", 2, 2, 0, on={"a0": 1, "b0": 1}).game
    found = search(game, 1_000)
    assert (found.stuck, worst_skew(game, 1, found.ends)) == (0, 2)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: a0=0 | b: b0=0 | c: ~c0=0", id="a host"),
        pytest.param("a: a0=0 a1=0 | b: b0=0 b1=0 | c: ~c0=0 ~c1=0", id="a zone"),
    ],
)
def test_a_domain_that_does_not_count_does_not_for_the_skew(text):
    """An old pod is where taints keep new ones off; with nodeTaintsPolicy Honor it holds nobody up."""
    game = rollout(text, 4, 1, 0, on={"a0": 2, "c0": 2}, node_taints_policy="Honor").game
    found = search(game, 1_000)
    assert (found.stuck, worst_skew(game, 1, found.ends)) == (0, 2)
    unlucky = rollout(text, 4, 1, 0, on={"a0": 2, "c0": 2}).game
    assert search(unlucky, 1_000).stuck > 0


def test_old_pods_go_first_where_they_may():
    found = simulate(rollout("a: a0=0 a1=0 | b: ~b0=0", 2, 0, 1, on={"a0": 1, "a1": 1}))
    assert (found.verdict, found.wanted, found.most) == (PlacementVerdict.NO_FIT, 2, 0)
    assert [(step.batch, step.node, step.gone) for step in found.witness] == [(0, "a0", True)]
