"""Plans of groups: which way keeps the caps, and that no order breaks them, by a search that shares no code."""

from collections import Counter
from fractions import Fraction

import pytest
from build import NAMESPACE, apart, cluster, constraint, index, limited, node, selector, service
from core.groups.every_order import Orders, hosts_of
from core.groups.grouped import FIELD, cap, derive, derived, planned_for, redis, shards_of, zones
from msgspec import convert
from msgspec.structs import replace

from webhook.core.api.types import (
    Affinity,
    Container,
    NodeStatus,
    PodAffinity,
    PodAffinityTerm,
    PodSchedulingGroup,
    ResourceClaim,
    ResourceRequirements,
    SpreadConstraint,
    Volume,
)
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.groups.derive import derive_plan, kept_plan
from webhook.core.groups.fields import naive_fields
from webhook.core.groups.group import StoredPlan
from webhook.core.groups.group_constraints import exact_cap
from webhook.core.groups.outlook import EFFORT, simulate_orders
from webhook.core.groups.plan import CapGuarantee, CapMethod, Proof, pod_batches
from webhook.core.placement.game_from_cluster import game_of
from webhook.core.placement.placement_verdict import PlacementVerdict
from webhook.core.placement.simulation import one_order, simulate
from webhook.core.policy.defaults import DefaultConstraint, Defaults, DefaultsOverride
from webhook.core.policy.policy import Policy
from webhook.core.scheduler.profile import SchedulerProfile

HOSTS = (cap(HOSTNAME, "<1/3"),)


def ways(plan):
    return {key.rpartition("/")[2]: (each.way, each.worst) for key, each in plan.keeping.items()}


@pytest.mark.parametrize(
    ("group", "nodes", "proof", "hosts", "in_zones"),
    [
        pytest.param(
            redis(3),
            zones(2, 2, 2),
            Proof.ZONE_BY_ZONE,
            (CapMethod.EXACT, 1),
            (CapMethod.PINS, 2),
            id="three shards, six nodes",
        ),
        pytest.param(
            redis(9),
            zones(3, 3, 3),
            Proof.ZONE_BY_ZONE,
            (CapMethod.EXACT, 5),
            (CapMethod.PINS, 6),
            id="nine shards, three zones",
        ),
        pytest.param(
            redis(9),
            zones(4, 4, 4, 4),
            Proof.ROOM,
            (CapMethod.EXACT, 5),
            (CapMethod.EXACT, 8),
            id="in four zones caps are enough",
        ),
        pytest.param(
            redis(4),
            zones(2, 2, 2),
            Proof.SEARCH,
            (CapMethod.MAX_SKEW, 2),
            (CapMethod.MAX_SKEW, 3),
            id="four shards, maxSkew",
        ),
        pytest.param(
            redis(6, 3),
            zones(3, 3, 3),
            Proof.ROOM,
            (CapMethod.EXACT, 5),
            (CapMethod.NOTHING, 6),
            id="a pod of each shard a zone",
        ),
        pytest.param(
            redis(5),
            zones(2, 3, 4),
            Proof.ZONE_BY_ZONE,
            (CapMethod.EXACT, 3),
            (CapMethod.PINS, 4),
            id="zones of 2, 3 and 4 nodes",
        ),
        pytest.param(
            redis(3, apart=()),
            zones(3, 3, 3),
            Proof.SEARCH,
            (CapMethod.MAX_SKEW, 1),
            (CapMethod.MAX_SKEW, 2),
            id="no shard rule",
        ),
    ],
)
def test_the_way_that_is_taken(group, nodes, proof, hosts, in_zones):
    found = derived(group, nodes)
    assert (found.plan.verdict, found.plan.proof) == (PlacementVerdict.FITS, proof)
    assert ways(found.plan) == {"hostname": hosts, "zone": in_zones}
    assert (found.reasons, found.nearest) == ((), ())


def test_one_zone_keeps_nodes_apart():
    found = derived(redis(9, caps=HOSTS, apart=(HOSTNAME,)), zones(6)).plan
    assert (found.proof, ways(found)) == (Proof.ROOM, {"hostname": (CapMethod.EXACT, 5)})


