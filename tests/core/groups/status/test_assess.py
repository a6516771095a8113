"""What the status of a group says, from its first plan to pods that break its caps."""

import pytest
from build import apart, cluster, node, pod, selector
from core.groups.grouped import cap, redis, zones
from core.groups.status.stands import (
    LATER,
    NOON,
    SIX,
    THREE,
    conditions,
    fields_of,
    member,
    members,
    pins,
    placed,
    told,
)
from core.scheduler.plugins.test_volume_filters import claim, in_zone, volume
from msgspec import structs

from webhook.core.api.types import PodAffinityTerm
from webhook.core.api.well_known import HOSTNAME, NODE_POOL, ZONE
from webhook.core.groups.group import Fields
from webhook.core.groups.status.assess import MOST_PODS_PLANNED, invalid_spec_status
from webhook.core.groups.status.forms import SpreadGroupStatus, read_status, status_json

PROVEN = {
    "Planned": ("True", "Planned"),
    "Fits": ("True", "EveryOrder"),
    "CannotGetStuck": ("True", "ZoneByZone"),
}
NO_PLAN = {"Fits": ("Unknown", "NoPlan"), "CannotGetStuck": ("Unknown", "NoPlan"), "Delivered": ("False", "NoPlan")}


# -- the plan, and how long it stays


def test_a_group_is_planned_before_its_first_pod():
    status = told(THREE, cluster(SIX))
    assert conditions(status) == PROVEN | {
        "CapsHeld": ("True", "Held"),
        "Delivered": ("False", "NothingSelected"),
    }
    assert pins(status) == {"0": "ab", "1": "ac", "2": "bc"}
    assert [(each.kind, each.name) for each in status.workloads][:1] == [("StatefulSet", "cache-0")]
    assert {each.observed_generation for each in status.conditions} == {status.observed_generation} == {1}
    assert {each.last_transition_time for each in status.conditions} == {NOON}
    assert status.condition("Planned").message == (
        "3 shards of 2 pods; at most 1 pod on a node by an exact cap and at most 2 pods in a zone by pins; "
        "unchanged up to 3 shards"
    )


def test_what_stands_is_written_once():
    index = cluster(SIX)
    first = told(THREE, index, members())
    assert conditions(first)["Delivered"] == ("False", "FieldsDiffer")
    differ = "3 of 3 workloads lack the plan's fields; applying the plan restarts them"
    assert first.condition("Delivered").message == differ
    again = told(THREE, index, members(), before=first, now=LATER)
    assert status_json(again) == status_json(first)
    assert status_json(first)["unguarded"] == {"count": 0}
    taken = told(THREE, index, members(status=first), before=first, now=LATER)
    assert conditions(taken)["Delivered"] == ("True", "Delivered")
    assert {each.type: each.last_transition_time for each in taken.conditions} == {
        **dict.fromkeys(("Planned", "Fits", "CannotGetStuck", "CapsHeld"), NOON),
        "Delivered": LATER,
    }
    assert taken.workloads == first.workloads


def test_shards_that_come_leave_pins_and_revision_as_they_are():
    index = cluster(zones(4, 4, 4))
    first = told(THREE, index, members())
    five = redis(5, plan_for=10)
    more = told(five, index, members(5, first), before=first, generation=2)
    assert more.revision == first.revision
    assert {key: pins(more)[key] for key in pins(first)} == pins(first)
    assert len(pins(more)) == 5
    assert {each.max_skew for each in more.workloads[4].topology_spread_constraints} == {1}  # of the first plan
    fewer = told(THREE, index, members(3, more), before=more, generation=3)
    assert (pins(fewer), fewer.revision) == (pins(first), first.revision)


def test_fields_that_do_not_reach_further_are_made_anew_when_they_are_asked_for():
    index = cluster(SIX)
    first = told(THREE, index, members())
    five = redis(5, plan_for=10)
    more = told(five, index, members(5, first), before=first, generation=2)  # one pod on a node, and six nodes
    assert more.revision != first.revision
    assert {each.max_skew for each in more.workloads[0].topology_spread_constraints} == {3}
    assert {key: pins(more)[key] for key in pins(first)} == pins(first)
    assert conditions(more)["Delivered"] == ("False", "FieldsDiffer")


