"""What a scale-in can leave: tables of clusters, and all subsets of the removed pods on small random cases."""

import random
from collections import Counter
from functools import partial
from itertools import combinations

import pytest
from build import NAMESPACE, cluster, constraint, pod, running
from msgspec.structs import replace

from webhook.core.api.selectors import EVERYTHING
from webhook.core.api.version import RECORDED
from webhook.core.context import Context, problem_of
from webhook.core.explain.explanation import balances_of
from webhook.core.pods_to_remove.cut_counts import CutCounts
from webhook.core.pods_to_remove.removal_order import removal_groups, removal_groups_in_steps
from webhook.core.pods_to_remove.running_pod import RunningPod
from webhook.core.pods_to_remove.scale_in import WorstStop, removal_of, scale_in_of, worst_stop
from webhook.core.policy.policy import Policy
from webhook.core.scheduler.cycle import Cycle

WEB = "app=web"
ZONES = constraint(select=WEB)


def pods_of(index, unready=(), labels=None):
    """The index's pods, as the controller sees them."""
    names = index.nodes.view().names
    for name, slot in index.pods.matching(NAMESPACE, EVERYTHING):
        ready = names[slot] not in unready
        yield RunningPod(
            name=name,
            node=names[slot],
            phase="Running",
            ready=ready,
            ready_since=1 if ready else None,
            labels=labels or {"app": "web"},
        )


def after(state, replicas, written=ZONES, *, unready=(), others=(), labels=None):
    """Today's, best, likely and worst distribution as ``3/3/3:0`` (counts and skew), then the repairing pods."""
    index = cluster(state)
    pods = [*pods_of(index, unready, labels)]
    for name, on in others:
        index.apply("ADDED", running(name, on))
    within = Context(policy=Policy(), version=RECORDED, index=index)
    problem = problem_of(pod(WEB, constraints=(written,)), within)
    (balance,) = balances_of(Cycle(problem))
    groups = removal_groups(pods, Counter(each.node for each in pods), now=10)
    found = scale_in_of(balance.domains, removal_of(groups, len(pods) - replicas), index.nodes.view().slots)
    texts = [
        f"{'/'.join(map(str, each.counts.values()))}:{each.skew}"
        for each in (found.today, found.best, found.likely, found.worst)
    ]
    return f"{' '.join(texts)} {found.repair}"


EVEN = "a: a0=3 | b: b0=3 | c: c0=3"


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        pytest.param(partial(after, EVEN, 3), "3/3/3:0 1/1/1:0 1/1/1:0 3/0/0:3 4", id="equal pods"),
        pytest.param(partial(after, EVEN, 8), "3/3/3:0 3/3/2:1 3/3/2:1 3/2/3:1 0", id="one pod less"),
        pytest.param(partial(after, EVEN, 9), "3/3/3:0 3/3/3:0 3/3/3:0 3/3/3:0 0", id="no pod less"),
        pytest.param(partial(after, EVEN, 0), "3/3/3:0 0/0/0:0 0/0/0:0 0/0/0:0 0", id="all pods"),
        pytest.param(
            partial(after, "a: a0=3 | b: b0=1 b1=1 b2=1", 3), "3/3:0 0/3:3 0/3:3 0/3:3 2", id="shared nodes go first"
        ),
        pytest.param(
            partial(after, EVEN, 6, unready=["c0"]), "3/3/3:0 3/3/0:3 3/3/0:3 3/3/0:3 2", id="unready pods go first"
        ),
        pytest.param(
            partial(after, EVEN, 5, unready=["c0"]), "3/3/3:0 3/2/0:3 3/2/0:3 3/2/0:3 2", id="then a ready pod"
        ),
        pytest.param(
            partial(after, EVEN, 3, constraint(select=WEB, min_domains=4)),
            "3/3/3:3 1/1/1:1 1/1/1:1 3/0/0:3 None",
            id="three domains, and minDomains 4",
        ),
        pytest.param(
            partial(after, "a: a0=5", 3, constraint(select=WEB, min_domains=2)),
            "5:5 3:3 3:3 3:3 None",
            id="one domain, and minDomains 2",
        ),
        pytest.param(partial(after, "a: a0=5", 3), "5:0 3:0 3:0 3:0 0", id="one domain"),
        pytest.param(partial(after, "x0=3", 1), ":None :None :None :None 0", id="no domain"),
        pytest.param(
            partial(after, EVEN, 3, others=[("x", "a0"), ("y", "b0")]),
            "4/4/3:1 2/2/1:1 2/2/1:1 4/1/0:4 5",
            id="other workloads' pods stay",
        ),
        pytest.param(
            partial(after, "a: a0=3 | b: b0=3 | x0=3", 3), "3/3:0 1/1:0 1/1:0 3/0:3 2", id="pods outside all domains"
        ),
        pytest.param(
            partial(after, "a: a0=2 | b: b0=2", 2, constraint(select="x!=y"), labels={"x": "y"}),
            "2/2:0 2/2:0 2/2:0 2/2:0 0",
            id="pods that the constraint does not count",
        ),
        pytest.param(
            partial(after, "a: a0=2 | b: b0=0", 1, constraint(select="app=db")),
            "0/0:0 0/0:0 0/0:0 0/0:0 0",
            id="a constraint that counts no pod",
        ),
    ],
)
def test_distributions(case, expected):
    assert case() == expected