def test_a_group_that_names_no_zone_needs_no_label_of_zones():
    found = derived(redis(9, caps=HOSTS, apart=(HOSTNAME,)), "n0=0 n1=0 n2=0 | a: n3=0 n4=0 n5=0").plan
    assert (found.proof, ways(found)) == (Proof.ROOM, {"hostname": (CapMethod.EXACT, 5)})


def test_two_zones_hold_a_half_each():
    found = derived(redis(9, caps=(cap(ZONE, "<=1/2"),)), zones(3, 3)).plan
    assert (found.verdict, ways(found)) == (PlacementVerdict.FITS, {"zone": (CapMethod.NOTHING, 9)})


# Small enough for every order, without a word of the engine.
SMALL = [
    pytest.param(redis(3), zones(2, 2, 2), id="3 x 2 on 2 2 2"),
    pytest.param(redis(3), zones(1, 2, 3), id="3 x 2 on 1 2 3, which does not fit"),
    pytest.param(redis(4, caps=(cap(HOSTNAME, "<=2"), cap(ZONE, "<1/2"))), zones(2, 1, 2), id="4 x 2 on 2 1 2"),
    pytest.param(redis(2, caps=(cap(ZONE, "<=1/2"), cap(HOSTNAME, "<=1"))), zones(2, 2), id="2 x 2 on 2 2"),
    pytest.param(redis(2, 3, caps=(cap(HOSTNAME, "<=1"),)), zones(2, 2, 2), id="2 x 3 on 2 2 2"),
    pytest.param(redis(2, apart=(HOSTNAME,), caps=(cap(HOSTNAME, "<=1"),)), zones(5), id="2 x 2 on five nodes"),
    pytest.param(redis(3, 1, caps=(cap(ZONE, "<=1"),)), zones(1, 1, 2), id="single pods"),
    pytest.param(redis(2, caps=(cap(ZONE, "<=1"),)), zones(1, 1, 1, 1), id="2 x 2 on four single nodes"),
    pytest.param(redis(2, apart=(), caps=(cap(ZONE, "<=2"), cap(HOSTNAME, "<=1"))), zones(2, 2, 2), id="no shard rule"),
]


@pytest.mark.parametrize(("group", "nodes"), SMALL)
def test_no_order_gets_stuck_or_breaks_a_cap(group, nodes):
    found = derived(group, nodes)
    if found.plan is None:
        assert found.reasons
        return
    assert found.plan.verdict is PlacementVerdict.FITS
    brute = Orders(hosts_of(nodes), group.pods_per_shard, [*found.plan.fields.values()])
    for state in brute.ends():
        assert sum(map(len, state)) == group.pods
        for key in (HOSTNAME, ZONE):
            assert brute.most(state, key) <= (group.most(key) or group.pods)
        for key, each in found.plan.keeping.items():
            assert brute.most(state, key) <= each.worst


def naive_orders(group, nodes):
    return Orders(hosts_of(nodes), group.pods_per_shard, [naive_fields(group, each) for each in shards_of(group)])


def test_how_often_the_rule_of_thumb_gets_stuck():
    ends = naive_orders(redis(3), zones(2, 2, 2)).ends()
    assert sum(chance for state, chance in ends.items() if sum(map(len, state)) < 6) == Fraction(133, 810)


def seen(group, nodes, effort=EFFORT):
    found, inputs = derived(group, nodes), planned_for(group, shards_of(group), cluster(nodes))
    shards = found.plan.shards if found.plan else shards_of(group)
    fields = {each.name: naive_fields(group, each) for each in shards}
    players = pod_batches(inputs, fields, found.capacity)
    return simulate_orders(players, inputs.index, [each.topology_key for each in group.caps], effort)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hosts", "stuck"), [pytest.param("<=1", 133 / 810, id="as written"), pytest.param("<=2", 0, id="the remedy")]
)
def test_the_rule_of_thumb_is_seen_through(hosts, stuck):
    group = redis(3, caps=(cap(HOSTNAME, hosts), cap(ZONE, "<1/2")))
    of, brute = seen(group, zones(2, 2, 2)), naive_orders(group, zones(2, 2, 2))
    assert of.exact
    assert of.stuck == pytest.approx(stuck)
    for key in (HOSTNAME, ZONE):
        worst = of.worst[key]
        assert worst.pods == max(brute.most(state, key) for state in brute.ends())
        there = [step.node for step in worst.steps if worst.domain in {step.node, step.node[0]}]
        assert len(there) == worst.pods
    assert len(of.witness) == (5 if stuck else 0)


