"""What is said of how many pods constraints admit, against every order of placing them with the real filters."""

from collections import Counter
from functools import cache

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from manifest import DENY
from msgspec import convert, json, to_builtins
from msgspec.structs import replace

from webhook.core.api.selectors import compile_selector
from webhook.core.api.types import (
    DO_NOT_SCHEDULE,
    Affinity,
    Container,
    LabelSelector,
    Node,
    NodeSpec,
    NodeStatus,
    ObjectMeta,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    SpreadConstraint,
    Taint,
)
from webhook.core.api.version import RECORDED
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.apiserver.admission_plugins import as_created
from webhook.core.context import Context
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.json_edits import applied
from webhook.core.placement.proofs.bounds import addable_pinned
from webhook.core.placement.proofs.constraint_capacity import addable_together, constraint_capacities
from webhook.core.placement.proofs.pinned_claims import PodsToPlace
from webhook.core.placement.proofs.workload_problem import candidate_nodes, take_workload_problem
from webhook.core.policy.policy import Mode
from webhook.core.review.examination import examine
from webhook.core.rules.placement import affinity_conflicts
from webhook.core.scheduler.cycle import decide
from webhook.core.scheduler.problem import take

OURS = {"app": "web", "team": "shop"}
THEIRS = {"app": "web", "team": "other"}
WEB = LabelSelector(match_labels={"app": "web"})
OWN = LabelSelector(match_labels=OURS)
MOST = 6
LOST = Taint(key="node.kubernetes.io/unreachable", effect="NoSchedule")

ONE_KEY = ((ZONE,), (HOSTNAME,))
TWO_KEYS = ((ZONE, HOSTNAME), (HOSTNAME, ZONE))
ANY_KEYS = ONE_KEY + TWO_KEYS

policies = st.sampled_from([None, "Honor", "Ignore"])


def constraints(key):
    return st.builds(
        SpreadConstraint,
        max_skew=st.sampled_from([1, 1, 2]),
        topology_key=st.just(key),
        when_unsatisfiable=st.just(DO_NOT_SCHEDULE),
        label_selector=st.just(WEB),
        min_domains=st.sampled_from([None, None, None, 2, 3]),
        node_affinity_policy=policies,
        node_taints_policy=policies,
    )


@st.composite
def nodes(draw, name, cpu):
    """Of zone a, b or c, or of none; most of them plain."""
    zone = draw(st.sampled_from(["a", "a", "b", "b", "c", "c", None]))
    disk = draw(st.sampled_from([{}, {}, {"disk": "ssd"}]))
    taints = draw(st.sampled_from([None, None, None, (Taint(key="dedicated", value="gpu", effect="NoSchedule"),)]))
    return Node(
        metadata=ObjectMeta(name=name, labels={HOSTNAME: name, **disk, **({ZONE: zone} if zone else {})}),
        spec=NodeSpec(taints=taints, unschedulable=draw(st.sampled_from([None, None, None, None, None, True]))),
        status=NodeStatus(allocatable={"cpu": draw(st.sampled_from(cpu)), "memory": "64Gi", "pods": "110"}),
    )


def placed(name, on, labelled):
    container = Container(name="c", resources=ResourceRequirements(requests={"cpu": "1"}))
    return Pod(
        metadata=ObjectMeta(name=name, namespace="shop", uid=name, labels=labelled),
        spec=PodSpec(node_name=on, containers=(container,)),
        status=PodStatus(phase="Running"),
    )


FAMILY = {"tainted-nodes-counted", "zone-host-ceiling", "spread-conflicts-affinity", "zone-loss-strands-pods"}


