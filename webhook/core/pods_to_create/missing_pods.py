"""Find the pods of a template that need a node.

    missing_pods          the missing pods, including Pending ones
    all_pods_recreated    all pods, as if none ran
    rollout_pods          the pods of a new revision, which replace the running pods

A StatefulSet creates its pods in order, unless podManagementPolicy is Parallel. Bound volumes limit each of its pods to
certain nodes.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api import gates
from webhook.core.api.selectors import Selector
from webhook.core.api.types import Pod
from webhook.core.context import Context, problem_of
from webhook.core.index.lost_nodes import terminated, unreachable_nodes
from webhook.core.index.overlay import with_pods, without_pods
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.game_from_cluster import ClusterGame, PodBatch, game_of
from webhook.core.placement.placement_verdict import Effort, Simulation
from webhook.core.placement.proofs.pinned_claims import (
    Needs,
    Ordinal,
    Ordinals,
    TemplateVolumes,
    attachable_pods,
    ordinals,
    template_volumes,
)
from webhook.core.placement.rolling_update import RolloutRules, Turn
from webhook.core.placement.simulation import simulate_batches
from webhook.core.pods_to_create.next_pod import NextPod, PodSource, next_pod_of
from webhook.core.workloads.rollouts import surge_of, unavailable_of, unavailable_ordinals
from webhook.core.workloads.workload import Strategy, Workload

_UNKNOWN_STEPS = "how its controller replaces pods"
_FUTURE_VOLUMES = "the nodes of the pods' future volumes"
_FOR_ONE_POD = "when a pod of the rollout can use the claim with access mode ReadWriteOncePod"
_EPHEMERAL_DIFFER = "how many volumes each node can attach, because running pods may have other ephemeral volumes"
_DRIVERS_DIFFER = "how many volumes each node can attach, because the running pods use different CSI drivers"


class MissingPods(Struct, frozen=True, kw_only=True):
    """Pods that need a node, and their cluster.

    Attributes:
        index: The cluster.
        batches: The pods, in batches of equal pods.
        staying: The number of the workload's pods that keep their nodes.
        names: The pods' names by batch. Empty if the controller chooses random names.
        rollout: The limits of a rolling update. None without one.
        unknown: The unknown fact or exceeded limit, in words. Empty if the pods are known.
    """

    index: ReadOnlyIndex
    batches: tuple[PodBatch, ...] = ()
    staying: int = 0
    names: tuple[tuple[str, ...], ...] = ()
    rollout: RolloutRules | None = None
    unknown: str = ""

    def game(self) -> ClusterGame:
        return game_of(self.batches, self.index, rollout=self.rollout)

    def simulate(self, effort: Effort) -> Simulation:
        return simulate_batches(self.batches, self.index, effort, self.rollout)


def missing_pods(source: PodSource, replicas: int, context: Context, following: NextPod | None = None) -> MissingPods:
    """Find the missing pods of a workload.

    Args:
        source: The template.
        replicas: The desired number of pods.
        context: The policy and the cluster.
        following: The source's next pod, if already known.

    Example:
        ``missing_pods(source, 6, context).simulate(Effort())`` simulates the pods missing to 6 replicas.
    """
    if source.workload.traits.ordered:
        context = _terminated(source, context)
        return _ordinals(source, next_pod_of(source, context).pod, replicas, context)
    pod = (following or next_pod_of(source, context)).pod
    index, own = context.cluster, source.own
    staying = sum(index.pods.count(source.namespace, own).values()) if own is not None else 0
    pods = max(0, replicas - staying)
    if not pods:
        return MissingPods(index=index, staying=staying)
    problem = problem_of(pod, context)
    volumes = template_volumes(problem, index)
    if not volumes.are_certain(pods):
        return MissingPods(index=index, unknown=_FUTURE_VOLUMES)
    batch = PodBatch(problem=problem, pods=pods)
    if volumes.for_one_pod and pods > 1:
        first, rest = replace(batch, pods=1), replace(batch, pods=pods - 1, nodes=0)
        return MissingPods(index=index, batches=(first, rest), staying=staying)
    return MissingPods(index=index, batches=(batch,), staying=staying)


def all_pods_recreated(source: PodSource, replicas: int, context: Context) -> MissingPods:
    """Return all pods of the workload, in a cluster without its running pods.

    Empty for a StatefulSet, because its new pods have the names of the running pods. Also empty if the workload's pods
    cannot be identified.
    """
    index, own = context.cluster, source.own
    if own is None or source.workload.traits.ordered:
        return MissingPods(index=index)
    below = without_pods(index, next_pod_of(source, context).pod, own, index.pods.count(source.namespace, own))
    return missing_pods(source, replicas, context.with_index(below))


def rollout_pods(source: PodSource, replicas: int, context: Context) -> MissingPods:
    """Find the pods of a rollout: all new pods, while the running pods of an earlier revision are deleted.

    A StatefulSet replaces pods under their names, from the highest ordinal down to the partition. Recreate deletes all
    pods first.
    Source: deployment/rolling.go ``rolloutRolling``; deployment/recreate.go ``rolloutRecreate``.
    """
    workload, own, index = source.workload, source.own, context.cluster
    if own is None:
        return MissingPods(index=index, unknown="which pods belong to the workload")
    if workload.traits.ordered:
        return _rollout_of_ordinals(source, own, replicas, _terminated(source, context))
    if not workload.traits.surges:
        kept = "its controller does not replace running pods"
        return MissingPods(index=index, unknown=kept if workload.built_in else _UNKNOWN_STEPS)
    if workload.recreates:
        lost = unreachable_nodes(index.nodes.view())  # Pods there never finish terminating.
        if any(lost >> slot & 1 for slot in index.pods.count(source.namespace, own, terminating=True)):
            unknown = "when its pods on unreachable nodes end, because Recreate waits for them"
            return MissingPods(index=index, unknown=unknown)
    new, old = _revisions(source, context)
    running = index.pods.count(source.namespace, own)
    below = context.with_index(without_pods(index, new, own, running))
    problem = problem_of(new, below)
    if unknown := _unknown_volume_use(template_volumes(problem, index), replicas, index):
        return MissingPods(index=index, unknown=unknown)
    batches = (
        PodBatch(problem=problem_of(old, below), pods=0, leaving={} if workload.recreates else running),
        PodBatch(problem=problem, pods=replicas),
    )
    allowed = RolloutRules(
        old=0,
        new=1,
        replicas=replicas,
        surge=surge_of(workload.strategy, replicas),
        unavailable=unavailable_of(workload.strategy, replicas),
    )
    return MissingPods(index=below.cluster, batches=batches, rollout=allowed)


def _revisions(source: PodSource, context: Context) -> tuple[Pod, Pod]:
    """Return a pod of the new revision and a pod of the running revision."""
    new = next_pod_of(replace(source, applied=False), context).pod
    return new, replace(new, metadata=replace(new.meta, labels=source.template.pod.labels))


def _terminated(source: PodSource, context: Context) -> Context:
    """Remove a StatefulSet's terminating pods, since its controller creates others only after they are gone."""
    if not source.workload.traits.ordered or source.own is None:
        return context
    return context.with_index(terminated(context.cluster, source.namespace, source.own))


