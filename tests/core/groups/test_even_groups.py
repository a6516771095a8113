"""Groups of the field's ConfigMap: spread over zones and nodes as far as their caps and nodes allow."""

from collections import Counter

import pytest
from build import cluster, constraint
from core.groups.every_order import Orders, hosts_of
from core.groups.grouped import cap, derive, redis, shards_of, zones
from msgspec.structs import replace

from webhook.core.api.well_known import BETA_ZONE, HOSTNAME, ZONE
from webhook.core.groups.plan import CapMethod
from webhook.core.placement.placement_verdict import PlacementVerdict
from webhook.core.policy.policy import Policy

CAPS = (cap(HOSTNAME, "<=2"), cap(ZONE, "<=3"))


def planned(group, nodes):
    return derive(group, shards_of(group), cluster(nodes), Policy()).plan


def zones_held(plan, nodes):
    """How many pods each zone holds, in every end of every order."""
    hosts = hosts_of(nodes)
    for state in Orders(hosts, 2, [*plan.fields.values()]).ends():
        held = Counter(dict.fromkeys(hosts.values(), 0))
        held.update(hosts[host] for each in state for host in each)
        yield held


@pytest.mark.parametrize("nodes", [(2, 2, 1), (1, 2, 2), (2, 2, 2), (3, 1, 1), (1, 1, 1, 2)])
def test_no_order_leaves_a_required_zone_empty(nodes):
    text = zones(*nodes)
    group = redis(3, caps=CAPS, even=True, domains=tuple("abcd"[: len(nodes)]))
    plan = planned(group, text)
    assert (plan.verdict, plan.keeping[ZONE].way) == (PlacementVerdict.FITS, CapMethod.PINS)
    for held in zones_held(plan, text):
        assert sum(held.values()) == 6
        assert max(held.values()) - min(held.values()) <= 1


def test_with_caps_alone_some_orders_do():
    text = zones(2, 2, 1)
    plan = planned(redis(3, caps=CAPS, domains=("a", "b", "c")), text)
    assert plan.keeping[ZONE].way is not CapMethod.PINS
    assert any(min(held.values()) == 0 for held in zones_held(plan, text))


def soft(constraints):
    return [(each.topology_key, each.max_skew) for each in constraints if not each.hard]


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        pytest.param(redis(3, even=True, caps=CAPS), [(HOSTNAME, 1), (ZONE, 1)], id="zones"),
        pytest.param(redis(3, even=True), [(ZONE, 1)], id="at most one pod on a node, so that evenness says no more"),
        pytest.param(redis(3), [], id="a group that does not ask for it"),
        pytest.param(
            redis(3, even=True, apart=(HOSTNAME,), caps=(cap(HOSTNAME, "<=2"),)), [(HOSTNAME, 1)], id="one zone"
        ),
        pytest.param(
            redis(3, even=True, apart=(BETA_ZONE,), caps=(cap(HOSTNAME, "<=2"),)),
            [(HOSTNAME, 1), (BETA_ZONE, 1)],
            id="the deprecated key",
        ),
    ],
)
def test_soft_constraints_of_an_even_group(group, expected):
    nodes = cluster(zones(2, 2, 2), labelled="")
    for name in nodes.nodes.view().names:
        made = nodes.nodes.get(name)
        labels = {**made.metadata.labels, BETA_ZONE: made.metadata.labels[ZONE]}
        nodes.apply("MODIFIED", replace(made, metadata=replace(made.metadata, labels=labels)))
    plan = derive(group, shards_of(group), nodes, Policy()).plan
    assert all(soft(each.constraints) == expected for each in plan.fields.values())


def test_a_soft_constraint_of_the_template_stays():
    group = redis(3, even=True, caps=CAPS)
    own = constraint(max_skew=2, when="ScheduleAnyway", select="app=redis")
    shards = [with_constraint(each, own) for each in shards_of(group)]
    plan = derive(group, shards, cluster(zones(2, 2, 2)), Policy()).plan
    assert all(soft(each.constraints) == [(ZONE, 2), (HOSTNAME, 1)] for each in plan.fields.values())


def with_constraint(shard, own):
    return replace(shard, pod=replace(shard.pod, spec=replace(shard.pod.spec, topology_spread_constraints=(own,))))