@pytest.mark.slow
def test_eighteen_pods_break_the_cap_of_a_zone():
    """The field's own numbers: max-pod-in-zone 8 as maxSkew lets 9 shards put a pod each into one zone."""
    of = seen(redis(9), zones(3, 3, 3))
    assert (of.exact, of.worst[ZONE].pods) == (False, 9)
    assert len({step.batch for step in of.worst[ZONE].steps if step.node[0] == of.worst[ZONE].domain}) == 9
    assert of.worst[HOSTNAME].pods > 5


@pytest.mark.parametrize(
    ("group", "nodes", "reason", "nearest"),
    [
        pytest.param(
            redis(9),
            zones(4, 4),
            "the caps allow only 8 in a and 8 in b: 16 of 18 pods",
            "at most 9 of 18 pods in a zone",
            id="two zones and less than half",
        ),
        pytest.param(
            redis(3, 3, caps=(cap(HOSTNAME, "<=3"),)),
            zones(4, 4),
            "the 3 pods of a shard never share a zone, but only 2 zones take pods (a, b)",
            "pods of a shard may share a zone, but no node",
            id="three pods, two zones",
        ),
        pytest.param(
            redis(2, 3, apart=(HOSTNAME,), caps=()),
            zones(2),
            "the 3 pods of a shard never share a node, but only 2 nodes take pods",
            None,
            id="three pods, two nodes",
        ),
        pytest.param(
            redis(6),
            zones(1, 1, 1),
            "with at most 3 on a node, the nodes take only 3 in a, 3 in b and 3 in c: 9 of 12 pods",
            "at most 4 of 12 pods on a node",
            id="three nodes and less than a third",
        ),
        pytest.param(
            redis(1),
            zones(2, 2, 2),
            "less than 1/3 of 2 pods allows no pod on a node",
            None,
            id="one shard",
        ),
        pytest.param(
            redis(2, caps=()),
            "n0=0 n1=0 n2=0",
            "no node with the label topology.kubernetes.io/zone takes a pod of the group",
            "pods of a shard may share a zone, but no node",
            id="no zone",
        ),
        pytest.param(
            redis(2, caps=(), apart=(HOSTNAME,)), "~n0=0", "no node takes a pod of the group", None, id="no node"
        ),
        pytest.param(
            redis(2, caps=(), domains=("x", "y")),
            zones(2, 2),
            "no node of the required domains x, y takes a pod of the group",
            None,
            id="zones that there are not",
        ),
        pytest.param(
            redis(2, caps=()),
            zones(2),
            "the 2 pods of a shard never share a zone, but only 1 zone takes pods (a)",
            None,
            id="one zone",
        ),
        pytest.param(
            redis(2, apart=(HOSTNAME,), caps=()),
            zones(1),
            "the 2 pods of a shard never share a node, but only 1 node takes pods",
            None,
            id="one node",
        ),
    ],
)
def test_what_cannot_be_and_the_nearest_that_can(group, nodes, reason, nearest):
    found = derived(group, nodes)
    assert (found.plan, found.reasons) == (None, (reason,))
    assert found.nearest == (() if nearest is None else (nearest,))


def test_room_that_is_taken_counts():
    found = derived(redis(9, caps=(cap(ZONE, "<1/2"),)), zones(3, 3, 3), resources={"cpu": "1", "pods": "1"})
    assert found.reasons == ("the nodes take only 3 in a, 3 in b and 3 in c: 9 of 18 pods",)


