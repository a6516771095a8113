"""Build the placement game of some workloads' pods on a cluster's nodes.

Scheduler filters independent of these pods run once for all nodes. All other filters become numbers for each node: free
resources, spread constraints, pod (anti-)affinity, host ports and attach limits. Nodes with equal numbers form a class.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api import gates
from webhook.core.api.resources import PODS
from webhook.core.api.types import Pod
from webhook.core.cached_property import cached_property
from webhook.core.index import node_sets
from webhook.core.index.affinity_terms import Term
from webhook.core.index.pods import Counts
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.classes import NodeClass, PodClass
from webhook.core.placement.game import Game, Move, add_pods
from webhook.core.placement.node_classes import (
    GameNodes,
    NodeLimits,
    SpreadCounts,
    classes_of,
    count_unlike_nodes,
    spread_on_domains,
    spread_on_nodes,
)
from webhook.core.placement.pod_limits import AffinityLimit, AntiAffinityLimit, Pods, SpreadLimit, weighted_sum
from webhook.core.placement.rolling_update import RolloutRules, Turn
from webhook.core.scheduler.cycle import Cycle
from webhook.core.scheduler.plugins.inter_pod_affinity import NO_AFFINITY
from webhook.core.scheduler.plugins.node_ports import NODE_PORTS, ports_conflict
from webhook.core.scheduler.plugins.node_resources_fit import NODE_RESOURCES_FIT, scarce_amounts
from webhook.core.scheduler.plugins.node_volume_limits import (
    NODE_VOLUME_LIMITS,
    drivers_of_own_volumes,
    free_attachments,
)
from webhook.core.scheduler.plugins.pod_topology_spread import POD_TOPOLOGY_SPREAD, DomainCounts
from webhook.core.scheduler.plugins.status import Code
from webhook.core.scheduler.plugins.volume_restrictions import VOLUME_RESTRICTIONS, disks_conflict
from webhook.core.scheduler.plugins.volumes import is_disk
from webhook.core.scheduler.problem import Problem

# The most nodes with their own values in a quick game. Each takes about 20 µs, and concurrent reviews wait meanwhile.
_FEW_UNLIKE = 200


class PodBatch(Struct, frozen=True, dict=True):
    """Equal pods without a node, and how their controller creates them.

    Attributes:
        problem: The scheduler's input for a pod, in a cluster without the ``leaving`` pods.
        pods: The number of pods without a node.
        in_turn: Whether the controller creates a pod only after the pod before it has a node.
        behind: The index of another batch. All pods of that batch need a node before this batch's first pod is created.
        nodes: The usable nodes as a bit set of slots. None for every node.
        drivers: The CSI driver of each volume from a StatefulSet's volumeClaimTemplates.
        leaving: The number of equal running pods that may be deleted, by node slot.
    """

    problem: Problem
    pods: int
    in_turn: bool = False
    behind: int | None = None
    nodes: int | None = None
    drivers: tuple[str, ...] = ()
    leaving: Counts = {}

    @cached_property
    def volumes(self) -> tuple[str, ...]:
        """``drivers``, and the CSI driver of each ephemeral volume of a pod."""
        return self.drivers + drivers_of_own_volumes(self.problem.pod, self.problem.storage)


def are_attracted(batches: Sequence[PodBatch], gone: Sequence[Pod]) -> bool:
    """Whether required pod affinity of these batches may depend on deleted pods.

    ``gone`` are the deleted pods.

    Source: interpodaffinity/filtering.go ``satisfyPodAffinity``.
    """
    replacing = any(batch.leaving for batch in batches)
    return any(_is_attracted(batch, gone, replacing=replacing) for batch in batches)


def _is_attracted(batch: PodBatch, gone: Sequence[Pod], *, replacing: bool) -> bool:
    neighbours, view = batch.problem.neighbours, batch.problem.nodes
    matching = [
        pod
        for pod in (gone if neighbours.affinity_terms else ())
        if all(
            term.in_namespace(pod.meta.namespace, {}) and term.selector.matches(pod.labels)
            for term in neighbours.affinity_terms
        )
    ]
    slots = {view.slots[name] for pod in matching if (name := pod.pod_spec.node_name or "") in view.slots}
    columns = [view.column(term.topology_key) for term in neighbours.affinity_terms]
    if neighbours.matches_itself and not neighbours.affinity_pods and not replacing:
        # Without the gone pods, the first pod may go anywhere, but all others then follow it into a single domain.
        return any(len({column.domain_of[slot] for slot in slots} - {-1}) > 1 for column in columns)
    homes = [{column.domain_of[slot] for slot in neighbours.affinity_pods} | {-1} for column in columns]
    return any(
        column.domain_of[slot] not in home for slot in slots for column, home in zip(columns, homes, strict=True)
    )


class ClusterGame(Struct, frozen=True, dict=True):
    """The input of a simulated placement: the cluster's nodes with their limits, the pods, and the rollout."""

    nodes: GameNodes
    node_limits: tuple[NodeLimits, ...]
    pod_classes: tuple[PodClass, ...]
    rollout: RolloutRules | None = None

    @property
    def is_slow(self) -> bool:
        """Whether building the game takes long enough to delay other reviews. True for many different nodes."""
        return count_unlike_nodes(self.nodes, self.node_limits) > _FEW_UNLIKE

    @cached_property
    def game(self) -> Game:
        """The game, built at first use."""
        classes = classes_of(self.nodes, self.node_limits)
        return Game(
            classes,
            self.pod_classes,
            node_spreads=spread_on_nodes(self.nodes),
            domain_spreads=spread_on_domains(self.nodes, classes),
            keys=len(self.nodes.columns),
            rollout=self.rollout and _in_classes(self.rollout, classes),
        )

    def named(self, moves: Sequence[Move]) -> list[tuple[Move, str]]:
        """Return each move of an order with the name of its node.

        A move only states a group of equal nodes. The result names the group's alphabetically first admissible node.
        """
        names, pods = self.nodes.view.names, dict[int, Pods]()
        slots = {
            number: sorted(node_sets.to_slots(self.game.classes[number].nodes), key=names.__getitem__)
            for number in {move.number for move in moves}
        }
        named = []
        for move in moves:
            slot = next(
                candidate
                for candidate in slots[move.number]
                if self.takes(move, candidate, pods.get(candidate) or self.nodes.start_at(candidate))
            )
            pods[slot] = add_pods(pods.get(slot) or self.nodes.start_at(slot), move.pod_class, -1 if move.gone else 1)
            named.append((move, names[slot]))
        return named

    def takes(self, move: Move, slot: int, pods: Pods) -> bool:
        """Whether the node in this slot allows the move with these pods on it."""
        node_class = self.game.classes[move.number]
        if not node_class.pooled:
            return pods == move.before
        if move.gone:
            return pods[move.pod_class] > 0
        slot_limits = (
            node_limit
            for limit in self.node_limits
            if limit.pod_class == move.pod_class and (node_limit := limit.on(slot)) is not None
        )
        return all(weighted_sum(node_limit.weights, pods) <= node_limit.bound for node_limit in slot_limits)


