"""The pods of one template that look for a node: as its controller makes them, beside those that run.

    to_come         those that are missing; the others stay where they are
    all_anew        all of them, as if none ran
    in_a_rollout    those of a new revision, which replace the running ones

A StatefulSet's pods come one after the other, unless its podManagementPolicy is Parallel; those with volumes in one
place only go there. Pods of a Deployment that wait are among the missing.
"""

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api import gates
from webhook.core.api.selectors import Selector
from webhook.core.api.types import Pod
from webhook.core.api.version import KubernetesVersion
from webhook.core.defaulting.next_pod import after_admission, next_pod, problem_of
from webhook.core.index.lost_nodes import terminated, unreachable_nodes
from webhook.core.index.overlay import with_owners, with_pods, without_pods
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.crowds import ClusterGame, Party, game_of, small_game_of
from webhook.core.placement.game import Rollout, Turn
from webhook.core.placement.proofs.pinned_claims import Ordinal, ordinals
from webhook.core.policy.policy import Policy
from webhook.core.workloads.rolling_update import surge_of, unavailable_of, unavailable_ordinals
from webhook.core.workloads.workload import ClaimTemplates, Strategy, Template, Workload

_WAITS = "when terminating pods on unreachable nodes are gone, for which the rollout waits"
_NO_CLAIMS = ClaimTemplates(())
_UNKNOWN_STEPS = "in which steps its controller replaces pods"


class ToCome(Struct, frozen=True, kw_only=True):
    """Pods that look for a node, and the cluster in which they do.

    Shape: ``staying`` of the workload's pods keep theirs. ``names`` are those of the pods of each party in turn, empty
    where only their controller knows. ``unknown`` says in words why nothing can be said; empty where something can.
    """

    index: ReadOnlyIndex
    parties: tuple[Party, ...] = ()
    staying: int = 0
    names: tuple[tuple[str, ...], ...] = ()
    rollout: Rollout | None = None
    unknown: str = ""

    def game(self) -> ClusterGame:
        """The game of these pods alone; several may be played as one, of the parties of all."""
        return game_of(self.parties, self.index, rollout=self.rollout)

    def small_game(self) -> ClusterGame | None:
        """As `game`; None where others would wait for it."""
        return small_game_of(self.parties, self.index, rollout=self.rollout)


class Setting(Struct, frozen=True, kw_only=True):
    """What pods are made in: the cluster, the policy that injects, and where the object is.

    Shape: ``own`` selects the workload's pods in every revision, None where that is not known. ``applied`` says that
    the object is in the cluster as it is; a manifest is taken for a new revision.
    """

    index: ReadOnlyIndex
    policy: Policy
    version: KubernetesVersion
    namespace: str
    own: Selector | None = None
    applied: bool = False


def to_come(workload: Workload, template: Template, replicas: int, within: Setting) -> ToCome:
    """The pods that are missing of so many."""
    within = _terminated(workload, within)
    index, pod = within.index, _pod(workload, template, within)
    if workload.traits.ordered:
        return _ordinals(workload, pod, replicas, within)
    staying = sum(index.count(within.namespace, within.own).values()) if within.own is not None else 0
    party = Party(problem=problem_of(pod, index, within.policy), pods=max(0, replicas - staying))
    return ToCome(index=index, parties=(party,) if party.pods else (), staying=staying)


def all_anew(workload: Workload, template: Template, replicas: int, within: Setting) -> ToCome:
    """All pods, in a cluster without those that run; none of pods with names, of which those that run keep theirs."""
    if within.own is None or workload.traits.ordered:
        return ToCome(index=within.index)
    running = within.index.count(within.namespace, within.own)
    below = without_pods(within.index, _pod(workload, template, within), within.own, running)
    return to_come(workload, template, replicas, replace(within, index=below))