@pytest.mark.slow
def test_where_nothing_is_proven_the_least_bad_plan_is_shown():
    """Four nodes for nine shards: five pods a node leave too little room for a shard's second pod."""
    found = derived(redis(9, caps=HOSTS, apart=(HOSTNAME,)), zones(4))
    assert found.plan.proof is Proof.NONE
    assert found.plan.verdict in {PlacementVerdict.UNKNOWN, PlacementVerdict.STUCK}
    assert found.nearest == ("at most 6 of 18 pods on a node",)


def test_pods_that_are_not_alike_are_played_out():
    group = redis(2, caps=(cap(ZONE, "<=2"), cap(HOSTNAME, "<=1")))
    small, large = shards_of(group)
    container = Container(name="c", resources=ResourceRequirements(requests={"cpu": "4"}))
    large = replace(large, pod=replace(large.pod, spec=replace(large.pod.pod_spec, containers=(container,))))
    found = derived(group, zones(2, 2, 2), [small, large])
    assert (found.capacity.alike, found.plan.proof) == (False, Proof.SEARCH)


def meeting(key, labelled):
    return PodAffinityTerm(topology_key=key, label_selector=selector(labelled))


def with_spec(group, **by_field):
    """The shards with fields of a template, each made for the value of its shard."""
    return [
        replace(
            each, pod=replace(each.pod, spec=replace(each.pod.pod_spec, **{k: v(each) for k, v in by_field.items()}))
        )
        for each in shards_of(group)
    ]


def keeping_apart(*terms):
    """The affinity of a shard: ``{}`` in labels stands for its value."""
    return lambda of: Affinity(
        pod_anti_affinity=PodAffinity(required=tuple(meeting(key, each.format(of.value)) for key, each in terms))
    )


ON_NODES = redis(3, apart=(HOSTNAME,), caps=(cap(HOSTNAME, "<=3"),))
BY_ZONE = redis(3, apart=(ZONE,), caps=(cap(HOSTNAME, "<=3"),))


@pytest.mark.parametrize(
    ("group", "nodes", "template"),
    [
        pytest.param(ON_NODES, zones(4), keeping_apart((HOSTNAME, "app=redis")), id="all shards, by node"),
        pytest.param(BY_ZONE, zones(2, 1, 1), keeping_apart((HOSTNAME, "app=redis")), id="all shards, and pins"),
        pytest.param(
            ON_NODES, zones(4), keeping_apart((ZONE, "app=redis shard={}")), id="a shard by zone, asked by node"
        ),
        pytest.param(
            redis(3, apart=(), caps=(cap(HOSTNAME, "<=6"),)),
            zones(1),
            keeping_apart((HOSTNAME, "app=redis shard={}")),
            id="a shard by node, asked nothing",
        ),
        pytest.param(
            redis(3, apart=(HOSTNAME,), caps=(cap(HOSTNAME, "<=2"),)),
            zones(2, 2, 2),
            lambda _: Affinity(pod_affinity=PodAffinity(required=(meeting(ZONE, "app=redis"),))),
            id="where the others are",
        ),
    ],
)
def test_what_a_template_keeps_is_no_room(group, nodes, template):
    inputs = planned_for(group, with_spec(group, affinity=template), cluster(nodes))
    found = derive_plan(inputs)
    placed = one_order(game_of(pod_batches(inputs, found.plan.fields, found.capacity), inputs.index))
    assert (len(placed) < group.pods, found.plan.proof) == (True, Proof.NONE)
    assert found.plan.verdict is not PlacementVerdict.FITS


def test_a_constraint_over_a_third_key_is_no_room():
    racks = (constraint("rack", select="app=redis"),)
    found = derived(ON_NODES, zones(4), with_spec(ON_NODES, topology_spread_constraints=lambda _: racks))
    assert (found.plan.proof, found.plan.verdict) == (Proof.NONE, PlacementVerdict.NO_FIT)


@pytest.mark.parametrize(
    "terms",
    [
        pytest.param([(ZONE, "app=redis shard={}")], id="as the plan"),
        pytest.param([(HOSTNAME, "shard={}")], id="nodes, which lie in one zone"),
        pytest.param([(ZONE, "app=web"), (HOSTNAME, "app=web")], id="pods of others"),
    ],
)
def test_what_keeps_the_pods_of_one_shard_apart_leaves_a_proof(terms):
    group = redis(9)
    found = derived(group, zones(3, 3, 3), with_spec(group, affinity=keeping_apart(*terms))).plan
    assert (found.verdict, found.proof) == (PlacementVerdict.FITS, Proof.ZONE_BY_ZONE)


