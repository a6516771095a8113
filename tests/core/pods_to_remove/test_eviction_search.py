"""The fewest evictions that repair a skew: on clusters in the row, and against trying every sequence of evictions."""

import random
from collections import Counter

import pytest
from brute_force import World, constraints, counted, counts_pod, labels_of

from conformance.placing.ours import index_of, problem_of
from conformance.placing.worlds import DB, HOSTNAME, WEB, ZONE, constraint, node, pod
from webhook.core.api.selectors import selector_from_labels
from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.placement.placement_verdict import Effort
from webhook.core.pods_to_remove.eviction_search import NoPlan, plan_evictions
from webhook.core.policy.policy import Policy

OWN = {**WEB, "own": "yes"}


def random_world(number):
    """A small cluster in which 2 to 6 pods of a workload run anywhere, beside others."""
    rng = random.Random(f"rebalance/{number}")  # noqa: S311 no secret
    nodes = [
        node(
            f"{zone}{count}",
            zone,
            cpu=rng.choice(["16", "16", "16", "2", "1"]),
            taints=[{"key": "gpu", "effect": "NoSchedule"}] if rng.random() < 0.1 else (),
            cordoned=rng.random() < 0.1,
        )
        for zone in "abc"[: rng.randint(2, 3)]
        for count in range(rng.randint(1, 2))
    ]
    keys = rng.choice([(ZONE,), (ZONE,), (HOSTNAME,), (ZONE, HOSTNAME)])
    given = [constraint(key, rng.choice([1, 1, 1, 2]), WEB) for key in keys]
    for each in given:
        if rng.random() < 0.1:
            each["minDomains"] = rng.randint(2, 4)
        if rng.random() < 0.2:
            each["nodeTaintsPolicy"] = "Honor"
    template = pod("w", OWN, given, cpu=rng.choice(["100m", "100m", "900m"]))
    pods = [pod(f"web-{count}", OWN, given) for count in range(rng.randint(2, 6))]
    others = [pod(f"old-{count}", rng.choice([WEB, DB])) for count in range(rng.randint(0, 2))]
    lop = rng.choice(nodes)
    for each in (*pods, *others):
        each["spec"] |= {"nodeName": (lop if rng.random() < 0.4 else rng.choice(nodes))["metadata"]["name"]}
        each["spec"]["containers"] = template["spec"]["containers"]
    kept = {each["metadata"]["name"] for each in pods if rng.random() < 0.1}
    return {"nodes": nodes, "pods": [*pods, *others], "template": template, "replicas": 0, "kept": kept}


EFFORT = Effort()


def planned(world, effort=EFFORT):
    index = index_of(world)
    within = Context(policy=Policy(), version=RECORDED, index=index, now="", namespace="shop")
    allowed = {each["metadata"]["name"] for each in own_pods(world)} - world["kept"]
    return plan_evictions(problem_of(world["template"], index).pod, within, selector_from_labels(OWN), allowed, effort)


def own_pods(world):
    return [each for each in world["pods"] if each["metadata"]["labels"] == OWN]


class Referee:
    """Sets of states after evictions. A state is the sorted nodes of the workload's pods."""

    def __init__(self, world):
        own = own_pods(world)
        self.world = World({**world, "pods": [each for each in world["pods"] if each not in own]})
        self.start = frozenset([tuple(sorted((each["spec"]["nodeName"], 0) for each in own))])
        self.allowed = Counter(
            each["spec"]["nodeName"] for each in own if each["metadata"]["name"] not in world["kept"]
        )

    def after(self, states, on):
        """The states after an eviction on this node; None if some order leaves the replacement Pending."""
        reached = set()
        for state in states:
            left = list(state)
            left.remove((on, 0))
            places = [name for name in self.world.nodes if self.world.admits(name, 0, tuple(left))]
            if not places:
                return None
            reached.update(tuple(sorted([*left, (name, 0)])) for name in places)
        return frozenset(reached)

    def is_even(self, state):
        there = [*self.world.staying, *((place, self.world.kinds[0]) for place, _ in state)]
        template, nodes = self.world.kinds[0], self.world.nodes
        for each in constraints(template):
            key = each["topologyKey"]
            inside = [of for of in nodes.values() if counted(of, template, each)]
            counts = Counter({labels_of(of)[key]: 0 for of in inside})
            for place, other in there:
                if nodes[place] in inside and counts_pod(each, template, other):
                    counts[labels_of(nodes[place])[key]] += 1
            lowest = min(counts.values(), default=0) if len(counts) >= each.get("minDomains", 1) else 0
            if max(counts.values(), default=0) - lowest > each["maxSkew"]:
                return False
        return True

    def fewest(self):
        """The fewest evictions of a plan that holds in every order; None if there is no plan."""
        layer = {(self.start, tuple(sorted(self.allowed.items())))}
        for evictions in range(sum(self.allowed.values()) + 1):
            if any(all(map(self.is_even, states)) for states, _ in layer):
                return evictions
            following = set()
            for states, left in layer:
                for on, pods in left:
                    after = self.after(states, on) if pods else None
                    if after is not None:
                        rest = tuple((name, many - (name == on)) for name, many in left)
                        following.add((after, rest))
            layer = following
        return None


