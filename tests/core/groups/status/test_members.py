"""The workloads of a group as shards: which zones are settled, and that a plan with its pins is planned again."""

import pytest
from build import cluster, node, running
from core.groups.grouped import redis, zones
from core.groups.status.stands import SIX, THREE, conditions, member, members, pins, placed, told
from core.scheduler.plugins.test_volume_filters import claim, in_zone, volume

from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.groups.status.forms import SpreadGroupStatus
from webhook.core.groups.status.members import shards_in_cluster
from webhook.core.policy.policy import Policy


def within(index):
    return Context(policy=Policy(), version=RECORDED, index=index)


def settled(found):
    return {each.value: "".join(each.zones) for each in found.shards if each.zones}


def test_volumes_settle_zones_before_what_is_stored():
    index = cluster(SIX)
    index.apply("ADDED", volume("pv", affinity=in_zone("c")))
    index.apply("ADDED", claim("data-redis-0-0", "pv"))
    found = shards_in_cluster(
        THREE,
        [member(0, claims=["data"]), member(1)],
        within(index),
        {"0": ("a", "b"), "1": ("b", "c"), "7": ("a", "c")},
    )
    assert settled(found) == {"0": "ca", "1": "bc", "7": "ac"}
    assert [each.exists for each in found.shards][:3] == [True, True, False]


def test_the_pins_of_templates_are_settled_and_planned_again():
    index = cluster(SIX)
    first = told(THREE, index, members())
    found = shards_in_cluster(THREE, members(status=first), within(index))
    assert settled(found) == {"0": "ab", "1": "ac", "2": "bc"}
    again = told(THREE, index, members(status=first))
    assert again.workloads == first.workloads


def test_the_cluster_is_without_the_pods_of_the_group():
    index = cluster(SIX)
    status = told(THREE, index, members())
    placed(index, status, a0="0 1", b0="0")
    found = shards_in_cluster(THREE, members(), within(index))
    assert found.running == 3
    assert told(THREE, index, members(), before=status).workloads == status.workloads


@pytest.mark.parametrize("shards", [2, 12])
def test_there_is_a_shard_for_each_that_is_planned_or_written(shards):
    found = shards_in_cluster(redis(3, plan_for=10), members(shards), within(cluster(SIX)))
    assert len(found.shards) == max(10, shards)
    assert found.group.plan_for == max(10, shards)


def test_zones_in_which_pods_are_settle_nothing_and_are_told_the_fullest_first():
    index = cluster(f"lost=0 | {SIX}")
    placed(index, SpreadGroupStatus(), a0="0", b0="0 1", b1="0", lost="1")
    found = shards_in_cluster(THREE, [member(0), member(1)], within(index))
    assert [(each.zones, each.running) for each in found.shards][:3] == [((), ("b", "a")), ((), ("b",)), ((), ())]
    assert found.running == 5
    index.apply("ADDED", node("later", "a"))
    index.apply("ADDED", running("redis-2-0", "later", "app=redis shard=2"))
    index.apply("DELETED", node("later", "a"))
    assert shards_in_cluster(THREE, members(), within(index)).shards[2].running == ()


@pytest.mark.parametrize(
    ("nodes", "zones"),
    [
        pytest.param({"a0": "0", "b0": "0", "a1": "1", "c0": "1", "b1": "2", "c1": "2"}, "ab ac bc", id="all"),
        pytest.param({"c0": "0", "a0": "0", "b0": "1", "c1": "1", "a1": "2", "b1": "2"}, "ac bc ab", id="all others"),
        pytest.param({"b0": "2", "c0": "2"}, "ab ac bc", id="of the one shard that runs"),
        pytest.param({"a0": "2 1 0"}, "ab ac bc", id="but one, where a zone has more than it may"),
        pytest.param({"c0": "0", "c1": "0"}, "ac ab bc", id="but one, where a shard has two in a zone"),
    ],
)
def test_a_first_plan_leaves_pods_where_they_are(nodes, zones):
    index = cluster(SIX)
    pods = placed(index, SpreadGroupStatus(), **nodes)
    status = told(redis(3, plan_for=6), index, members(), pods)
    assert " ".join(pins(status)[each] for each in "012") == zones
    assert conditions(status)["CannotGetStuck"] == ("True", "ZoneByZone")
    # What is stored stays, wherever pods are afterwards.
    index.apply("ADDED", running("redis-0-9", "b0", "app=redis shard=0"))
    assert told(redis(3, plan_for=6), index, members(), pods, before=status).workloads == status.workloads


def test_pods_of_shards_beyond_those_that_are_expected_stay_as_far_as_these_leave_room():
    """Of three shards a zone may hold two pods: one moves, and the fourth is no reason for it."""
    index = cluster(zones(4, 4, 4))
    placed(index, SpreadGroupStatus(), a0="0 1", b0="0 1", b1="3", c1="3")
    assert pins(told(redis(3, plan_for=6), index, members(4))) == {"0": "bc", "1": "ab", "2": "ac"}