def _known_ordinals(
    source: PodSource, volumes: TemplateVolumes, replicas: int, index: ReadOnlyIndex
) -> Ordinals | None:
    workload = source.workload
    name, numbers = workload.meta.name, workload.ordinals(replicas)
    return ordinals(index, source.namespace, name, workload.claims, numbers, volumes=volumes)


def _unknown_volume_use(volumes: TemplateVolumes, pods: int, index: ReadOnlyIndex) -> str:
    """Why it is unknown where a rollout's pods can use their template's volumes. Empty if it is known.

    The running pods may have other ephemeral volumes than the new pods. The attachments freed by them are then unknown.
    """
    if volumes.for_one_pod:
        return _FOR_ONE_POD
    if not volumes.are_certain(pods):
        return _FUTURE_VOLUMES
    return _EPHEMERAL_DIFFER if attachable_pods(Counter(volumes.drivers), pods, index) else ""


def _too_many(replicas: int) -> str:
    return f"{replicas:,} ordinals are too many to look up"


def _unknown_volumes(pods: Sequence[Ordinal]) -> str:
    return "" if all(pod.certain for pod in pods) else _FUTURE_VOLUMES


def _names(source: PodSource, pods: Sequence[Ordinal]) -> tuple[str, ...]:
    return tuple(f"{source.workload.meta.name}-{pod.number}" for pod in pods)


