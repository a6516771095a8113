"""The game: all the ways to place pods on nodes, one after the other.

A state holds the pods on every node. A move places a pod on an admitting node, whatever its score, or deletes a pod
during a rolling update. A terminal state allows no move. Equal nodes form a class, and a state only counts how many
nodes of a class have which pods. Thousands of equal nodes therefore cost as much as a single node.

    game = game_of(batches, index).game
    state = game.start
    while moves := game.moves(state):
        state = game.after(state, moves[0])
"""

from collections.abc import Iterator, Sequence
from operator import le, mul
from typing import NamedTuple

from webhook.core.placement.classes import NodeClass, PodClass
from webhook.core.placement.pod_limits import AffinityLimit, DomainSpread, NodeSpread, Pods, weighted_sum
from webhook.core.placement.rolling_update import RolloutRules

# The nodes of a class that differ from the start: the pods on a node, and the number of nodes with these pods. Sorted.
_ClassState = tuple[tuple[Pods, int], ...]
State = tuple[_ClassState, ...]

# A step with 20 classes of nodes takes about twice as long as with a few.
_CLASSES_PER_COST = 20
# The minimum over no domain (MaxInt32). Source: podtopologyspread/filtering.go ``newCriticalPaths``.
_NO_DOMAIN = 2**31 - 1


class Move(NamedTuple):
    """The placement of a pod on a node, or the deletion of a pod from a node.

    Attributes:
        pod_class: The class of the pod.
        number: The number of the node's class.
        before: The pods on the node before the move.
        after: The pods on the node after the move.
        ways: The number of equal nodes for this move.
        gone: Whether the pod is deleted.
    """

    pod_class: int
    number: int  # The node class.
    before: Pods
    after: Pods
    ways: int
    gone: bool = False


class _ClassFacts(NamedTuple):
    """Facts about the nodes of a node class, in a state of the game.

    Attributes:
        sums: The number of pods of each pod class on these nodes.
        minima: For each `NodeSpread`, its lowest pod count on these nodes. None if it counts none of them.
        places: For each pod class, the nodes whose limits admit another pod of the class. Each entry is a group of
            equal nodes: the pods on each node, the number of nodes, and the pod counts under the pod class's
            ``on_nodes``.
    """

    sums: Pods
    minima: tuple[int | None, ...]
    places: tuple[tuple[tuple[Pods, int, tuple[int, ...]], ...], ...]


