"""Find the cause of unschedulable pods, and changes that make them schedulable.

The changes are added nodes, or preempted pods of lower priority. `always_fits` tests each result.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations_with_replacement, product

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.node_selectors import compile_required_nodes
from webhook.core.api.pod_requests import PodRequest
from webhook.core.api.resources import PODS
from webhook.core.api.well_known import HOSTNAME
from webhook.core.index import node_sets
from webhook.core.index.overlay import AddedNodes, with_nodes, with_room
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.game import Move, State, add_pods
from webhook.core.placement.game_from_cluster import ClusterGame, PodBatch, game_of
from webhook.core.placement.placement_verdict import Effort, Simulation
from webhook.core.placement.pod_limits import Pods
from webhook.core.placement.rolling_update import RolloutRules
from webhook.core.placement.simulation import always_fits, one_order
from webhook.core.scheduler.plugins.node_resources_fit import free_resources
from webhook.core.scheduler.plugins.node_selection import tolerated_nodes, usable_nodes
from webhook.core.scheduler.problem import Problem, may_preempt, without_limits, without_spread
from webhook.core.scheduler.verdict import Cause


def cause_of_misfit(
    batches: Sequence[PodBatch], index: ReadOnlyIndex, rollout: RolloutRules | None, effort: Effort
) -> Cause:
    """Return why some order leaves a pod without a node.

    `Cause` has the rule. Here, all pods must fit in every order. For the arguments, see `game_of`.
    """
    free = [replace(batch, problem=without_spread(batch.problem)) for batch in batches]
    if always_fits(game_of(free, index, rollout=rollout), effort):
        return Cause.SPREAD
    roomy = [replace(batch, problem=without_limits(batch.problem)) for batch in batches]
    return Cause.CAPACITY if always_fits(game_of(roomy, index, rollout=rollout), effort) else Cause.OTHER


_Lower = Mapping[int, Sequence[tuple[int, PodRequest]]]


def pods_to_preempt(
    batches: Sequence[PodBatch], index: ReadOnlyIndex, simulation: Simulation, effort: Effort
) -> int | None:
    """Return the number of pods to preempt until all new pods fit.

    None if preemption cannot help. After the preemption, all new pods fit in every order. The number itself is valid
    for one order: the order in ``simulation.witness``, then each remaining pod on the node with the fewest additional
    victims.

    Only the requests of lower-priority pods count as free. Constraints still count these pods, and their host ports and
    volumes stay in use. So if the result is a number, kube-scheduler can also preempt. If the result is None,
    kube-scheduler may still find pods to preempt.

    Source: defaultpreemption/default_preemption.go ``PodEligibleToPreemptOthers``, ``SelectVictimsOnNode``.
    """
    if not all(may_preempt(batch.problem.pod) for batch in batches):
        return None
    lower = index.pods.lower(min(batch.problem.pod.pod_spec.priority or 0 for batch in batches))
    if not lower:
        return None
    roomy = with_room(index, {slot: _held(*(request for _, request in pods)) for slot, pods in lower.items()})
    able = [
        replace(batch, problem=replace(batch.problem, resources=free_resources(batch.problem.request, roomy)))
        for batch in batches
    ]
    game = game_of(able, roomy)
    if not always_fits(game, effort):
        return None
    steps = simulation.witness or one_order(game_of(batches, index))
    placed = _PodPlacer(game, [_held(batch.problem.request) for batch in batches], index, lower)
    slots = index.nodes.view().slots
    for step in steps:
        placed.put(step.batch, slots[step.node])
    placed.rest()
    return sum(placed.victims(slot, pods) for slot, pods in placed.pods.items())


def _held(*requests: PodRequest) -> Counter[str]:
    total = Counter({PODS: len(requests)})
    for request in requests:
        total.update(dict(request.amounts))
    return total


class _PodPlacer:
    """Places pods on nodes in turn. ``pods`` maps each node slot to the placed pods."""

    def __init__(
        self, game: ClusterGame, requests: Sequence[Mapping[str, int]], index: ReadOnlyIndex, lower: _Lower
    ) -> None:
        self._of, self._requests, self._lower = game, requests, lower
        self._state: State = game.game.start
        self.pods: dict[int, Pods] = {}
        self._free = {name: index.nodes.amounts(name)[0] for request in requests for name in request}
        self.victims = cache(self._count_victims)

    def put(self, pod_class: int, slot: int) -> None:
        classes = self._of.game.classes
        number = next(number for number, node_class in enumerate(classes) if node_class.nodes >> slot & 1)
        held = self._at(slot)
        before = held
        if classes[number].pooled:
            (before,) = [pods for pods, _ in self._state[number]] or [classes[number].start]
        after = add_pods(before, pod_class, 1)
        self._state = self._of.game.after(self._state, Move(pod_class, number, before, after, 1))
        self.pods[slot] = add_pods(held, pod_class, 1)

    def rest(self) -> None:
        """Place the remaining pods, each on the node with the fewest additional pods to preempt."""
        while moves := self._of.game.moves(self._state):
            names = self._of.nodes.view.names
            choices = [
                (
                    self.victims(slot, add_pods(self._at(slot), move.pod_class, 1))
                    - self.victims(slot, self._at(slot)),
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
        """Count the pods of lower priority to evict from the node. Pods with the highest priorities stay."""
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


_FitsInCluster = Callable[[ReadOnlyIndex], bool]

# Each choice of nodes costs a simulation, so only likely answers are tried.
# The most nodes to try in every mix of domains. With 4 domains, 2 nodes have 10 mixes, and 3 would have 20 more.
_MIXED = 2
_ONE_BY_ONE = 12  # Up to this number of nodes, every number is tried: 3 nodes in each of 4 domains.
_MOST_DOMAINS = 4  # The domains to try, those with the fewest nodes first. Regions have three or four zones.
_MOST_CLASSES = 2  # The kinds of nodes to try, the most common first. Other kinds are rarely in every zone.
_Where = Mapping[str, str]  # The labels of one domain per constraint.


class NodesToAdd(Struct, frozen=True):
    """Nodes to add.

    Attributes:
        like: An existing node to copy.
        labels: The labels of their domain.
    """

    like: str
    labels: Mapping[str, str]
    nodes: int


def nodes_to_add(
    batches: Sequence[PodBatch],
    index: ReadOnlyIndex,
    fits: _FitsInCluster,
    others: Mapping[str, Sequence[str]] | None = None,
) -> tuple[NodesToAdd, ...]:
    """Return the fewest added nodes after which all pods fit in every order. Empty if none were found.

    An added node resembles a usable node of its domain, or has the labels of another domain. A few nodes are tried in
    every mix of domains. More nodes go into a single domain, or equally into all.

    Args:
        batches: The pods.
        index: The cluster.
        fits: Whether the pods fit in a changed cluster.
        others: Further domains that may have no node, by topology key.
    """
    problem, to_add = batches[0].problem, list[AddedNodes]()
    domains, classes = _domains(problem, others or {}), _classes(problem, index)

    def helps(shape: Sequence[int], models: int) -> bool:
        to_add[:] = [_more(problem, models, domains[each], nodes) for each, nodes in Counter(shape).items()]
        return fits(with_nodes(index, to_add))

    most = 2 * sum(batch.pods for batch in batches)
    for (family, nodes, fewer), models in product(_sizes(len(domains), most), classes):
        if helps(family * nodes, models):
            _fewest(lambda many: helps(family * many, models), fewer, nodes)  # noqa: B023 called at once
            return tuple(NodesToAdd(problem.nodes.names[added.like], added.labels, added.nodes) for added in to_add)
    return ()


def _sizes(domains: int, most: int) -> Iterator[tuple[tuple[int, ...], int, int]]:
    """Yield combinations of added nodes to try, smallest first.

    Each tuple has the domains, the number of added nodes in each domain, and the number tried before it. All small
    numbers are tried, because a larger number of nodes can be worse. Larger numbers grow by half.
    """
    for nodes in range(1, _MIXED + 1):
        yield from ((family, 1, 0) for family in combinations_with_replacement(range(domains), nodes))
    families = [(domain,) for domain in range(domains)] + [tuple(range(domains))] * (domains > 1)
    before, nodes = _MIXED, _MIXED + 1
    while nodes <= most:
        yield from (
            (family, nodes // len(family), before // len(family))
            for family in families
            if nodes // len(family) > before // len(family)
        )
        before, nodes = nodes, nodes + 1 if nodes < _ONE_BY_ONE else nodes * 3 // 2


def _fewest(helps: Callable[[int], bool], fewer: int, enough: int) -> None:
    """Find the lowest successful number between two numbers, by bisection.

    ``fewer`` must fail and ``enough`` must succeed. ``helps`` tests a number, and stores the result of each success.
    At the end the stored result is that of the lowest number, if necessary after one more call.
    """
    last = enough
    while enough - fewer > 1:
        last = (fewer + enough) // 2
        fewer, enough = (fewer, last) if helps(last) else (last, enough)
    if last != enough:
        helps(enough)


def _domains(problem: Problem, others: Mapping[str, Sequence[str]]) -> list[_Where]:
    """Return the domains where a node can be added, those with the fewest nodes first.

    They are the domains of the pod's hard constraints, each as a mapping from topology key to label value. With a
    single key, the configured domains in ``others`` are included, even without a node.
    """
    view = problem.nodes
    keys = dict.fromkeys(
        constraint.topology_key for constraint in problem.hard.constraints if constraint.topology_key != HOSTNAME
    )
    numbers = [view.column(key) for key in keys]
    sizes = Counter(
        tuple(column.values[column.domain_of[slot]] for column in numbers)
        for slot in node_sets.to_slots(view.live)
        if all(column.domain_of[slot] >= 0 for column in numbers)
    )
    if len(keys) == 1:
        sizes.update({(value,): 0 for key in keys for value in others.get(key, ())})
    several = sorted(sizes, key=lambda each: (sizes[each], each))[:_MOST_DOMAINS]
    return [dict(zip(keys, values, strict=True)) for values in several]


def _classes(problem: Problem, index: ReadOnlyIndex) -> list[int]:
    """Return sets of usable nodes with equal resources, the largest set first."""
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
    """Return ``nodes`` nodes to add to the domain ``where``.

    Each added node is a copy of a node of ``models``, if possible of a node in this domain.
    """
    inside = models
    for key, value in where.items():
        inside &= problem.nodes.column(key).with_value(value)
    alike = inside or models
    return AddedNodes((alike & -alike).bit_length() - 1, nodes, where)
