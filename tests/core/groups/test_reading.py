"""Groups as they are written: SpreadGroups, the field's ConfigMap, and what is said of those that cannot be planned."""

from fractions import Fraction

import msgspec
import pytest

from webhook.core.api.types import LabelSelector
from webhook.core.api.well_known import BETA_ZONE, HOSTNAME, ZONE
from webhook.core.groups.reading import GroupError, describes_cluster, read_config_map, read_group, unread_keys

SPEC = {
    "selector": {"matchLabels": {"redis.example/cluster": "cache"}},
    "shard": {"label": "redis.example/shard", "neverShare": ZONE},
    "expected": {"shards": 6, "podsPerShard": 3},
    "planFor": {"shards": 10},
    "requiredDomains": {"topologyKey": ZONE, "values": ["a", "b", "c"]},
    "caps": [
        {"topologyKey": ZONE, "lessThan": "1/2"},
        {"topologyKey": HOSTNAME, "atMost": 5},
        {
            "topologyKey": ZONE,
            "lessThan": "1/2",
            "selector": {"matchLabels": {"role": "master"}},
            "enforce": "observe",
        },
    ],
    "delivery": "status",
}


def group(**changes):
    spec = {key: value for key, value in {**SPEC, **changes}.items() if value is not None}
    return read_group({"metadata": {"name": "cache", "namespace": "shop"}, "spec": spec}, "default")


def test_a_spread_group():
    found = group()
    assert (found.name, found.namespace, found.shards, found.pods, found.plan_for) == ("cache", "shop", 6, 18, 10)
    assert (found.never_share, found.domains_key, found.domains) == ((ZONE,), ZONE, ("a", "b", "c"))
    assert [(each.amount, each.of_pods, each.strict, each.enforced) for each in found.caps] == [
        (Fraction(1, 2), True, True, True),
        (Fraction(5), False, False, True),
        (Fraction(1, 2), True, True, False),
    ]
    assert found.caps[2].selector == LabelSelector(match_labels={"role": "master"})
    assert (found.most(ZONE), found.most(HOSTNAME), found.inject, found.zone_key) == (8, 5, False, ZONE)


def test_a_spread_group_in_bytes_with_little_in_it():
    value = {"metadata": {"name": "cache"}, "spec": {name: SPEC[name] for name in ("selector", "expected")}}
    value["spec"]["shard"] = {"label": "shard"}
    found = read_group(msgspec.json.encode(value), "here")
    assert (found.namespace, found.never_share, found.plan_for, found.domains) == ("here", (), 6, None)
    assert (found.caps, found.zone_key, found.keeps_zones_apart) == ((), ZONE, False)


def test_both_and_another_key_than_zones():
    assert group(shard={"label": "s", "neverShare": "both"}).never_share == (ZONE, HOSTNAME)
    rack = {"topologyKey": "example.com/rack"}
    found = group(
        shard={"label": "s", "neverShare": "example.com/rack"},
        caps=[rack | {"atMost": 3}],
        requiredDomains=rack | {"values": ["r1"]},
        delivery="inject",
    )
    assert (found.zone_key, found.inject) == ("example.com/rack", True)


CAP = {"topologyKey": ZONE}


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        pytest.param(
            {"selector": {}},
            "spec.selector: selects every pod of the namespace; name the labels of the group",
            id="every pod",
        ),
        pytest.param(
            {"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}},
            "spec.selector: ",
            id="a selector that kube-apiserver refuses",
        ),
        pytest.param({"shard": {"label": ""}}, "spec.shard.label: must not be empty", id="no label"),
        pytest.param(
            {"expected": {"shards": 0, "podsPerShard": 2}, "planFor": None},
            "spec.expected.shards: 0 is not between 1 and 200",
            id="no shard",
        ),
        pytest.param(
            {"expected": {"shards": 6, "podsPerShard": 21}},
            "spec.expected.podsPerShard: 21 is not between 1 and 20",
            id="many pods",
        ),
        pytest.param(
            {"planFor": {"shards": 5}},
            "spec.planFor.shards: 5 is not between expected.shards and 200",
            id="plan for less",
        ),
        pytest.param(
            {"requiredDomains": {"topologyKey": ZONE, "values": []}},
            "spec.requiredDomains.values: must not be empty",
            id="no domain",
        ),
        pytest.param(
            {"caps": [{"topologyKey": "", "atMost": 1}]}, "spec.caps[0].topologyKey: must not be empty", id="no key"
        ),
        pytest.param({"caps": [CAP]}, "spec.caps[0]: needs one of lessThan and atMost", id="no amount"),
        pytest.param(
            {"caps": [CAP | {"lessThan": 3, "atMost": 3}]}, "spec.caps[0]: needs one of lessThan and atMost", id="two"
        ),
        pytest.param(
            {"caps": [CAP | {"lessThan": "half"}]},
            "spec.caps[0].lessThan: half is not a fraction of the pods such as 1/2",
            id="a word",
        ),
        pytest.param(
            {"caps": [CAP | {"atMost": "3/2"}]},
            "spec.caps[0].atMost: 3/2 is not a fraction of the pods such as 1/2",
            id="more than all",
        ),
        pytest.param(
            {"caps": [CAP | {"atMost": "1/0"}]},
            "spec.caps[0].atMost: 1/0 is not a fraction of the pods such as 1/2",
            id="divided by nothing",
        ),
        pytest.param({"caps": [CAP | {"atMost": 0}]}, "spec.caps[0].atMost: 0 must be at least 1", id="none"),
        pytest.param(
            {"caps": [CAP | {"atMost": 3, "enforce": "maybe"}]},
            "spec.caps[0].enforce: maybe is neither enforce nor observe",
            id="enforce",
        ),
        pytest.param(
            {"caps": [CAP | {"atMost": 3, "selector": {}}]},
            "spec.caps[0].selector: a cap with its own selector can only be observed; set enforce: observe",
            id="a selector that is enforced",
        ),
        pytest.param(
            {"caps": [CAP | {"atMost": 3}, {"topologyKey": "example.com/rack", "atMost": 2}]},
            f"spec: example.com/rack and {ZONE}: a plan supports only one key besides {HOSTNAME}",
            id="zones and racks",
        ),
        pytest.param(
            {"expected": {"shards": "six", "podsPerShard": 3}},
            "spec.expected.shards: Expected `int`, got `str`",
            id="a word for a number",
        ),
    ],
)
def test_what_cannot_be_planned(changes, fault):
    with pytest.raises(GroupError) as raised:
        group(**changes)
    assert [each for each in raised.value.faults if each.startswith(fault)], raised.value.faults


