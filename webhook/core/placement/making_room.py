"""Why some order leaves pods without a node, and what makes room: nodes to add, or pods of lower priority to evict.

Each answer is tried by `always_fits`.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations_with_replacement, product

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.resources import PODS, PodRequest
from webhook.core.api.selectors import compile_required_nodes
from webhook.core.api.well_known import HOSTNAME
from webhook.core.index import node_sets
from webhook.core.index.overlay import AddedNodes, with_nodes, with_room
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.game import Move, Pods, Rollout, State, more
from webhook.core.placement.game_from_cluster import ClusterGame, PodBatch, game_of
from webhook.core.placement.simulation import Effort, Simulation, always_fits, one_order
from webhook.core.scheduler.plugins.node_resources_fit import NODE_RESOURCES_FIT, free_resources
from webhook.core.scheduler.plugins.node_selection import tolerated_nodes, usable_nodes
from webhook.core.scheduler.plugins.pod_topology_spread import CountedConstraints
from webhook.core.scheduler.problem import Problem, may_preempt
from webhook.core.scheduler.verdict import Cause


def cause(batches: Sequence[PodBatch], index: ReadOnlyIndex, rollout: Rollout | None, effort: Effort) -> Cause:
    """What is in the way of pods that do not fit in every order (arguments as for `game_of`).

    Returns:
        SPREAD if all fit without hard constraints; else CAPACITY if all fit without limits of resources; else OTHER.
    """
    free = [replace(each, problem=replace(each.problem, hard=CountedConstraints())) for each in batches]
    if always_fits(game_of(free, index, rollout=rollout), effort):
        return Cause.SPREAD
    roomy = [replace(each, problem=_without_limits(each.problem)) for each in batches]
    return Cause.CAPACITY if always_fits(game_of(roomy, index, rollout=rollout), effort) else Cause.OTHER


def _without_limits(problem: Problem) -> Problem:
    return replace(problem, filters=tuple(each for each in problem.filters if each != NODE_RESOURCES_FIT))


_Lower = Mapping[int, Sequence[tuple[int, PodRequest]]]


def preempted(batches: Sequence[PodBatch], index: ReadOnlyIndex, found: Simulation, effort: Effort) -> int | None:
    """How many pods of lower priority to evict for all of these pods; None if that does not help.

    All fit in every order then. The number is that of one order: as in ``found`` until no node admits a pod, then to
    where the fewest have to go. Only what lower pods request counts as free. Constraints count them still, and host
    ports and volumes stay taken: a yes is one of upstream's too, and a no may be too strict.
    Source: defaultpreemption/default_preemption.go ``PodEligibleToPreemptOthers``, ``SelectVictimsOnNode``.
    """
    if not all(may_preempt(each.problem.pod) for each in batches):
        return None
    lower = index.pods.lower(min(each.problem.pod.pod_spec.priority or 0 for each in batches))
    if not lower:
        return None
    roomy = with_room(index, {slot: _held(*(request for _, request in pods)) for slot, pods in lower.items()})
    able = [
        replace(each, problem=replace(each.problem, resources=free_resources(each.problem.request, roomy)))
        for each in batches
    ]
    game = game_of(able, roomy)
    if not always_fits(game, effort):
        return None
    steps = found.witness or one_order(game_of(batches, index))
    placed = _Placed(game, [_held(each.problem.request) for each in batches], index, lower)
    slots = index.nodes.view().slots
    for step in steps:
        placed.put(step.batch, slots[step.node])
    placed.rest()
    return sum(placed.victims(slot, pods) for slot, pods in placed.pods.items())


def _held(*requests: PodRequest) -> Counter[str]:
    """What these pods take of each resource."""
    total = Counter({PODS: len(requests)})
    for request in requests:
        total.update(dict(request.amounts))
    return total


class _Placed:
    """Pods on nodes, one move after the other; ``pods`` by slot."""

    def __init__(
        self, of: ClusterGame, requests: Sequence[Mapping[str, int]], index: ReadOnlyIndex, lower: _Lower
    ) -> None:
        self._of, self._requests, self._lower = of, requests, lower
        self._state: State = of.game.start
        self.pods: dict[int, Pods] = {}
        self._free = {name: index.nodes.amounts(name)[0] for each in requests for name in each}
        self.victims = cache(self._count_victims)

    def put(self, pod_class: int, slot: int) -> None:
        """Place one pod of the class there."""
        classes = self._of.game.classes
        number = next(number for number, of in enumerate(classes) if of.nodes >> slot & 1)
        held = self._at(slot)
        before = held
        if classes[number].pooled:
            (before,) = [pods for pods, _ in self._state[number]] or [classes[number].start]
        after = more(before, pod_class, 1)
        self._state = self._of.game.after(self._state, Move(pod_class, number, before, after, 1))
        self.pods[slot] = more(held, pod_class, 1)

    def rest(self) -> None:
        """Place all that are left, each where the fewest have to go for it."""
        while moves := self._of.game.moves(self._state):
            names = self._of.nodes.view.names
            choices = [
                (
                    self.victims(slot, more(self._at(slot), move.pod_class, 1)) - self.victims(slot, self._at(slot)),
                    names[slot],
                    slot,
                    move,
                )
                for move in moves
                for slot in node_sets.to_slots(self._of.game.classes[move.number].nodes)
                if self._of.takes(move, slot, self._at(slot))
            ]
            *_, slot, move = min(choices)
            self.put(move.pod_class, slot)

    def _at(self, slot: int) -> Pods:
        return self.pods.get(slot) or (0,) * len(self._requests)

    def _count_victims(self, slot: int, pods: Pods) -> int:
        """How many lower pods have to leave the node for these: all but those that can stay, beginning at the top."""
        needed = Counter[str]()
        for many, request in zip(pods, self._requests, strict=True):
            needed.update({name: many * amount for name, amount in request.items()})
        lower = [each for _, each in sorted(self._lower.get(slot, ()), key=lambda each: -each[0])]
        gone, victims = _held(*lower), 0
        left = {name: self._free[name][slot] + gone[name] - amount for name, amount in needed.items()}
        for held in map(_held, lower):
            if all(amount >= held[name] for name, amount in left.items()):
                left = {name: amount - held[name] for name, amount in left.items()}
            else:
                victims += 1
        return victims


Fits = Callable[[ReadOnlyIndex], bool]

_MIXED = 2  # nodes that are tried in every mixture of domains
_ONE_BY_ONE = 12
_MOST_DOMAINS = 4
_MOST_CLASSES = 2
_Where = Mapping[str, str]  # the labels of a domain of each constraint


class Added(Struct, frozen=True):
    """So many nodes, like one that is there, with these labels."""

    like: str
    labels: Mapping[str, str]
    nodes: int


def nodes_to_add(
    batches: Sequence[PodBatch], index: ReadOnlyIndex, fits: Fits, others: Mapping[str, Sequence[str]] | None = None
) -> tuple[Added, ...]:
    """The fewest nodes with which all pods fit in every order; none if that is not found.

    It tries nodes like those that the pods can use in each domain of their constraints, and nodes of one domain's kind
    with the labels of another: few in every mixture of domains; more in one domain, or equally many in each.

    Args:
        batches: The pods.
        index: The cluster.
        fits: Whether they fit in another cluster.
        others: Domains by key that may have no node yet.
    """
    problem, found = batches[0].problem, list[AddedNodes]()
    domains, classes = _domains(problem, others or {}), _classes(problem, index)

    def helps(shape: Sequence[int], models: int) -> bool:
        found[:] = [_more(problem, models, domains[each], nodes) for each, nodes in Counter(shape).items()]
        return fits(with_nodes(index, found))

    most = 2 * sum(each.pods for each in batches)
    for (family, nodes, fewer), models in product(_sizes(len(domains), most), classes):
        if helps(family * nodes, models):
            _fewest(lambda many: helps(family * many, models), fewer, nodes)  # noqa: B023 called at once
            return tuple(Added(problem.nodes.names[each.like], each.labels, each.nodes) for each in found)
    return ()


def _sizes(domains: int, most: int) -> Iterator[tuple[tuple[int, ...], int, int]]:
    """Domains that get equally many nodes, how many, and the number before it: the fewest first.

    Up to some every number is tried, since more may be worse, and then ever larger ones.
    """
    for nodes in range(1, _MIXED + 1):
        yield from ((each, 1, 0) for each in combinations_with_replacement(range(domains), nodes))
    families = [(each,) for each in range(domains)] + [tuple(range(domains))] * (domains > 1)
    before, nodes = _MIXED, _MIXED + 1
    while nodes <= most:
        yield from (
            (family, nodes // len(family), before // len(family))
            for family in families
            if nodes // len(family) > before // len(family)
        )
        before, nodes = nodes, nodes + 1 if nodes < _ONE_BY_ONE else nodes * 3 // 2


def _fewest(helps: Callable[[int], bool], fewer: int, enough: int) -> None:
    """Search between a number that does not help and one that does; the last that is tried is the smallest found."""
    last = enough
    while enough - fewer > 1:
        last = (fewer + enough) // 2
        fewer, enough = (fewer, last) if helps(last) else (last, enough)
    if last != enough:
        helps(enough)


def _domains(problem: Problem, others: Mapping[str, Sequence[str]]) -> list[_Where]:
    """The domains of the nodes, those with the fewest first; ``others`` count if one key alone matters."""
    view = problem.nodes
    keys = dict.fromkeys(each.topology_key for each in problem.hard.constraints if each.topology_key != HOSTNAME)
    numbers = [view.column(key) for key in keys]
    found = Counter(
        tuple(column.values[column.of[slot]] for column in numbers)
        for slot in node_sets.to_slots(view.live)
        if all(column.of[slot] >= 0 for column in numbers)
    )
    if len(keys) == 1:
        found.update({(value,): 0 for key in keys for value in others.get(key, ())})
    several = sorted(found, key=lambda each: (found[each], each))[:_MOST_DOMAINS]
    return [dict(zip(keys, each, strict=True)) for each in several]


def _classes(problem: Problem, index: ReadOnlyIndex) -> list[int]:
    """Sets of nodes that the pods can use and that offer the same: the most common first."""
    view, spec = problem.nodes, problem.pod.pod_spec
    usable = usable_nodes(view, compile_required_nodes(spec.node_selector, spec.affinity))
    usable &= tolerated_nodes(view, spec.tolerations) & ~view.unschedulable
    offered = [(index.nodes.amounts(name)[1], amount) for name, amount in problem.request.amounts]
    members: dict[tuple[int, ...], list[int]] = {}
    for slot in node_sets.to_slots(usable):
        if all(has[slot] >= amount for has, amount in offered):
            members.setdefault(tuple(has[slot] for has, _ in offered), []).append(slot)
    several = sorted(members.values(), key=lambda slots: (-len(slots), slots[0]))[:_MOST_CLASSES]
    return [node_sets.from_slots(slots, view.size) for slots in several]


def _more(problem: Problem, models: int, where: _Where, nodes: int) -> AddedNodes:
    """So many nodes of a class in a domain: like one that is there, if any is."""
    inside = models
    for key, value in where.items():
        inside &= problem.nodes.column(key).with_value(value)
    alike = inside or models
    return AddedNodes((alike & -alike).bit_length() - 1, nodes, where)