class World:
    """A small cluster, and one workload with a template and a number of replicas."""

    def __init__(self, found, theirs, ours, spec):
        self.nodes = found
        self.theirs = theirs
        self.ours = ours
        self.spec = spec

    def __repr__(self):
        nodes = [(each.name, each.labels, each.taints, each.spec.unschedulable) for each in self.nodes]
        return f"{nodes=} theirs={self.theirs} ours={self.ours} {self.spec}"

    def index(self, more=(), *, ours=True, lost=()):
        made = ClusterIndex()
        for each in self.nodes:
            if each.name in lost:
                each = replace(each, spec=replace(each.spec, taints=(*(each.spec.taints or ()), LOST)))  # noqa: PLW2901
            made.apply("ADDED", each)
        for number, on in enumerate(self.theirs):
            if on not in lost:
                made.apply("ADDED", placed(f"theirs-{number}", on, THEIRS))
        for number, on in enumerate((*(self.ours if ours else ()), *more)):
            made.apply("ADDED", placed(f"ours-{number}", on, OURS))
        return made

    def pod(self, spec=None):
        own = ObjectMeta(name="web", namespace="shop", labels=OURS)
        return as_created(Pod(metadata=own, spec=spec or self.spec), RECORDED)

    def ends(self, spec=None, most=MOST, start=(), **how):
        """How many pods of the workload the best and the worst order place, and where they may stand at the end."""
        pod = self.pod(spec)

        @cache
        def search(on):
            # Which pod came first changes nothing: they are alike.
            index = self.index(on, ours=False, **how)
            verdict = decide(take(index, pod)) if len(on) < most else None
            names = [] if verdict is None else [n for n in self.names if verdict.status(n).code == "Success"]
            if not names:
                return frozenset({on})
            return frozenset().union(*(search(tuple(sorted((*on, name)))) for name in names))

        return search(tuple(sorted(start)))

    def zone(self, name):
        return next(each.labels.get(ZONE) for each in self.nodes if each.name == name)

    @property
    def names(self):
        return [each.name for each in self.nodes]

    def manifest(self, replicas):
        template = {"metadata": {"labels": OURS}, "spec": to_builtins(self.spec)}
        spec = {"replicas": replicas, "selector": {"matchLabels": OURS}, "template": template}
        meta = {"name": "web", "namespace": "shop"}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}

    def found(self, replicas, index=None, capacity="fixed", rules=FAMILY):
        """What these rules say of so many replicas."""
        policy = replace(DENY, capacity=capacity)
        said = examine(
            self.manifest(replicas),
            Context(policy=policy, index=index or self.index(), version=RECORDED, now="2026-11-21"),
        ).findings
        return [each for each in said if each.finding.rule in rules]


@st.composite
def worlds(draw, *, keys=ANY_KEYS, cpu=("64",), own=True, pinned=True):
    found = [draw(nodes(name, cpu)) for name in "klmnop"[: draw(st.integers(2, 6))]]
    names = [each.name for each in found]
    keys = draw(st.sampled_from(keys))
    written = [draw(constraints(key)) for key in keys]
    term = PodAffinityTerm(label_selector=OWN, topology_key=draw(st.sampled_from([HOSTNAME, HOSTNAME, ZONE])))
    apart = PodAffinity(required=(term,))
    affinity = st.sampled_from([None, None, None, Affinity(pod_anti_affinity=apart), Affinity(pod_affinity=apart)])
    spec = PodSpec(
        topology_spread_constraints=tuple(written),
        node_selector=draw(st.sampled_from([None, None, {"disk": "ssd"}])) if pinned else None,
        affinity=draw(affinity) if pinned else None,
        containers=(Container(name="c", resources=ResourceRequirements(requests={"cpu": "1"})),),
    )
    theirs = draw(st.lists(st.sampled_from(names), max_size=draw(st.sampled_from([0, 0, 3]))))
    ours = draw(st.lists(st.sampled_from(names), max_size=draw(st.sampled_from([0, 3]))) if own else st.just([]))
    return World(found, theirs, ours, spec)


def looked_at(world):
    """The world as the rules see it: nodes that are cordoned now are taken for closed, not for away."""
    facts = take_workload_problem(world.index(), world.pod(), compile_selector(OWN), 99, now="", late={})
    here = candidate_nodes(facts, present=True)
    return here, constraint_capacities(facts.hard, here, facts.problem)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(worlds(keys=ONE_KEY))
def test_one_constraint_admits_as_many_as_every_order_places(world):
    here, (tally,) = looked_at(world)
    together = None if here.together is None else here.eligible.nodes.column(here.together)
    most = tally.most if together is None else tally.most_in_one(together)
    ends = {len(end) for end in world.ends(start=world.ours)}
    best = max(ends)
    bound = max(MOST, len(world.ours)) if most is None else min(most, max(MOST, len(world.ours)))
    event("bounded" if most is not None and most < MOST else "not bounded")
    if world.spec.affinity is None:
        assert ends == {bound}
    else:
        # Anti-affinity and affinity have limits of their own, over other domains than the constraint's.
        assert best <= bound
        event(f"with affinity: {'exact' if best == bound else 'above'}")


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(worlds(keys=TWO_KEYS))
def test_what_two_constraints_admit_is_a_bound(world):
    _, found = looked_at(world)
    zones, hosts = sorted(found, key=lambda each: each.column.key, reverse=True)
    wanted = MOST - zones.placed
    added = addable_together(zones, hosts, wanted)
    bound = max(MOST, len(world.ours)) if added is None else zones.placed + added
    best = max(len(end) for end in world.ends(start=world.ours))
    assert best <= bound
    singles = [each.most for each in found if each.most is not None]
    least = min(bound, *singles, MOST) if singles else bound
    if world.spec.affinity is None:
        event("exact" if best == max(least, len(world.ours)) else f"above by {least - best}")


def apply_fix(world, finding, replicas):
    """The pod spec with what the finding offers."""
    manifest = json.decode(json.encode(world.manifest(replicas)))
    return convert(applied(manifest, finding.edits)["spec"]["template"]["spec"], PodSpec)


