"""The game of the pods of one or several workloads that look for nodes of a cluster.

Filters that these pods cannot change run once, for all nodes. What the pods change becomes numbers by node: the room
that is left, spread constraints, pod (anti-)affinity and host ports. Nodes with equal numbers are one class.
"""

from collections.abc import Iterator, Mapping, Sequence
from operator import mul

from msgspec import Struct

from webhook.core.api import gates
from webhook.core.api.resources import PODS
from webhook.core.api.types import Pod
from webhook.core.cached_property import cached_property
from webhook.core.index import node_sets
from webhook.core.index.pods import Counts, Term
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.game import (
    Affinity,
    AntiAffinity,
    Game,
    Limit,
    Move,
    NodeClass,
    PodClass,
    Pods,
    Rollout,
    Turn,
    more,
)
from webhook.core.placement.node_classes import (
    Counting,
    NodeGate,
    Nodes,
    classes_of,
    spread_on_domains,
    spread_on_nodes,
    unlike,
)
from webhook.core.scheduler.cycle import Cycle
from webhook.core.scheduler.plugins.inter_pod_affinity import NO_AFFINITY
from webhook.core.scheduler.plugins.node_ports import ports_conflict
from webhook.core.scheduler.plugins.node_resources_fit import NODE_RESOURCES_FIT, scarce_amounts
from webhook.core.scheduler.plugins.pod_topology_spread import POD_TOPOLOGY_SPREAD, DomainCounts
from webhook.core.scheduler.plugins.status import SKIP, SUCCESS
from webhook.core.scheduler.problem import Problem

# Of nodes with values of their own: each takes some 20 µs, for which reviews beside it wait.
_FEW_UNLIKE = 200


class PodBatch(Struct, frozen=True):
    """Equal pods, and what their controller does.

    Args:
        problem: That of one of the pods, in a cluster without those that are leaving.
        pods: How many look for a node: with ``in_turn`` one after the other, and after all of the batch ``behind``.
        nodes: The nodes that they can use. None for every node.
        room: The most pods by slot, for nodes with such a limit.
        leaving: By slot: pods like these that run and may be deleted.
    """

    problem: Problem
    pods: int
    in_turn: bool = False
    behind: int | None = None
    nodes: int | None = None
    room: Mapping[int, int] = {}
    leaving: Counts = {}


def are_attracted(batches: Sequence[PodBatch], gone: Sequence[Pod]) -> bool:
    """Whether pods of these batches may find nodes only while the ``gone`` pods are there.

    That is so for a required affinity that only those satisfy.
    Source: interpodaffinity/filtering.go ``satisfyPodAffinity``.
    """
    replacing = any(each.leaving for each in batches)
    return any(_is_attracted(each, gone, replacing=replacing) for each in batches)


def _is_attracted(batch: PodBatch, gone: Sequence[Pod], *, replacing: bool) -> bool:
    neighbours, view = batch.problem.neighbours, batch.problem.nodes
    matching = [
        pod
        for pod in (gone if neighbours.affinity_terms else ())
        if all(
            each.in_namespace(pod.meta.namespace, {}) and each.selector.matches(pod.labels)
            for each in neighbours.affinity_terms
        )
    ]
    slots = {view.slots[name] for pod in matching if (name := pod.pod_spec.node_name or "") in view.slots}
    columns = [view.column(each.topology_key) for each in neighbours.affinity_terms]
    if neighbours.matches_itself and not neighbours.affinity_pods and not replacing:
        # Once those are gone the first of its pods may go anywhere: near them, too. But it leads to one domain only.
        return any(len({column.of[slot] for slot in slots} - {-1}) > 1 for column in columns)
    homes = [{column.of[slot] for slot in neighbours.affinity_pods} | {-1} for column in columns]
    return any(column.of[slot] not in home for slot in slots for column, home in zip(columns, homes, strict=True))


class ClusterGame(Struct, frozen=True, dict=True):
    """A game, and the nodes that it is about."""

    nodes: Nodes
    gates: tuple[NodeGate, ...]
    pod_classes: tuple[PodClass, ...]
    rollout: Rollout | None = None

    @property
    def is_slow(self) -> bool:
        """Whether so many nodes differ that other reviews would wait for the game."""
        return unlike(self.nodes, self.gates) > _FEW_UNLIKE

    @cached_property
    def game(self) -> Game:
        """The game, made when it is first used."""
        classes = classes_of(self.nodes, self.gates)
        return Game(
            classes,
            self.pod_classes,
            node_spreads=spread_on_nodes(self.nodes),
            domain_spreads=spread_on_domains(self.nodes, classes),
            keys=len(self.nodes.columns),
            rollout=self.rollout and _in_classes(self.rollout, classes),
        )

    def named(self, moves: Sequence[Move]) -> list[tuple[Move, str]]:
        """The moves, which follow one another from the start, each with its node: the first by name that it fits."""
        names, pods = self.nodes.view.names, dict[int, Pods]()
        slots = {
            number: sorted(node_sets.to_slots(self.game.classes[number].nodes), key=names.__getitem__)
            for number in {move.number for move in moves}
        }
        found = []
        for move in moves:
            slot = next(
                each
                for each in slots[move.number]
                if self.takes(move, each, pods.get(each) or self.nodes.start_at(each))
            )
            pods[slot] = more(pods.get(slot) or self.nodes.start_at(slot), move.pod_class, -1 if move.gone else 1)
            found.append((move, names[slot]))
        return found

    def takes(self, move: Move, slot: int, pods: Pods) -> bool:
        """Whether the move can be on this node of its class, with these pods on it."""
        of = self.game.classes[move.number]
        if not of.pooled:
            return pods == move.before
        if move.gone:
            return pods[move.pod_class] > 0
        slot_gates = (
            gate for each in self.gates if each.pod_class == move.pod_class and (gate := each.on(slot)) is not None
        )
        return all(sum(map(mul, gate.weights, pods)) <= gate.bound for gate in slot_gates)