def game_of(
    batches: Sequence[PodBatch],
    index: ReadOnlyIndex,
    *,
    rollout: RolloutRules | None = None,
    singled: int = 0,
) -> ClusterGame:
    """Build the game of placing these batches in a cluster with its running pods.

    Args:
        batches: The pods to place. The problem of each batch must come from the same version of the index.
        index: The cluster, without the running pods in ``leaving`` of the batches.
        rollout: The rolling update. ``place`` of each turn is a node slot.
        singled: A bit set of node slots. Each of these nodes with deletable pods forms a node class of its own.
    """
    view, cycles = batches[0].problem.nodes, [Cycle(batch.problem) for batch in batches]
    together = _Batches(tuple(batches))
    nodes = GameNodes(
        view,
        [_open(batch, cycle) for batch, cycle in zip(batches, cycles, strict=True)],
        [batch.leaving for batch in batches],
        together.most,
        singled=-1 if rollout is not None and rollout.turns else singled,
    )
    node_limits = [*_volumes_and_ports(together, index)]
    apart: list[list[AntiAffinityLimit]] = [[] for _ in batches]
    for pod_class, key, weights in together.kept_apart():
        column = view.column(key)
        # A node without the key rejects no pod.
        if column.one_each and not nodes.changing & ~column.present:
            node_limits.append(NodeLimits(pod_class=pod_class, weights=weights, base=0))
        else:
            apart[pod_class].append(AntiAffinityLimit(nodes.key(column), weights))
    spread = [_spread_limits(number, together, cycle, nodes) for number, cycle in enumerate(cycles)]
    node_limits += (limit for limits in spread for limit in limits.fixed)
    on_one = _most_on_one(together, nodes, node_limits, [limits.on_nodes for limits in spread])
    node_limits += _resources(together, nodes.changing, on_one, index)
    pod_classes = tuple(
        PodClass(
            pods=batch.pods,
            in_turn=batch.in_turn,
            behind=batch.behind,
            on_nodes=limits.on_nodes,
            on_domains=limits.on_domains,
            apart=tuple(apart[number]),
            near=together.near(number, nodes),
        )
        for number, (batch, limits) in enumerate(zip(batches, spread, strict=True))
    )
    return ClusterGame(nodes, tuple(node_limits), pod_classes, rollout)