@pytest.mark.parametrize(
    ("more", "alike"),
    [
        pytest.param({"namespaces": ("other",)}, True, id="elsewhere"),
        pytest.param({"namespaces": ("other", NAMESPACE)}, False, id="here too"),
        pytest.param({"namespaces": ()}, False, id="no namespace is its own"),
        pytest.param({"namespaces": ("other",), "namespace_selector": selector("{}")}, False, id="in any"),
    ],
)
def test_anti_affinity_elsewhere_does_not_hinder_a_plan(more, alike):
    group = redis(9)
    term = replace(meeting(HOSTNAME, "app=redis"), **more)
    template = with_spec(group, affinity=lambda _: apart(term))
    found = derive(group, template, cluster(zones(3, 3, 3)), Policy(), searches=False)
    assert found.capacity.alike is alike


def test_pins_that_are_found_by_a_search_are_not_said_to_reach_further():
    group = redis(3, plan_for=6)
    template = with_spec(group, topology_spread_constraints=lambda _: (constraint("pool", select="app=redis"),))
    found = derived(group, zones(3, 3, 3), template, labelled="pool=x").plan
    assert (found.zone_pins is None, found.verdict, found.proof) == (False, PlacementVerdict.FITS, Proof.SEARCH)
    assert found.same_up_to == 3


def test_pins_that_are_given_stay():
    group = redis(3)
    first, second, third = shards_of(group)
    found = derived(group, zones(2, 2, 2), [replace(first, zones=("b", "c")), second, third]).plan
    assert found.zone_pins.of_shards == (("b", "c"), ("a", "b"), ("a", "c"))


def test_volumes_that_break_a_cap_leave_no_pins():
    """All shards in zones a and b: a plan cannot keep them there with two pods each."""
    group = redis(3)
    settled = [replace(each, zones=("a", "b")) for each in shards_of(group)]
    found = derived(group, zones(2, 2, 2), settled).plan
    assert (found.zone_pins, found.verdict) == (None, PlacementVerdict.STUCK)


@pytest.mark.parametrize("zones_of_pods", [(), ("a",), ("a", "b")])
def test_pods_that_run_change_nothing_about_the_nearest_that_can(zones_of_pods):
    group = redis(9, caps=(cap(ZONE, "<=4"),))
    found = derived(group, zones(4, 4, 4), shards_of(group, running=zones_of_pods))
    assert found.nearest == ("at most 6 of 18 pods in a zone",)


def test_only_required_domains_are_used():
    group = redis(4, caps=(cap(ZONE, "<=1/2"),), domains=("a", "b"))
    found = derived(group, zones(2, 2, 2))
    assert [*found.capacity.zones] == ["a", "b"]
    assert found.plan.verdict is PlacementVerdict.FITS


def test_observed_caps_change_no_plan():
    observed = cap(ZONE, "<=1", enforced=False)
    found = derived(redis(9, caps=(*FIELD, observed)), zones(4, 4))
    assert found.nearest == ("at most 9 of 18 pods in a zone",)


def test_karpenter_is_given_pins():
    made = [node(f"{zone}{each}", zone, karpenter__sh_nodepool="x") for zone in "abcd" for each in range(4)]
    labelled = [
        replace(
            each,
            metadata=replace(each.metadata, labels={**each.labels, "karpenter.sh/nodepool": "x"}),
            status=NodeStatus(allocatable={"cpu": "8", "pods": "110"}),
        )
        for each in made
    ]
    group = redis(9)
    found = derive(group, shards_of(group), index(*labelled), Policy()).plan
    assert (found.keeping[ZONE], found.proof) == (CapGuarantee(CapMethod.PINS, 5), Proof.ZONE_BY_ZONE)