def _ordinals(source: PodSource, pod: Pod, replicas: int, context: Context) -> MissingPods:
    index, in_turn = context.cluster, not source.workload.parallel
    problem = problem_of(pod, context)
    known = _known_ordinals(source, template_volumes(problem, index), replicas, index)
    if known is None:
        return MissingPods(index=index, unknown=_too_many(replicas))
    missing = [pod for pod in known.pods if not pod.runs]
    if unknown := _unknown_volumes(missing):
        return MissingPods(index=index, unknown=unknown)
    groups = _equal_pods(missing, in_turn=in_turn)
    batches = tuple(
        PodBatch(
            problem=problem,
            pods=len(pods),
            nodes=pods[0].nodes,
            drivers=pods[0].drivers,
            in_turn=in_turn,
            behind=number - 1 if in_turn and number else None,
        )
        for number, pods in enumerate(groups)
    )
    return MissingPods(
        index=index,
        batches=batches,
        staying=replicas - len(missing),
        names=tuple(_names(source, pods) for pods in groups),
    )


def _equal_pods(pods: Sequence[Ordinal], *, in_turn: bool) -> list[list[Ordinal]]:
    """Group the pods by their needs. A group in turn only has pods with consecutive places in ``pods``."""
    groups = dict[tuple[int, Needs], list[Ordinal]]()
    run = 0
    for place, pod in enumerate(pods):
        run += in_turn and place > 0 and pod.needs != pods[place - 1].needs
        groups.setdefault((run, pod.needs), []).append(pod)
    return [*groups.values()]


class _NewPod(Struct, frozen=True):
    """A new pod of a StatefulSet's rollout.

    Attributes:
        ordinal: The pod's ordinal.
        slot: The node of the deleted pod with this ordinal. None if no pod runs.
        of_old: Whether the controller recreates the pod in the old revision.
    """

    ordinal: Ordinal
    slot: int | None
    of_old: bool

    @property
    def batch(self) -> tuple[Needs, bool]:
        """A key. Pods with the same key form a batch."""
        return self.ordinal.needs, self.of_old


