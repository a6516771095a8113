"""Find the workloads of a SpreadGroup in the index, and compute the status of a group."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from webhook.core.api.selectors import NOTHING, Selector, compile_selector
from webhook.core.api.spread_group import MOST_GROUPS, SpreadGroup
from webhook.core.api.types import Pod
from webhook.core.context import Context
from webhook.core.groups.group import Group
from webhook.core.groups.reading import GroupError, group_from_spec
from webhook.core.groups.status.assess import ObservedGroup, assess, invalid_spec_status
from webhook.core.groups.status.forms import SpreadGroupStatus
from webhook.core.groups.status.members import GroupMember
from webhook.core.index.objects import Owner
from webhook.core.index.owners import owner_workload
from webhook.core.index.pods import FINISHED
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.pods_to_create.next_pod import PodSource, next_pod_of

# Workloads to compare with the selector. A group has fewer shards.
_MOST_COMPARED = 400
# A plan has far fewer pods. A group with more gets no status.
MOST_PODS = 4_000


def workloads_of(group: Group, index: ReadOnlyIndex) -> tuple[Owner, ...]:
    """Return the workloads that the group selects, of kinds with a spec in the index."""
    owners = index.owners.matching(group.namespace, compile_selector(group.selector), _MOST_COMPARED)
    return tuple(owner for owner in owners if owner.spec)


def members_of(group: Group, context: Context) -> Iterator[GroupMember]:
    """Yield the workloads with a shard label, each with its next pod."""
    for owner in workloads_of(group, context.cluster):
        read = owner_workload(owner)
        template = read.templates[0] if read is not None else None
        value = template.pod.labels.get(group.shard_label) if template is not None else None
        if read is not None and template is not None and value is not None:
            source = PodSource(workload=read, template=template, namespace=group.namespace, applied=True)
            pod = next_pod_of(source, context).pod
            yield GroupMember(workload=read, shard=value, pod=pod, pods=owner.wanted)


def group_status(
    written: SpreadGroup,
    older: Sequence[SpreadGroup],
    pods: Iterable[Pod] | None,
    before: SpreadGroupStatus,
    context: Context,
) -> SpreadGroupStatus:
    """Compute the status of a group.

    Args:
        written: The group.
        older: The older groups of its namespace.
        pods: The selected pods. None if there are more than `MOST_PODS`.
        before: The current status of the group.
        context: The policy, the cluster and the time.
    """
    try:
        group = group_from_spec(written)
    except GroupError as error:
        return invalid_spec_status(error.faults, written.generation, before, context.now)
    if pods is None:
        fault = f"the selector matches more than {MOST_PODS:,} pods"
        return invalid_spec_status([fault], written.generation, before, context.now)
    observed = ObservedGroup(
        group=group,
        generation=written.generation,
        members=tuple(members_of(group, context)),
        pods=tuple(filter(is_counted, pods)),
        older=tuple(map(readable_group, older[:MOST_GROUPS])),
        context=context,
    )
    return assess(observed, before)


class GroupInput(NamedTuple):
    """A group, and the other arguments of `group_status` for this group."""

    group: SpreadGroup
    older: Sequence[SpreadGroup]
    pods: Sequence[Pod] | None


def every_group(pods: Iterable[Pod], index: ReadOnlyIndex) -> Iterator[GroupInput]:
    """Yield all groups of the index with their pods. ``pods`` has every pod selected by some group."""
    by_namespace = defaultdict[str, list[Pod]](list)
    for pod in pods:
        by_namespace[pod.meta.namespace].append(pod)
    for namespace, groups in index.namespaces.all_groups().items():
        for number, group in enumerate(groups):
            selector = selector_of(group)
            selected = [pod for pod in by_namespace[namespace] if selector.matches(pod.labels)]
            yield GroupInput(group, groups[:number], selected if len(selected) <= MOST_PODS else None)


def selector_of(written: SpreadGroup) -> Selector:
    """Return the selector of the group's pods in its namespace. An unreadable group selects nothing."""
    group = readable_group(written)
    return NOTHING if group is None else compile_selector(group.selector)


def is_counted(pod: Pod) -> bool:
    """Whether a pod counts: it is neither finished nor being deleted."""
    finished = pod.status is not None and pod.status.phase in FINISHED
    return not finished and pod.meta.deletion_timestamp is None


def readable_group(written: SpreadGroup) -> Group | None:
    """Parse a group. Return None if it has faults."""
    try:
        return group_from_spec(written)
    except GroupError:
        return None
