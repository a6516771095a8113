"""Pods that look for nodes one after the other, as a game of small numbers: which moves a state allows.

A move puts a pod that its controller lets try on a node that admits it, whatever its score, or deletes a pod that a
rolling update may delete. A terminal state allows no move. Nodes that nothing tells apart are one class, and a state
says of each class only how many of its nodes hold which pods: thousands of equal nodes cost as much as one.

    NodeClass     what all of its nodes admit: by pods on the node (gates), and by its domains
    Crowd         pods that nothing tells apart: how many look for a node, and what other pods keep them from where
    Game.moves    state -> moves
    Game.after    state, move -> state
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from operator import le, mul
from typing import NamedTuple

from msgspec import Struct

from webhook.core.cached_property import cached_property

Pods = tuple[int, ...]  # a number for each crowd
# A class's nodes that are not as at the start: the pods on a node, and how many nodes hold exactly those. Sorted.
ClassState = tuple[tuple[Pods, int], ...]
State = tuple[ClassState, ...]

# The minimum over no domain at all (MaxInt32). Source: podtopologyspread/filtering.go ``newCriticalPaths``.
_NO_DOMAIN = 2**31 - 1


class Gate(NamedTuple):
    """A node admits one more of the crowd while ``sum(weight * pods on the node) <= bound``."""

    weights: Pods
    bound: int


class NodeSpread(Struct, frozen=True):
    """A spread constraint in whose key every node is a domain of its own.

    Shape: ``weights`` has 1 for crowds that it counts, some of those that it limits. ``floor`` is the lowest count on
    nodes that no pod can go to, None if there are none. There are as many domains as minDomains asks for: with fewer,
    the minimum is 0 and never changes.
    """

    weights: Pods
    floor: int | None


class DomainSpread(Struct, frozen=True):
    """A spread constraint over domains of several nodes.

    Shape: ``base`` has the pods in each domain at the start, without those that can be deleted; ``eligible`` are the
    domains that count for the minimum; ``counting`` says of each class whether its pods count.
    """

    key: int
    weights: Pods
    base: tuple[int, ...]
    eligible: tuple[int, ...]
    counting: tuple[bool, ...]
    enough: bool


class Limit(NamedTuple):
    """One constraint of a crowd: ``spread`` is its number in the game; a domain may hold minimum + ``over`` pods."""

    spread: int
    over: int


class Apart(NamedTuple):
    """A crowd's pods go to no domain of the key that holds a pod with a weight."""

    key: int
    weights: Pods


class Near(Struct, frozen=True):
    """A crowd's pods go only to domains that hold a pod with a weight, in each of the keys.

    Shape: ``base`` are the domains of each key that hold such a pod at the start. The first of pods that match
    themselves may go anywhere.
    """

    keys: tuple[int, ...]
    weights: Pods
    base: tuple[frozenset[int], ...]
    matches_itself: bool


class Crowd(Struct, frozen=True):
    """Pods that nothing tells apart.

    Shape: ``pods`` look for a node, with ``in_turn`` one after the other; those of crowd ``behind`` have to be placed
    first.
    """

    pods: int
    in_turn: bool = False
    behind: int | None = None
    on_nodes: tuple[Limit, ...] = ()
    on_domains: tuple[Limit, ...] = ()
    apart: tuple[Apart, ...] = ()
    near: Near | None = None


class NodeClass(Struct, frozen=True):
    """Nodes that nothing tells apart; or, pooled, nodes whose pods only matter in sum, as one node.

    Shape: by crowd: ``open``, ``gates`` and ``start``, the pods there that may be deleted. ``domains`` has the domain
    of each key, -1 without the key. ``held`` has the pods on a node at the start for each `NodeSpread`, None where the
    node does not count, and without those that may be deleted. ``nodes`` are the nodes themselves. ``packs`` says of a
    pool that some of its nodes take several pods and not any number, so that it is not known how many still take one.
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

    def ways(self, crowd: int, pods: Pods, nodes: int) -> int:
        """How many nodes take one more of the crowd, of those that hold these pods."""
        if not self.pooled:
            return nodes
        left = [gate.bound + 1 - _weighed(gate.weights, pods) for gate in self.gates[crowd]]
        return min((self.nodes.bit_count(), *left))


class Turn(NamedTuple):
    """A pod that is replaced under its name: the crowd of the new one, and the class of the old one's node.

    Shape: ``place`` is None for a pod that is missing from the start; for `crowds.game_of`, it is a slot.
    """

    crowd: int
    place: int | None


class Rollout(NamedTuple):
    """A rolling update: the crowd that is replaced, the crowd that replaces it, and what the strategy allows.

    Shape: with ``turns``, those that are missing first, pods are replaced in this order, and ``new`` means nothing;
    ``in_turn`` says that no pod is made before the one of an earlier turn has its node. Classes of such nodes have one.
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
        """Of each crowd, the pods whose turn has come, as far as they were placed or may be."""
        gone, made = len(self.turns) - placed[self.old], sum(placed) - placed[self.old]
        return Counter(turn.crowd for turn in self.turns[: min(gone, made + 1) if self.in_turn else gone])