def _rollout_of_ordinals(source: PodSource, own: Selector, replicas: int, context: Context) -> MissingPods:
    """Source: statefulset/stateful_set_control.go ``updateStatefulSetAfterInvariantEstablished``."""
    index = context.cluster
    if unknown := _unknown_steps(source, own, index):
        return MissingPods(index=index, unknown=unknown)
    new, old = _revisions(source, context)
    volumes = template_volumes(problem_of(new, context), index)
    known = _known_ordinals(source, volumes, replicas, index)
    if known is None:
        return MissingPods(index=index, unknown=_too_many(replicas))
    kept, turns = _kept_and_new(source, known.pods, dict(index.pods.matching(source.namespace, own)))
    freed = {pod.ordinal.drivers for pod in turns if pod.slot is not None}
    differ = _DRIVERS_DIFFER if known.limits and len(freed) > 1 else ""
    unknown_use = _unknown_volume_use(volumes, replicas, index)
    unknown = unknown_use or _unknown_volumes([pod.ordinal for pod in turns]) or differ
    if unknown or not turns:
        return MissingPods(index=index, staying=len(kept), unknown=unknown)
    groups = dict[tuple[Needs, bool], list[Ordinal]]()
    for pod in turns:
        groups.setdefault(pod.batch, []).append(pod.ordinal)
    below = _with_only(kept, old, without_pods(index, new, own, index.pods.count(source.namespace, own)))
    new_problem, old_problem = (problem_of(pod, context.with_index(below)) for pod in (new, old))
    leaving = Counter(pod.slot for pod in turns if pod.slot is not None)
    number = {key: place for place, key in enumerate(groups, 1)}
    old_pods = PodBatch(problem=old_problem, pods=0, leaving=leaving, drivers=max(freed, default=()))
    batches = (
        PodBatch(problem=old_problem if of_old else new_problem, pods=len(pods), nodes=nodes, drivers=drivers)
        for ((nodes, drivers), of_old), pods in groups.items()
    )
    return MissingPods(
        index=below,
        batches=(old_pods, *batches),
        staying=len(kept),
        names=((), *(_names(source, pods) for pods in groups.values())),
        rollout=_rules(source.workload, replicas, (Turn(number[pod.batch], pod.slot) for pod in turns), context),
    )


def _unknown_steps(source: PodSource, own: Selector, index: ReadOnlyIndex) -> str:
    """Why the order of replacing a StatefulSet's pods is unknown. Empty if it is known."""
    strategy = source.workload.strategy or Strategy()
    if strategy.type == "OnDelete":
        return "which pods are deleted manually (OnDelete)"
    if not source.workload.built_in or strategy.type not in {None, "RollingUpdate"}:
        return _UNKNOWN_STEPS
    waits = index.pods.count(source.namespace, own, terminating=True) != index.pods.count(source.namespace, own)
    return "when the terminating pods on unreachable nodes end, because the rollout waits for them" if waits else ""


def _kept_and_new(
    source: PodSource, pods: Sequence[Ordinal], slots: Mapping[str, int]
) -> tuple[list[int], list[_NewPod]]:
    """Return the node slots of the kept pods, and the new pods in order of creation.

    Missing pods come first. Pods below the partition stay, or are recreated in the old revision.

    Args:
        source: The StatefulSet.
        pods: Its pods, the lowest ordinal first.
        slots: The node slot of each running pod, by name.
    """
    strategy = source.workload.strategy or Strategy()
    partition = strategy.partition if isinstance(strategy.partition, int) else 0
    new = [
        _NewPod(pod, slots.get(name), of_old=pod.number < partition)
        for pod, name in zip(pods, _names(source, pods), strict=True)
    ]
    kept = [pod.slot for pod in new if pod.of_old and pod.slot is not None]
    replaced = [pod for pod in reversed(new) if not pod.of_old and pod.slot is not None]
    return kept, [*(pod for pod in new if pod.slot is None), *replaced]


def _with_only(kept: Iterable[int], pod: Pod, index: ReadOnlyIndex) -> ReadOnlyIndex:
    """Return the cluster with a copy of the pod on the node of each slot in ``kept``."""
    for slot, pods in Counter(kept).items():
        index = with_pods(index, index.nodes.view().names[slot], [pod] * pods)
    return index


def _rules(workload: Workload, replicas: int, turns: Iterable[Turn], context: Context) -> RolloutRules:
    gated = gates.ORDINALS_UNAVAILABLE.holds(context.version)
    unavailable = unavailable_ordinals(workload.strategy, replicas) if gated else 1
    return RolloutRules(
        old=0,
        new=1,
        replicas=replicas,
        surge=0,
        unavailable=unavailable,
        turns=tuple(turns),
        # With several missing pods, the controller's timing decides the order.
        in_turn=not workload.parallel and unavailable == 1,
    )