def _in_classes(rollout: RolloutRules, classes: Sequence[NodeClass]) -> RolloutRules:
    if not rollout.turns:
        return rollout
    number_by_slot = {
        slot: number
        for number, node_class in enumerate(classes)
        if any(node_class.start)
        for slot in node_sets.to_slots(node_class.nodes)
    }
    turns = tuple(
        Turn(turn.pod_class, None if turn.place is None else number_by_slot[turn.place]) for turn in rollout.turns
    )
    return replace(rollout, turns=turns)


def _open(batch: PodBatch, cycle: Cycle) -> int:
    """Return the nodes that admit a pod of the batch, ignoring spread constraints and affinity."""
    problem = batch.problem
    nodes = problem.nodes.live if batch.nodes is None else problem.nodes.live & batch.nodes
    for plugin in problem.filters:
        result = cycle.result(plugin)
        if result.pre_filter.code not in (Code.SUCCESS, Code.SKIP):
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


class _Batches(Struct, frozen=True):
    batches: tuple[PodBatch, ...]

    @property
    def most(self) -> Pods:
        """The most pods of each batch: its pods without a node, and its running pods that may be deleted."""
        return tuple(batch.pods + sum(batch.leaving.values()) for batch in self.batches)

    def only(self, number: int) -> Pods:
        """Return a vector of pod numbers: 1 for batch ``number``, 0 for every other batch."""
        return tuple(int(each == number) for each in range(len(self.batches)))

    def meeting(self, *terms: Term) -> Pods:
        """By batch, 1 if its pods match all of the affinity terms, else 0."""
        pods = [batch.problem.pod for batch in self.batches]
        return tuple(
            int(all(term.in_namespace(pod.meta.namespace, {}) and term.selector.matches(pod.labels) for term in terms))
            for pod in pods
        )

    def counted(self, domains: DomainCounts, batch: PodBatch) -> Pods:
        """Return a vector with 1 for each batch of pods counted by a constraint, else 0.

        The constraint is ``domains.constraint``. The pods of ``batch`` declare the constraint.
        """
        selector, namespace = domains.constraint.selector, batch.problem.pod.meta.namespace
        if selector.empty and not gates.COUNTS_EMPTY_SELECTOR.holds(batch.problem.version):
            return (0,) * len(self.batches)
        pods = [batch.problem.pod for batch in self.batches]
        return tuple(int(each.meta.namespace == namespace and selector.matches(each.labels)) for each in pods)

    def kept_apart(self) -> Iterator[tuple[int, str, Pods]]:
        """Yield each batch, a topology key, and the batches that must not share a domain with it.

        The anti-affinity term may belong to either side.
        """
        for number, batch in enumerate(self.batches):
            for term in batch.problem.neighbours.anti_affinity_terms:
                met = self.meeting(term)
                if any(met):
                    yield number, term.topology_key, met
                for other, is_met in enumerate(met):
                    if is_met:
                        yield other, term.topology_key, self.only(number)

    def attachments(self, driver: str, weights: Pods, index: ReadOnlyIndex) -> Counts:
        """The most volumes of all these pods on a node, by node slot. ``weights`` has a pod's volumes, by batch."""
        free = free_attachments(driver, weighted_sum(weights, self.most), index)
        for weight, batch in zip(weights, self.batches, strict=True):
            # An index without these pods still has their volumes.
            for slot in free.keys() & batch.leaving:
                free[slot] += weight * batch.leaving[slot]
        return free

    def near(self, number: int, nodes: GameNodes) -> AffinityLimit | None:
        """The affinity of a batch as a limit. None without required affinity."""
        neighbours = self.batches[number].problem.neighbours
        if not neighbours.affinity_terms:
            return None
        columns = [nodes.view.column(term.topology_key) for term in neighbours.affinity_terms]
        return AffinityLimit(
            keys=tuple(map(nodes.key, columns)),
            weights=self.meeting(*neighbours.affinity_terms),
            base=tuple(
                frozenset(column.domain_of[slot] for slot in neighbours.affinity_pods) - {-1} for column in columns
            ),
            matches_itself=neighbours.matches_itself,
        )


def _most_on_one(
    together: _Batches, nodes: GameNodes, node_limits: Sequence[NodeLimits], limits: Sequence[Sequence[SpreadLimit]]
) -> Pods:
    """Return the most pods of each batch on one node, under all limits except resources.

    `_resources` then adds limits only for nodes too small for all these pods.
    """
    most_on_one = []
    for number, (batch, open_) in enumerate(zip(together.batches, nodes.open, strict=True)):
        there = max(batch.leaving.values(), default=0)
        most = [
            limit.base // limit.weights[number] + 1
            for limit in node_limits
            if limit.pod_class == number and limit.weights[number] and limit.sign <= 0
        ]
        for limit in limits[number]:
            counting = nodes.by_node[limit.spread]
            if counting.weights[number] and open_ and not open_ & ~counting.nodes:
                most.append(counting.highest_minimum(weighted_sum(counting.weights, together.most)) + limit.over + 1)
        most_on_one.append(max(there, min([there + batch.pods, *most])))
    return tuple(most_on_one)


