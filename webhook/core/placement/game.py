"""Pods that look for nodes one after the other, as a game of small numbers: which moves a state allows.

A move places a pod on a node that admits it, whatever its score, or deletes a pod that a rolling update may delete. A
terminal state allows no move. Equal nodes are one class. A state counts the nodes of each class by their pods, so
thousands of equal nodes cost as much as one.

    Game.moves    state -> moves
    Game.after    state, move -> state
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from operator import le, mul
from typing import NamedTuple

from msgspec import Struct

Pods = tuple[int, ...]  # a number for each pod class
# A class's nodes that are not as at the start: the pods on a node, and how many nodes hold exactly those. Sorted.
ClassState = tuple[tuple[Pods, int], ...]
State = tuple[ClassState, ...]

# The minimum over no domain at all (MaxInt32). Source: podtopologyspread/filtering.go ``newCriticalPaths``.
_NO_DOMAIN = 2**31 - 1


class Gate(NamedTuple):
    """A node admits one more of the pod class while ``sum(weight * pods on the node) <= bound``."""

    weights: Pods
    bound: int


class NodeSpread(Struct, frozen=True):
    """A spread constraint over nodes, each of which is a domain, with at least minDomains of them.

    ``weights`` is 1 for the pod classes that it counts. ``floor`` is the lowest count on closed nodes, None without
    any.
    """

    weights: Pods
    floor: int | None


class DomainSpread(Struct, frozen=True):
    """A spread constraint over domains of several nodes.

    ``base`` has the pods in each domain at the start, without those that can be deleted. ``eligible`` are the domains
    that count for the minimum, ``counting`` says for each node class whether its pods count.
    """

    key: int
    weights: Pods
    base: tuple[int, ...]
    eligible: tuple[int, ...]
    counting: tuple[bool, ...]
    enough: bool


class Limit(NamedTuple):
    """A constraint of a pod class: the number of the spread in the game. A domain may hold minimum + ``over`` pods."""

    spread: int
    over: int


class AntiAffinity(NamedTuple):
    """Pods of the class go to no domain of the key that holds a pod with a weight."""

    key: int
    weights: Pods


class Affinity(Struct, frozen=True):
    """Pods of the class go only to domains that hold a pod with a weight, in each of the keys.

    ``base`` are the domains of each key with such a pod at the start. The first pod of those that match themselves may
    go anywhere.
    """

    keys: tuple[int, ...]
    weights: Pods
    base: tuple[frozenset[int], ...]
    matches_itself: bool


class PodClass(Struct, frozen=True):
    """Equal pods that look for a node, with ``in_turn`` one after the other, and after all of the class ``behind``."""

    pods: int
    in_turn: bool = False
    behind: int | None = None
    on_nodes: tuple[Limit, ...] = ()
    on_domains: tuple[Limit, ...] = ()
    apart: tuple[AntiAffinity, ...] = ()
    near: Affinity | None = None


class NodeClass(Struct, frozen=True):
    """Equal nodes; or, if pooled, nodes whose pods only matter in sum, as one node.

    Args:
        size: The number of nodes.
        open: By pod class: whether the nodes admit it, apart from spread and neighbours.
        gates: By pod class: the limits on a node.
        start: By pod class: the pods on a node that can be deleted.
        domains: The domain of each key, -1 without the key.
        held: The other pods on a node by `NodeSpread`, None if the node does not count.
        nodes: The nodes themselves.
        packs: Whether some nodes of a pool take several pods, so that nobody knows how many still take one.
    """

    size: int
    open: tuple[bool, ...]
    gates: tuple[tuple[Gate, ...], ...]
    start: Pods
    domains: tuple[int, ...]
    held: tuple[int | None, ...]
    nodes: int = 0
    pooled: bool = False
    packs: bool = False

    def ways(self, pod_class: int, pods: Pods, nodes: int) -> int:
        """How many nodes take one more of the pod class, among those with these pods."""
        if not self.pooled:
            return nodes
        left = [gate.bound + 1 - _weighed(gate.weights, pods) for gate in self.gates[pod_class]]
        return min((self.nodes.bit_count(), *left))


class Turn(NamedTuple):
    """A pod that is replaced under its name: the class of the new one, and the class of the old one's node.

    ``place`` is None for a pod that is missing from the start. For `game_of` it is a slot.
    """

    pod_class: int
    place: int | None


class Rollout(NamedTuple):
    """A rolling update: the class that is replaced, the class that replaces it, and what the strategy allows.

    With ``turns``, pods are replaced in this order, missing ones first, and ``new`` is unused. Each of their nodes is a
    class of its own. With ``in_turn``, no pod is made before the pods of earlier turns have a node.
    Source: deployment/rolling.go ``reconcileNewReplicaSet``, ``reconcileOldReplicaSets``;
    statefulset/stateful_set_control.go ``updateStatefulSetAfterInvariantEstablished``.
    """

    old: int
    new: int
    replicas: int
    surge: int
    unavailable: int
    turns: tuple[Turn, ...] = ()
    in_turn: bool = False

    def is_due(self, placed: Pods) -> Counter[int]:
        """By class: the pods whose turn has come, including those that are placed."""
        gone, made = len(self.turns) - placed[self.old], sum(placed) - placed[self.old]
        return Counter(turn.pod_class for turn in self.turns[: min(gone, made + 1) if self.in_turn else gone])


class Move(NamedTuple):
    """One pod more, or with ``gone`` one less, on a node of a class that holds ``before``; ``ways`` nodes are alike."""

    pod_class: int
    number: int  # of the class
    before: Pods
    after: Pods
    ways: int
    gone: bool = False


class _ClassFacts(NamedTuple):
    """What follows from the state of one node class.

    ``minima`` has the lowest count of each `NodeSpread`, None if no node counts. ``places`` has for each pod class the
    nodes within its gates: their pods, their number, and the counts of its ``on_nodes``.
    """

    sums: Pods
    minima: tuple[int | None, ...]
    places: tuple[tuple[tuple[Pods, int, tuple[int, ...]], ...], ...]


class Game:
    """Classes of nodes, pod classes of pods, and what keeps one from the other."""

    def __init__(  # noqa: PLR0913 each a fact of its own
        self,
        classes: Sequence[NodeClass],
        pod_classes: Sequence[PodClass],
        *,
        node_spreads: Sequence[NodeSpread] = (),
        domain_spreads: Sequence[DomainSpread] = (),
        keys: int = 0,
        rollout: Rollout | None = None,
    ) -> None:
        self.classes, self.pod_classes = tuple(classes), tuple(pod_classes)
        self.node_spreads, self.domain_spreads = tuple(node_spreads), tuple(domain_spreads)
        self.keys, self.rollout = keys, rollout
        self._facts: list[dict[ClassState, _ClassFacts]] = [{} for _ in classes]

    @property
    def start(self) -> State:
        """The state before the first move."""
        return ((),) * len(self.classes)

    def placed(self, state: State) -> Pods:
        """How many pods of each pod class have a node."""
        sums = [self._class_facts(number, each).sums for number, each in enumerate(state)]
        return tuple(map(sum, zip(*sums, strict=True))) if sums else (0,) * len(self.pod_classes)

    def waiting(self, placed: Pods) -> Pods:
        """How many pods of each pod class the controllers let look for a node."""
        left = [each.pods - done for each, done in zip(self.pod_classes, placed, strict=True)]
        if self.rollout is not None and self.rollout.turns:
            due = self.rollout.is_due(placed)
            left = [due[number] - done for number, done in enumerate(placed)]
            left[self.rollout.old] = 0
        elif self.rollout is not None:
            old, new, replicas, surge, *_ = self.rollout
            left[old] = 0
            left[new] = max(0, min(replicas, replicas + surge - placed[old]) - placed[new])
        for number, pod_class in enumerate(self.pod_classes):
            if pod_class.behind is not None and placed[pod_class.behind] < self.pod_classes[pod_class.behind].pods:
                left[number] = 0
            elif pod_class.in_turn:
                left[number] = min(left[number], 1)
        return tuple(left)

    def is_done(self, placed: Pods) -> bool:
        """Whether every pod has its node, and every pod that is replaced is gone."""
        old = None if self.rollout is None else self.rollout.old
        return all(
            not placed[number] if number == old else placed[number] >= pod_class.pods
            for number, pod_class in enumerate(self.pod_classes)
        )

    def moves(self, state: State, placed: Pods | None = None) -> list[Move]:
        """The moves that are allowed, none in a terminal state. ``placed`` is as from `Game.placed`."""
        facts = [self._class_facts(number, each) for number, each in enumerate(state)]
        placed = self.placed(state) if placed is None else placed
        found = self._deletions(state, placed)
        lowest = [self._lowest(number, facts) for number in range(len(self.node_spreads))]
        spread = [_counted(each, facts, self.classes) for each in self.domain_spreads]
        for pod_class, left in enumerate(self.waiting(placed)):
            if left:
                closed = self._closed(pod_class, facts, spread)
                tops = [lowest[each.spread] + each.over for each in self.pod_classes[pod_class].on_nodes]
                for number, of_class in enumerate(facts):
                    if not closed[number]:
                        found += [
                            Move(pod_class, number, pods, more(pods, pod_class, 1), nodes)
                            for pods, nodes, counts in of_class.places[pod_class]
                            if all(map(le, counts, tops))
                        ]
        return found

    def after(self, state: State, move: Move) -> State:
        """The state that a move leads to; no moves bring a node back to what it held at the start."""
        number, start = move.number, self.classes[move.number].start
        nodes = dict(state[number])
        if move.before != start:
            nodes[move.before] -= 1
            if not nodes[move.before]:
                del nodes[move.before]
        nodes[move.after] = nodes.get(move.after, 0) + 1
        return (*state[:number], tuple(sorted(nodes.items())), *state[number + 1 :])

    def _deletions(self, state: State, placed: Pods) -> list[Move]:
        if self.rollout is None:
            return []
        if self.rollout.turns:
            return self._next_turn(self.rollout, state, placed)
        old, new, replicas, _, unavailable, *_ = self.rollout
        if not placed[old] or placed[old] + placed[new] - 1 < replicas - unavailable:
            return []
        return [
            Move(old, number, pods, more(pods, old, -1), nodes, gone=True)
            for number, of_class in enumerate(state)
            for pods, nodes in _nodes(self.classes[number], of_class)
            if pods[old] and nodes
        ]

    def _next_turn(self, rollout: Rollout, state: State, placed: Pods) -> list[Move]:
        old = rollout.old
        gone, made = len(rollout.turns) - placed[old], sum(placed) - placed[old]
        number = rollout.turns[gone].place if placed[old] else None
        if number is None or gone - made >= rollout.unavailable:
            return []
        (pods,) = (pods for pods, nodes in _nodes(self.classes[number], state[number]) if nodes)
        return [Move(old, number, pods, more(pods, old, -1), 1, gone=True)]

    def _class_facts(self, number: int, state: ClassState) -> _ClassFacts:
        facts = self._facts[number].get(state)
        if facts is None:
            facts = self._facts[number][state] = self._look(self.classes[number], state)
        return facts

    def _look(self, of: NodeClass, state: ClassState) -> _ClassFacts:
        nodes = [each for each in _nodes(of, state) if each[1]]
        sums = tuple(sum(pods[pod_class] * many for pods, many in nodes) for pod_class in range(len(self.pod_classes)))
        counts = [
            [
                None if held is None else held + _weighed(spread.weights, pods)
                for held, spread in zip(of.held, self.node_spreads, strict=True)
            ]
            for pods, _ in nodes
        ]
        minima = tuple(
            None if held is None else min(count[index] or 0 for count in counts) for index, held in enumerate(of.held)
        )
        places = tuple(
            tuple(
                (pods, of.ways(pod_class, pods, many), tuple(count[limit.spread] or 0 for limit in each.on_nodes))
                for (pods, many), count in zip(nodes, counts, strict=True)
                if all(_weighed(gate.weights, pods) <= gate.bound for gate in of.gates[pod_class])
            )
            if of.open[pod_class]
            else ()
            for pod_class, each in enumerate(self.pod_classes)
        )
        return _ClassFacts(sums, minima, places)

    def _lowest(self, number: int, facts: Sequence[_ClassFacts]) -> int:
        floor = self.node_spreads[number].floor
        found = [low for each in facts if (low := each.minima[number]) is not None]
        return min(found if floor is None else [*found, floor], default=_NO_DOMAIN)

    def _closed(
        self, number: int, facts: Sequence[_ClassFacts], spread: Sequence[tuple[Sequence[int], int]]
    ) -> list[bool]:
        """For each node class, whether one of its domains keeps the pod class off."""
        pod_class = self.pod_classes[number]
        closed = [False] * len(facts)
        for each in pod_class.on_domains:
            (counts, lowest), key = spread[each.spread], self.domain_spreads[each.spread].key
            for index, of in enumerate(self.classes):
                domain = of.domains[key]
                closed[index] |= domain < 0 or counts[domain] > lowest + each.over
        for key, weights in pod_class.apart:
            taken = self._holding(key, weights, facts)
            for index, of in enumerate(self.classes):
                closed[index] |= of.domains[key] in taken
        if pod_class.near is not None:
            self._close_far(pod_class.near, facts, closed)
        return closed

    def _holding(self, key: int, weights: Pods, facts: Sequence[_ClassFacts]) -> set[int]:
        holding = {
            of.domains[key] for of, each in zip(self.classes, facts, strict=True) if any(map(mul, weights, each.sums))
        }
        return holding - {-1}

    def _close_far(self, near: Affinity, facts: Sequence[_ClassFacts], closed: list[bool]) -> None:
        """Source: interpodaffinity/filtering.go ``satisfyPodAffinity``."""
        homes = [base | self._holding(key, near.weights, facts) for key, base in zip(near.keys, near.base, strict=True)]
        first = near.matches_itself and not any(homes)
        for index, of in enumerate(self.classes):
            domains = [of.domains[key] for key in near.keys]
            inside = first or all(domain in home for domain, home in zip(domains, homes, strict=True))
            closed[index] |= not inside or min(domains) < 0


def _nodes(of: NodeClass, state: ClassState) -> Iterator[tuple[Pods, int]]:
    """The pods on a node and the number of nodes that hold them, untouched nodes included."""
    yield of.start, of.size - sum(many for _, many in state)
    yield from state


def more(pods: Pods, pod_class: int, many: int) -> Pods:
    """The pods with so many more of one pod class."""
    return (*pods[:pod_class], pods[pod_class] + many, *pods[pod_class + 1 :])


def _weighed(weights: Pods, pods: Pods) -> int:
    return sum(map(mul, weights, pods))


def _counted(
    spread: DomainSpread, facts: Sequence[_ClassFacts], classes: Sequence[NodeClass]
) -> tuple[Sequence[int], int]:
    """A constraint's pods by domain, and the global minimum. Source: podtopologyspread/filtering.go ``minMatchNum``."""
    counts = list(spread.base)
    for of, each, counting in zip(classes, facts, spread.counting, strict=True):
        if counting:
            counts[of.domains[spread.key]] += _weighed(spread.weights, each.sums)
    return counts, min((counts[each] for each in spread.eligible), default=_NO_DOMAIN) if spread.enough else 0
