"""What a template gets, and what of its own it keeps; shards that are still to come."""

import pytest
from build import apart, constraint, pod, requiring, selector
from core.groups.grouped import redis, shards_of
from msgspec.structs import replace

from webhook.core.api.types import (
    LabelSelector,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
)
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.groups.fields import has_fields, naive_fields, replace_label_value, shard_fields
from webhook.core.groups.group import Shard, with_fields
from webhook.core.groups.group_constraints import exact_cap
from webhook.core.groups.status.members import all_shards
from webhook.core.groups.zone_pin import split_pin

GROUP = redis(3)
CAP = exact_cap(GROUP, HOSTNAME, 1)


def term(key, select):
    return PodAffinityTerm(topology_key=key, label_selector=selector(select))


def shard(*constraints, affinity=None, labels="app=redis shard=0"):
    return Shard(name="redis-0", value="0", pod=pod(labels, constraints=constraints or None, affinity=affinity))


def in_zones(*zones):
    return NodeSelectorRequirement(key=ZONE, operator="In", values=zones)


def test_soft_constraints_and_other_keys_stay():
    soft, rack = constraint(when="ScheduleAnyway"), constraint("example.com/rack")
    found = shard_fields(GROUP, shard(constraint(), soft, rack, constraint(HOSTNAME)), [CAP])
    assert found.constraints == (CAP, soft, rack)


def test_the_rule_of_thumb_stands_for_templates_without_constraints():
    own = constraint(max_skew=7)
    assert naive_fields(GROUP, shard(own)).constraints == (own,)
    assert [(each.topology_key, each.max_skew) for each in naive_fields(GROUP, shard()).constraints] == [
        (HOSTNAME, 1),
        (ZONE, 2),
    ]


def test_a_shard_is_kept_apart_once():
    found = shard_fields(GROUP, shard(), [])
    assert found.affinity == apart(term(ZONE, "app=redis shard=0"))
    own = apart(term(ZONE, "shard=0"))
    assert shard_fields(GROUP, shard(affinity=own), []).affinity == own
    elsewhere = apart(replace(term(ZONE, "shard=0"), namespaces=("other",)), term(ZONE, "shard=1"))
    new = (*elsewhere.pod_anti_affinity.required, term(ZONE, "app=redis shard=0"))
    assert shard_fields(GROUP, shard(affinity=elsewhere), []).affinity == apart(*new)
    assert shard_fields(redis(3, apart=()), shard(), []).affinity is None
    pinned = shard_fields(GROUP, shard(affinity=own), [], ("a", "b")).affinity
    assert pinned == replace(own, node_affinity=on_nodes([in_zones("a", "b")]).node_affinity)


def test_pins_join_every_alternative_of_the_affinity():
    wanted = NodeSelectorRequirement(key="disk", operator="Exists")
    terms = (NodeSelectorTerm(match_expressions=(wanted, in_zones("a", "b", "c"))), NodeSelectorTerm())
    own = requiring(*terms)
    found = shard_fields(GROUP, shard(affinity=own), [], ("a", "b")).affinity.node_affinity.required
    assert [each.match_expressions for each in found.node_selector_terms] == [
        (wanted, in_zones("a", "b")),
        (in_zones("a", "b"),),
    ]


def test_required_domains_are_asked_for_without_pins_too():
    group = redis(3, domains=("a", "b"))
    (found,) = shard_fields(group, shard(), []).affinity.node_affinity.required.node_selector_terms
    assert found.match_expressions == (in_zones("a", "b"),)


def test_shards_to_come_are_like_the_first():
    group = redis(2, plan_for=3)
    first = shard(affinity=apart(term(ZONE, "shard=0"), term(HOSTNAME, "app=web")))
    found = all_shards(group, [first])
    assert [(each.name, each.value, each.exists) for each in found] == [
        ("redis-0", "0", True),
        ("redis-1", "1", False),
        ("redis-2", "2", False),
    ]
    assert found[1].pod.labels == {"app": "redis", "shard": "1"}
    assert found[1].pod.pod_spec.affinity == apart(term(ZONE, "shard=1"), term(HOSTNAME, "app=web"))
    assert all_shards(group, [])[2].pod.labels == {"app": "redis", "shard": "2"}