def lose(index, *names):
    for each in names:
        index.apply("DELETED", index.nodes.get(each))


def test_a_node_that_is_lost_changes_no_field():
    index = cluster(SIX)
    first = told(THREE, index, members())
    lose(index, "c1")
    later = told(THREE, index, members(status=first), before=first, now=LATER)
    assert (later.workloads, later.revision) == (first.workloads, first.revision)
    assert conditions(later) == {
        "Planned": ("True", "Kept"),
        "Fits": ("False", "DoesNotFit"),
        "CannotGetStuck": ("False", "DoesNotFit"),
        "CapsHeld": ("True", "Held"),
        "Delivered": ("True", "Delivered"),
    }
    assert "5 of 6 pods" in later.condition("Fits").message


def test_a_zone_that_is_lost_moves_no_pin_until_the_group_is_changed():
    index = cluster(zones(2, 2, 2, 2), labelled=f"{NODE_POOL}=main")  # Karpenter: pins come first
    group = redis(3, caps=(cap(HOSTNAME, "<=1"), cap(ZONE, "<=2")))
    first = told(group, index, members())
    assert pins(first)["0"] == "ab"
    lose(index, "a0", "a1")
    later = told(group, index, members(status=first), before=first)
    assert pins(later) == pins(first)
    assert conditions(later)["Planned"] == ("True", "RevisionHeld")
    message = later.condition("Planned").message
    assert message.endswith("would place all pods, but would restart 2 workloads; change the spec to apply it")
    taken = told(group, index, members(status=first), before=later, generation=2)
    assert "a" not in "".join(pins(taken).values())
    assert message.startswith(f"revision {taken.revision} ")


@pytest.mark.parametrize(("with_fields", "stays"), [(True, True), (False, False)])
def test_a_plan_that_pods_have_stays_where_nobody_knows_who_made_them(with_fields, stays):
    index = cluster(zones(2, 2, 2, 2, 2), labelled=f"{NODE_POOL}=main")
    group = redis(3, caps=(cap(HOSTNAME, "<=1"), cap(ZONE, "<=2")))
    first = told(group, index)
    pods = placed(index, first if with_fields else SpreadGroupStatus(), b0="0")
    lose(index, "a0", "a1")
    later = told(group, index, pods=pods, before=first)
    assert (pins(later) == pins(first)) is stays
    assert conditions(later)["Planned"] == ("True", "RevisionHeld" if stays else "Planned")
    assert ("1 pod would lack the new fields; change" in later.condition("Planned").message) is stays


def test_a_stricter_cap_is_a_new_revision():
    index = cluster(zones(3, 3, 3))
    loose = redis(3, caps=(cap(HOSTNAME, "<=2"), cap(ZONE, "<=3")))
    first = told(loose, index, members())
    strict = redis(3, caps=(cap(HOSTNAME, "<=1"), cap(ZONE, "<=2")))
    later = told(strict, index, members(status=first), before=first, generation=2)
    assert later.revision != first.revision
    assert conditions(later)["Delivered"] == ("False", "FieldsDiffer")
    # And back: what stands keeps the wider caps as well.
    back = told(loose, index, members(status=later), before=later, generation=3)
    assert back.revision == later.revision


def test_pins_move_when_they_leave_no_way_and_the_group_was_changed():
    index = cluster(zones(3, 3))
    both = redis(3, caps=(cap(ZONE, "<=3"),), apart=(ZONE,))
    first = told(both, index, members())
    pinned = structs.replace(
        first, workloads=tuple(structs.replace(each, zones=("a", "b")) for each in first.workloads)
    )
    for number in range(3):
        index.apply("ADDED", node(f"c{number}", "c"))
    third = redis(3, caps=(cap(ZONE, "<=2"),), apart=(ZONE,))
    later = told(third, index, members(), before=pinned, generation=2)
    assert sorted(pins(later).values()) != ["ab", "ab", "ab"]


def with_volumes(index):
    """Three shards whose volumes are all in zones a and b."""
    for shard in range(3):
        for number, zone in enumerate("ab"):
            index.apply("ADDED", volume(f"pv-{shard}-{number}", affinity=in_zone(zone)))
            index.apply("ADDED", claim(f"data-redis-{shard}-{number}", f"pv-{shard}-{number}"))
    return members(claims=["data"])