def _resources(together: _Batches, relevant: int, on_one: Pods, index: ReadOnlyIndex) -> Iterator[NodeLimits]:
    amounts = [
        {PODS: 1, **dict(batch.problem.request.amounts)} if NODE_RESOURCES_FIT in batch.problem.filters else {}
        for batch in together.batches
    ]
    names = dict.fromkeys(name for amount in amounts for name in amount)
    weights = {name: tuple(amount.get(name, 0) for amount in amounts) for name in names}
    needed = {name: weighted_sum(weights[name], on_one) for name in names}
    for name, free in scarce_amounts([*needed.items()], index).items():
        short = {slot: free[slot] for slot in node_sets.to_slots(relevant) if free[slot] < needed[name]}
        for pod_class, weight in enumerate(weights[name] if short else ()):
            if weight:
                yield NodeLimits(pod_class=pod_class, weights=weights[name], base=-weight, sign=1, values=short)


def _volumes_and_ports(together: _Batches, index: ReadOnlyIndex) -> Iterator[NodeLimits]:
    free: dict[str, Counts] = {}
    for number, batch in enumerate(together.batches):
        problem = batch.problem
        if batch.volumes and NODE_VOLUME_LIMITS in problem.filters:
            for driver in dict.fromkeys(batch.volumes):
                weights = tuple(other.volumes.count(driver) for other in together.batches)
                if driver not in free:
                    free[driver] = together.attachments(driver, weights, index)
                if values := free[driver]:
                    yield NodeLimits(pod_class=number, weights=weights, base=-weights[number], sign=1, values=values)
        if (wanted := problem.ports) and NODE_PORTS in problem.filters:
            ports = [batch.problem.ports for batch in together.batches]
            clashes = [any(ports_conflict(one, each) for one in wanted for each in taken) for taken in ports]
            yield NodeLimits(pod_class=number, weights=tuple(map(int, clashes)), base=0)
        disks = [volume for volume in problem.pod.pod_spec.volumes or () if is_disk(volume)]
        if disks and VOLUME_RESTRICTIONS in problem.filters:
            volumes = [batch.problem.pod.pod_spec.volumes or () for batch in together.batches]
            clashes = [any(disks_conflict(one, each) for one in disks for each in mounted) for mounted in volumes]
            yield NodeLimits(pod_class=number, weights=tuple(map(int, clashes)), base=0)


class _SpreadLimits(NamedTuple):
    """The limits of a pod class from its hard spread constraints.

    Attributes:
        on_nodes: The constraints on single nodes.
        fixed: The constraints on single nodes with a constant minimum of pods per node.
        on_domains: The constraints on larger domains.
    """

    on_nodes: tuple[SpreadLimit, ...]
    fixed: tuple[NodeLimits, ...]
    on_domains: tuple[SpreadLimit, ...]


def _spread_limits(pod_class: int, together: _Batches, cycle: Cycle, nodes: GameNodes) -> _SpreadLimits:
    on_nodes, fixed, on_domains = [], list[NodeLimits](), []
    batch = together.batches[pod_class]
    for domains, counts in zip(cycle.domains, batch.problem.hard.counts, strict=True):
        counting = SpreadCounts(
            column=domains.column,
            nodes=domains.counting,
            counts={slot: pods for slot, pods in counts.items() if domains.counting >> slot & 1},
            weights=together.counted(domains, batch),
            enough=not domains.too_few,
        )
        over = domains.constraint.max_skew - domains.self_match
        pods = weighted_sum(counting.weights, together.most)
        if max(domains.match_num.values(), default=0) + pods - domains.self_match <= over:
            continue  # No domain can reach the limit.
        if not domains.column.one_each:
            on_domains.append(SpreadLimit(nodes.spread(counting), over))
        elif (lowest := counting.fixed_minimum(nodes.changing, pods)) is not None:
            fixed.append(
                NodeLimits(
                    pod_class=pod_class,
                    weights=counting.weights,
                    base=lowest + over,
                    sign=-1,
                    values=counting.counts,
                    default=0,
                )
            )
        else:
            on_nodes.append(SpreadLimit(nodes.spread(counting), over))
    return _SpreadLimits(tuple(on_nodes), tuple(fixed), tuple(on_domains))