def game_of(batches: Sequence[PodBatch], index: ReadOnlyIndex, *, rollout: Rollout | None = None) -> ClusterGame:
    """The game of these batches beside the pods in the index, which holds none of the leaving ones.

    Problems are of the same moment as the index. The turns of a rollout name slots.
    """
    view, cycles = batches[0].problem.nodes, [Cycle(each.problem) for each in batches]
    together = _Together(tuple(batches))
    nodes = Nodes(
        view,
        [_open(each, cycle) for each, cycle in zip(batches, cycles, strict=True)],
        [each.leaving for each in batches],
        together.most,
        singled=rollout is not None and bool(rollout.turns),
    )
    gates = [*_rooms_and_ports(together)]
    apart: list[list[AntiAffinity]] = [[] for _ in batches]
    for pod_class, key, weights in together.kept_apart():
        column = view.column(key)
        # A node without the key keeps nobody away.
        if column.one_each and not nodes.changing & ~column.present:
            gates.append(NodeGate(pod_class, weights, 0))
        else:
            apart[pod_class].append(AntiAffinity(nodes.key(column), weights))
    limits = [_limits(number, together, cycle, nodes, gates) for number, cycle in enumerate(cycles)]
    on_one = _most_on_one(together, nodes, gates, [on_nodes for on_nodes, _ in limits])
    gates += _resources(together, nodes.changing, on_one, index)
    pod_classes = tuple(
        PodClass(
            pods=batch.pods,
            in_turn=batch.in_turn,
            behind=batch.behind,
            on_nodes=on_nodes,
            on_domains=on_domains,
            apart=tuple(apart[number]),
            near=together.near(number, nodes),
        )
        for number, (batch, (on_nodes, on_domains)) in enumerate(zip(batches, limits, strict=True))
    )
    return ClusterGame(nodes, tuple(gates), pod_classes, rollout)


def _in_classes(rollout: Rollout, classes: Sequence[NodeClass]) -> Rollout:
    if not rollout.turns:
        return rollout
    of = {
        slot: number
        for number, each in enumerate(classes)
        if any(each.start)
        for slot in node_sets.to_slots(each.nodes)
    }
    turns = tuple(Turn(each.pod_class, None if each.place is None else of[each.place]) for each in rollout.turns)
    return rollout._replace(turns=turns)


def _open(batch: PodBatch, cycle: Cycle) -> int:
    """The nodes that admit one of the pods, leaving out spread constraints and missing neighbours."""
    problem = batch.problem
    nodes = problem.nodes.live if batch.nodes is None else problem.nodes.live & batch.nodes
    for plugin in problem.filters:
        result = cycle.result(plugin)
        if result.pre_filter.code not in (SUCCESS, SKIP):
            return 0
        if result.allowed is not None:
            slots = problem.nodes.slots
            nodes &= node_sets.from_slots([slots[name] for name in result.allowed if name in slots], problem.nodes.size)
        if result.filter is not None and plugin != POD_TOPOLOGY_SPREAD:
            for status, members in result.filter(nodes):
                nodes &= ~members if status.reasons != NO_AFFINITY.reasons else -1
    for domains in cycle.domains:
        nodes &= domains.column.present
    return nodes