def check(world):
    referee, plan = Referee(world), planned(world)
    fewest, states, named = referee.fewest(), referee.start, set()
    where = {each["metadata"]["name"]: each["spec"]["nodeName"] for each in own_pods(world)}
    if fewest is None:
        assert plan.reason is not None
        return None
    assert plan.reason is None
    for step in plan.evictions:
        assert where[step.pod] == step.node
        named.add(step.pod)
        states = referee.after(states, step.node)
        assert states is not None, "a replacement stays Pending"
    assert all(map(referee.is_even, states))
    assert not named & world["kept"]
    assert (len(plan.evictions), len(named), plan.proven) == (fewest, fewest, True)
    return fewest


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_no_plan_has_fewer_evictions_on_random_clusters(first):
    for number in range(first, first + 20):
        check(random_world(number))


@pytest.mark.slow
def test_no_plan_has_fewer_evictions_on_1000_random_clusters():
    numbers = Counter(check(random_world(number)) for number in range(1000))
    assert numbers[None] > 50
    assert sum(numbers[evictions] for evictions in (2, 3, 4)) > 50


def rows(text, *keys, others="", kept="", skew=1, **more):
    """``a: a0=3 a1 | b: b0=1``: zones with their nodes and the workload's pods; ``others`` are nodes of other pods."""
    given = [constraint(key, skew, WEB, **more) for key in keys]
    nodes, pods = [], []
    for part in text.split("|"):
        zone, _, written = part.partition(":")
        for entry in written.split():
            name, _, many = entry.lstrip("~").partition("=")
            taints = [{"key": "gpu", "effect": "NoSchedule"}] if entry[0] == "~" else ()
            nodes.append(node(name, zone.strip(), taints=taints))
            for number in range(int(many or 0)):
                pods.append(pod(f"{name}-{number}", OWN, given))
                pods[-1]["spec"]["nodeName"] = name
    for number, name in enumerate(others.split()):
        pods.append(pod(f"old-{number}", WEB))
        pods[-1]["spec"]["nodeName"] = name
    template = pod("w", OWN, given)
    return {"nodes": nodes, "pods": pods, "template": template, "replicas": 0, "kept": {*kept.split()}}


def steps(plan):
    return [(step.pod, step.leaves, step.enters) for step in plan.evictions]


