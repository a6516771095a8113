"""Find the fewest evictions that bring a workload's hard constraints back within maxSkew.

A plan evicts running pods in sequence. The next eviction waits until the last replacement has a node. The plan must
hold for every node that the scheduler may choose: each replacement gets a node, and every hard constraint is within
maxSkew at the end.

The search is A* over sets of states of the placement game. A set has all distributions of the pods that the scheduler
may have reached so far. The constraint farthest from maxSkew gives the lower bound.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from heapq import heappop, heappush
from itertools import count

from msgspec import Struct

from webhook.core.api.selectors import Selector
from webhook.core.api.types import Pod
from webhook.core.context import Context, problem_of
from webhook.core.index import node_sets
from webhook.core.index.overlay import without_pods
from webhook.core.index.pods import Counts
from webhook.core.placement.game import Game, Move, State, add_pods, nodes_of_class
from webhook.core.placement.game_from_cluster import PodBatch, game_of
from webhook.core.placement.placement_verdict import Effort
from webhook.core.placement.proofs.pinned_claims import volumes_are_unknown
from webhook.core.placement.rolling_update import RolloutRules
from webhook.core.scheduler.cycle import Cycle
from webhook.core.scheduler.plugins.pod_topology_spread import DomainCounts
from webhook.core.scheduler.problem import Problem

_OLD, _NEW = 0, 1  # The pod classes of the game: running pods, and their replacements.
_NEVER = 10**9  # Evictions needed if no eviction helps.
_STEEP = 5  # A weight of the lower bound at which the search hardly returns to shorter plans.


class NoPlan(StrEnum):
    """Why there is no plan.

    Members without a comment end the search before it starts.
    """

    AFFINITY = "affinity"
    BUDGETS = "budgets"  # There is a plan with pods that PodDisruptionBudgets keep.
    CONTROLLER = "controller"
    NO_SEQUENCE = "no-sequence"  # No evictions suffice for every choice of the scheduler.
    OTHER_PODS = "other-pods"
    PENDING = "pending"  # As above, and some evictions leave the replacement Pending.
    ROLLOUT = "rollout"
    UNDECIDED = "undecided"  # The search reached the limit of work.
    UNSETTLED = "unsettled"
    VOLUMES = "volumes"


class Eviction(Struct, frozen=True, kw_only=True):
    """A step of a plan.

    Attributes:
        pod: The name of the pod to evict.
        node: The name of its node.
        leaves: The domain of the node, by topology key of the hard constraints.
        enters: The possible domains of the replacement, by topology key.
    """

    pod: str
    node: str
    leaves: Mapping[str, str]
    enters: Mapping[str, tuple[str, ...]]


class RepairPlan(Struct, frozen=True, kw_only=True):
    """The evictions that repair a workload's skew.

    Attributes:
        evictions: The evictions in sequence. Empty without a plan.
        proven: Whether provably no plan has fewer evictions. Without a plan, whether provably none exists.
        reason: Why there is no plan. None with a plan.
    """

    evictions: tuple[Eviction, ...] = ()
    proven: bool = True
    reason: NoPlan | None = None


class _Gauge(Struct, frozen=True):
    """The pod counts of a hard constraint in the states of a game.

    Attributes:
        domains: The constraint with its counts, without the workload's own running pods.
        enough: Whether minDomains is reached.
        fixed: The number of domains by pod count, for domains without a node of the game.
        bases: The pod count of each other domain, without own pods. For a key with one node per domain, empty.
        places: By node class, its domain, or the pod count of each of its nodes. None if not counted.
    """

    domains: DomainCounts
    enough: bool
    fixed: Counter[int]
    bases: Mapping[int, int]
    places: tuple[int | None, ...]

    def missing(self, game: Game, state: State) -> int:
        """A lower bound of the evictions needed to reach maxSkew. 0 if reached."""
        levels, most = self._levels(game, state), self.domains.constraint.max_skew
        if not levels or max(levels) - (min(levels) if self.enough else 0) <= most:
            return 0
        if not self.domains.self_match:
            return _NEVER
        if not self.enough:
            return sum(domains * max(0, pods - most) for pods, domains in levels.items())
        return _fewest_moves(levels, most)

    def _levels(self, game: Game, state: State) -> Counter[int]:
        """Count the domains by their number of pods."""
        levels, sums, weight = +self.fixed, dict(self.bases), self.domains.self_match
        for place, node_class, class_state in zip(self.places, game.classes, state, strict=True):
            for pods, nodes in () if place is None else nodes_of_class(node_class, class_state):
                if self.bases and place is not None:
                    sums[place] += weight * sum(pods) * nodes
                elif nodes and place is not None:
                    levels[place + weight * sum(pods)] += nodes
        levels.update(sums.values())
        return levels


def _fewest_moves(levels: Counter[int], max_skew: int) -> int:
    """Count the moves to reach max_skew if each moves a pod from a fullest to an emptiest domain."""
    moves, least = 0, max(max_skew, 1)  # No pods are even in all numbers of domains, so 0 has no end.
    while (high := max(levels)) - (low := min(levels)) > least:
        for before, after in ((high, high - 1), (low, low + 1)):
            levels[before] -= 1
            levels[after] += 1
        levels, moves = +levels, moves + 1
    return moves


def plan_evictions(pod: Pod, context: Context, own: Selector, allowed: Collection[str], effort: Effort) -> RepairPlan:
    """Plan the fewest evictions that repair the hard constraints of a workload.

    All its pods must run, and must be equal to its next pod.

    Args:
        pod: The workload's next pod.
        context: The cluster.
        own: Selects the workload's pods.
        allowed: The names of the pods that may be evicted.
        effort: The limit on the work. Beyond it, a longer plan or none is returned.
    """
    index = context.cluster
    running = dict(index.pods.matching(pod.meta.namespace, own))
    below = context.with_index(without_pods(index, pod, own, Counter(running.values())))
    problem, pods = problem_of(pod, below), len(running)
    if volumes_are_unknown(problem, pods, index, running=True):
        return RepairPlan(reason=NoPlan.VOLUMES)
    high, found = _high_nodes(problem_of(pod, context)), list[RepairPlan]()
    for game, weight in _attempts(problem, Counter(running.values()), below, high):
        if weight == _STEEP and found:
            break
        on_single = {name: slot for name, slot in running.items() if name in allowed and _is_single(game, slot)}
        plan = _Search(game, problem, on_single).plan(effort, weight)
        found += [plan] if plan.reason is None else []
        if plan.proven:
            return plan
    return min(found, key=lambda plan: len(plan.evictions), default=RepairPlan(proven=False, reason=NoPlan.UNDECIDED))


def _attempts(problem: Problem, running: Counts, context: Context, high: int) -> Iterator[tuple[Game, int]]:
    """Yield the games to search, each with the weight of the lower bound.

    In a pool, all pods have the same effect. Other nodes with evicted pods must be told apart. The first game only
    evicts from nodes above maxSkew, and groups the others.
    """
    pods = sum(running.values())
    batches = (PodBatch(problem, 0, leaving=running), PodBatch(problem, pods))
    # Without surge, the rules of a rolling update alternate between a deletion and the creation of a pod.
    rules = RolloutRules(old=_OLD, new=_NEW, replicas=pods, surge=0, unavailable=1)
    game = game_of(batches, context.cluster, rollout=rules).game
    if _is_grouped(game):
        game = game_of(batches, context.cluster, rollout=rules, singled=high).game
    yield game, 1
    if _is_grouped(game):
        yield game_of(batches, context.cluster, rollout=rules, singled=-1).game, 1
    yield game, _STEEP


def _is_grouped(game: Game) -> bool:
    """Whether several nodes with running pods share a class."""
    return any(node_class.start[_OLD] and node_class.size > 1 for node_class in game.classes)


def _is_single(game: Game, slot: int) -> bool:
    """Whether evicted pods of this node have the same effect as those of its whole class."""
    return any(node_class.size == 1 and node_class.nodes >> slot & 1 for node_class in game.classes)


def _high_nodes(problem: Problem) -> int:
    """Return the nodes of domains above the global minimum plus maxSkew, as a bit set."""
    nodes = 0
    for domains in Cycle(problem).domains:
        most = domains.constraint.max_skew + domains.global_minimum
        for number, pods in domains.match_num.items():
            nodes |= domains.column.nodes(number) if pods > most else 0
    return nodes


class _Search:
    def __init__(self, game: Game, problem: Problem, allowed: Mapping[str, int]) -> None:
        self._game, self._nodes, self._allowed = game, problem.nodes, allowed
        self._gauges = tuple(_gauges(problem, game))
        slots = Counter(allowed.values())
        self._most = [
            sum(pods for slot, pods in slots.items() if node_class.nodes >> slot & 1) for node_class in game.classes
        ]
        # Whether pods of every node may be evicted.
        self._is_complete = not _is_grouped(game)
        self._work, self._has_pending = 0, False

    def plan(self, effort: Effort, weight: int) -> RepairPlan:
        """Search a plan. ``weight`` multiplies the lower bound: above 1, plans can be longer, but are found sooner."""
        start = frozenset([self._game.start])
        least, self._work = self._missing(start), effort.states_of(self._game)
        if least >= _NEVER:
            return RepairPlan(reason=NoPlan.OTHER_PODS)
        path = self._found(start, weight)
        if path is not None:
            proven = len(path) == least or (weight == 1 and self._is_complete)
            return RepairPlan(evictions=tuple(self._steps(path)), proven=proven)
        if self._work <= 0 or not self._is_complete:
            return RepairPlan(proven=False, reason=NoPlan.UNDECIDED)
        return RepairPlan(reason=NoPlan.PENDING if self._has_pending else NoPlan.NO_SEQUENCE)

    def _found(self, start: frozenset[State], weight: int) -> Sequence[int] | None:
        """Search a plan: the node class of each evicted pod. None without a plan, or beyond the limit of work."""
        numbers = count()
        queue = [(weight * self._missing(start), 0, next(numbers), start, tuple[int, ...]())]
        seen = {start}
        while queue:
            _, _, _, states, path = heappop(queue)
            if not self._missing(states):
                return path
            for number in range(len(self._game.classes)):
                after = self._after(states, number)
                if self._work <= 0:
                    return None
                if after is not None and after not in seen and (missing := self._missing(after)) < _NEVER:
                    seen.add(after)
                    evicted = len(path) + 1
                    heappush(queue, (evicted + weight * missing, -evicted, next(numbers), after, (*path, number)))
        return None

    def _missing(self, states: frozenset[State]) -> int:
        return max((gauge.missing(self._game, state) for gauge in self._gauges for state in states), default=0)

    def _after(self, states: frozenset[State], number: int) -> frozenset[State] | None:
        """Return the possible states after an eviction from a node class, and the replacement.

        None if no pod may be evicted there, or if the replacement can stay Pending. None too if the replacement can
        return in all states: the plan without this step is then as good.
        """
        reached, returns = set[State](), True
        for state in states:
            evicted = self._evicted(state, number)
            if evicted is None:
                return None
            moves = self._moves(evicted)
            if not moves:
                self._has_pending = True
                return None
            returns = returns and any(move.number == number for move in moves)
            reached.update(self._game.after(evicted, move) for move in moves)
        return None if returns else frozenset(reached)

    def _moves(self, state: State) -> list[Move]:
        self._work -= 1
        return self._game.moves(state)

    def _evicted(self, state: State, number: int) -> State | None:
        """Delete a running pod of a node class. None if none may be evicted.

        Each class with running pods is a single node or a pool, so all its pods have the same effect.
        """
        node_class = self._game.classes[number]
        [(pods, _)] = [spot for spot in nodes_of_class(node_class, state[number]) if spot[1]][:1]
        if node_class.start[_OLD] - pods[_OLD] >= self._most[number]:
            return None
        return self._game.after(state, Move(_OLD, number, pods, add_pods(pods, _OLD, -1), 1, gone=True))

    def _steps(self, path: Sequence[int]) -> Iterator[Eviction]:
        """Name the evicted pods of a plan. On nodes with more of the workload's pods, evict first."""
        left, states = dict(self._allowed), frozenset([self._game.start])
        classes = self._game.classes
        for number in path:
            on_nodes = Counter(left.values())
            inside = [(-on_nodes[slot], name) for name, slot in left.items() if classes[number].nodes >> slot & 1]
            pod = min(inside)[1]
            slot = left.pop(pod)
            moves = [
                (evicted, move)
                for state in states
                if (evicted := self._evicted(state, number)) is not None
                for move in self._game.moves(evicted)
            ]
            entered = 0
            for _, move in moves:
                entered |= classes[move.number].nodes
            states = frozenset(self._game.after(evicted, move) for evicted, move in moves)
            yield Eviction(
                pod=pod,
                node=self._nodes.names[slot] or "",
                leaves={key: "".join(values) for key, values in self._values([slot]).items()},
                enters=self._values([*node_sets.to_slots(entered)]),
            )

    def _values(self, slots: Sequence[int]) -> Mapping[str, tuple[str, ...]]:
        columns = {gauge.domains.constraint.topology_key: gauge.domains.column for gauge in self._gauges}
        return {
            key: tuple(sorted({column.values[number] for slot in slots if (number := column.domain_of[slot]) >= 0}))
            for key, column in columns.items()
        }


