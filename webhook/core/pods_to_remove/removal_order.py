"""The order in which controllers remove pods when they scale in.

    removal_groups        ReplicaSets and ReplicationControllers
    stateful_set_groups   StatefulSets
    job_groups            Jobs

Each function returns tie groups: sets of pods that the controller removes in any order. It removes one group after the
other. UIDs break ties upstream, but nobody chooses UIDs, so pods ordered only by their UIDs are one group.

Source: pkg/controller/controller_utils.go ``ActivePodsWithRanks``, ``ActivePods``.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from webhook.core.api import gates
from webhook.core.api.types import MAX_INT64
from webhook.core.api.version import RECORDED, KubernetesVersion
from webhook.core.pods_to_remove.running_pod import RunningPod

_Key = tuple[int, ...]
RemovalGroups = tuple[tuple[RunningPod, ...], ...]
"""Tie groups, the first removed group first."""

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
# Ages that have no logarithm.
_BEFORE_ALL = -2
_IN_FUTURE = -1


def removal_groups(
    pods: Iterable[RunningPod], related_per_node: Mapping[str, int], now: int, version: KubernetesVersion = RECORDED
) -> RemovalGroups:
    """Return the tie groups of a ReplicaSet or ReplicationController.

    Ready times in one bucket make upstream's order intransitive: times are compared in buckets, equal times by restarts
    and creation, and different times of a bucket by UIDs. Each order of such a bucket is possible, so it is one group.

    Args:
        pods: The controller's active pods.
        related_per_node: Active pods by node, matching a selector of any ReplicaSet with the same owner. Empty without
            an owner.
        now: Nanoseconds since 1970. Times are compared on a logarithmic scale of ages.
        version: The Kubernetes release.

    Source: pkg/controller/controller_utils.go ``ActivePodsWithRanks.Less``; pkg/controller/replicaset/replica_set.go
    ``getPodsToDelete``, ``getIndirectlyRelatedPods``.
    """

    def by_ready_time(pod: RunningPod) -> _Key:
        related = related_per_node.get(pod.node, 0)
        return (*_by_state(pod), pod.deletion_cost, -related, _age_bucket(pod.ready_since, now))

    def by_creation(pod: RunningPod) -> _Key:
        return (*_by_restarts(pod, version), _age_bucket(pod.created, now))

    groups: list[tuple[RunningPod, ...]] = []
    for tied in _grouped(pods, by_ready_time):
        times = {pod.ready_since for pod in tied}
        groups += [tied] if len(times) > 1 else _grouped(tied, by_creation)
    return tuple(groups)


def removal_groups_in_steps(pods: Iterable[RunningPod]) -> RemovalGroups:
    """Return the tie groups of a ReplicaSet or ReplicationController for several scale-ins, one after the other.

    Between two scale-ins, pods age, and their nodes lose related pods. Only state and cost decide in every case.
    """
    return tuple(_grouped(pods, lambda pod: (*_by_state(pod), pod.deletion_cost)))


def stateful_set_groups(pods: Iterable[RunningPod]) -> RemovalGroups:
    """Return the pods of a StatefulSet, the highest ordinal first. Pods without ordinal are not its pods.

    Source: pkg/controller/statefulset/stateful_set_control.go ``updateStatefulSet``; ``descendingOrdinal``.
    """
    numbered = [(-pod.ordinal, pod) for pod in pods if pod.ordinal is not None]
    return tuple((pod,) for _, pod in sorted(numbered, key=lambda each: each[0]))


def job_groups(pods: Iterable[RunningPod], version: KubernetesVersion = RECORDED) -> RemovalGroups:
    """Return the tie groups of a Job. Costs and related pods do not count, and times are compared exactly.

    An Indexed Job first removes pods without a valid index, and repeated indexes. Leave out such pods.

    Source: pkg/controller/job/job_controller.go ``activePodsForRemoval``; ``ActivePods.Less``.
    """

    def exactly(pod: RunningPod) -> _Key:
        ready, created = _newest_first(pod.ready_since), _newest_first(pod.created)
        return (*_by_state(pod), *ready, *_by_restarts(pod, version), *created)

    return tuple(_grouped(pods, exactly))


def _grouped(pods: Iterable[RunningPod], key: Callable[[RunningPod], _Key]) -> list[tuple[RunningPod, ...]]:
    groups = defaultdict(list)
    for pod in pods:
        groups[key(pod)].append(pod)
    return [tuple(groups[value]) for value in sorted(groups)]


def _by_state(pod: RunningPod) -> _Key:
    return bool(pod.node), _PHASES.get(pod.phase, 0), pod.ready


def _by_restarts(pod: RunningPod, version: KubernetesVersion) -> _Key:
    regular, sidecar = pod.restarts
    return -regular, -sidecar if gates.COUNTS_SIDECAR_RESTARTS.holds(version) else 0


def _newest_first(moment: int | None) -> _Key:
    """Order a pod without time first, then from the newest. Source: controller_utils.go ``afterOrZero``."""
    return (0, 0) if moment is None else (1, -moment)


def _age_bucket(moment: int | None, now: int) -> int:
    """Return the logarithm of the age, the youngest first. A pod without time is before all others.

    Source: controller_utils.go ``logarithmicRankDiff``, ``afterOrZero``.
    """
    if moment is None:
        return _BEFORE_ALL
    age = min(now - moment, MAX_INT64)  # A Go duration is at most 292 years.
    return int(math.log2(age)) if age > 0 else _IN_FUTURE