def test_a_plan_that_can_get_stuck_says_so_and_stays():
    index = cluster(SIX)
    of = with_volumes(index)
    first = told(redis(3), index, of)
    assert (conditions(first)["Fits"], conditions(first)["CannotGetStuck"]) == (
        ("True", "SomeOrders"),
        ("False", "CanGetStuck"),
    )
    again = told(redis(3), index, of, before=first)
    assert again.workloads == first.workloads


def test_a_plan_that_is_not_proven_gives_way_to_one_that_is_where_nobody_restarts():
    index = cluster(SIX)
    first = told(redis(3), index, with_volumes(index))
    # Volumes, or whatever was in the way for a moment, are gone.
    held = told(redis(3), cluster(SIX), members(status=first), before=first)
    assert conditions(held)["Planned"] == ("True", "RevisionHeld")
    assert held.workloads == first.workloads
    made = told(redis(3), cluster(SIX), members())
    for of in ((), members(), members(status=made)):
        taken = told(redis(3), cluster(SIX), of, before=first, now=LATER)
        assert {key: conditions(taken)[key] for key in PROVEN} == PROVEN
        assert pins(taken) == pins(made)


@pytest.mark.slow
def test_what_is_not_proven_is_unknown():
    """Four nodes for nine shards: five pods a node leave too little room for a shard's second pod."""
    status = told(redis(9, caps=(cap(HOSTNAME, "<1/3"),), apart=(HOSTNAME,)), cluster(zones(4)))
    assert conditions(status)["CannotGetStuck"] in {("Unknown", "NotProven"), ("False", "CanGetStuck")}


def test_a_safe_max_skew_stays_until_the_group_asks_for_less():
    index = cluster(zones(3, 3, 3))
    group = redis(3, caps=(cap(ZONE, "<1/2"),), apart=())
    first = told(group, index)
    assert "by maxSkew" in first.condition("Planned").message
    assert told(group, index, before=first).revision == first.revision
    for other in (
        redis(3, caps=(cap(ZONE, "<1/2"), cap(HOSTNAME, "<=1")), apart=()),  # a cap more
        redis(3, caps=(), apart=()),  # a cap less
        structs.replace(group, selector=selector("app=cache")),
    ):
        assert told(other, index, before=first, generation=2).revision != first.revision


def test_a_cap_that_shards_keep_by_themselves_needs_nothing():
    index = cluster(SIX)
    group = redis(3, caps=(cap(HOSTNAME, "<=5"), cap(ZONE, "<=2")))
    first = told(group, index)
    assert "at most 3 pods on a node without a constraint" in first.condition("Planned").message
    assert told(group, index, before=first).revision == first.revision


# -- groups that are refused


