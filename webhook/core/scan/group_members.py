"""The workloads of a group as the index knows them, each with its next pod."""

from collections.abc import Iterator

from webhook.core.api.selectors import compile_selector
from webhook.core.api.version import KubernetesVersion
from webhook.core.defaulting.next_pod import after_admission, next_pod
from webhook.core.groups.group import Group
from webhook.core.groups.standing.members import Member
from webhook.core.index.objects import Owner
from webhook.core.index.owners import as_json
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.policy.policy import Policy
from webhook.core.workloads.reading import read_workload

# Workloads that are compared with the selector; more than a group has shards.
_MOST_COMPARED = 400


def workloads_of(group: Group, index: ReadOnlyIndex) -> tuple[Owner, ...]:
    """The workloads whose template the group selects; none of kinds whose spec the index does not keep."""
    found = index.workloads(group.namespace, compile_selector(group.selector), _MOST_COMPARED)
    return tuple(each for each in found if each.spec)


def members_of(group: Group, index: ReadOnlyIndex, policy: Policy, version: KubernetesVersion) -> Iterator[Member]:
    """The workloads with a value of the shard label."""
    for owner in workloads_of(group, index):
        replicas = 1 if owner.replicas is None else owner.replicas  # the API server's default
        written = as_json(owner, replicas)
        read = None if written is None else read_workload(written, api_version=owner.api_version, kind=owner.kind)
        template = read.templates[0] if read is not None else None
        value = template.template.labels.get(group.shard_label) if template is not None else None
        if read is not None and template is not None and value is not None:
            sent = next_pod(read, template, group.namespace, index, applied=True).template
            pod = after_admission(sent, group.namespace, policy, index, version).pod
            yield Member(workload=read, shard=value, pod=pod, pods=replicas)
