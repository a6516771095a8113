"""The pods that other workloads of a SpreadGroup still lack: declared replicas without a pod that has a node."""

from collections.abc import Iterator

from msgspec import Struct

from webhook.core.budget import Reason
from webhook.core.coming_pods.missing_pods import to_come
from webhook.core.coming_pods.next_pod import PodSource
from webhook.core.groups.delivery import has_stored_plan
from webhook.core.groups.reading import Membership
from webhook.core.index.objects import Owner
from webhook.core.index.owners import as_json
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.game_from_cluster import PodBatch
from webhook.core.rules.frame.subject import Subject
from webhook.core.scheduler.profile import DEFAULT_SCHEDULER
from webhook.core.workloads.kinds import group_kind
from webhook.core.workloads.reading import read_workload
from webhook.core.workloads.workload import compiled, namespace_of

_KINDS = ("statefulsets", "deployments", "replicasets")
_MOST_COMPARED = 400  # more than a group has shards
_MOST = 16  # each is placed as its controller would; of more nothing is said
_ANY_NUMBER = 2**31 - 1


class Lacking(Struct, frozen=True):
    """Pods that another workload lacks, as many as there can be; ``unknown`` says why nobody knows where they go.

    Shape: ``unplanned`` is the workload's name where its template has not what is stored of the group's plan.
    """

    pods: int
    batches: tuple[PodBatch, ...] = ()
    unplanned: str = ""
    unknown: Reason | None = None


def lacking(of: Membership, subject: Subject, index: ReadOnlyIndex) -> Iterator[Lacking]:
    """What each other workload lacks whose template the group selects; of those that lack none, nothing.

    Shape: none for a pod, whose own controller is among the others.
    """
    workload, found = subject.workload, 0
    if workload.is_pod:
        return
    if missing := index.lacks(*_KINDS):
        yield Lacking(_ANY_NUMBER, unknown=Reason(missing))
    mine, namespace = (*workload.group_kind, workload.meta.name), namespace_of(workload.meta.namespace)
    for owner in index.owners.matching(namespace, of.selector, _MOST_COMPARED):
        # Of a custom resource it is its operator that says which pods it gets, by workloads that are here too.
        if owner.spec and (*group_kind(owner.api_version, owner.kind), owner.meta.name) != mine:
            pods = _missing(owner, namespace, index)
            found += pods > 0
            if found > _MOST:
                yield Lacking(
                    _ANY_NUMBER, unknown=Reason(f"unknown: more than {_MOST} workloads of the group lack pods")
                )
                return
            if pods:
                yield from _of(owner, pods, of, subject, index)


def _missing(owner: Owner, namespace: str, index: ReadOnlyIndex) -> int:
    """The replicas without a running pod, as far as its selector says which are its own."""
    replicas, own = 1 if owner.replicas is None else owner.replicas, compiled(owner.selector)
    return replicas if own is None else max(0, replicas - sum(index.pods.count(namespace, own).values()))


def _of(owner: Owner, pods: int, of: Membership, subject: Subject, index: ReadOnlyIndex) -> Iterator[Lacking]:
    written = as_json(owner, 1 if owner.replicas is None else owner.replicas) or b"{}"
    read = read_workload(written, api_version=owner.api_version, kind=owner.kind)
    for workload, template in [(read, each) for each in read.templates] if read is not None else []:
        if (template.template.pod_spec.scheduler_name or DEFAULT_SCHEDULER) not in subject.policy.scheduler_names:
            yield Lacking(pods, unknown=Reason("unknown: where another scheduler puts pods of the group"))
            continue
        source = PodSource(
            workload=workload,
            template=template,
            namespace=namespace_of(owner.meta.namespace),
            own=compiled(owner.selector),
            applied=True,
        )
        found = to_come(source, template.replicas or 0, subject.context.beside(index))
        why = Reason(f"unknown: of another workload of the group, {found.unknown}") if found.unknown else None
        planned = has_stored_plan(of, template.template, (owner.kind, owner.meta.name))
        yield Lacking(pods, found.batches, "" if planned else owner.meta.name, why)
