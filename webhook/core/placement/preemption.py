"""Whether pods fit if those of lower priority make room, and how many of these have to go.

Of lower pods only what they take counts as free; constraints count them still, and host ports and volumes stay taken.
So a yes is one of upstream's too, and a no may be too strict.
"""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from webhook.core.api.resources import PODS, PodRequest
from webhook.core.index import node_sets
from webhook.core.index.overlay import with_room
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.game import Move, Pods, State, more
from webhook.core.placement.game_from_cluster import ClusterGame, PodBatch, game_of
from webhook.core.placement.simulation import Effort, Simulation, always_fits, one_order
from webhook.core.scheduler.plugins.node_resources_fit import room_for
from webhook.core.scheduler.problem import may_preempt

_Lower = Mapping[int, Sequence[tuple[int, PodRequest]]]


def preempted(batches: Sequence[PodBatch], index: ReadOnlyIndex, found: Simulation, effort: Effort) -> int | None:
    """How many pods of lower priority have to go for all of these pods; None where that does not help them all.

    Shape: the batches and the index are those of ``found``, in which not all pods fit. All fit in every order then; the
    number is that of one order: as in ``found`` until no node admits a pod, then to where the fewest have to go.
    Source: defaultpreemption/default_preemption.go ``PodEligibleToPreemptOthers``, ``SelectVictimsOnNode``.
    """
    if not all(may_preempt(each.problem.pod) for each in batches):
        return None
    lower = index.lower_pods(min(each.problem.pod.pod_spec.priority or 0 for each in batches))
    if not lower:
        return None
    roomy = with_room(index, {slot: _sum([request for _, request in pods]) for slot, pods in lower.items()})
    able = [
        replace(each, problem=replace(each.problem, room=room_for(each.problem.request, roomy))) for each in batches
    ]
    game = game_of(able, roomy)
    if not always_fits(game, effort):
        return None
    steps = found.witness or one_order(game_of(batches, index))
    placed = _Placed(game, [_held(each.problem.request) for each in batches], index, lower)
    slots = index.view().slots
    for step in steps:
        placed.put(step.batch, slots[step.node])
    placed.rest()
    return sum(placed.victims(slot, pods) for slot, pods in placed.pods.items())


def _held(request: PodRequest) -> Mapping[str, int]:
    return {PODS: 1, **dict(request.amounts)}


def _sum(requests: Sequence[PodRequest]) -> dict[str, int]:
    total: dict[str, int] = {}
    for request in requests:
        for name, amount in _held(request).items():
            total[name] = total.get(name, 0) + amount
    return total


class _Placed:
    """Pods on nodes, one move after the other. Shape: ``pods`` are by slot, for nodes that got any."""

    def __init__(
        self, of: ClusterGame, requests: Sequence[Mapping[str, int]], index: ReadOnlyIndex, lower: _Lower
    ) -> None:
        self._of, self._requests, self._lower = of, requests, lower
        self._state: State = of.game.start
        self.pods: dict[int, Pods] = {}
        self._free = {name: index.amounts(name)[0] for each in requests for name in each}
        self._victims: dict[tuple[int, Pods], int] = {}

    def put(self, crowd: int, slot: int) -> None:
        """Place one pod of the crowd there."""
        classes = self._of.game.classes
        number = next(number for number, of in enumerate(classes) if of.nodes >> slot & 1)
        held = self._at(slot)
        before = held
        if classes[number].pooled:
            (before,) = [pods for pods, _ in self._state[number]] or [classes[number].start]
        after = more(before, crowd, 1)
        self._state = self._of.game.after(self._state, Move(crowd, number, before, after, 1))
        self.pods[slot] = more(held, crowd, 1)

    def rest(self) -> None:
        """Place all that are left, each where the fewest have to go for it."""
        while moves := self._of.game.moves(self._state):
            names = self._of.nodes.view.names
            choices = [
                (
                    self.victims(slot, more(self._at(slot), move.crowd, 1)) - self.victims(slot, self._at(slot)),
                    names[slot],
                    slot,
                    move,
                )
                for move in moves
                for slot in node_sets.to_slots(self._of.game.classes[move.number].nodes)
                if self._of.takes(move, slot, self._at(slot))
            ]
            *_, slot, move = min(choices)
            self.put(move.crowd, slot)

    def _at(self, slot: int) -> Pods:
        return self.pods.get(slot) or (0,) * len(self._requests)

    def victims(self, slot: int, pods: Pods) -> int:
        """How many lower pods have to leave the node for these: all but those that can stay, beginning at the top."""
        known = self._victims.get((slot, pods))
        if known is None:
            known = self._victims[slot, pods] = self._count(slot, pods)
        return known

    def _count(self, slot: int, pods: Pods) -> int:
        needed: dict[str, int] = {}
        for many, request in zip(pods, self._requests, strict=True):
            for name, amount in request.items():
                needed[name] = needed.get(name, 0) + many * amount
        lower = [each for _, each in sorted(self._lower.get(slot, ()), key=lambda each: -each[0])]
        gone = _sum(lower)
        left = {name: self._free[name][slot] + gone.get(name, 0) - amount for name, amount in needed.items()}
        victims = 0
        for held in map(_held, lower):
            if all(amount >= held.get(name, 0) for name, amount in left.items()):
                left = {name: amount - held.get(name, 0) for name, amount in left.items()}
            else:
                victims += 1
        return victims
