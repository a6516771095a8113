"""Scores of NodeResourcesFit and NodeResourcesBalancedAllocation.

    LeastAllocated       the mean over CPU and memory of 100 * (allocatable - requested) / allocatable
    BalancedAllocation   50 + (50 + balance with the pod - balance without it) / 2
    balance              100 * (1 - half the difference between the shares of CPU and memory)

Source: kube-scheduler noderesources/resource_allocation.go, least_allocated.go, balanced_allocation.go.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from webhook.core.api import gates
from webhook.core.api.version import KubernetesVersion
from webhook.core.scheduler.plugins.spread_scoring import MAX_NODE_SCORE

_HALF = MAX_NODE_SCORE // 2


class ResourceUse(Struct, frozen=True):
    """The amounts of one resource on each node and in the pod's request.

    CPU is in milli-CPU, memory in bytes. Amounts of nodes are by node slot.

    Attributes:
        free: The free amount of each node.
        allocatable: The allocatable amount of each node.
        assumed: The amount that kube-scheduler adds on a node for running pods without a request.
        request: The pod's request.
        scored: The pod's request, with kube-scheduler's minimum for scoring.
    """

    free: Sequence[int]
    allocatable: Sequence[int]
    assumed: Mapping[int, int]
    request: int
    scored: int


def least_allocated(resources: Sequence[ResourceUse], feasible: Iterable[int]) -> dict[int, int]:
    """Score nodes by their free resources. The scores are by slot.

    Source: noderesources/least_allocated.go ``leastResourceScorer``.
    """
    return {slot: _mean_left(resources, slot) for slot in feasible}


def _mean_left(resources: Sequence[ResourceUse], slot: int) -> int:
    """Source: noderesources/least_allocated.go ``leastRequestedScore``."""
    scores = []
    for resource in resources:
        total = resource.allocatable[slot]
        if total:
            taken = total - resource.free[slot] + resource.assumed.get(slot, 0) + resource.scored
            scores.append(0 if taken > total else (total - taken) * MAX_NODE_SCORE // total)
    return sum(scores) // len(scores) if scores else 0


def balanced_allocation(
    resources: Sequence[ResourceUse], feasible: Iterable[int], version: KubernetesVersion
) -> dict[int, int]:
    """Score nodes by their balance of CPU and memory use.

    The scores are by node slot. Empty for a pod without requests.

    Source: noderesources/balanced_allocation.go ``PreScore``, ``balancedResourceScorer``.
    """
    if gates.BALANCE_IGNORES_NO_REQUEST.holds(version) and not any(resource.request for resource in resources):
        return {}
    if not gates.SCORES_CHANGE_OF_BALANCE.holds(version):
        return {slot: _balance(_shares(resources, slot, with_pod=True)) for slot in feasible}
    return {slot: _change(resources, slot) for slot in feasible}


def _change(resources: Sequence[ResourceUse], slot: int) -> int:
    """Source: noderesources/balanced_allocation.go ``balancedResourceScorer``."""
    after, before = (_balance(_shares(resources, slot, with_pod=with_pod)) for with_pod in (True, False))
    return _HALF + (_HALF + after - before) // 2


def _shares(resources: Sequence[ResourceUse], slot: int, *, with_pod: bool) -> Iterator[float]:
    """Yield the requested share of each resource, at most 1."""
    for resource in resources:
        total = resource.allocatable[slot]
        if total:
            yield min(1.0, (total - resource.free[slot] + with_pod * resource.request) / total)


def _balance(shares: Iterable[float]) -> int:
    """Source: noderesources/balanced_allocation.go ``balancedResourceScore``."""
    listed = [*shares]
    deviation = abs((listed[0] - listed[1]) / 2) if len(listed) == 2 else 0.0
    return int((1 - deviation) * MAX_NODE_SCORE)