def test_new_pods_that_do_not_match_repair_nothing():
    counts = CutCounts(staying=[3, 0], cut=[0, 0], kept=0)
    assert counts.repair([3, 0], 1, matches=False) is None
    assert counts.repair([3, 0], 1, matches=True) == 2


def all_removals(counts):
    """How many sets of kept pods give each distribution."""
    pods = [domain for domain, number in enumerate([*counts.cut, counts.uncounted]) for _ in range(number)]
    found = Counter()
    for kept in combinations(pods, counts.kept):
        left = [*counts.staying, 0]
        for domain in kept:
            left[domain] += 1
        found[tuple(left[:-1])] += 1
    return found


def examined(seed):
    chance = random.Random(seed)  # noqa: S311 repeatable
    domains = chance.randint(0, 4)
    cut = [chance.randint(0, 3) for _ in range(domains)]
    uncounted = chance.choice([0, 0, 1, 2])
    counts = CutCounts(
        staying=[chance.choice([0, 0, 1, 2, 4]) for _ in range(domains)],
        cut=cut,
        uncounted=uncounted,
        kept=chance.randint(0, sum(cut) + uncounted),
        too_few=chance.random() < 0.2,
    )
    every = all_removals(counts)
    skews = [counts.skew(left) for left in every]
    best, worst, likely = counts.best(), counts.worst(), counts.likely()
    assert {tuple(best), tuple(worst), tuple(likely)} <= every.keys(), counts
    assert (counts.skew(best), counts.skew(worst)) == (min(skews), max(skews)), counts
    assert every[tuple(likely)] == max(every.values()), counts
    pods = counts.repair(worst, 1, matches=True)
    assert pods == added_until_within(counts, worst, 1), counts


def added_until_within(counts, left, max_skew):
    left = [*left]
    for added in range(100):
        if counts.skew(left) <= max_skew:
            return added
        left[left.index(min(left))] += 1
    return None


def test_all_removals_of_some_small_cases():
    for seed in range(300):
        examined(seed)


@pytest.mark.slow
def test_all_removals_of_many_small_cases():
    for seed in range(1_000, 6_000):
        examined(seed)


def rests(pods, fewest):
    """The names that a series of scale-ins can leave. After each, fewer pods share the nodes."""
    seen, pending = set(), [frozenset(pods)]
    while pending:
        before = pending.pop()
        active = [pods[name] for name in before]
        groups = removal_groups(active, Counter(each.node for each in active), now=10)
        for number in range(1, len(before) - fewest + 1):
            removal = removal_of(groups, number)
            surely = before - {each.name for each in (*removal.removed, *removal.cut)}
            found = {surely | {each.name for each in kept} for kept in combinations(removal.cut, removal.kept)}
            pending += found - seen
            seen |= found
    return seen


