"""The workloads of a group, from what the index keeps of them."""

import json

import pytest
from build import NAMESPACE, cluster
from core.groups.grouped import redis, zones

from webhook.core.api.types import TypeMeta
from webhook.core.api.version import RECORDED
from webhook.core.index.readers import decode_object
from webhook.core.policy.policy import Policy
from webhook.core.scan.group_members import members_of, workloads_of

GROUP = redis(3)


def put(index, kind, name, labels, **spec):
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    made = {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"template": template, **spec}}
    index.apply("ADDED", decode_object(json.dumps(made).encode(), TypeMeta(api_version="apps/v1", kind=kind)))


@pytest.fixture(name="index")
def _index():
    index = cluster(zones(1, 1, 1))
    put(index, "StatefulSet", "redis-0", {"app": "redis", "shard": "0"}, replicas=2)
    put(index, "Deployment", "redis-1", {"app": "redis", "shard": "1"})
    put(index, "StatefulSet", "unnamed", {"app": "redis"})
    put(index, "StatefulSet", "web", {"app": "web", "shard": "0"})
    return index


def test_those_that_the_group_selects_and_that_name_their_shard(index):
    found = [*members_of(GROUP, index, Policy(), RECORDED)]
    assert sorted((each.name, each.shard, each.pods) for each in found) == [("redis-0", "0", 2), ("redis-1", "1", 1)]
    (first,) = [each for each in found if each.name == "redis-0"]
    assert (first.pod.meta.name, first.pod.labels["shard"]) == ("redis-0-0", "0")


def test_one_that_says_too_much_is_no_member(index):
    put(index, "StatefulSet", "long", {"app": "redis", "shard": "7"} | {f"l{each}": "x" * 60 for each in range(150)})
    assert "long" not in {each.meta.name for each in workloads_of(GROUP, index)}
