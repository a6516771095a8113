"""Find the pods of a template that need a node.

    missing_pods          the missing pods, including Pending ones
    all_pods_recreated    all pods, as if none ran
    rollout_pods          the pods of a new revision, which replace the running pods

A StatefulSet creates its pods in order, unless podManagementPolicy is Parallel. Bound volumes limit each of its pods to
certain nodes.
"""

from collections import Counter
from collections.abc import Iterable

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
from webhook.core.placement.proofs.pinned_claims import ordinals
from webhook.core.placement.rolling_update import RolloutRules, Turn
from webhook.core.placement.simulation import simulate_batches
from webhook.core.pods_to_create.next_pod import NextPod, PodSource, next_pod_of
from webhook.core.workloads.rollouts import surge_of, unavailable_of, unavailable_ordinals
from webhook.core.workloads.workload import ClaimTemplates, Strategy, Workload

_WAITS = "when the terminating pods on unreachable nodes end, because the rollout waits for them"
_NO_CLAIMS = ClaimTemplates(())
_UNKNOWN_STEPS = "how its controller replaces pods"


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


def missing_pods(source: PodSource, replicas: int, within: Context, following: NextPod | None = None) -> MissingPods:
    """Find the missing pods of a workload.

    Args:
        source: The template.
        replicas: The desired number of pods.
        within: The policy and the cluster.
        following: The source's next pod, if already known.

    Example:
        ``missing_pods(source, 6, context).simulate(Effort())`` simulates the pods missing to 6 replicas.
    """
    if source.workload.traits.ordered:
        within = _terminated(source, within)
        return _ordinals(source, next_pod_of(source, within).pod, replicas, within)
    pod = (following or next_pod_of(source, within)).pod
    index, own = within.cluster, source.own
    staying = sum(index.pods.count(source.namespace, own).values()) if own is not None else 0
    batch = PodBatch(problem=problem_of(pod, within), pods=max(0, replicas - staying))
    return MissingPods(index=index, batches=(batch,) if batch.pods else (), staying=staying)


def all_pods_recreated(source: PodSource, replicas: int, within: Context) -> MissingPods:
    """Return all pods of the workload, in a cluster without its running pods.

    Empty for a StatefulSet, because its new pods have the names of the running pods. Also empty if the workload's pods
    cannot be identified.
    """
    index, own = within.cluster, source.own
    if own is None or source.workload.traits.ordered:
        return MissingPods(index=index)
    below = without_pods(index, next_pod_of(source, within).pod, own, index.pods.count(source.namespace, own))
    return missing_pods(source, replicas, within.with_index(below))


def rollout_pods(source: PodSource, replicas: int, within: Context) -> MissingPods:
    """Find the pods of a rollout: all new pods, while the running pods of an earlier revision are deleted.

    A StatefulSet replaces pods under their names, from the highest ordinal down to the partition. Recreate deletes all
    pods first.
    Source: deployment/rolling.go ``rolloutRolling``; deployment/recreate.go ``rolloutRecreate``.
    """
    workload, own, index = source.workload, source.own, within.cluster
    if own is None:
        return MissingPods(index=index, unknown="which pods belong to the workload")
    if workload.traits.ordered:
        return _by_ordinals(source, own, replicas, _terminated(source, within))
    if not workload.traits.surges:
        kept = "its controller does not replace running pods"
        return MissingPods(index=index, unknown=kept if workload.built_in else _UNKNOWN_STEPS)
    if workload.recreates:
        lost = unreachable_nodes(index.nodes.view())  # Pods there never finish terminating.
        if any(lost >> slot & 1 for slot in index.pods.count(source.namespace, own, terminating=True)):
            unknown = "when its pods on unreachable nodes end, because Recreate waits for them"
            return MissingPods(index=index, unknown=unknown)
    new = next_pod_of(replace(source, applied=False), within).pod
    running = index.pods.count(source.namespace, own)
    below = within.with_index(without_pods(index, new, own, running))
    old = replace(new, metadata=replace(new.meta, labels=source.template.template.labels))
    batches = (
        PodBatch(problem=problem_of(old, below), pods=0, leaving={} if workload.recreates else running),
        PodBatch(problem=problem_of(new, below), pods=replicas),
    )
    allowed = RolloutRules(
        0, 1, replicas, surge_of(workload.strategy, replicas), unavailable_of(workload.strategy, replicas)
    )
    return MissingPods(index=below.cluster, batches=batches, rollout=allowed)


def _terminated(source: PodSource, within: Context) -> Context:
    """Remove a StatefulSet's terminating pods, since its controller creates others only after they are gone."""
    if not source.workload.traits.ordered or source.own is None:
        return within
    return within.with_index(terminated(within.cluster, source.namespace, source.own))