class Game:
    """A model of all ways to schedule equal pods (pod classes) on equal nodes (node classes)."""

    def __init__(  # noqa: PLR0913 each a fact of its own
        self,
        classes: Sequence[NodeClass],
        pod_classes: Sequence[PodClass],
        *,
        node_spreads: Sequence[NodeSpread] = (),
        domain_spreads: Sequence[DomainSpread] = (),
        keys: int = 0,
        rollout: RolloutRules | None = None,
    ) -> None:
        self.classes, self.pod_classes = tuple(classes), tuple(pod_classes)
        self.node_spreads, self.domain_spreads = tuple(node_spreads), tuple(domain_spreads)
        self.keys, self.rollout = keys, rollout
        self._facts: list[dict[_ClassState, _ClassFacts]] = [{} for _ in classes]

    @property
    def cost(self) -> int:
        """The cost of simulating a move: 1 with few node classes, more with many node classes."""
        return 1 + len(self.classes) // _CLASSES_PER_COST

    @property
    def start(self) -> State:
        """The state before the first move."""
        return ((),) * len(self.classes)

    def placed(self, state: State) -> Pods:
        """Return the number of placed pods of each pod class."""
        sums = [self._class_facts(number, class_state).sums for number, class_state in enumerate(state)]
        return tuple(map(sum, zip(*sums, strict=True))) if sums else (0,) * len(self.pod_classes)

    def waiting(self, placed: Pods) -> Pods:
        """Count the created pods without a node, by class."""
        left = [pod_class.pods - done for pod_class, done in zip(self.pod_classes, placed, strict=True)]
        if self.rollout is not None and self.rollout.turns:
            due = self.rollout.is_due(placed)
            left = [due[number] - done for number, done in enumerate(placed)]
            left[self.rollout.old] = 0
        elif (rules := self.rollout) is not None:
            left[rules.old] = 0
            most = min(rules.replicas, rules.replicas + rules.surge - placed[rules.old])
            left[rules.new] = max(0, most - placed[rules.new])
        for number, pod_class in enumerate(self.pod_classes):
            if pod_class.behind is not None and placed[pod_class.behind] < self.pod_classes[pod_class.behind].pods:
                left[number] = 0
            elif pod_class.in_turn:
                left[number] = min(left[number], 1)
        return tuple(left)

    def is_done(self, placed: Pods) -> bool:
        """Whether every pod has a node, and every pod to replace is gone."""
        old = None if self.rollout is None else self.rollout.old
        return all(
            not placed[number] if number == old else placed[number] >= pod_class.pods
            for number, pod_class in enumerate(self.pod_classes)
        )

    def moves(self, state: State, placed: Pods | None = None) -> list[Move]:
        """List the possible placements and deletions of pods. ``placed`` is the result of `Game.placed`, if known."""
        facts = [self._class_facts(number, class_state) for number, class_state in enumerate(state)]
        placed = self.placed(state) if placed is None else placed
        moves = self._deletions(state, placed)
        lowest = [self._lowest(number, facts) for number in range(len(self.node_spreads))]
        domain_counts = [_counted(spread, facts, self.classes) for spread in self.domain_spreads]
        for pod_class, left in enumerate(self.waiting(placed)):
            if left:
                closed = self._closed(pod_class, facts, domain_counts)
                tops = [lowest[limit.spread] + limit.over for limit in self.pod_classes[pod_class].on_nodes]
                for number, of_class in enumerate(facts):
                    if not closed[number]:
                        moves += [
                            Move(pod_class, number, pods, add_pods(pods, pod_class, 1), nodes)
                            for pods, nodes, counts in of_class.places[pod_class]
                            if all(map(le, counts, tops))
                        ]
        return moves

    def after(self, state: State, move: Move) -> State:
        """Return the state after a move."""
        number, start = move.number, self.classes[move.number].start
        nodes = dict(state[number])
        if move.before != start:
            nodes[move.before] -= 1
            if not nodes[move.before]:
                del nodes[move.before]
        nodes[move.after] = nodes.get(move.after, 0) + 1
        return (*state[:number], tuple(sorted(nodes.items())), *state[number + 1 :])

    def _deletions(self, state: State, placed: Pods) -> list[Move]:
        rules = self.rollout
        if rules is None:
            return []
        if rules.turns:
            return self._next_turn(rules, state, placed)
        old = rules.old
        if not placed[old] or placed[old] + placed[rules.new] - 1 < rules.replicas - rules.unavailable:
            return []
        return [
            Move(old, number, pods, add_pods(pods, old, -1), nodes, gone=True)
            for number, of_class in enumerate(state)
            for pods, nodes in nodes_of_class(self.classes[number], of_class)
            if pods[old] and nodes
        ]

    def _next_turn(self, rollout: RolloutRules, state: State, placed: Pods) -> list[Move]:
        old = rollout.old
        gone, made = len(rollout.turns) - placed[old], sum(placed) - placed[old]
        number = rollout.turns[gone].place if placed[old] else None
        if number is None or gone - made >= rollout.unavailable:
            return []
        (pods,) = (pods for pods, nodes in nodes_of_class(self.classes[number], state[number]) if nodes)
        return [Move(old, number, pods, add_pods(pods, old, -1), 1, gone=True)]

    def _class_facts(self, number: int, state: _ClassState) -> _ClassFacts:
        facts = self._facts[number].get(state)
        if facts is None:
            facts = self._facts[number][state] = self._derived_facts(self.classes[number], state)
        return facts

    def _derived_facts(self, node_class: NodeClass, state: _ClassState) -> _ClassFacts:
        nodes = [node for node in nodes_of_class(node_class, state) if node[1]]
        sums = tuple(sum(pods[pod_class] * many for pods, many in nodes) for pod_class in range(len(self.pod_classes)))
        counts = [
            [
                None if held is None else held + weighted_sum(spread.weights, pods)
                for held, spread in zip(node_class.held, self.node_spreads, strict=True)
            ]
            for pods, _ in nodes
        ]
        minima = tuple(
            None if held is None else min(count[index] or 0 for count in counts)
            for index, held in enumerate(node_class.held)
        )
        places = tuple(
            tuple(
                (
                    pods,
                    node_class.ways(pod_class, pods, many),
                    tuple(count[limit.spread] or 0 for limit in each.on_nodes),
                )
                for (pods, many), count in zip(nodes, counts, strict=True)
                if all(
                    weighted_sum(node_limit.weights, pods) <= node_limit.bound
                    for node_limit in node_class.node_limits[pod_class]
                )
            )
            if node_class.open[pod_class]
            else ()
            for pod_class, each in enumerate(self.pod_classes)
        )
        return _ClassFacts(sums, minima, places)

    def _lowest(self, number: int, facts: Sequence[_ClassFacts]) -> int:
        closed_minimum = self.node_spreads[number].closed_minimum
        counts = [low for class_facts in facts if (low := class_facts.minima[number]) is not None]
        return min(counts if closed_minimum is None else [*counts, closed_minimum], default=_NO_DOMAIN)

    def _closed(
        self, number: int, facts: Sequence[_ClassFacts], spread: Sequence[tuple[Sequence[int], int]]
    ) -> list[bool]:
        pod_class = self.pod_classes[number]
        closed = [False] * len(facts)
        for limit in pod_class.on_domains:
            (counts, lowest), key = spread[limit.spread], self.domain_spreads[limit.spread].key
            for index, node_class in enumerate(self.classes):
                domain = node_class.domains[key]
                closed[index] |= domain < 0 or counts[domain] > lowest + limit.over
        for key, weights in pod_class.apart:
            taken = self._holding(key, weights, facts)
            for index, node_class in enumerate(self.classes):
                closed[index] |= node_class.domains[key] in taken
        if pod_class.near is not None:
            self._close_far(pod_class.near, facts, closed)
        return closed

    def _holding(self, key: int, weights: Pods, facts: Sequence[_ClassFacts]) -> set[int]:
        holding = {
            node_class.domains[key]
            for node_class, class_facts in zip(self.classes, facts, strict=True)
            if any(map(mul, weights, class_facts.sums))
        }
        return holding - {-1}

    def _close_far(self, near: AffinityLimit, facts: Sequence[_ClassFacts], closed: list[bool]) -> None:
        """Mark the node classes closed to a pod by its required pod affinity.

        Source: interpodaffinity/filtering.go ``satisfyPodAffinity``.
        """
        homes = [base | self._holding(key, near.weights, facts) for key, base in zip(near.keys, near.base, strict=True)]
        first = near.matches_itself and not any(homes)
        for index, node_class in enumerate(self.classes):
            domains = [node_class.domains[key] for key in near.keys]
            inside = first or all(domain in home for domain, home in zip(domains, homes, strict=True))
            closed[index] |= not inside or min(domains) < 0


def nodes_of_class(node_class: NodeClass, state: _ClassState) -> Iterator[tuple[Pods, int]]:
    """Yield each combination of pods on a node of the class, with its number of nodes.

    Nodes unchanged since the start come first.
    """
    yield node_class.start, node_class.size - sum(many for _, many in state)
    yield from state


def add_pods(pods: Pods, pod_class: int, many: int) -> Pods:
    """Return the pod numbers by class, with ``many`` added to the number of ``pod_class``."""
    return (*pods[:pod_class], pods[pod_class] + many, *pods[pod_class + 1 :])


def _counted(
    spread: DomainSpread, facts: Sequence[_ClassFacts], classes: Sequence[NodeClass]
) -> tuple[Sequence[int], int]:
    """Count the pods by domain for a constraint. Return the counts and the global minimum.

    Source: podtopologyspread/filtering.go ``minMatchNum``.
    """
    counts = list(spread.base)
    for node_class, class_facts, counting in zip(classes, facts, spread.counting, strict=True):
        if counting:
            counts[node_class.domains[spread.key]] += weighted_sum(spread.weights, class_facts.sums)
    return counts, min((counts[domain] for domain in spread.eligible), default=_NO_DOMAIN) if spread.enough else 0
