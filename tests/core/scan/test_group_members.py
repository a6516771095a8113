"""The workloads of a group, from what the index keeps of them."""

import json

import pytest
from build import NAMESPACE, cluster, running
from build import index as index_of
from core.groups.grouped import redis, written, zones
from msgspec.structs import replace

from webhook.core.api.types import TypeMeta
from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.index.readers import decode_object
from webhook.core.policy.policy import Policy
from webhook.core.scan import group_members
from webhook.core.scan.group_members import every_group, members_of, workloads_of
from webhook.core.workloads.custom_kinds import EmbeddedKind

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
    found = [*members_of(GROUP, Context(policy=Policy(), version=RECORDED, index=index))]
    assert sorted((each.name, each.shard, each.pods) for each in found) == [("redis-0", "0", 2), ("redis-1", "1", 1)]
    (first,) = [each for each in found if each.name == "redis-0"]
    assert (first.pod.meta.name, first.pod.labels["shard"]) == ("redis-0-0", "0")


def test_one_that_says_too_much_is_no_member(index):
    put(index, "StatefulSet", "long", {"app": "redis", "shard": "7"} | {f"l{each}": "x" * 60 for each in range(150)})
    assert "long" not in {each.meta.name for each in workloads_of(GROUP, index)}


def test_an_object_of_a_custom_kind_is_no_shard_and_what_its_operator_makes_is(index):
    kind = EmbeddedKind(
        api_version="db.example.com/v1", kind="Redis", template_path="spec.template", replicas_path="spec.replicas"
    )
    template = {"metadata": {"labels": {"app": "redis", "shard": "7"}}, "spec": {"containers": [{"name": "c"}]}}
    made = {"metadata": {"name": "seven", "namespace": NAMESPACE}, "spec": {"replicas": 2, "template": template}}
    of = TypeMeta(api_version=kind.api_version, kind=kind.kind)
    index.apply("ADDED", decode_object(json.dumps(made).encode(), of, (kind,)))
    within = Context(policy=Policy(workloads=(kind,)), version=RECORDED, index=index)
    assert "seven" not in {each.name for each in members_of(GROUP, within)}
    put(index, "StatefulSet", "seven-0", template["metadata"]["labels"], replicas=2)
    members = {each.name: each for each in members_of(GROUP, within)}
    assert (members["seven-0"].shard, members["seven-0"].pods) == ("7", 2)


def test_each_group_gets_the_pods_of_its_namespace_that_it_selects(monkeypatch):
    """Its selector is compiled once, however many pods there are."""
    asked, compiled = [], group_members.compile_selector
    monkeypatch.setattr(group_members, "compile_selector", lambda of: asked.append(of) or compiled(of))
    monkeypatch.setattr(group_members, "MOST_PODS", 2)
    mine = written()
    other = replace(mine, metadata=replace(mine.metadata, namespace="other"))
    unreadable = written("unreadable", caps=({"topologyKey": "zone"},))
    pods = [running("redis-0", "n1", "app=redis"), running("redis-1", "n1", "app=redis"), running("web", "n1")]
    crowd = [running(f"redis-{each}", "n1", "app=redis", namespace="other") for each in range(3)]
    found = every_group([*pods, *crowd], index_of(mine, unreadable, other))
    assert sorted(
        (each.group.meta.namespace, each.group.meta.name, len(each.older), each.pods and [*map(_name, each.pods)])
        for each in found
    ) == [
        ("other", "cache", 0, None),
        ("shop", "cache", 0, ["redis-0", "redis-1"]),
        ("shop", "unreadable", 1, []),
    ]
    assert len(asked) == 2


def _name(of):
    return of.meta.name
