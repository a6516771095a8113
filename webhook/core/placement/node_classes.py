"""Group the nodes of a game into classes of equal nodes.

If only the number of a zone's pods matters, the zone becomes a single class, called a pool. Its capacity is the sum of
its nodes' capacities.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import TypeVar

from msgspec import Struct

from webhook.core.budget import check_time
from webhook.core.index import node_sets
from webhook.core.index.label_column import Column
from webhook.core.index.nodes import NodeView
from webhook.core.index.pods import Counts
from webhook.core.placement.classes import NodeClass
from webhook.core.placement.pod_limits import DomainSpread, NodeLimit, NodeSpread, Pods, weighted_sum

_Item = TypeVar("_Item")
_NONE: Counts = {}
_NOTHING = -(2**64)  # Sorts before every value of a node.
# Up to this number of parts, dividing sets was measured faster than a loop over the nodes.
_FEW_PARTS = 64


class NodeLimits(Struct, frozen=True, kw_only=True):
    """A limit of a pod class on each node.

    The limit of a node is ``base`` + ``sign`` * the node's number in ``values``. The node admits another pod of the
    class while a sum is at most this limit: the pods on the node, each multiplied by the weight of its class.

    Attributes:
        pod_class: The number of the limited pod class.
        weights: The weight of each pod class in the sum.
        values: A number for each node slot.
        default: The number used for each node missing from ``values``. With None, these nodes have no limit, unless
            ``sign`` is 0.
    """

    pod_class: int
    weights: Pods
    base: int
    sign: int = 0
    values: Counts = _NONE
    default: int | None = None

    def on(self, slot: int) -> NodeLimit | None:
        """Return the pod limit of the node in this slot. Slot -1 means any node without a value in ``values``."""
        if not self.sign:
            return NodeLimit(self.weights, self.base)
        value = self.values.get(slot, self.default)
        return None if value is None else NodeLimit(self.weights, self.base + self.sign * value)

    @property
    def of_all(self) -> object:
        """A comparison key: all fields of the limit except the pod class.

        Pod classes with the same limit have equal keys.
        """
        return self.weights, self.base, self.sign, id(self.values), self.default


class SpreadCounts(Struct, frozen=True):
    """The nodes and pods counted by a spread constraint.

    Attributes:
        column: The domain of each node.
        nodes: The counted nodes, as a bit set of slots.
        counts: The number of counted pods by node slot.
        weights: By pod class, 1 if the constraint counts its pods, else 0.
        enough: Whether there are at least minDomains domains.
    """

    column: Column
    nodes: int
    counts: Counts
    weights: Pods
    enough: bool

    def closed_minimum(self, changing: int) -> int | None:
        """The lowest count on the nodes outside of ``changing``, if each node is a domain."""
        return self._lowest(self.nodes & ~changing)

    def fixed_minimum(self, changing: int, pods: int) -> int | None:
        """The global minimum if this number of new pods cannot change it, else None.

        Each node must be a domain.
        """
        if not self.enough:
            return 0
        lowest = self._lowest(self.nodes)
        if lowest is None or self.closed_minimum(changing) == lowest:
            return lowest
        held = (
            sum(self.counts.get(slot, 0) == lowest for slot in node_sets.to_slots(self.nodes))
            if lowest
            else (self.nodes.bit_count() - self._holding(self.nodes).bit_count())
        )
        return lowest if held > pods else None

    def highest_minimum(self, pods: int) -> int:
        """An upper bound of the global minimum after this number of new pods."""
        return (sum(self.counts.values()) + pods) // self.nodes.bit_count()

    def _lowest(self, nodes: int) -> int | None:
        if not nodes:
            return None
        if nodes & ~self._holding(nodes):
            return 0
        return min(self.counts[slot] for slot in node_sets.to_slots(nodes))

    def _holding(self, nodes: int) -> int:
        return node_sets.from_slots([*self.counts], max(nodes.bit_length(), *self.counts, 0) + 1) & nodes


class GameNodes:
    """The input of a simulated placement: the nodes, topology keys and constraints.

    Each node of the bit set ``singled`` with deletable pods forms a node class of its own.
    """

    def __init__(
        self, view: NodeView, open_: Sequence[int], leaving: Sequence[Counts], most: Pods, *, singled: int = 0
    ) -> None:
        self.singled = singled
        self.view, self.open, self.leaving, self.most = view, tuple(open_), tuple(leaving), most
        self.changing = node_sets.from_slots([slot for pods in leaving for slot in pods], view.size)
        for nodes in open_:
            self.changing |= nodes
        self.columns: list[Column] = []
        self.by_node: list[SpreadCounts] = []
        self.by_domain: list[SpreadCounts] = []

    def open_at(self, slot: int) -> tuple[bool, ...]:
        """Whether the node in this slot admits the pods of each pod class."""
        return tuple(bool(nodes >> slot & 1) for nodes in self.open)

    def start_at(self, slot: int) -> Pods:
        """Return the number of deletable pods of each pod class on the node in this slot."""
        return tuple(pods.get(slot, 0) for pods in self.leaving)

    def key(self, column: Column) -> int:
        """Return the index of a topology key, given as its column of node labels. A new key gets the next index."""
        return _noted(self.columns, column)

    def spread(self, counting: SpreadCounts) -> int:
        """Register the counts of a spread constraint in the game, and return their index.

        Constraints on nodes and constraints on larger domains have separate indexes.
        """
        if counting.column.one_each:
            return _noted(self.by_node, counting)
        self.key(counting.column)
        return _noted(self.by_domain, counting)


def _noted(known: list[_Item], item: _Item) -> int:
    if item not in known:
        known.append(item)
    return known.index(item)


def classes_of(nodes: GameNodes, node_limits: Sequence[NodeLimits]) -> list[NodeClass]:
    """Return the classes of all nodes whose number of pods can change.

    The classes are sorted by labels and numbers, not by slots. Slots can differ between replicas of the webhook, so all
    replicas simulate and show the pods in the same order. Only deleted nodes, which have no name, are told apart by
    slot.
    """
    masks = [*nodes.open, *(spread.nodes for spread in (*nodes.by_node, *nodes.by_domain))]
    parts = _parts(nodes.changing, masks, nodes.columns)
    sharing = _pooling(nodes, node_limits)
    if sharing is not None:
        own = {
            members: (shared_limits, _special(shared_limits, nodes.view.size))
            for members, shared_limits in sharing.items()
        }
        starts = _starts(nodes, parts)
        return [_pool(nodes, part, own, start) for part, start in zip(parts, starts, strict=True)]
    sources = _sources(nodes, node_limits)
    special = node_sets.from_slots([slot for values in sources for slot in values], nodes.view.size)
    classes = []
    for part in parts:
        by_values: dict[tuple[str | int | None, ...], list[int]] = {}
        for slot in node_sets.to_slots(part & special):
            is_alone = nodes.singled >> slot & 1 and any(nodes.start_at(slot))
            alone = (nodes.view.names[slot] or f"deleted {slot}") if is_alone else ""
            by_values.setdefault((alone, *(values.get(slot, _NOTHING) for values in sources)), []).append(slot)
        if others := part & ~special:
            classes.append(_class(nodes, node_limits, -1, others))
        ordered = (by_values[values] for values in sorted(by_values))
        alike = ((slots[0], node_sets.from_slots(slots, nodes.view.size)) for slots in ordered)
        classes += [_class(nodes, node_limits, *each) for each in alike]
    return classes


def count_unlike_nodes(nodes: GameNodes, node_limits: Sequence[NodeLimits]) -> int:
    """Count the nodes with their own pod counts or limits.

    Each of these nodes may need a node class of its own. 0 if the nodes can be pooled.
    """
    if _pooling(nodes, node_limits) is not None:
        return 0
    return len({slot for values in _sources(nodes, node_limits) for slot in values})


def _sources(nodes: GameNodes, node_limits: Sequence[NodeLimits]) -> list[Counts]:
    return [
        *(limit.values for limit in node_limits if limit.sign),
        *(spread.counts for spread in nodes.by_node),
        *nodes.leaving,
    ]


def _pooling(nodes: GameNodes, node_limits: Sequence[NodeLimits]) -> dict[Pods, list[NodeLimits]] | None:
    """Return the node limits by the set of pod classes sharing them.

    None if the nodes cannot be treated as one pool: they differ in more than these limits, or the distribution of pods
    over the nodes matters.
    """
    if nodes.by_node or nodes.singled or _is_over_full(nodes, node_limits):
        return None
    return _sharing(node_limits, len(nodes.open))


def _class(nodes: GameNodes, node_limits: Sequence[NodeLimits], slot: int, alike: int) -> NodeClass:
    first = _first(alike)
    of_pod_classes: list[list[NodeLimit]] = [[] for _ in nodes.open]
    for limit in node_limits:
        if (node_limit := limit.on(slot)) is not None:
            of_pod_classes[limit.pod_class].append(node_limit)
    return NodeClass(
        size=alike.bit_count(),
        open=nodes.open_at(first),
        node_limits=tuple(map(tuple, of_pod_classes)),
        start=nodes.start_at(slot),
        domains=tuple(column.domain_of[first] for column in nodes.columns),
        held=tuple(spread.counts.get(slot, 0) if spread.nodes >> first & 1 else None for spread in nodes.by_node),
        nodes=alike,
    )


def _is_over_full(nodes: GameNodes, node_limits: Sequence[NodeLimits]) -> bool:
    """Whether some node has more deletable pods than it would admit.

    After the deletion of such a pod, the node may still admit no other pod.
    """
    for slot in {slot for pods in nodes.leaving for slot in pods}:
        start = nodes.start_at(slot)
        for limit in node_limits:
            on_node = limit.on(slot)
            if on_node and weighted_sum(on_node.weights, start) > on_node.bound + on_node.weights[limit.pod_class]:
                return True
    return False


def _sharing(node_limits: Sequence[NodeLimits], pod_classes: int) -> dict[Pods, list[NodeLimits]] | None:
    """Group the node limits by the pod classes that share them.

    None if the distribution of pods over the nodes matters. It does not matter if each limit is a number of pods per
    node, shared by some pod classes and independent of all others.
    """
    by_class: list[dict[object, NodeLimits]] = [{} for _ in range(pod_classes)]
    for limit in node_limits:
        by_class[limit.pod_class][limit.of_all] = limit
    sharing: dict[Pods, list[NodeLimits]] = {}
    for pod_class, own in enumerate(by_class):
        members = {tuple(map(bool, limit.weights)) for limit in own.values()}
        if not members:
            continue
        some = next(iter(members))
        others = [number for number, is_in in enumerate(some) if is_in]
        is_shared = all(by_class[number].keys() == own.keys() for number in others)
        if len(members) > 1 or pod_class not in others or not is_shared:
            return None
        sharing[tuple(map(int, some))] = list(own.values())
    return sharing


def _special(node_limits: Sequence[NodeLimits], size: int) -> int:
    return node_sets.from_slots([slot for limit in node_limits if limit.sign for slot in limit.values], size)


def _starts(nodes: GameNodes, parts: Sequence[int]) -> list[Pods]:
    if not any(nodes.leaving):
        return [(0,) * len(nodes.leaving)] * len(parts)
    inside = {slot: number for number, part in enumerate(parts) for slot in node_sets.to_slots(part)}
    starts = [[0] * len(nodes.leaving) for _ in parts]
    for pod_class, leaving in enumerate(nodes.leaving):
        for slot, pods in leaving.items():
            starts[inside[slot]][pod_class] += pods
    return [tuple(counts) for counts in starts]


def _pool(
    nodes: GameNodes, part: int, sharing: Mapping[Pods, tuple[Sequence[NodeLimits], int]], start: Pods
) -> NodeClass:
    """Merge the nodes of ``part`` into a single node class: a pool.

    Args:
        nodes: The nodes of the game.
        part: The nodes of the pool, as a bit set.
        sharing: For each set of pod classes with common limits on a node: these limits, and the nodes with a limit of
            their own.
        start: The number of deletable pods in the pool, by pod class.
    """
    check_time()
    first = _first(part)
    node_limits: list[tuple[NodeLimit, ...]] = [() for _ in nodes.open]
    packs = False
    for members, (of_members, special) in sharing.items():
        enough = weighted_sum(members, nodes.most)
        places, single = _places(of_members, members, part & special, part & ~special, enough)
        if places < enough:
            node_limit = (NodeLimit(members, places - 1),)
            node_limits = [node_limit if is_in else own for is_in, own in zip(members, node_limits, strict=True)]
        packs |= not single
    return NodeClass(
        size=1,
        open=nodes.open_at(first),
        node_limits=tuple(node_limits),
        start=start,
        domains=tuple(column.domain_of[first] for column in nodes.columns),
        held=(),
        nodes=part,
        pooled=True,
        packs=packs,
    )


def _places(
    node_limits: Sequence[NodeLimits], members: Pods, special: int, others: int, enough: int
) -> tuple[int, bool]:
    """Count the pods of some pod classes that fit on the nodes, up to ``enough``.

    Args:
        node_limits: The limits of these pod classes on each node.
        members: A vector with 1 for each of these pod classes, 0 for others.
        special: The nodes with their own number in a limit, as a bit set.
        others: The other nodes, as a bit set.
        enough: The highest number to count.

    Returns:
        The number of pods, and whether each node takes at most one pod.
    """
    weight = {id(limit): limit.weights[members.index(1)] for limit in node_limits}

    def rooms(slot: int) -> Iterator[int]:
        for limit in node_limits:
            value = limit.values.get(slot, limit.default) if limit.sign else 0
            if value is not None:
                yield (limit.base + limit.sign * value) // weight[id(limit)] + 1

    of_others = max(0, min(rooms(-1), default=enough))
    total, single = others.bit_count() * of_others, not others or of_others <= 1
    for slot in node_sets.one_by_one(special):
        if total >= enough:
            break
        places = max(0, min(rooms(slot), default=enough))
        total, single = total + places, single and places <= 1
    return (enough, False) if total >= enough else (total, single)


def _first(nodes: int) -> int:
    return (nodes & -nodes).bit_length() - 1


def spread_on_nodes(nodes: GameNodes) -> list[NodeSpread]:
    """Return the constraints with one node per domain."""
    return [NodeSpread(spread.weights, spread.closed_minimum(nodes.changing)) for spread in nodes.by_node]


def spread_on_domains(nodes: GameNodes, classes: Sequence[NodeClass]) -> list[DomainSpread]:
    """Return the constraints with several nodes per domain."""
    spreads = []
    for spread in nodes.by_domain:
        base = [0] * len(spread.column.values)
        for slot, pods in spread.counts.items():
            base[spread.column.domain_of[slot]] += pods
        spreads.append(
            DomainSpread(
                key=nodes.key(spread.column),
                weights=spread.weights,
                base=tuple(base),
                eligible=tuple(sorted(spread.column.domains(spread.nodes))),
                counting=tuple(bool(spread.nodes >> _first(node_class.nodes) & 1) for node_class in classes),
                enough=spread.enough,
            )
        )
    return spreads


def _parts(every: int, masks: Sequence[int], columns: Sequence[Column]) -> list[int]:
    """Split the nodes into sets with no difference in masks and columns.

    All nodes of a set are inside the same masks, and have the same value in each column.
    """
    parts = [every] if every else []
    for mask in masks:
        parts = [half for part in parts for half in (part & mask, part & ~mask) if half]
    if prod(len(column.values) for column in columns) > _FEW_PARTS:
        return [inside for part in parts for inside in _by_values(part, columns)]
    for column in columns:
        parts = [inside for part in parts for inside in _by_value(part, column)]
    return parts


def _by_value(part: int, column: Column) -> Iterator[int]:
    if part & ~column.present:
        yield part & ~column.present
    for number in sorted(column.domains(part), key=column.values.__getitem__):
        yield part & column.nodes(number)


def _by_values(part: int, columns: Sequence[Column]) -> Iterator[int]:
    """Yield a set of nodes for each combination of label values in these columns.

    The sets are sorted by label values. Each node is visited only once, so many columns cost less.
    """
    alike: dict[tuple[int, ...], list[int]] = {}
    for slot in node_sets.to_slots(part):
        alike.setdefault(tuple([column.domain_of[slot] for column in columns]), []).append(slot)
    texts = [(*column.values, "") for column in columns]  # A node without the key has the number -1.
    for values in sorted(
        alike, key=lambda each: [(number >= 0, names[number]) for number, names in zip(each, texts, strict=True)]
    ):
        yield node_sets.from_slots(alike[values], part.bit_length())