class _Together(Struct, frozen=True):
    """The batches, and which of their pods matter to which."""

    batches: tuple[PodBatch, ...]

    @property
    def most(self) -> Pods:
        """How many pods of each there can be."""
        return tuple(each.pods + sum(each.leaving.values()) for each in self.batches)

    def only(self, number: int) -> Pods:
        """1 for that batch."""
        return tuple(int(each == number) for each in range(len(self.batches)))

    def meeting(self, *terms: Term) -> Pods:
        """1 for the batches whose pods match all of the affinity terms."""
        pods = [each.problem.pod for each in self.batches]
        return tuple(
            int(all(term.in_namespace(pod.meta.namespace, {}) and term.selector.matches(pod.labels) for term in terms))
            for pod in pods
        )

    def counted(self, domains: DomainCounts, batch: PodBatch) -> Pods:
        """The batches whose pods a constraint of one of them counts."""
        selector, namespace = domains.constraint.selector, batch.problem.pod.meta.namespace
        if selector.empty and not gates.COUNTS_EMPTY_SELECTOR.holds(batch.problem.version):
            return (0,) * len(self.batches)
        pods = [each.problem.pod for each in self.batches]
        return tuple(int(each.meta.namespace == namespace and selector.matches(each.labels)) for each in pods)

    def kept_apart(self) -> Iterator[tuple[int, str, Pods]]:
        """The batches whom anti-affinity terms, in either direction, keep from others: the key, and those others."""
        for number, batch in enumerate(self.batches):
            for term in batch.problem.neighbours.anti_affinity_terms:
                met = self.meeting(term)
                if any(met):
                    yield number, term.topology_key, met
                for other, is_met in enumerate(met):
                    if is_met:
                        yield other, term.topology_key, self.only(number)

    def near(self, number: int, nodes: Nodes) -> Affinity | None:
        """The pods that those of a batch want to be near."""
        neighbours = self.batches[number].problem.neighbours
        if not neighbours.affinity_terms:
            return None
        columns = [nodes.view.column(term.topology_key) for term in neighbours.affinity_terms]
        return Affinity(
            keys=tuple(map(nodes.key, columns)),
            weights=self.meeting(*neighbours.affinity_terms),
            base=tuple(frozenset(column.of[slot] for slot in neighbours.affinity_pods) - {-1} for column in columns),
            matches_itself=neighbours.matches_itself,
        )


def _most_on_one(
    together: _Together, nodes: Nodes, gates: Sequence[NodeGate], limits: Sequence[Sequence[Limit]]
) -> Pods:
    """An upper bound of each batch's pods on one node without resources: most nodes have enough for few pods."""
    found = []
    for number, (batch, open_) in enumerate(zip(together.batches, nodes.open, strict=True)):
        there = max(batch.leaving.values(), default=0)
        most = [
            each.base // each.weights[number] + 1
            for each in gates
            if each.pod_class == number and each.weights[number] and each.sign <= 0
        ]
        for limit in limits[number]:
            counting = nodes.by_node[limit.spread]
            if counting.weights[number] and open_ and not open_ & ~counting.nodes:
                most.append(counting.highest_minimum(sum(map(mul, counting.weights, together.most))) + limit.over + 1)
        found.append(max(there, min([there + batch.pods, *most])))
    return tuple(found)


def _resources(together: _Together, relevant: int, on_one: Pods, index: ReadOnlyIndex) -> Iterator[NodeGate]:
    """The gates of resources that some node is too short of for as many pods as it may get."""
    amounts = [
        {PODS: 1, **dict(each.problem.request.amounts)} if NODE_RESOURCES_FIT in each.problem.filters else {}
        for each in together.batches
    ]
    names = dict.fromkeys(name for each in amounts for name in each)
    weights = {name: tuple(each.get(name, 0) for each in amounts) for name in names}
    needed = {name: sum(map(mul, weights[name], on_one)) for name in names}
    for name, free in scarce_amounts([*needed.items()], index).items():
        short = {slot: free[slot] for slot in node_sets.to_slots(relevant) if free[slot] < needed[name]}
        for pod_class, weight in enumerate(weights[name] if short else ()):
            if weight:
                yield NodeGate(pod_class, weights[name], -weight, 1, short)


def _rooms_and_ports(together: _Together) -> Iterator[NodeGate]:
    for number, batch in enumerate(together.batches):
        if batch.room:
            yield NodeGate(number, together.only(number), -1, 1, batch.room)
        if wanted := batch.problem.ports:
            ports = [each.problem.ports for each in together.batches]
            clashes = [any(ports_conflict(one, each) for one in wanted for each in taken) for taken in ports]
            yield NodeGate(number, tuple(map(int, clashes)), 0)


def _limits(
    pod_class: int, together: _Together, cycle: Cycle, nodes: Nodes, gates: list[NodeGate]
) -> tuple[tuple[Limit, ...], tuple[Limit, ...]]:
    """The limits of a pod class by constraints on nodes and on domains.

    A constraint on nodes whose minimum is fixed is a number for each node, and becomes a gate.
    """
    on_nodes, on_domains = [], []
    batch = together.batches[pod_class]
    for domains, counts in zip(cycle.domains, batch.problem.hard.counts, strict=True):
        counting = Counting(
            column=domains.column,
            nodes=domains.counting,
            counts={slot: pods for slot, pods in counts.items() if domains.counting >> slot & 1},
            weights=together.counted(domains, batch),
            enough=domains.column.domain_count(domains.counting) >= domains.constraint.min_domains,
        )
        over = domains.constraint.max_skew - domains.self_match
        pods = sum(map(mul, counting.weights, together.most))
        if max(domains.match_num.values(), default=0) + pods - domains.self_match <= over:
            continue  # no domain can ever have too many
        if not domains.column.one_each:
            on_domains.append(Limit(nodes.spread(counting), over))
        elif (lowest := counting.fixed_minimum(nodes.changing, pods)) is not None:
            gates.append(NodeGate(pod_class, counting.weights, lowest + over, -1, counting.counts, 0))
        else:
            on_nodes.append(Limit(nodes.spread(counting), over))
    return tuple(on_nodes), tuple(on_domains)