@pytest.mark.parametrize(
    ("world", "expected"),
    [
        pytest.param(
            rows("a: a0=3 | b: b0=1 | c: c0", ZONE),
            [("a0-0", {ZONE: "a"}, {ZONE: ("c",)})],
            id="the only zone below",
        ),
        pytest.param(
            rows("a: a0=1 a1=3 | b: b0=1 | c: c0=1", ZONE),
            [("a1-0", {ZONE: "a"}, {ZONE: ("b", "c")}), ("a1-1", {ZONE: "a"}, {ZONE: ("b", "c")})],
            id="of two zones the scheduler takes either, from the fuller node first",
        ),
        pytest.param(
            rows("a: a0=1 a1=3 | b: b0=1 | c: c0=1", ZONE, kept="a1-0 a1-1"),
            [("a0-0", {ZONE: "a"}, {ZONE: ("b", "c")}), ("a1-2", {ZONE: "a"}, {ZONE: ("b", "c")})],
            id="pods that may not be evicted stay",
        ),
        pytest.param(
            rows("a: a0=2 a1 | b: b0=1 b1", HOSTNAME),
            [("a0-0", {HOSTNAME: "a0"}, {HOSTNAME: ("a1", "b1")})],
            id="another node",
        ),
        pytest.param(
            rows("a: a0=2 a1=1 | b: b0=1 | c: c0", ZONE, HOSTNAME),
            [("a0-0", {ZONE: "a", HOSTNAME: "a0"}, {ZONE: ("c",), HOSTNAME: ("c0",)})],
            id="one eviction for two constraints",
        ),
        pytest.param(rows("a: a0=2 | b: b0=1", ZONE), [], id="nothing to repair"),
        pytest.param(rows("a: a0=2 | b: b0", ZONE, skew=9), [], id="a constraint that no placement can break"),
    ],
)
def test_the_evictions(world, expected):
    plan = planned(world)
    assert (steps(plan), plan.proven, plan.reason) == (expected, True, None)
    check(world)


@pytest.mark.parametrize(
    ("world", "reason"),
    [
        pytest.param(rows("a: a0=3 | b: ~b0", ZONE), NoPlan.PENDING, id="the empty zone is tainted"),
        pytest.param(rows("a: a0=1 | b: b0", ZONE, others="a0 a0 a0"), NoPlan.NO_SEQUENCE, id="too few own pods"),
        pytest.param(
            rows("a: a0=5 | b: b0", ZONE, kept="a0-0 a0-1 a0-2 a0-3"), NoPlan.NO_SEQUENCE, id="one that may be evicted"
        ),
        pytest.param(rows("a: a0=3 | b: b0=1", ZONE, minDomains=3), NoPlan.PENDING, id="fewer zones than minDomains"),
    ],
)
def test_why_there_is_no_plan(world, reason):
    plan = planned(world)
    assert (plan.reason, plan.proven, plan.evictions) == (reason, True, ())
    assert check(world) is None


def test_pods_that_the_selector_does_not_match_change_no_count():
    world = rows("a: a0=1 | b: b0=1", ZONE, others="a0 a0")
    for each in (world["template"], *own_pods(world)):
        each["spec"]["topologySpreadConstraints"][0]["labelSelector"] = {"matchLabels": DB}
    assert planned(world).reason is None
    for each in world["pods"][2:]:
        each["metadata"]["labels"] = DB
    assert planned(world).reason is NoPlan.OTHER_PODS


EQUAL = " ".join(f"n{number}=1" for number in range(20))


def test_nodes_that_keep_their_pods_are_grouped():
    plan = planned(rows(f"a: m0=4 m1=4 {EQUAL}", HOSTNAME))
    assert ([step.node for step in plan.evictions], plan.proven) == (["m0", "m0", "m1", "m1"], True)


SLOPE = rows("a: a0=8 | b: b0=1 | c: c0=1 | d: d0", ZONE, skew=2)
POOLS = rows("a: a0=8 a1 | b: b0=1 b1 | c: c0=1 c1 | d: d0 d1", ZONE, skew=2)


@pytest.mark.parametrize(
    ("world", "states", "evictions", "reason", "proven"),
    [
        pytest.param(SLOPE, 5, 0, NoPlan.UNDECIDED, False, id="nothing is found"),
        pytest.param(POOLS, 5, 0, NoPlan.UNDECIDED, False, id="nothing is found in pools of nodes"),
        pytest.param(SLOPE, 30, 5, None, False, id="a plan is found"),
        pytest.param(SLOPE, 2_000, 5, None, True, id="the plan is proven"),
    ],
)
def test_the_limit_of_work(world, states, evictions, reason, proven):
    plan = planned(world, Effort(states=states))
    assert (len(plan.evictions), plan.reason, plan.proven) == (evictions, reason, proven)


def test_a_plan_of_grouped_nodes_is_kept_if_the_search_of_each_node_is_too_long():
    plan = planned(rows("a: m0=4 n0=1 n1=1 n2=1 n3=1 n4=1 n5=1 z0", HOSTNAME, skew=2), Effort(states=50))
    assert ([step.node for step in plan.evictions], plan.proven) == (["m0", "m0"], False)
