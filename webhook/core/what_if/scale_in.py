"""Forecast the distributions of a workload's pods after a scale-in: fewer replicas than running pods."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from webhook.core.api.selectors import Selector
from webhook.core.context import Context
from webhook.core.explain.explanation import Balance, balances_of
from webhook.core.pods_to_create.next_pod import next_pod_of
from webhook.core.pods_to_remove.removal_order import (
    RemovalGroups,
    job_groups,
    removal_groups,
    removal_groups_in_steps,
    stateful_set_groups,
)
from webhook.core.pods_to_remove.running_pod import RunningPod, nanoseconds
from webhook.core.pods_to_remove.scale_in import Removal, ScaleIn, removal_of, scale_in_of, worst_stop
from webhook.core.scheduler.cycle import Cycle
from webhook.core.scheduler.plugins.pod_topology_spread import DomainCounts
from webhook.core.text import plural
from webhook.core.what_if.sources import ReplicatedSource
from webhook.core.workloads.kinds import (
    JOB,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    are_removed_by_replica_sets,
)
from webhook.core.workloads.labels_at_creation import is_placeholder

_ROLLOUT = "a rollout is in progress"
_NO_SELECTOR = "its pods are unknown"
_NEW_TEMPLATE = "matchLabelKeys do not count the running pods as the manifest's: use KIND/NAME"
_OTHER_CONTROLLER = "its controller's choice of pods is unknown"


class WorkloadScaleIn(Struct, frozen=True, kw_only=True):
    """The forecast of a workload's scale-in.

    Attributes:
        title: The workload's name in messages.
        pods: The number of active pods before. They are not terminating or finished.
        replicas: The number of pods afterwards. A StatefulSet without some ordinals ends with fewer than wanted.
        constraints: The constraints of the workload's pods, each with its distributions.
        unknown: Why there is no forecast. Empty for a forecast.
        guardable: Whether the guard can choose the order: its controller is a ReplicaSet.
    """

    title: str
    pods: int
    replicas: int
    constraints: tuple[tuple[Balance, ScaleIn], ...] = ()
    unknown: str = ""
    guardable: bool = False

    @property
    def note(self) -> str:
        """Why there is no forecast, as a sentence for the user."""
        return f"{self.title}: no forecast of the scale-in to {plural(self.replicas, 'replica')}: {self.unknown}"


def forecast_scale_ins(
    sources: Iterable[ReplicatedSource], active: Mapping[str, Sequence[RunningPod]], context: Context
) -> Iterator[WorkloadScaleIn]:
    """Yield the scale-ins of workloads with more active pods than replicas.

    Args:
        sources: The workloads, with their wanted replicas.
        active: The active pods of each namespace before all events. Pods lost by events are ignored.
        context: The policy and the cluster.
    """
    for source in sources:
        forecast = _forecast(source, active.get(source.namespace, ()), context)
        if forecast.pods > forecast.replicas:
            yield forecast


def _forecast(source: ReplicatedSource, known: Sequence[RunningPod], context: Context) -> WorkloadScaleIn:
    if source.own is None:
        stated = source.template.replicas or 1
        return WorkloadScaleIn(title=source.title, pods=stated, replicas=source.replicas, unknown=_NO_SELECTOR)
    pods = _own_pods(source, source.own, [pod for pod in known if _is_active(pod, source.namespace, context)])
    unknown = _unknown(source, pods, context)
    if unknown:
        return WorkloadScaleIn(title=source.title, pods=len(pods), replicas=source.replicas, unknown=unknown)
    removal = _removal(source, pods, context)
    balances = balances_of(Cycle(next_pod_of(source, context).problem), soft_defaults=True)
    if not source.applied and any(balance.written.match_label_keys for balance in balances):
        return WorkloadScaleIn(title=source.title, pods=len(pods), replicas=source.replicas, unknown=_NEW_TEMPLATE)
    steps, left = _steps(source, pods, removal, context), len(pods) - removal.number
    slots = context.cluster.nodes.view().slots

    def forecast(domains: DomainCounts) -> ScaleIn:
        return scale_in_of(domains, removal, slots, worst_stop(domains, steps, len(pods), left, slots))

    return WorkloadScaleIn(
        title=source.title,
        pods=len(pods),
        replicas=left,
        constraints=tuple((balance, forecast(balance.domains)) for balance in balances),
        guardable=are_removed_by_replica_sets(source.workload.group_kind),
    )


def _own_pods(source: ReplicatedSource, own: Selector, pods: Sequence[RunningPod]) -> Sequence[RunningPod]:
    """Return the workload's pods. If some have a revision label, a pod without it belongs to no ReplicaSet."""
    matching, traits = [pod for pod in pods if own.matches(pod.labels)], source.workload.traits
    revised = [pod for pod in matching if traits.revision in pod.labels] if traits.in_replica_sets else []
    return revised or matching


def _is_rolling_out(source: ReplicatedSource, pods: Sequence[RunningPod], context: Context) -> bool:
    """Whether pods have several revisions, or several ReplicaSets want pods."""
    workload = source.workload
    revisions = {pod.labels.get(workload.traits.revision or "") for pod in pods}
    owned = context.cluster.owners.controlled(source.namespace, workload.kind, workload.meta.name)
    wanted = [owner for owner in owned if owner.replicas and not is_placeholder(owner.meta.name)]
    return len(revisions) > 1 or len(wanted) > 1


def _is_active(pod: RunningPod, namespace: str, context: Context) -> bool:
    if not pod.node:
        return True
    placed = context.cluster.pods.on_node(namespace, pod.name)
    return placed is not None and not placed.terminates


def _unknown(source: ReplicatedSource, pods: Sequence[RunningPod], context: Context) -> str:
    """Return why the removed pods are unknown. Empty if they are known."""
    workload = source.workload
    if workload.traits.in_replica_sets:
        return _ROLLOUT if _is_rolling_out(source, pods, context) else ""
    known = {REPLICA_SET, REPLICATION_CONTROLLER, STATEFUL_SET, JOB}
    return "" if workload.group_kind in known else _OTHER_CONTROLLER


def _removal(source: ReplicatedSource, pods: Sequence[RunningPod], context: Context) -> Removal:
    workload, now = source.workload, _nanoseconds(context.cluster.taken_at or context.now)
    number = max(0, len(pods) - source.replicas)
    if workload.group_kind == STATEFUL_SET:
        # The highest ordinals go first, so the removed pods are known.
        kept = workload.ordinals(source.replicas)
        return Removal(removed=tuple(pod for pod in pods if pod.ordinal is not None and pod.ordinal not in kept))
    if workload.group_kind == JOB:
        return removal_of(job_groups(pods, context.version), number)
    has_owner = workload.traits.in_replica_sets or workload.meta.controller is not None
    related = Counter(pod.node for pod in pods) if has_owner else Counter[str]()
    return removal_of(removal_groups(pods, related, now, context.version), number)


def _steps(source: ReplicatedSource, pods: Sequence[RunningPod], removal: Removal, context: Context) -> RemovalGroups:
    """Return the groups of a scale-in in several steps."""
    kind = source.workload.group_kind
    if kind == STATEFUL_SET:
        return stateful_set_groups(removal.removed)
    return job_groups(pods, context.version) if kind == JOB else removal_groups_in_steps(pods)


def _nanoseconds(time: str) -> int:
    """Convert an ISO time. 0 for a date or an unknown time: then different times of pods decide nothing."""
    try:
        return (nanoseconds(datetime.fromisoformat(time)) or 0) if "T" in time else 0
    except ValueError:
        return 0