def in_a_rollout(workload: Workload, template: Template, replicas: int, within: Setting) -> ToCome:
    """All pods made anew, while those that run are deleted one by one.

    Shape: pods that run are taken for pods of this template, in an earlier revision. Those of a StatefulSet are
    replaced under their names, the highest ordinal first, down to the partition. With the strategy Recreate all old
    pods are gone before the first new one is made.
    Source: deployment/rolling.go ``rolloutRolling``; deployment/recreate.go ``rolloutRecreate``.
    """
    if within.own is None:
        return ToCome(index=within.index, unknown="which pods are its own")
    if workload.traits.ordered:
        return _by_ordinals(workload, template, replicas, _terminated(workload, within), within.own)
    if not workload.traits.surges:
        kept = "its controller replaces no pod that runs"
        return ToCome(index=within.index, unknown=kept if workload.built_in else _UNKNOWN_STEPS)
    if workload.recreates and _stay_for_ever(within, within.own):
        return ToCome(index=within.index, unknown="when its pods on unreachable nodes go, for which Recreate waits")
    new = _pod(workload, template, replace(within, applied=False))
    running = within.index.count(within.namespace, within.own)
    index = without_pods(within.index, new, within.own, running)
    old = replace(new, metadata=replace(new.meta, labels=template.template.labels))
    parties = (
        Party(problem=problem_of(old, index, within.policy), pods=0, leaving={} if workload.recreates else running),
        Party(problem=problem_of(new, index, within.policy), pods=replicas),
    )
    allowed = Rollout(
        0, 1, replicas, surge_of(workload.strategy, replicas), unavailable_of(workload.strategy, replicas)
    )
    return ToCome(index=index, parties=parties, rollout=allowed)


def _terminated(workload: Workload, within: Setting) -> Setting:
    """The setting once a StatefulSet's terminating pods are gone: only then does its controller create others."""
    if not workload.traits.ordered or within.own is None:
        return within
    return replace(within, index=terminated(within.index, within.namespace, within.own))


def _stay_for_ever(within: Setting, own: Selector) -> bool:
    """Whether some of the workload's pods are on nodes that cannot be reached, where no pod is ever gone."""
    lost = unreachable_nodes(within.index.view())
    return any(lost >> slot & 1 for slot in within.index.count(within.namespace, own, leaving=True))


def _pod(workload: Workload, template: Template, within: Setting) -> Pod:
    """The next pod of the template, as the scheduler gets it."""
    made = next_pod(workload, template, within.namespace, within.index, applied=within.applied)
    index = with_owners(within.index, made.owners) if made.owners else within.index
    return after_admission(made.template, within.namespace, within.policy, index, within.version).pod


def _ordinals(workload: Workload, pod: Pod, replicas: int, within: Setting) -> ToCome:
    numbers = range(workload.first_ordinal, workload.first_ordinal + replicas)
    claims = workload.claims or _NO_CLAIMS
    known = ordinals(within.index, within.namespace, workload.meta.name, claims, numbers)
    if known is None:
        return ToCome(index=within.index, unknown=f"{replicas:,} ordinals are too many to look up")
    numbered = zip(numbers, known.pods, strict=True)
    missing = [(each, f"{workload.meta.name}-{number}") for number, each in numbered if not each.runs]
    if not all(each.certain for each, _ in missing):
        return ToCome(index=within.index, unknown="where the volumes of its claims will be")
    problem, in_turn = problem_of(pod, within.index, within.policy), not workload.parallel
    room = known.room if claims.names else {}
    groups = _runs(missing) if in_turn else _alike(missing)
    parties = tuple(
        Party(
            problem=problem,
            pods=len(names),
            nodes=nodes,
            room=room,
            in_turn=in_turn,
            behind=number - 1 if in_turn and number else None,
        )
        for number, (nodes, names) in enumerate(groups)
    )
    return ToCome(
        index=within.index,
        parties=parties,
        staying=replicas - len(missing),
        names=tuple(tuple(names) for _, names in groups),
    )