OLDER = structs.replace(THREE, name="older")
# By reason: a group, what else there is, and what the condition says.
REFUSED = [
    pytest.param(redis(1, 1), {}, "OnePod", "the group expects only one pod, which cannot be spread", id="one pod"),
    pytest.param(
        redis(3, 2, plan_for=MOST_PODS_PLANNED // 2 + 1),
        {},
        "TooLarge",
        "the plan would cover 402 pods; the limit is 400",
        id="too large",
    ),
    *(
        pytest.param(
            THREE,
            {"older": [each] * 32},
            "TooManyGroups",
            "only the 32 oldest groups of a namespace get a plan; this one is newer",
            id=f"too many{say}",
        )
        for each, say in ((redis(3), ""), (None, " that say nothing"))
    ),
    *(
        pytest.param(
            THREE,
            {"older": [None, structs.replace(OLDER, selector=selector(text))]},
            "Overlaps",
            "the older SpreadGroup older selects some of the same pods",
            id=say,
        )
        for text, say in (("app=redis", "the same selector"), ("shard=1", "a pod of both"))
    ),
    pytest.param(
        THREE,
        {"of": (*members(), member(0, name="old-0"))},
        "DuplicateShard",
        "old-0, redis-0 run pods of the same shard 0; use one workload per shard",
        id="two workloads of a shard",
    ),
    pytest.param(
        THREE,
        {"of": (*members(2), member(2, name="redis-1", kind="Deployment"))},
        "DuplicateShard",
        "Deployment redis-1, StatefulSet redis-1 have the same name; give each shard its own name",
        id="two workloads of a name",
    ),
]


@pytest.mark.parametrize(("group", "more", "reason", "message"), REFUSED)
def test_what_is_not_planned(group, more, reason, message):
    first = told(group, cluster(SIX), **{"of": members()} | more)
    assert conditions(first) == NO_PLAN | {"Planned": ("False", reason), "CapsHeld": ("True", "Held")}
    assert first.condition("Planned").message == message
    assert (first.workloads, first.revision) == ((), "")


def test_a_workload_without_pods_takes_no_place_of_a_shard():
    status = told(redis(3), cluster(SIX), (member(0, pods=0, name="old-0"), *members()))
    assert [each.name for each in status.workloads] == ["redis-0", "redis-1", "redis-2"]
    assert pins(status) == {"0": "ab", "1": "ac", "2": "bc"}
    assert conditions(status) == PROVEN | {"CapsHeld": ("True", "Held"), "Delivered": ("False", "FieldsDiffer")}


def test_another_group_of_other_pods_is_no_overlap():
    other = structs.replace(THREE, name="other", selector=selector("app=other"))
    assert conditions(told(THREE, cluster(SIX), members(), older=[other]))["Planned"] == ("True", "Planned")


@pytest.mark.slow
def test_what_gets_stuck_in_every_order_that_was_tried_is_not_said_to_be_free_of_it():
    # A node for each of eighteen pods, on nine.
    alone = PodAffinityTerm(topology_key=HOSTNAME, label_selector=selector("app=redis"))
    fields = Fields((), apart(alone))
    status = told(redis(9), cluster(zones(3, 3, 3)), [member(number, fields=fields) for number in range(9)])
    assert conditions(status) == {
        "Planned": ("True", "Planned"),
        "Fits": ("Unknown", "NotProven"),
        "CannotGetStuck": ("False", "CanGetStuck"),
        "CapsHeld": ("True", "Held"),
        "Delivered": ("False", "FieldsDiffer"),
    }
    assert status.condition("Fits").message == "every tried order leaves a pod without a node"


def test_what_cannot_be_planned_says_the_nearest_that_can():
    status = told(redis(3), cluster(zones(3, 3)), members())
    assert conditions(status) == {
        "Planned": ("False", "Impossible"),
        "Fits": ("False", "DoesNotFit"),
        "CannotGetStuck": ("False", "DoesNotFit"),
        "CapsHeld": ("True", "Held"),
        "Delivered": ("False", "NoPlan"),
    }
    assert status.condition("Planned").message == (
        "the caps allow only 2 in a and 2 in b: 4 of 6 pods; the smallest change that fits: at most 3"
        " of 6 pods in a zone"
    )
    assert status.workloads == ()


def test_what_becomes_impossible_by_a_change_is_delivered_no_more():
    index = cluster(SIX)
    first = told(THREE, index, members())
    narrow = redis(3, caps=(cap(ZONE, "<=1"),))
    assert told(narrow, index, members(), before=first, generation=2).workloads == ()


def test_a_selector_that_selects_nothing_is_said_though_there_is_a_plan():
    """Its workloads may be yet to come."""
    status = told(redis(3), cluster(SIX))
    assert conditions(status)["Planned"] == ("True", "Planned")
    assert conditions(status)["Delivered"] == ("False", "NothingSelected")
    assert status.condition("Delivered").message == (
        "no workload or pod of this namespace has both the selector's labels and the shard label"
    )


def test_a_spec_that_says_nothing_has_a_status_too():
    status = invalid_spec_status(["spec.caps[0]: needs one of lessThan and atMost"], 4, SpreadGroupStatus(), NOON)
    assert conditions(status)["Planned"] == ("False", "InvalidSpec")
    assert status.observed_generation == 4


# -- the pods that run


def test_a_cap_that_is_broken_is_told_with_moves_until_it_holds():
    index = cluster(SIX)
    status = told(THREE, index, members())
    fine = placed(index, status, a0="0", b0="0", a1="1", c0="1", b1="2", c1="2")
    held = told(THREE, index, members(status=status), fine, before=status)
    assert conditions(held)["CapsHeld"] == ("True", "Held")
    assert held.condition("CapsHeld").message == "the fullest node has 1 of 1 pods, the fullest zone has 2 of 2 pods"
    stray = structs.replace(
        fine[5], spec=structs.replace(fine[5].pod_spec, node_name="a0", topology_spread_constraints=None)
    )
    index.apply("MODIFIED", stray)
    broken = told(THREE, index, members(status=status), [*fine[:5], stray], before=held)
    assert conditions(broken)["CapsHeld"] == ("False", "CapExceeded")
    assert broken.condition("CapsHeld").message == "1 node has up to 2 pods, at most 1; zone a 3 pods, at most 2"
    assert (broken.unguarded.count, broken.unguarded.pods) == (1, ("redis-2-1",))
    assert conditions(broken)["Delivered"] == ("False", "UnguardedPods")
    assert [(each.pod, each.source, each.to) for each in broken.moves] == [
        ("redis-2-1", "a0", ""),
        ("redis-2-1", "a", "c"),
    ]
    assert [dict(each.domains) for each in broken.distribution] == [
        {"a0": 2, "a1": 1, "b0": 1, "b1": 1, "c0": 1},
        {"a": 3, "b": 2, "c": 1},
    ]
    again = told(THREE, index, members(status=status), fine, before=broken, now=LATER)
    assert conditions(again)["CapsHeld"] == ("True", "Held")
    assert again.condition("CapsHeld").last_transition_time == LATER


@pytest.mark.parametrize(
    ("pods", "held", "moves"),
    [
        pytest.param({"a0": "0", "b0": "0"}, ("True", "Held"), [], id="none"),
        pytest.param({"a0": "0", "n0": "0"}, ("Unknown", "NodesWithoutLabel"), [("redis-0-1", "n0", "b")], id="one"),
        pytest.param(
            {"n0": "0 0 1"},
            ("Unknown", "NodesWithoutLabel"),
            [("redis-1-0", "n0", "a"), ("redis-0-1", "n0", "b"), ("redis-0-0", "n0", "a")],
            id="all",
        ),
        pytest.param(
            {"a0": "0", "a1": "1", "a2": "2", "n0": "0"},
            ("False", "CapExceeded"),
            [("redis-2-0", "a", "b"), ("redis-0-1", "n0", "b")],
            id="one, and a broken cap",
        ),
    ],
)
def test_pods_on_nodes_without_the_label(pods, held, moves):
    """No cap counts them, so nobody can say that it holds."""
    index, group = cluster(f"{zones(3, 1, 1)} | n0=0"), redis(3, caps=(cap(ZONE, "<=2"),))
    found = told(group, index, members(), placed(index, SpreadGroupStatus(), **pods))
    assert conditions(found)["CapsHeld"] == held
    assert [(each.pod, each.source, each.to) for each in found.moves] == moves


def test_a_node_without_a_hostname_label_is_a_node():
    index, group = cluster(SIX), redis(3, caps=(cap(HOSTNAME, "<=1"),))
    bare = index.nodes.get("a0")
    labels = {key: value for key, value in bare.metadata.labels.items() if key != HOSTNAME}
    index.apply("MODIFIED", structs.replace(bare, metadata=structs.replace(bare.metadata, labels=labels)))
    found = told(group, index, members(), placed(index, SpreadGroupStatus(), a0="0 1", b0="0"))
    assert conditions(found)["CapsHeld"] == ("False", "CapExceeded")
    assert [dict(each.domains) for each in found.distribution] == [{"a0": 2, "b0": 1}]


def test_pods_that_no_plan_knows_are_unguarded():
    index = cluster(SIX)
    status = told(THREE, index, members())
    pods = placed(index, status, a0="0", b0="9")
    bare = structs.replace(pods[0], metadata=structs.replace(pods[0].meta, name="bare", labels={"app": "redis"}))
    found = told(THREE, index, members(status=status), [*pods, bare], before=status)
    assert found.unguarded.pods == ("bare", "redis-9-0")
    assert found.condition("Delivered").message == ("2 pods lack the fields of the plan, 1 also the shard label shard")


@pytest.mark.parametrize(
    ("inject", "when"), [(False, "applying the plan restarts it"), (True, "the next update restarts it")]
)
def test_the_message_counts_one_workload_with_other_fields(inject, when):
    group, index = structs.replace(THREE, inject=inject), cluster(SIX)
    status = told(group, index, members())
    given = (*members(status=status)[:2], member(2))
    found = told(group, index, given, before=status)
    assert found.condition("Delivered").message == f"1 of 3 workloads lacks the plan's fields; {when}"


@pytest.mark.parametrize(
    ("shards", "clause"),
    [
        pytest.param(3, "", id="as many as are expected"),
        pytest.param(4, "; 1 shard beyond the expected number, without a plan", id="one more"),
        pytest.param(5, "; 2 shards beyond the expected number, without a plan", id="two more"),
    ],
)
def test_shards_that_run_beside_the_expected_ones_are_told_of(shards, clause):
    message = told(redis(3, caps=(cap(ZONE, "<=2"),)), cluster(SIX), members(shards)).condition("Planned").message
    assert message == f"3 shards of 2 pods; at most 2 pods in a zone by pins; unchanged up to 3 shards{clause}"


def test_with_injection_templates_get_the_fields_when_they_are_written():
    group = structs.replace(THREE, inject=True)
    index = cluster(SIX)
    status = told(group, index, members())
    told_of = status.condition("Delivered").message
    assert told_of == "3 of 3 workloads lack the plan's fields; the next update restarts them"
    old = [pod("app=redis shard=0", node_name="a0")]
    found = told(group, index, members(status=status), old, before=status)
    assert found.condition("Delivered").message == "1 pod lacks the fields of the plan"


def test_moves_stay_within_pins_and_caps():
    index = cluster(SIX)
    group = redis(3, caps=(cap(ZONE, "<=2"), cap(ZONE, "<=3")))
    status = told(group, index, members())
    assert pins(status) == {"0": "ab", "1": "ac", "2": "bc"}
    found = told(group, index, members(), placed(index, status, a0="0 0 1 1 2 2"), before=status)
    assert [(each.pod, each.to) for each in found.moves] == [
        ("redis-2-1", "b"),
        ("redis-2-0", "c"),
        ("redis-1-1", "c"),
        ("redis-0-1", "b"),
    ]
    assert [each.cap for each in found.distribution] == [2]
    crowd = told(group, cluster(SIX), members(), placed(cluster(SIX), status, a0="1 1 1 1"), before=status)
    assert [(each.pod, each.to) for each in crowd.moves] == [("redis-1-3", "c")]


def test_masters_are_observed_and_not_moved():
    masters = cap(ZONE, "<1/2", selector=selector("role=master"), enforced=False)
    group = redis(3, caps=(*THREE.caps, masters))
    index = cluster(SIX)
    status = told(group, index, members())
    pods = placed(index, status, a0="0", b0="0", a1="1", c0="1", b1="2", c1="2")
    led = [
        structs.replace(each, metadata=structs.replace(each.meta, labels={**each.labels, "role": "master"}))
        for each in (pods[0], pods[2])
    ]
    found = told(group, index, members(status=status), [*led, *pods[3:], pods[1]], before=status)
    assert found.condition("CapsHeld").message == "zone a 2 pods of role=master, at most 1"
    assert found.moves == ()
    assert status_json(found)["distribution"][2] == {
        "topologyKey": ZONE,
        "selector": {"matchLabels": {"role": "master"}},
        "domains": {"a": 2, "b": 0, "c": 0},
        "cap": 1,
    }


def test_a_status_is_read_again_as_it_was_written():
    index = cluster(SIX)
    status = told(THREE, index, members())
    placed(index, status, a0="0 1 2")
    found = told(THREE, index, members(), before=status)
    assert read_status(status_json(found)) == found
    assert read_status({"conditions": 7}) == SpreadGroupStatus()
    assert read_status({}) == SpreadGroupStatus()


def test_fields_of_a_template_are_found_in_any_order():
    index = cluster(SIX)
    status = told(THREE, index, members())
    given = fields_of(status.workloads[0])
    turned = structs.replace(given, constraints=tuple(reversed(given.constraints)))
    found = told(THREE, index, [member(0, fields=turned)], before=status)
    assert conditions(found)["Delivered"] == ("True", "Delivered")