def _ordinals(source: PodSource, pod: Pod, replicas: int, within: Context) -> MissingPods:
    workload, index = source.workload, within.cluster
    numbers = range(workload.first_ordinal, workload.first_ordinal + replicas)
    claims = workload.claims or _NO_CLAIMS
    known = ordinals(index, source.namespace, workload.meta.name, claims, numbers)
    if known is None:
        return MissingPods(index=index, unknown=f"{replicas:,} ordinals are too many to look up")
    numbered = zip(numbers, known.pods, strict=True)
    missing = [(pod, f"{workload.meta.name}-{number}") for number, pod in numbered if not pod.runs]
    if not all(pod.certain for pod, _ in missing):
        return MissingPods(index=index, unknown="the nodes of the pods' future volumes")
    problem, in_turn = problem_of(pod, within), not workload.parallel
    limits = known.limits if claims.names else {}
    run, groups = 0, dict[tuple[int, int | None], list[str]]()
    for place, (ordinal, name) in enumerate(missing):
        # A batch in turn only has equal pods with consecutive ordinals.
        run += in_turn and place > 0 and ordinal.nodes != missing[place - 1][0].nodes
        groups.setdefault((run, ordinal.nodes), []).append(name)
    batches = tuple(
        PodBatch(
            problem=problem,
            pods=len(names),
            nodes=nodes,
            limits=limits,
            in_turn=in_turn,
            behind=number - 1 if in_turn and number else None,
        )
        for number, ((_, nodes), names) in enumerate(groups.items())
    )
    return MissingPods(
        index=index,
        batches=batches,
        staying=replicas - len(missing),
        names=tuple(map(tuple, groups.values())),
    )


def _unknown_steps(workload: Workload, strategy: Strategy) -> str:
    """Why the order of replacing a StatefulSet's pods is unknown. Empty if it is known."""
    if strategy.type == "OnDelete":
        return "which pods are deleted manually (OnDelete)"
    return "" if workload.built_in and strategy.type in {None, "RollingUpdate"} else _UNKNOWN_STEPS


def _with_only(kept: Iterable[int], pod: Pod, index: ReadOnlyIndex) -> ReadOnlyIndex:
    """Return the cluster with a copy of the pod on the node of each slot in ``kept``."""
    for slot, pods in Counter(kept).items():
        index = with_pods(index, index.nodes.view().names[slot], [pod] * pods)
    return index


def _kept_and_replaced(slots: dict[int, int | None], partition: int) -> tuple[list[int], list[int]]:
    """Return the node slots of the pods that stay, and the ordinals of the new pods in order of creation.

    The ordinals of missing pods come first. Pods below the partition stay, or are recreated in the old revision.
    """
    kept = [slot for number, slot in slots.items() if number < partition and slot is not None]
    order = [number for number, slot in slots.items() if slot is None]
    order += [number for number, slot in reversed(slots.items()) if number >= partition and slot is not None]
    return kept, order


def _by_ordinals(source: PodSource, own: Selector, replicas: int, within: Context) -> MissingPods:
    """Source: statefulset/stateful_set_control.go ``updateStatefulSetAfterInvariantEstablished``."""
    workload, index, namespace = source.workload, within.cluster, source.namespace
    strategy, name = workload.strategy or Strategy(), workload.meta.name
    running = index.pods.count(namespace, own)
    waits = _WAITS if index.pods.count(namespace, own, terminating=True) != running else ""
    if unknown := _unknown_steps(workload, strategy) or waits:
        return MissingPods(index=index, unknown=unknown)
    numbers = range(workload.first_ordinal, workload.first_ordinal + replicas)
    known = ordinals(index, namespace, name, workload.claims or _NO_CLAIMS, numbers)
    if known is None:
        return MissingPods(index=index, unknown=f"{replicas:,} ordinals are too many to look up")
    slots = dict(index.pods.matching(namespace, own))
    on = {number: slots.get(f"{name}-{number}") for number in numbers}
    partition = strategy.partition if isinstance(strategy.partition, int) else 0
    kept, turns = _kept_and_replaced(on, partition)
    groups: dict[tuple[int | None, bool], list[int]] = {}
    for number in turns:
        groups.setdefault((known.pods[number - numbers.start].nodes, number < partition), []).append(number)
    if not turns or not all(known.pods[number - numbers.start].certain for number in turns):
        unknown = "the nodes of the pods' future volumes" if turns else ""
        return MissingPods(index=index, staying=len(kept), unknown=unknown)
    pod_class = {number: place for place, group in enumerate(groups.values(), 1) for number in group}
    gated = gates.ORDINALS_UNAVAILABLE.holds(within.version)
    unavailable = unavailable_ordinals(workload.strategy, replicas) if gated else 1
    new = next_pod_of(replace(source, applied=False), within).pod
    old = replace(new, metadata=replace(new.meta, labels=source.template.template.labels))
    leaving = Counter(slot for number in turns if (slot := on[number]) is not None)
    below = _with_only(kept, old, without_pods(index, new, own, running))
    problems = {of_old: problem_of(old if of_old else new, within.with_index(below)) for of_old in (False, True)}
    limits = {slot: pods + leaving[slot] for slot, pods in known.limits.items()} if workload.claims else {}
    news = (
        PodBatch(problem=problems[of_old], pods=len(group), nodes=nodes, limits=limits)
        for (nodes, of_old), group in groups.items()
    )
    return MissingPods(
        index=below,
        batches=(PodBatch(problem=problems[True], pods=0, leaving=leaving), *news),
        staying=len(kept),
        names=((), *(tuple(f"{name}-{number}" for number in group) for group in groups.values())),
        rollout=RolloutRules(
            0,
            1,
            replicas,
            surge=0,
            unavailable=unavailable,
            turns=tuple(Turn(pod_class[number], on[number]) for number in turns),
            # With several missing pods, the controller's timing decides the order.
            in_turn=not workload.parallel and unavailable == 1,
        ),
    )