def _by_ordinals(workload: Workload, template: Template, replicas: int, within: Setting, own: Selector) -> ToCome:
    """Source: statefulset/stateful_set_control.go ``updateStatefulSetAfterInvariantEstablished``."""
    strategy, name = workload.strategy or Strategy(), workload.meta.name
    if strategy.type == "OnDelete":
        return ToCome(index=within.index, unknown="which pods somebody deletes (OnDelete)")
    if not workload.built_in or strategy.type not in {None, "RollingUpdate"}:
        return ToCome(index=within.index, unknown=_UNKNOWN_STEPS)
    if within.index.count(within.namespace, own, leaving=True) != within.index.count(within.namespace, own):
        return ToCome(index=within.index, unknown=_WAITS)
    numbers = range(workload.first_ordinal, workload.first_ordinal + replicas)
    known = ordinals(within.index, within.namespace, name, workload.claims or _NO_CLAIMS, numbers)
    if known is None:
        return ToCome(index=within.index, unknown=f"{replicas:,} ordinals are too many to look up")
    slots = dict(within.index.pods_matching(within.namespace, own))
    on = {number: slots.get(f"{name}-{number}") for number in numbers}
    partition = _partition(strategy)  # an ordinal: below it, missing pods come back in the old revision
    kept = [slot for number, slot in on.items() if number < partition and slot is not None]
    turns = [number for number, slot in on.items() if slot is None]
    turns += [number for number, slot in reversed(on.items()) if number >= partition and slot is not None]
    groups: dict[tuple[int | None, bool], list[int]] = {}
    for number in turns:
        groups.setdefault((known.pods[number - numbers.start].nodes, number < partition), []).append(number)
    if not turns or not all(known.pods[number - numbers.start].certain for number in turns):
        unknown = "where the volumes of its claims will be" if turns else ""
        return ToCome(index=within.index, staying=len(kept), unknown=unknown)
    crowd = {number: place for place, group in enumerate(groups.values(), 1) for number in group}
    new = _pod(workload, template, replace(within, applied=False))
    old = replace(new, metadata=replace(new.meta, labels=template.template.labels))
    leaving = Counter(slot for number in turns if (slot := on[number]) is not None)
    index = without_pods(within.index, new, own, within.index.count(within.namespace, own))
    for slot, pods in Counter(kept).items():
        index = with_pods(index, index.view().names[slot], [old] * pods)
    problems = {of_old: problem_of(old if of_old else new, index, within.policy) for of_old in (False, True)}
    room = {slot: pods + leaving[slot] for slot, pods in known.room.items()} if workload.claims else {}
    news = (
        Party(problem=problems[of_old], pods=len(group), nodes=nodes, room=room)
        for (nodes, of_old), group in groups.items()
    )
    return ToCome(
        index=index,
        parties=(Party(problem=problems[True], pods=0, leaving=leaving), *news),
        staying=len(kept),
        names=((), *(tuple(f"{name}-{number}" for number in group) for group in groups.values())),
        rollout=_in_turn(workload, replicas, [Turn(crowd[number], on[number]) for number in turns], within.version),
    )


def _in_turn(workload: Workload, replicas: int, turns: Sequence[Turn], version: KubernetesVersion) -> Rollout:
    unavailable = 1
    if gates.ORDINALS_UNAVAILABLE.holds(version):
        unavailable = unavailable_ordinals(workload.strategy, replicas)
    # With several pods missing, which of them is made first depends on when the controller looks.
    in_turn = not workload.parallel and unavailable == 1
    return Rollout(0, 1, replicas, surge=0, unavailable=unavailable, turns=tuple(turns), in_turn=in_turn)


def _partition(strategy: Strategy) -> int:
    return strategy.partition if isinstance(strategy.partition, int) else 0


_Named = Sequence[tuple[Ordinal, str]]
_Groups = Sequence[tuple[int | None, Sequence[str]]]  # the nodes that pods may use, and their names


def _alike(missing: _Named) -> _Groups:
    """Pods that may use the same nodes."""
    found: dict[int | None, list[str]] = {}
    for each, name in missing:
        found.setdefault(each.nodes, []).append(name)
    return [*found.items()]


def _runs(missing: _Named) -> _Groups:
    """Pods that follow one another and may use the same nodes."""
    found: list[tuple[int | None, list[str]]] = []
    for each, name in missing:
        if found and found[-1][0] == each.nodes:
            found[-1][1].append(name)
        else:
            found.append((each.nodes, [name]))
    return found