def test_another_value_of_the_label_stands_in_labels_and_selectors_alone():
    def of(value):
        one, any_ = ({"key": "shard", "operator": "In", "values": values} for values in ([value], ["0", "1"]))
        selector = {"matchLabels": {"shard": value, "app": "0"}, "matchExpressions": [one, any_]}
        return {"labels": {"shard": value}, "items": [{"labelSelector": selector}]}

    node = {"nodeAffinity": {"terms": [{"matchExpressions": [{"key": "shard", "operator": "In", "values": ["0"]}]}]}}
    rest = {"nodeSelector": {"shard": "0"}, "affinity": node, "args": ["0"], "replicas": 0}
    assert replace_label_value(of("0") | rest, "shard", "0", "7") == of("7") | rest


def test_shards_are_in_the_order_of_their_names():
    group = redis(11)
    found = all_shards(group, shards_of(group)[::-1])
    assert [each.name for each in found] == [f"redis-{number}" for number in range(11)]


def test_a_term_without_a_selector_is_left_alone():
    of = shard(affinity=apart(PodAffinityTerm(topology_key=ZONE)))
    assert all_shards(redis(2), [of])[1].pod.pod_spec.affinity == of.pod.pod_spec.affinity
    group = replace(redis(1), selector=LabelSelector())
    assert all_shards(group, [])[0].pod.labels == {"shard": "0"}


APART = PodAffinity(required=(term(ZONE, "app=redis shard=0"),))
DISK = NodeSelectorRequirement(key="disk", operator="Exists")


def on_nodes(*terms):
    made = tuple(NodeSelectorTerm(match_expressions=tuple(each)) for each in terms)
    return requiring(*made)


@pytest.mark.parametrize(
    ("given", "left", "zones"),
    [
        pytest.param(None, None, (), id="no affinity"),
        pytest.param(on_nodes([in_zones("b", "a")]), None, ("a", "b"), id="nothing but a pin"),
        pytest.param(on_nodes([DISK, in_zones("a", "b")]), on_nodes([DISK]), ("a", "b"), id="beside another condition"),
        pytest.param(
            on_nodes([DISK, in_zones("a", "b")], [DISK, in_zones("a", "b")]),
            on_nodes([DISK], [DISK]),
            ("a", "b"),
            id="in every alternative",
        ),
        pytest.param(
            on_nodes([in_zones("a", "b", "c"), in_zones("a", "b")]),
            on_nodes([in_zones("a", "b", "c")]),
            ("a", "b"),
            id="beside zones of its own",
        ),
        pytest.param(on_nodes([in_zones("a", "b", "c")]), ..., (), id="more zones than pods"),
        pytest.param(on_nodes([in_zones("a")]), ..., (), id="fewer"),
        pytest.param(on_nodes([in_zones("a", "b")], [DISK]), ..., (), id="in one alternative"),
        pytest.param(on_nodes([in_zones("a", "b")], [DISK, in_zones("a", "b")]), ..., (), id="alone in one"),
        pytest.param(on_nodes([in_zones("a", "b"), in_zones("a", "c")]), ..., (), id="twice"),
        pytest.param(apart(term(ZONE, "shard=0")), ..., (), id="no nodes"),
    ],
)
def test_a_pin_is_taken_off_a_template(given, left, zones):
    made = shard(affinity=given).pod
    bare, found = split_pin(GROUP, made)
    assert found == zones
    assert bare.pod_spec.affinity == (given if left is ... else left)
    if zones:
        assert split_pin(redis(3, apart=()), made) == (made, ())


def test_fields_are_found_in_whatever_order_they_are_written():
    given = shard(constraint("example.com/rack"), affinity=on_nodes([DISK]))
    assert not has_fields(GROUP, given, [CAP], ("a", "b"))
    fields = shard_fields(GROUP, given, [CAP], ("a", "b"))
    (written,) = fields.affinity.node_affinity.required.node_selector_terms
    turned = replace(
        fields.affinity,
        node_affinity=NodeAffinity(
            required=NodeSelector(
                node_selector_terms=(
                    replace(written, match_expressions=(in_zones("b", "a"), *written.match_expressions[:-1])),
                )
            )
        ),
    )
    other = replace(fields, constraints=fields.constraints[::-1], affinity=turned)
    for each in (fields, other):
        assert has_fields(GROUP, replace(given, pod=with_fields(given.pod, each)), [CAP], ("a", "b"))
    assert not has_fields(GROUP, replace(given, pod=with_fields(given.pod, fields)), [CAP], ("a", "c"))


def test_a_pin_beside_zones_of_the_authors_own_is_found():
    own = shard(CAP, affinity=replace(on_nodes([in_zones("a", "b", "c"), in_zones("a", "b")]), pod_anti_affinity=APART))
    assert has_fields(GROUP, own, [CAP], ("b", "a"))
    assert not has_fields(GROUP, own, [CAP], ("a", "c"))
