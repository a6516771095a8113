"""A group in a cluster for tests: its StatefulSets, its pods, and what its status comes to."""

from build import NAMESPACE, pod, running
from core.groups.grouped import redis, zones
from msgspec import structs

from webhook.core.api.types import PodStatus
from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.groups.group import Fields, with_fields
from webhook.core.groups.status.assess import ObservedGroup, assess
from webhook.core.groups.status.forms import SpreadGroupStatus
from webhook.core.groups.status.members import GroupMember
from webhook.core.policy.policy import Policy
from webhook.core.workloads.reading import read_workload

NOON, LATER = "2026-11-23T12:00:00Z", "2026-11-23T13:00:00Z"
SIX = zones(2, 2, 2)
THREE = redis(3, plan_for=10)


def member(number, pods=2, fields=None, claims=(), *, name="", kind="StatefulSet"):
    """The workload of a shard, without fields of a plan unless they are given."""
    templates = [{"metadata": {"name": each}} for each in claims]
    value = {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name or f"redis-{number}", "namespace": NAMESPACE},
        "spec": {"replicas": pods, "volumeClaimTemplates": templates, "template": {"spec": {"containers": []}}},
    }
    made = pod(f"app=redis shard={number}")
    made = made if fields is None else with_fields(made, fields)
    return GroupMember(workload=read_workload(value), shard=str(number), pod=made, pods=pods)


def members(shards=3, status=None, **more):
    """One for each shard; with a status, with its fields."""
    given = {} if status is None else {each.name: each for each in status.workloads}
    return tuple(
        member(number, fields=fields_of(given[f"redis-{number}"]) if f"redis-{number}" in given else None, **more)
        for number in range(shards)
    )


def fields_of(workload):
    return Fields(workload.topology_spread_constraints, workload.affinity)


def placed(index, status, **nodes):
    """Pods of the group with the fields of the status: ``placed(index, status, a0="0 1")`` by node and shard."""
    found, made = [], {}
    given = {each.shard: each for each in status.workloads}
    for on, shards in nodes.items():
        for shard in shards.split():
            number = made[shard] = made.get(shard, -1) + 1
            each = running(f"redis-{shard}-{number}", on, f"app=redis shard={shard}")
            found.append(with_fields(each, fields_of(given[shard])) if shard in given else each)
            index.apply("ADDED", found[-1])
    return found


def waiting(name, labelled):
    made = running(name, None, labelled)
    return structs.replace(made, status=PodStatus(phase="Pending"))


def told(group, index, of=(), pods=(), before=None, *, generation=1, now=NOON, older=(), policy=None):
    """The status of the group."""
    seen = ObservedGroup(
        group=group,
        generation=generation,
        members=tuple(of),
        pods=tuple(pods),
        older=tuple(older),
        context=Context(policy=policy or Policy(), version=RECORDED, index=index, now=now),
    )
    return assess(seen, before or SpreadGroupStatus())


def conditions(status):
    return {each.type: (each.status, each.reason) for each in status.conditions}


def pins(status):
    return {each.shard: "".join(each.zones) for each in status.workloads}