@pytest.mark.parametrize(
    ("group", "nodes", "last"),
    [
        pytest.param(redis(3, plan_for=10), zones(5, 5, 5), 7, id="pins for five nodes a zone, a pod a node"),
        pytest.param(redis(6, plan_for=10), zones(3, 3, 3), 10, id="six shards to ten"),
        pytest.param(redis(9, plan_for=20), zones(4, 4, 4, 4), 12, id="caps in four zones"),
        pytest.param(redis(6, 3, plan_for=9), zones(3, 3, 3), 9, id="a pod of each shard a zone"),
        pytest.param(redis(4, plan_for=6), zones(2, 2, 2), 4, id="maxSkew is for one number of shards"),
    ],
)
def test_up_to_how_many_shards_the_fields_stay(group, nodes, last):
    found = derived(group, nodes).plan
    assert (found.verdict, found.same_up_to) == (PlacementVerdict.FITS, last)


@pytest.mark.parametrize("path", [(3, 5), (6, 10, 5)])
def test_scaling_moves_no_pin(path):
    """What the field checked: 3 to 5 shards, 6 to 10 and back to 5."""
    most = max(path)
    pins = [derived(redis(many, plan_for=most), zones(6, 6, 6)).plan.zone_pins.of_shards for many in path]
    longest = max(pins, key=len)
    assert all(each == longest[: len(each)] for each in pins)
    for each in pins:
        counts = Counter(zone for shard in each for zone in shard)
        assert max(counts.values()) * 2 < sum(counts.values()) or len(each) == 1


def test_caps_of_one_key_count_together():
    group = redis(9, caps=(*FIELD, cap(ZONE, "<=7"), cap(ZONE, "<=1", enforced=False)))
    assert group.most(ZONE) == 7


HARD = SpreadConstraint(max_skew=1, topology_key=HOSTNAME, when_unsatisfiable="DoNotSchedule")
SOFT = replace(HARD, when_unsatisfiable="ScheduleAnyway")


def scheduled(*constraints):
    """What kube-scheduler gives pods without constraints (PodTopologySpreadArgs ``defaultConstraints``)."""
    return Policy(scheduler_profiles=(SchedulerProfile(defaulting_type="List", default_constraints=constraints),))


def injected(constraint, **more):
    return Policy(
        defaults=Defaults(mode="inject", default_constraints=(DefaultConstraint(constraint=constraint),), **more)
    )


def played(group, text, policy, fields=None):
    """The plan, and what the engine makes of its pods, or of pods with these fields, in a cluster with a Service."""
    into = cluster(text)
    into.apply("ADDED", service("redis", "app=redis"))
    inputs = planned_for(group, shards_of(group), into, policy)
    found = derive_plan(inputs)
    of = pod_batches(inputs, fields or found.plan.fields, found.capacity)
    return found.plan, simulate(game_of(of, inputs.index)).verdict


@pytest.mark.parametrize(
    ("group", "nodes", "constraints", "most"),
    [
        pytest.param(redis(3, caps=()), zones(1, 3), [], 6, id="no cap"),
        pytest.param(redis(3, 3, caps=(cap(HOSTNAME, "<=3"),)), zones(1, 1, 3), [], 3, id="a cap that shards keep"),
        pytest.param(redis(3, caps=(cap(ZONE, "<1/2"),), plan_for=5), zones(1, 4, 4), [], 10, id="pins"),
    ],
)
def test_default_constraints_of_the_scheduler_are_not_in_the_way(group, nodes, constraints, most):
    """Without a constraint in their fields the pods would get the scheduler's, and get stuck."""
    plain, outcome = played(group, nodes, scheduled(SOFT))
    assert ([*plain.constraints], outcome) == (constraints, PlacementVerdict.FITS)
    assert played(group, nodes, scheduled(HARD), plain.fields)[1] in {PlacementVerdict.NO_FIT, PlacementVerdict.STUCK}
    found, outcome = played(group, nodes, scheduled(HARD))
    assert (found.verdict, outcome) == (PlacementVerdict.FITS, PlacementVerdict.FITS)
    assert found.constraints == (exact_cap(group, HOSTNAME, most),)
    assert (found.keeping, found.zone_pins, found.same_up_to) == (plain.keeping, plain.zone_pins, plain.same_up_to)