def stops(state, fewest, *, costs=(), unready=(), min_domains=None):
    """The worst stop, and the one of all series of scale-ins."""
    index = cluster(state)
    pods = {each.name: replace(each, deletion_cost=dict(costs).get(each.node, 0)) for each in pods_of(index, unready)}
    within = Context(policy=Policy(), version=RECORDED, index=index)
    problem = problem_of(pod(WEB, constraints=(constraint(select=WEB, min_domains=min_domains),)), within)
    (balance,) = balances_of(Cycle(problem))
    domains, slots = balance.domains, index.nodes.view().slots
    zones = domains.column.domains(domains.counting)

    def stop(rest):
        counts = Counter(domains.column.domain_of[slots[pods[name].node]] for name in rest)
        least = 0 if len(zones) < (min_domains or 1) else min(counts[number] for number in zones)
        return WorstStop(max(counts.values(), default=0) - least, len(rest))

    found = worst_stop(domains, removal_groups_in_steps(pods.values()), len(pods), fewest, slots)
    return found, max(map(stop, rests(pods, fewest)), default=None) if zones else None


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        pytest.param(partial(stops, "a: a0=2 | b: b0=2", 2), WorstStop(2, 2), id="to the worst number"),
        pytest.param(partial(stops, "a: a0=2 | b: b0=2", 0), WorstStop(2, 2), id="through the worst number"),
        pytest.param(partial(stops, "a: a0=2 | b: b0=2", 3), WorstStop(1, 3), id="a pod less"),
        pytest.param(partial(stops, "a: a0=2 | b: b0=2", 4), None, id="no pod less"),
        pytest.param(partial(stops, "a0=2", 0), None, id="no domain"),
        pytest.param(
            partial(stops, "a: a0=2 | b: b0=2", 0, costs=[("a0", -1)]), WorstStop(2, 2), id="costs choose a zone"
        ),
        pytest.param(
            partial(stops, "a: a0=1 a1=1 | b: b0=1 b1=1", 0, costs=[("a0", -2), ("b0", -1)]),
            WorstStop(1, 3),
            id="costs keep zones even",
        ),
        pytest.param(
            partial(stops, "a: a0=2 | b: b0=1", 1, unready=["b0"]), WorstStop(2, 2), id="an unready pod goes first"
        ),
        pytest.param(partial(stops, "a: a0=2 | b: b0=2", 1, min_domains=3), WorstStop(2, 3), id="minDomains"),
    ],
)
def test_the_worst_stop(case, expected):
    assert case() == (expected, expected)


def compare_stops(seed):
    """No series exceeds the worst stop. If no pods share a node, some series reaches it."""
    chance = random.Random(seed)  # noqa: S311 repeatable
    alone = chance.random() < 0.5
    nodes = [f"{zone}{number}" for zone in "abc" for number in range(chance.randint(1, 2))]
    pods = {name: 1 if alone else chance.randint(0, 2) for name in nodes}
    while sum(pods.values()) > 6:
        pods.popitem()
    zones = {zone: " ".join(f"{name}={pods.get(name, 0)}" for name in nodes if name[0] == zone) for zone in "abc"}
    state = " | ".join(f"{zone}: {names}" for zone, names in zones.items())
    costs = [(name, chance.choice([0, 0, 1])) for name in nodes]
    unready = [name for name in nodes if chance.random() < 0.2]
    found, every = stops(
        state,
        chance.randint(0, sum(pods.values())),
        costs=costs,
        unready=unready,
        min_domains=chance.choice([None, None, 4]),
    )
    assert (found is None) == (every is None), state
    if found is not None:
        assert found.skew >= every.skew, state
        assert found == every or not alone, state


def test_series_of_some_small_scale_ins():
    for seed in range(60):
        compare_stops(seed)


@pytest.mark.slow
def test_series_of_many_small_scale_ins():
    for seed in range(1_000, 3_000):
        compare_stops(seed)