def test_what_is_no_spread_group_at_all():
    with pytest.raises(GroupError, match="Object missing required field `spec`"):
        read_group({}, "default")
    with pytest.raises(GroupError, match="truncated"):
        read_group(b"{", "default")


NOT_FROM = "must be even, and at least data[cluster-size]"
FIELD = {"cluster-size": "18", "max-pod-on-node": "5", "max-pod-in-zone": "8", "available-zones": "a, b,c"}


def config_map(zones=("a", "b"), **data):
    given = {key: value for key, value in {**FIELD, **data}.items() if value is not None}
    return read_config_map({"metadata": {"name": "redis"}, "data": given}, "shop", zones)


def test_the_config_map_of_the_field():
    found = config_map()
    assert (found.name, found.namespace, found.shards, found.pods_per_shard) == ("redis", "shop", 9, 2)
    assert (found.never_share, found.domains) == ((ZONE,), ("a", "b", "c"))
    assert (found.most(HOSTNAME), found.most(ZONE)) == (5, 8)


def test_one_zone_keeps_nodes_apart():
    unset = {"available-zones": None, "max-pod-in-zone": None}
    found = config_map(zones=("a",), **unset)
    assert (found.never_share, found.domains, found.most(ZONE)) == ((HOSTNAME,), None, None)
    assert config_map(**unset).never_share == (ZONE,)


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        pytest.param(
            {"cluster-size": "17"}, "data[cluster-size]: 17 is odd, but a shard has a master and a replica", id="odd"
        ),
        pytest.param(
            {"cluster-size": "1" * 5000},
            f"data[cluster-size]: {'1' * 39}… is not a number from 1 to 400",
            id="more digits than Python reads",
        ),
        pytest.param({"cluster-size": "many"}, "data[cluster-size]: many is not a number from 1 to 400", id="a word"),
        pytest.param({"plan-for-size": "16"}, f"data[plan-for-size]: 16 {NOT_FROM}", id="smaller"),
        pytest.param({"plan-for-size": "21"}, f"data[plan-for-size]: 21 {NOT_FROM}", id="odd size"),
        pytest.param({"max-pod-on-node": 5}, 'data[max-pod-on-node]: 5 is not a string; write "5"', id="not quoted"),
        pytest.param({"max-pod-in-zone": "0"}, "data[max-pod-in-zone]: 0 is not a number from 1 to 400", id="none"),
    ],
)
def test_a_config_map_that_cannot_be_planned(data, fault):
    with pytest.raises(GroupError) as raised:
        config_map(**data)
    assert raised.value.faults == (fault,)


@pytest.mark.parametrize(("size", "shards"), [(None, 9), ("18", 9), ("20", 10), ("60", 30)])
def test_the_size_that_is_planned_for(size, shards):
    assert config_map(**{"plan-for-size": size}).plan_for == shards


def test_zones_under_another_key():
    data = {"metadata": {"name": "redis"}, "data": FIELD}
    found = read_config_map(data, "shop", (), BETA_ZONE)
    assert (found.never_share, found.domains_key, found.zone_key, found.most(BETA_ZONE)) == (
        (BETA_ZONE,),
        BETA_ZONE,
        BETA_ZONE,
        8,
    )


def test_keys_that_say_nothing():
    assert unread_keys({"data": {**FIELD, "max-pods-on-node": "5"}}) == ("max-pods-on-node",)
    assert unread_keys({}) == ()


def test_which_config_maps_describe_a_cluster():
    assert [describes_cluster(each) for each in ({"data": FIELD}, {"data": {"a": "b"}}, {}, {"data": None})] == [
        True,
        False,
        False,
        False,
    ]