def number_in(summary):
    """The 3 of "at most 3 of 5 fit"."""
    return int(summary.partition("at most ")[2].split()[0])


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(worlds(cpu=("2", "64", "64")), st.integers(2, MOST))
def test_a_warning_means_that_a_pod_stays_pending_and_a_fix_that_none_does(world, replicas):
    for judged in world.found(replicas):
        finding = judged.finding
        if finding.rule == "zone-loss-strands-pods":
            continue
        best = max(len(end) for end in world.ends(start=world.ours))
        assert best <= max(number_in(finding.summary), len(world.ours))
        if judged.mode is Mode.WARN:
            assert best < replicas
        event(f"{finding.rule}: {judged.mode}")
        if finding.edits:
            # The fix is a new template: its pods replace those that run.
            ends = world.ends(apply_fix(world, finding, replicas), most=replicas)
            assert {len(end) for end in ends} == {replicas}
            event(f"{finding.rule}: {finding.fix.partition(':')[0]}")


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(worlds(keys=ONE_KEY, own=False), st.integers(2, MOST))
def test_silence_means_that_all_fit(world, replicas):
    bare = replace(world.spec, topology_spread_constraints=None)
    assume(not any(node.spec.unschedulable for node in world.nodes))
    # A node that both the node selector and a taint keep out is neither rule's: no single change would open it.
    selected = (world.spec.node_selector or {}).items()
    assume(not any(node.spec.taints and not selected <= node.labels.items() for node in world.nodes))
    (constraint,) = world.spec.constraints
    without = max(len(end) for end in world.ends(bare, most=replicas))
    assume(without == replicas and all(ZONE in node.labels for node in world.nodes))
    best = max(len(end) for end in world.ends(most=replicas))
    # Where pods of others and the affinity are in the way together, only the search of all orders sees it.
    rules = FAMILY | {"replicas-do-not-fit"}
    warned = [each.finding.rule for each in world.found(replicas, rules=rules) if each.mode is Mode.WARN]
    few = (constraint.min_domains or 1) > 1  # min-domains-unreachable
    event("all fit" if best == replicas else f"warned: {warned}")
    assert bool(warned) == (best < replicas) or (few and not warned)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(worlds(cpu=("4", "64", "64"), pinned=False), st.integers(2, MOST))
def test_a_lost_zone_strands_so_many_pods_wherever_they_stood(world, replicas):
    assume(not world.ours or len(world.ours) == replicas)
    found = [each.finding for each in world.found(replicas) if each.finding.rule == "zone-loss-strands-pods"]
    event("found" if found else "silent")
    for finding in found:
        words = finding.summary.split()
        zone, pending = words[2], int(words[7])
        lost = {node.metadata.name for node in world.nodes if node.metadata.labels.get(ZONE) == zone}
        starts = [tuple(world.ours)] if world.ours else list(world.ends(most=replicas))
        left = [tuple(name for name in end if name not in lost) for end in starts if len(end) == replicas]
        if not left:  # cordoned nodes, which the rule takes to be back soon
            continue
        after = [len(end) for each in left for end in world.ends(most=replicas, start=each, lost=lost)]
        assert max(after) <= replicas - pending
        event(f"exact: {max(after) == replicas - pending}")
        if finding.edits:
            spec = apply_fix(world, finding, replicas)
            assert {len(end) for each in left for end in world.ends(spec, most=replicas, start=each, lost=lost)} == {
                replicas
            }
            event("fixed")


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(
    worlds(keys=((ZONE,),), own=False, pinned=False),
    st.lists(st.sampled_from(["a", "a", "a", "b", "c", None]), min_size=1, max_size=MOST),
)
def test_pods_that_volumes_pin_are_placed_as_the_best_order_does(world, zones):
    assume(all(ZONE in node.labels for node in world.nodes))
    _, (tally,) = looked_at(world)
    view = tally.domains.column
    sets = [view.with_value(zone) for zone in zones if zone is not None]
    missing = PodsToPlace(dict(Counter(sets)), zones.count(None))
    homes, free = affinity_conflicts._homes(tally, missing)

    @cache
    def best(on, left):
        index, found = world.index(on, ours=False), len(on)
        for place, zone in enumerate(left):
            verdict = decide(take(index, world.pod()))
            allowed = [n for n in world.names if verdict.status(n).code == "Success" and zone in {None, world.zone(n)}]
            rest = left[:place] + left[place + 1 :]
            found = max(found, *(best(tuple(sorted((*on, name))), rest) for name in allowed), found)
        return found

    assert addable_pinned(tuple(homes.values()), tally.limit, free) == best((), tuple(sorted(zones, key=str)))
    event("bounded" if best((), tuple(sorted(zones, key=str))) < len(zones) else "all fit")