class Move(NamedTuple):
    """One pod more, or with ``gone`` one less, on a node of a class that holds ``before``; ``ways`` nodes are alike."""

    crowd: int
    number: int  # of the class
    before: Pods
    after: Pods
    ways: int
    gone: bool = False


class _ClassFacts(NamedTuple):
    """What follows of the state of one class.

    Shape: ``sums`` are its pods; ``minima`` the lowest count of each `NodeSpread`, None where no node counts;
    ``places`` has for each crowd the nodes that gates leave: pods there, number of nodes, counts for its ``on_nodes``.
    """

    sums: Pods
    minima: tuple[int | None, ...]
    places: tuple[tuple[tuple[Pods, int, tuple[int, ...]], ...], ...]


class Game:
    """Classes of nodes, crowds of pods, and what keeps one from the other."""

    def __init__(  # noqa: PLR0913 each a fact of its own
        self,
        classes: Sequence[NodeClass],
        crowds: Sequence[Crowd],
        *,
        node_spreads: Sequence[NodeSpread] = (),
        domain_spreads: Sequence[DomainSpread] = (),
        keys: int = 0,
        rollout: Rollout | None = None,
    ) -> None:
        self.classes, self.crowds = tuple(classes), tuple(crowds)
        self.node_spreads, self.domain_spreads = tuple(node_spreads), tuple(domain_spreads)
        self.keys, self.rollout = keys, rollout
        self._facts: list[dict[ClassState, _ClassFacts]] = [{} for _ in classes]

    @property
    def start(self) -> State:
        """The state before the first move."""
        return ((),) * len(self.classes)

    @cached_property
    def _zero(self) -> Pods:
        return (0,) * len(self.crowds)

    def placed(self, state: State) -> Pods:
        """How many pods of each crowd have a node."""
        sums = [self._class_facts(number, each).sums for number, each in enumerate(state)]
        return tuple(map(sum, zip(*sums, strict=True))) if sums else self._zero

    def waiting(self, placed: Pods) -> Pods:
        """How many pods of each crowd the controllers let look for a node."""
        left = [each.pods - done for each, done in zip(self.crowds, placed, strict=True)]
        if self.rollout is not None and self.rollout.turns:
            due = self.rollout.is_due(placed)
            left = [due[number] - done for number, done in enumerate(placed)]
            left[self.rollout.old] = 0
        elif self.rollout is not None:
            old, new, replicas, surge, *_ = self.rollout
            left[old] = 0
            left[new] = max(0, min(replicas, replicas + surge - placed[old]) - placed[new])
        for number, crowd in enumerate(self.crowds):
            if crowd.behind is not None and placed[crowd.behind] < self.crowds[crowd.behind].pods:
                left[number] = 0
            elif crowd.in_turn:
                left[number] = min(left[number], 1)
        return tuple(left)

    def is_done(self, placed: Pods) -> bool:
        """Whether every pod has its node, and every pod that is replaced is gone."""
        old = None if self.rollout is None else self.rollout.old
        return all(
            not placed[number] if number == old else placed[number] >= crowd.pods
            for number, crowd in enumerate(self.crowds)
        )

    def moves(self, state: State, placed: Pods | None = None) -> list[Move]:
        """What may happen next; nothing in a terminal state. Shape: ``placed`` is what `placed` says of the state."""
        facts = [self._class_facts(number, each) for number, each in enumerate(state)]
        placed = self.placed(state) if placed is None else placed
        found = self._deletions(state, placed)
        lowest = [self._lowest(number, facts) for number in range(len(self.node_spreads))]
        spread = [_counted(each, facts, self.classes) for each in self.domain_spreads]
        for crowd, left in enumerate(self.waiting(placed)):
            if left:
                closed = self._closed(crowd, facts, spread)
                tops = [lowest[each.spread] + each.over for each in self.crowds[crowd].on_nodes]
                for number, of_class in enumerate(facts):
                    if of_class.places[crowd] and not closed[number]:
                        found += _onto(crowd, number, of_class.places[crowd], tops)
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
        """The deletion of the next pod in turn."""
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
        sums = tuple(sum(pods[crowd] * many for pods, many in nodes) for crowd in range(len(self.crowds)))
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
                (pods, of.ways(crowd, pods, many), tuple(count[limit.spread] or 0 for limit in each.on_nodes))
                for (pods, many), count in zip(nodes, counts, strict=True)
                if all(_weighed(gate.weights, pods) <= gate.bound for gate in of.gates[crowd])
            )
            if of.open[crowd]
            else ()
            for crowd, each in enumerate(self.crowds)
        )
        return _ClassFacts(sums, minima, places)

    def _lowest(self, number: int, facts: Sequence[_ClassFacts]) -> int:
        """The global minimum of a constraint on nodes."""
        floor = self.node_spreads[number].floor
        found = [low for each in facts if (low := each.minima[number]) is not None]
        return min(found if floor is None else [*found, floor], default=_NO_DOMAIN)

    def _closed(
        self, number: int, facts: Sequence[_ClassFacts], spread: Sequence[tuple[Sequence[int], int]]
    ) -> list[bool]:
        """Of each class, whether one of its domains keeps the crowd off."""
        crowd = self.crowds[number]
        closed = [False] * len(facts)
        for each in crowd.on_domains:
            (counts, lowest), key = spread[each.spread], self.domain_spreads[each.spread].key
            for index, of in enumerate(self.classes):
                domain = of.domains[key]
                closed[index] |= domain < 0 or counts[domain] > lowest + each.over
        for key, weights in crowd.apart:
            taken = self._holding(key, weights, facts)
            for index, of in enumerate(self.classes):
                closed[index] |= of.domains[key] in taken
        if crowd.near is not None:
            self._close_far(crowd.near, facts, closed)
        return closed

    def _holding(self, key: int, weights: Pods, facts: Sequence[_ClassFacts]) -> set[int]:
        """The domains of a key that hold a pod with a weight."""
        holding = {
            of.domains[key] for of, each in zip(self.classes, facts, strict=True) if any(map(mul, weights, each.sums))
        }
        return holding - {-1}

    def _close_far(self, near: Near, facts: Sequence[_ClassFacts], closed: list[bool]) -> None:
        """Source: interpodaffinity/filtering.go ``satisfyPodAffinity``."""
        homes = [base | self._holding(key, near.weights, facts) for key, base in zip(near.keys, near.base, strict=True)]
        first = near.matches_itself and not any(homes)
        for index, of in enumerate(self.classes):
            domains = [of.domains[key] for key in near.keys]
            inside = first or all(domain in home for domain, home in zip(domains, homes, strict=True))
            closed[index] |= not inside or min(domains) < 0