def _gauges(problem: Problem, game: Game) -> Iterator[_Gauge]:
    changing = 0
    for node_class in game.classes:
        changing |= node_class.nodes
    pooled = any(node_class.pooled for node_class in game.classes)
    pods = sum(pod_class.pods for pod_class in game.pod_classes) + sum(
        node_class.start[_OLD] * node_class.size for node_class in game.classes
    )
    for domains, counts in zip(Cycle(problem).domains, problem.hard.counts, strict=True):
        counting, column = domains.counting, domains.column
        if max(domains.match_num.values(), default=0) + pods * domains.self_match <= domains.constraint.max_skew:
            continue  # No domain can exceed maxSkew, and the game leaves the constraint out.
        first = [node_sets.to_slots(node_class.nodes & counting)[:1] for node_class in game.classes]
        enough = not domains.too_few
        if not column.one_each:
            places = tuple(column.domain_of[slots[0]] if slots else None for slots in first)
            bases = {number: domains.match_num.get(number, 0) for number in column.domains(counting)}
            yield _Gauge(domains, enough, Counter(), bases, places)
            continue
        # In a pool, no node can exceed the limit of such a constraint, see `node_classes`.
        static = counting if pooled else counting & ~changing
        fixed = Counter(counts.get(slot, 0) for slot in node_sets.to_slots(static))
        held = tuple(counts.get(slots[0], 0) if slots and not pooled else None for slots in first)
        yield _Gauge(domains, enough, fixed, {}, held)
