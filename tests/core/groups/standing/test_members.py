"""The workloads of a group as shards: which zones are settled, and that a plan with its pins is planned again."""

import pytest
from build import cluster
from core.groups.grouped import redis
from core.groups.standing.stands import SIX, THREE, member, members, placed, told
from core.scheduler.plugins.test_volume_filters import claim, in_zone, volume

from webhook.core.groups.standing.members import gathered


def settled(found):
    return {each.value: "".join(each.zones) for each in found.shards if each.zones}


def test_volumes_settle_zones_before_what_is_stored():
    index = cluster(SIX)
    index.apply("ADDED", volume("pv", affinity=in_zone("c")))
    index.apply("ADDED", claim("data-redis-0-0", "pv"))
    found = gathered(
        THREE, [member(0, claims=["data"]), member(1)], index, {"0": ("a", "b"), "1": ("b", "c"), "7": ("a", "c")}
    )
    assert settled(found) == {"0": "ca", "1": "bc", "7": "ac"}
    assert [each.exists for each in found.shards][:3] == [True, True, False]


def test_the_pins_of_templates_are_settled_and_planned_again():
    index = cluster(SIX)
    first = told(THREE, index, members())
    found = gathered(THREE, members(status=first), index)
    assert settled(found) == {"0": "ab", "1": "ac", "2": "bc"}
    again = told(THREE, index, members(status=first))
    assert again.workloads == first.workloads


def test_the_cluster_is_without_the_pods_of_the_group():
    index = cluster(SIX)
    status = told(THREE, index, members())
    placed(index, status, a0="0 1", b0="0")
    found = gathered(THREE, members(), index)
    assert found.running == 3
    assert told(THREE, index, members(), before=status).workloads == status.workloads


@pytest.mark.parametrize("shards", [2, 12])
def test_there_is_a_shard_for_each_that_is_planned_or_written(shards):
    found = gathered(redis(3, plan_for=10), members(shards), cluster(SIX))
    assert len(found.shards) == max(10, shards)
    assert found.group.plan_for == max(10, shards)