def _nodes(of: NodeClass, state: ClassState) -> Iterator[tuple[Pods, int]]:
    """The pods on a node and how many nodes hold them, those that are as at the start included."""
    yield of.start, of.size - sum(many for _, many in state)
    yield from state


def more(pods: Pods, crowd: int, many: int) -> Pods:
    """The pods with so many more of one crowd."""
    return (*pods[:crowd], pods[crowd] + many, *pods[crowd + 1 :])


def _weighed(weights: Pods, pods: Pods) -> int:
    return sum(map(mul, weights, pods))


def _onto(
    crowd: int, number: int, places: Sequence[tuple[Pods, int, tuple[int, ...]]], tops: Sequence[int]
) -> Iterator[Move]:
    """The moves of one pod of the crowd onto these nodes, whose counts may be at most ``tops``."""
    for pods, nodes, counts in places:
        if all(map(le, counts, tops)):
            yield Move(crowd, number, pods, more(pods, crowd, 1), nodes)


def _counted(
    spread: DomainSpread, facts: Sequence[_ClassFacts], classes: Sequence[NodeClass]
) -> tuple[Sequence[int], int]:
    """A constraint's pods by domain, and the global minimum. Source: podtopologyspread/filtering.go ``minMatchNum``."""
    counts = list(spread.base)
    for of, each, counting in zip(classes, facts, spread.counting, strict=True):
        if counting:
            counts[of.domains[spread.key]] += _weighed(spread.weights, each.sums)
    return counts, min((counts[each] for each in spread.eligible), default=_NO_DOMAIN) if spread.enough else 0
