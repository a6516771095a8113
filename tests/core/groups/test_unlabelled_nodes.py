"""Nodes without a topology key: no cap and no shard rule counts their pods, so no plan may let pods go there."""

import pytest
from build import cluster, running
from core.groups.every_order import Orders
from core.groups.grouped import FIELD, cap, derive, planned_for, redis, shards_of
from msgspec.structs import replace

from webhook.core.api.types import NodeSpec, Taint
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.groups.derive import kept_plan
from webhook.core.groups.group import StoredPlan
from webhook.core.groups.group_constraints import exact_cap, label_constraint
from webhook.core.groups.plan import CapMethod
from webhook.core.placement.placement_verdict import PlacementVerdict
from webhook.core.policy.policy import Policy

WHOLE = (cap(ZONE, "<=3"), cap(HOSTNAME, "<=3"))
HALF = (cap(ZONE, "<=1/2"),)
SIX = "a: a0 a1 | b: b0 b1"


def known(text):
    """The cluster, in which nodes with ``h`` have no hostname label, and nodes with ``f`` are full."""
    found = cluster(text)
    for name in found.nodes.view().names:
        made = found.nodes.get(name)
        if name and name[0] == "h":
            labels = {key: value for key, value in made.metadata.labels.items() if key != HOSTNAME}
            found.apply("MODIFIED", replace(made, metadata=replace(made.metadata, labels=labels)))
        elif name and name[0] == "f":
            found.apply("MODIFIED", replace(made, status=replace(made.status, allocatable={"cpu": "1", "pods": "0"})))
    return found


def hosts_of(text):
    """The nodes that can take a pod, with their zones; None for those without."""
    parts = (part.rpartition(":") for part in text.split("|"))
    return {name: zone.strip() or None for zone, _, names in parts for name in names.split() if name[0] not in "~f"}


def ends_of(plan, group, text):
    hosts = hosts_of(text)
    nameless = [each for each in hosts if each[0] == "h"]
    return Orders(hosts, group.pods_per_shard, [*plan.fields.values()], nameless=nameless).ends()


GROUPS = [
    pytest.param(redis(3, caps=WHOLE), id="shards keep the caps"),
    pytest.param(redis(2, caps=HALF), id="a cap of zones"),
    pytest.param(redis(3, caps=()), id="no cap"),
    pytest.param(redis(3, caps=(), apart=(ZONE, HOSTNAME)), id="no cap, neither zone nor node shared"),
    pytest.param(redis(2, caps=(cap(HOSTNAME, "<=2"),), apart=(HOSTNAME,)), id="hosts alone"),
    pytest.param(redis(2, caps=(), apart=(HOSTNAME,)), id="hosts alone, no cap"),
    pytest.param(redis(2, caps=(cap(ZONE, "<=1/2"),), apart=()), id="no shard rule"),
    pytest.param(redis(3, caps=FIELD), id="the field's caps"),
    pytest.param(redis(2, 3, caps=(cap(ZONE, "<=2"),)), id="a pod of each shard in each zone"),
]
NODES = [
    pytest.param("n0", id="no zone"),
    pytest.param("n0 n1", id="two without a zone"),
    pytest.param("n0 | c: c0", id="no zone, and a third zone"),
    pytest.param("h0", id="neither zone nor hostname"),
    pytest.param("a: h0", id="no hostname"),
    pytest.param("~n0", id="no zone, tainted"),
    pytest.param("f0", id="no zone, full"),
]


@pytest.mark.parametrize("more", NODES)
@pytest.mark.parametrize("group", GROUPS)
def test_no_order_of_a_proven_plan_evades_a_cap(group, more):
    text = f"{SIX} | {more}"
    found = derive(group, shards_of(group), known(text), Policy())
    if found.plan is None:
        assert found.reasons
        return
    hosts = hosts_of(text)
    proven = found.plan.verdict is PlacementVerdict.FITS
    for state in ends_of(found.plan, group, text):
        pods = [host for each in state for host in each]
        assert not proven or len(pods) == group.pods
        if group.names_zones:
            assert all(hosts[each] for each in pods)
            held = [hosts[each] for each in pods]
            assert max(map(held.count, held)) <= (group.most(ZONE) or group.pods)
        if group.keeps_zones_apart:
            assert all(len({hosts[host] for host in each}) == len(each) for each in state)
        if group.never_share:
            assert all(len({*each}) == len(each) for each in state)
        if group.most(HOSTNAME) is not None:
            assert max(map(pods.count, pods)) <= group.most(HOSTNAME)


@pytest.mark.parametrize("more", ["~n0", "~n0 ~n1"])
@pytest.mark.parametrize("group", GROUPS)
def test_a_node_that_pods_may_not_use_changes_no_plan(group, more):
    texts = (f"{SIX} | {more}", SIX)
    one, other = (derive(group, shards_of(group), known(each), Policy()).plan for each in texts)
    assert one == other


def cordoned(text, name):
    found = known(text)
    taint = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
    found.apply("MODIFIED", replace(found.nodes.get(name), spec=NodeSpec(unschedulable=True, taints=(taint,))))
    return found


@pytest.mark.parametrize(
    ("index", "ways"),
    [
        pytest.param(known(SIX), [CapMethod.NOTHING], id="every node has the label"),
        pytest.param(known(f"{SIX} | n0"), [CapMethod.LABEL], id="one has not"),
        pytest.param(known(f"{SIX} | f0"), [CapMethod.LABEL], id="one has not, and is full today"),
        pytest.param(cordoned(f"{SIX} | n0", "n0"), [CapMethod.LABEL], id="one has not, and is cordoned today"),
        pytest.param(known(f"{SIX} | ~n0"), [CapMethod.NOTHING], id="one has not, and pods do not tolerate its taint"),
    ],
)
def test_the_label_is_required_where_a_node_lacks_it(index, ways):
    group = redis(2, caps=(cap(ZONE, "<=2"),))
    plan = derive(group, shards_of(group), index, Policy()).plan
    assert [each.way for each in plan.keeping.values()] == ways
    assert (label_constraint(group, ZONE) in plan.constraints) == (ways == [CapMethod.LABEL])


@pytest.mark.parametrize(
    ("constraints", "nodes", "stands"),
    [
        pytest.param((), SIX, True, id="every node has the label"),
        pytest.param((), f"{SIX} | n0", False, id="a node came without it"),
        pytest.param((), f"{SIX} | ~n0", True, id="a node came that pods may not use"),
        pytest.param("label", f"{SIX} | n0", True, id="the plan requires the label"),
        pytest.param("label", SIX, True, id="the plan requires the label, which all nodes have now"),
        pytest.param("cap", f"{SIX} | n0", True, id="an exact cap requires it too"),
    ],
)
def test_a_stored_plan_stands_while_no_pod_can_evade_it(constraints, nodes, stands):
    group = redis(2, caps=(cap(ZONE, "<=2"),))
    given = {"label": (label_constraint(group, ZONE),), "cap": (exact_cap(group, ZONE, 2),)}.get(constraints, ())
    found = kept_plan(planned_for(group, shards_of(group), known(nodes)), StoredPlan(given))
    assert (found.plan is not None and found.fits) == stands


def test_pods_that_run_on_such_nodes_are_placed_anew():
    group, index = redis(2, caps=(cap(ZONE, "<=2"),)), known(f"{SIX} | n0")
    for number in range(3):
        index.apply("ADDED", running(f"old-{number}", "n0", "app=other"))
    assert derive(group, shards_of(group), index, Policy()).plan.keeping[ZONE].way is CapMethod.LABEL
