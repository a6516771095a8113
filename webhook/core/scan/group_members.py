"""The workloads of a group as the index knows them, each with its next pod; and what the status of a group comes to."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from webhook.core.api.selectors import NOTHING, Selector, compile_selector
from webhook.core.api.spread_group import MOST_GROUPS, SpreadGroup
from webhook.core.api.types import Pod
from webhook.core.coming_pods.next_pod import PodSource, coming_pod
from webhook.core.context import Context
from webhook.core.groups.group import Group
from webhook.core.groups.reading import GroupError, group_of
from webhook.core.groups.status.assess import ObservedGroup, assess, unreadable
from webhook.core.groups.status.forms import Status
from webhook.core.groups.status.members import Member
from webhook.core.index.objects import Owner
from webhook.core.index.owners import as_json
from webhook.core.index.pods import FINISHED
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.workloads.reading import read_workload

# Workloads that are compared with the selector; more than a group has shards.
_MOST_COMPARED = 400
# Far more than a group may have planned; of more nothing is said.
MOST_PODS = 4_000


def workloads_of(group: Group, index: ReadOnlyIndex) -> tuple[Owner, ...]:
    """The workloads whose template the group selects; none of kinds whose spec the index does not keep."""
    found = index.owners.matching(group.namespace, compile_selector(group.selector), _MOST_COMPARED)
    return tuple(each for each in found if each.spec)


def members_of(group: Group, within: Context) -> Iterator[Member]:
    """The workloads with a value of the shard label."""
    for owner in workloads_of(group, within.cluster):
        replicas = 1 if owner.replicas is None else owner.replicas  # the API server's default
        written = as_json(owner, replicas)
        read = None if written is None else read_workload(written, api_version=owner.api_version, kind=owner.kind)
        template = read.templates[0] if read is not None else None
        value = template.template.labels.get(group.shard_label) if template is not None else None
        if read is not None and template is not None and value is not None:
            source = PodSource(workload=read, template=template, namespace=group.namespace, applied=True)
            pod = coming_pod(source, within).pod
            yield Member(workload=read, shard=value, pod=pod, pods=replicas)


def group_status(
    of: SpreadGroup, older: Sequence[SpreadGroup], pods: Iterable[Pod] | None, before: Status, within: Context
) -> Status:
    """What the status of a group comes to.

    Args:
        of: The group.
        older: The groups of its namespace that were there first.
        pods: Those that it selects. None if these are more than `MOST_PODS`.
        before: Its status before.
        within: The policy, the cluster, and the time.
    """
    try:
        group = group_of(of)
    except GroupError as error:
        return unreadable(error.faults, of.generation, before, within.now)
    if pods is None:
        return unreadable([f"the selector matches more than {MOST_PODS:,} pods"], of.generation, before, within.now)
    seen = ObservedGroup(
        group=group,
        generation=of.generation,
        members=tuple(members_of(group, within)),
        pods=tuple(filter(is_counted, pods)),
        older=tuple(map(readable_group, older[:MOST_GROUPS])),
        within=within,
    )
    return assess(seen, before)


class GroupInput(NamedTuple):
    """What `group_status` asks for a group, its ``older`` ones and its ``pods``."""

    group: SpreadGroup
    older: Sequence[SpreadGroup]
    pods: Sequence[Pod] | None


def every_group(pods: Iterable[Pod], index: ReadOnlyIndex) -> Iterator[GroupInput]:
    """All groups of the index, ``pods`` being those that any of them selects."""
    there = defaultdict[str, list[Pod]](list)
    for each in pods:
        there[each.meta.namespace].append(each)
    for namespace, groups in index.namespaces.all_groups().items():
        for number, of in enumerate(groups):
            selector = selector_of(of)
            mine = [each for each in there[namespace] if selector.matches(each.labels)]
            yield GroupInput(of, groups[:number], mine if len(mine) <= MOST_PODS else None)


def selector_of(of: SpreadGroup) -> Selector:
    """What selects the pods of the group in its namespace; nothing for one that cannot be planned."""
    group = readable_group(of)
    return NOTHING if group is None else compile_selector(group.selector)


def is_counted(pod: Pod) -> bool:
    """Whether a pod counts: it is not finished, nor being deleted."""
    finished = pod.status is not None and pod.status.phase in FINISHED
    return not finished and pod.meta.deletion_timestamp is None


def readable_group(of: SpreadGroup) -> Group | None:
    """What its author wrote; None where it cannot be planned."""
    try:
        return group_of(of)
    except GroupError:
        return None