@pytest.mark.parametrize(
    ("policy", "needed"),
    [
        pytest.param(injected(HARD), True, id="hard"),
        pytest.param(injected(SOFT), False, id="soft"),
        pytest.param(Policy(defaults=replace(injected(HARD).defaults, mode="observe")), False, id="none yet"),
        pytest.param(
            Policy(
                defaults=Defaults(
                    mode="inject",
                    overrides=(
                        DefaultsOverride(
                            name="o", default_constraints=(DefaultConstraint(constraint=SOFT, hard_when_domains=2),)
                        ),
                    ),
                )
            ),
            True,
            id="hard for some pods, from some nodes on",
        ),
    ],
)
def test_constraints_that_the_webhook_would_inject_are_not_in_the_way(policy, needed):
    assert bool(played(redis(3, caps=()), zones(1, 3), policy)[0].constraints) is needed


def test_templates_with_constraints_and_other_schedulers_get_no_defaults():
    group = redis(3, caps=())
    soft = constraint("rack", when="ScheduleAnyway", select="app=redis")
    for field, value in (("topology_spread_constraints", (soft,)), ("scheduler_name", "other")):
        template = with_spec(group, **{field: lambda _, value=value: value})
        assert derived(group, zones(1, 3), template, scheduled(HARD)).plan.constraints == ()


def test_a_plan_that_stands_is_judged_with_the_defaults_that_it_gets_now():
    group, index = redis(3, caps=()), cluster(zones(1, 3))
    index.apply("ADDED", service("redis", "app=redis"))
    shards = shards_of(group)

    def stands(constraints, of=group):
        found = kept_plan(planned_for(of, shards, index, scheduled(HARD)), StoredPlan(constraints)).plan
        return None if found is None else (found.verdict, found.constraints == constraints)

    assert stands(()) == (PlacementVerdict.NO_FIT, True)
    kept = (exact_cap(group, HOSTNAME, 6),)
    assert stands(kept) == (PlacementVerdict.FITS, True)
    # Of more pods it is a cap, which nobody asked for.
    assert stands(kept, redis(4, caps=())) is None


@pytest.mark.parametrize(
    ("more", "verdict"),
    [
        pytest.param({}, PlacementVerdict.FITS, id="neither"),
        pytest.param({"resource_claims": (ResourceClaim(name="gpu"),)}, PlacementVerdict.UNKNOWN, id="devices"),
        pytest.param(
            {"scheduling_group": PodSchedulingGroup(pod_group_name="all")}, PlacementVerdict.UNKNOWN, id="a PodGroup"
        ),
    ],
)
def test_nothing_is_proven_where_devices_or_a_pod_group_decide(more, verdict):
    for group in (redis(3), redis(4)):
        pods = [replace(each.pod, spec=replace(each.pod.spec, **more)) for each in shards_of(group)]
        shards = [replace(each, pod=pod) for each, pod in zip(shards_of(group), pods, strict=True)]
        assert derived(group, zones(2, 2, 2), shards).plan.verdict is verdict


@pytest.mark.parametrize(
    ("most", "mode", "verdict"),
    [
        pytest.param(9, "WaitForFirstConsumer", PlacementVerdict.FITS, id="enough for all pods"),
        pytest.param(1, "WaitForFirstConsumer", None, id="one for each node, too few for all pods"),
        pytest.param(9, "Immediate", PlacementVerdict.UNKNOWN, id="made before the pod has a node"),
    ],
)
def test_ephemeral_volumes_of_all_shards_count_together(most, mode, verdict):
    claim = {"spec": {"storageClassName": "late"}}
    volumes = (convert({"name": "scratch", "ephemeral": {"volumeClaimTemplate": claim}}, Volume),)
    group, found = redis(4), limited(zones(2, 2, 2), most, mode)
    shards = [
        replace(each, pod=replace(each.pod, spec=replace(each.pod.spec, volumes=volumes))) for each in shards_of(group)
    ]
    plan = derive(group, shards, found, Policy()).plan
    assert (plan.verdict if plan is not None else None) is verdict
