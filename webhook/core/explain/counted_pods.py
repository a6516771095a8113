"""The workloads with pods counted by a constraint: the pod's own, and others.

The pod's own workload is its topmost controller with a known selector, in all revisions.
"""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.selectors import Selector, compile_selector, valid_selector
from webhook.core.api.types import LabelSelector, Pod, SpreadConstraint
from webhook.core.api.written_selector import narrowed
from webhook.core.index import node_sets
from webhook.core.index.objects import Owner
from webhook.core.index.owners import controllers, owner_selector
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.scheduler.plugins.pod_topology_spread import DomainCounts
from webhook.core.workloads.kinds import REPLICA_SET, REVISIONED, group_kind

_MAX_COMPARED_WORKLOADS = 16  # The most workloads to compare with the constraint's selector.


class CountedPods(Struct, frozen=True):
    """The pods counted by a constraint.

    Attributes:
        counted: The number of counted pods.
        foreign: The number of counted pods not matched by the workload's own selector.
        names: The kinds and names of the known other workloads with counted pods.
        narrower: The constraint's selector restricted to the workload's own pods. None if a pod template cannot contain
            that selector, for example because of a Job's uid.
        agreed: Whether all these other workloads have a constraint over the same key. Then counting them is probably
            intended.
    """

    counted: int
    foreign: int
    names: tuple[str, ...] = ()
    narrower: LabelSelector | None = None
    agreed: bool = False


def counted_pods(
    pod: Pod, written: SpreadConstraint, domains: DomainCounts, index: ReadOnlyIndex
) -> CountedPods | None:
    """Count the pods matched by a constraint, and how many belong to other workloads.

    None if the pod's own workload is unknown, or if the constraint has no selector.
    """
    own, can_say = _workload_selector(pod, index)
    if own is None or written.selector is None:
        return None
    counting = node_sets.flags(domains.counting, len(domains.column.domain_of))
    selector, namespace = domains.constraint.selector, pod.meta.namespace

    def pods(selecting: Selector) -> int:
        return sum(number for slot, number in index.pods.count(namespace, selecting).items() if counting[slot])

    counted = sum(domains.match_num.values())
    foreign = counted - pods(selector.joined(compile_selector(own).requirements)) if counted else 0
    if foreign <= 0:
        return CountedPods(counted, 0)
    others = [*_others(pod, selector, index)]
    return CountedPods(
        counted=counted,
        foreign=foreign,
        names=tuple(dict.fromkeys(f"{owner.kind} {owner.meta.name}" for owner in others)),
        narrower=narrowed(written, own) if can_say else None,
        agreed=bool(others) and all(_declares(owner, domains.constraint.topology_key) for owner in others),
    )


def _workload_selector(pod: Pod, index: ReadOnlyIndex) -> tuple[LabelSelector | None, bool]:
    """The workload's pod selector, and whether a template's constraint can use it.

    A selector by a Job's uid cannot be used, because the uid is unknown before the Job exists.
    """
    for reference in reversed(controllers(pod, index)):
        owner = index.owners.get(reference.api_version, reference.kind, pod.meta.namespace, reference.name)
        selector = None if owner is None else _of_all_revisions(owner)
        compiled = valid_selector(selector)
        if compiled is not None and compiled.requirements:
            return selector, True
    return owner_selector(pod, None), False


def _of_all_revisions(owner: Owner) -> LabelSelector | None:
    selector = owner.selector
    if selector is None or group_kind(owner.api_version, owner.kind) != REPLICA_SET:
        return selector
    revision = {*REVISIONED.values()}
    kept = {key: value for key, value in (selector.match_labels or {}).items() if key not in revision}
    return replace(selector, match_labels=kept or None)


def _others(pod: Pod, selector: Selector, index: ReadOnlyIndex) -> Iterator[Owner]:
    mine = {(owner.kind, owner.name) for owner in controllers(pod, index)}
    for owner in index.owners.matching(pod.meta.namespace, selector, _MAX_COMPARED_WORKLOADS):
        if (owner.kind, owner.meta.name) not in mine:
            yield owner


def _declares(owner: Owner, key: str) -> bool:
    return any(
        constraint.topology_key == key for template in owner.templates or () for constraint in template.constraints
    )
