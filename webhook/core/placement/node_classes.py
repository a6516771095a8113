"""The nodes of a game as classes of equal nodes.

If it only matters how many of the pods a zone holds, and not on which of its nodes, the zone is one class. It takes as
many pods as its nodes together.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from operator import mul
from typing import TypeVar

from msgspec import Struct

from webhook.core.budget import check_time
from webhook.core.index import node_sets
from webhook.core.index.label_column import Column
from webhook.core.index.nodes import NodeView
from webhook.core.index.pods import Counts
from webhook.core.placement.game import DomainSpread, Gate, NodeClass, NodeSpread, Pods

_Item = TypeVar("_Item")
_NONE: Counts = {}
_NOTHING = -(2**64)  # sorts before every number that a node has
# Measured: up to so many parts it is quicker to divide sets than to look at each node.
_FEW_PARTS = 64


class NodeGate(Struct, frozen=True):
    """A gate of a pod class on every node, with the bound ``base`` + ``sign`` * the node's value.

    The value is by slot, else the default. A node without a value has no such gate, unless ``sign`` is 0.
    """

    pod_class: int
    weights: Pods
    base: int
    sign: int = 0
    values: Counts = _NONE
    default: int | None = None

    def on(self, slot: int) -> Gate | None:
        """The gate on one node; -1 for any node without a value of its own."""
        if not self.sign:
            return Gate(self.weights, self.base)
        value = self.values.get(slot, self.default)
        return None if value is None else Gate(self.weights, self.base + self.sign * value)

    @property
    def of_all(self) -> object:
        """What is equal in gates that several pod classes share. The base differs if they need different amounts."""
        return self.weights, self.base, self.sign, id(self.values), self.default


class Counting(Struct, frozen=True):
    """What a spread constraint counts: the nodes, the pods on them by slot, and with weight 1 the pod classes."""

    column: Column
    nodes: int
    counts: Counts
    weights: Pods
    enough: bool

    def floor(self, changing: int) -> int | None:
        """The lowest count on nodes that do not change, if each is a domain."""
        return self._lowest(self.nodes & ~changing)

    def fixed_minimum(self, changing: int, pods: int) -> int | None:
        """The global minimum if so many more pods cannot change it, else None. Each node is a domain."""
        if not self.enough:
            return 0
        lowest = self._lowest(self.nodes)
        if lowest is None or self.floor(changing) == lowest:
            return lowest
        held = (
            sum(self.counts.get(slot, 0) == lowest for slot in node_sets.to_slots(self.nodes))
            if lowest
            else (self.nodes.bit_count() - self._holding(self.nodes).bit_count())
        )
        return lowest if held > pods else None

    def highest_minimum(self, pods: int) -> int:
        """What the global minimum cannot exceed with so many more pods; some node counts."""
        return (sum(self.counts.values()) + pods) // self.nodes.bit_count()

    def _lowest(self, nodes: int) -> int | None:
        if not nodes:
            return None
        if nodes & ~self._holding(nodes):
            return 0
        return min(self.counts[slot] for slot in node_sets.to_slots(nodes))

    def _holding(self, nodes: int) -> int:
        return node_sets.from_slots([*self.counts], max(nodes.bit_length(), *self.counts, 0) + 1) & nodes


class Nodes:
    """The nodes, with the keys and constraints of the game. ``singled``: each node with a leaving pod is a class."""

    def __init__(
        self, view: NodeView, open_: Sequence[int], leaving: Sequence[Counts], most: Pods, *, singled: bool = False
    ) -> None:
        self.singled = singled
        self.view, self.open, self.leaving, self.most = view, tuple(open_), tuple(leaving), most
        self.changing = node_sets.from_slots([slot for each in leaving for slot in each], view.size)
        for nodes in open_:
            self.changing |= nodes
        self.columns: list[Column] = []
        self.by_node: list[Counting] = []
        self.by_domain: list[Counting] = []

    def open_at(self, slot: int) -> tuple[bool, ...]:
        """Which pod classes' pods may go to the node."""
        return tuple(bool(each >> slot & 1) for each in self.open)

    def start_at(self, slot: int) -> Pods:
        """The pods on the node that may be deleted."""
        return tuple(each.get(slot, 0) for each in self.leaving)

    def key(self, column: Column) -> int:
        """The number of a key whose domains pods have to know of."""
        return _noted(self.columns, column)

    def spread(self, counting: Counting) -> int:
        """The number of a constraint, among those on nodes or among those on domains."""
        if counting.column.one_each:
            return _noted(self.by_node, counting)
        self.key(counting.column)
        return _noted(self.by_domain, counting)


def _noted(known: list[_Item], item: _Item) -> int:
    if item not in known:
        known.append(item)
    return known.index(item)


def classes_of(nodes: Nodes, gates: Sequence[NodeGate]) -> list[NodeClass]:
    """The classes of all nodes that a pod may go to or leave.

    Their order depends on labels and numbers, never on slots, so that every replica tries and shows the same orders.
    """
    masks = [*nodes.open, *(each.nodes for each in (*nodes.by_node, *nodes.by_domain))]
    parts = _parts(nodes.changing, masks, nodes.columns)
    sharing = _pooling(nodes, gates)
    if sharing is not None:
        own = {members: (of, _special(of, nodes.view.size)) for members, of in sharing.items()}
        starts = _starts(nodes, parts)
        return [_pool(nodes, part, own, start) for part, start in zip(parts, starts, strict=True)]
    sources = _sources(nodes, gates)
    special = node_sets.from_slots([slot for each in sources for slot in each], nodes.view.size)
    found = []
    for part in parts:
        by_values: dict[tuple[str | int | None, ...], list[int]] = {}
        for slot in node_sets.to_slots(part & special):
            alone = nodes.view.names[slot] if nodes.singled and any(nodes.start_at(slot)) else ""
            by_values.setdefault((alone, *(each.get(slot, _NOTHING) for each in sources)), []).append(slot)
        if others := part & ~special:
            found.append(_class(nodes, gates, -1, others))
        ordered = (by_values[values] for values in sorted(by_values))
        alike = ((slots[0], node_sets.from_slots(slots, nodes.view.size)) for slots in ordered)
        found += [_class(nodes, gates, *each) for each in alike]
    return found


def unlike(nodes: Nodes, gates: Sequence[NodeGate]) -> int:
    """How many nodes have values of their own, each of which may be a class."""
    return 0 if _pooling(nodes, gates) is not None else len({slot for each in _sources(nodes, gates) for slot in each})


def _sources(nodes: Nodes, gates: Sequence[NodeGate]) -> list[Counts]:
    """What nodes have values of their own in."""
    return [*(each.values for each in gates if each.sign), *(each.counts for each in nodes.by_node), *nodes.leaving]


def _pooling(nodes: Nodes, gates: Sequence[NodeGate]) -> dict[Pods, list[NodeGate]] | None:
    """As `_sharing`, where nothing else tells nodes apart."""
    if nodes.by_node or nodes.singled or _is_over_full(nodes, gates):
        return None
    return _sharing(gates, len(nodes.open))


def _class(nodes: Nodes, gates: Sequence[NodeGate], slot: int, alike: int) -> NodeClass:
    first = _first(alike)
    of_pod_classes: list[list[Gate]] = [[] for _ in nodes.open]
    for each in gates:
        if (gate := each.on(slot)) is not None:
            of_pod_classes[each.pod_class].append(gate)
    return NodeClass(
        size=alike.bit_count(),
        open=nodes.open_at(first),
        gates=tuple(map(tuple, of_pod_classes)),
        start=nodes.start_at(slot),
        domains=tuple(column.of[first] for column in nodes.columns),
        held=tuple(each.counts.get(slot, 0) if each.nodes >> first & 1 else None for each in nodes.by_node),
        nodes=alike,
    )


def _is_over_full(nodes: Nodes, gates: Sequence[NodeGate]) -> bool:
    """Whether some node holds more pods that may be deleted than it would admit, so that others do not gain a place."""
    for slot in {slot for each in nodes.leaving for slot in each}:
        start = nodes.start_at(slot)
        for each in gates:
            gate = each.on(slot)
            if gate is not None and sum(map(mul, gate.weights, start)) > gate.bound + gate.weights[each.pod_class]:
                return True
    return False


def _sharing(gates: Sequence[NodeGate], pod_classes: int) -> dict[Pods, list[NodeGate]] | None:
    """The gates that pod classes share, by the classes; None if it matters which pod is on which node.

    It does not matter if a node has a number of places for some classes, whichever takes them, and the others are
    independent of them.
    """
    of: list[dict[object, NodeGate]] = [{} for _ in range(pod_classes)]
    for each in gates:
        of[each.pod_class][each.of_all] = each
    sharing: dict[Pods, list[NodeGate]] = {}
    for pod_class, own in enumerate(of):
        members = {tuple(map(bool, each.weights)) for each in own.values()}
        if not members:
            continue
        some = next(iter(members))
        others = [number for number, is_in in enumerate(some) if is_in]
        if len(members) > 1 or pod_class not in others or any(of[number].keys() != own.keys() for number in others):
            return None
        sharing[tuple(map(int, some))] = list(own.values())
    return sharing


def _special(gates: Sequence[NodeGate], size: int) -> int:
    return node_sets.from_slots([slot for each in gates if each.sign for slot in each.values], size)


def _starts(nodes: Nodes, parts: Sequence[int]) -> list[Pods]:
    """The pods in each part that may be deleted. Each node is looked at once, however many parts there are."""
    if not any(nodes.leaving):
        return [(0,) * len(nodes.leaving)] * len(parts)
    inside = {slot: number for number, part in enumerate(parts) for slot in node_sets.one_by_one(part)}
    found = [[0] * len(nodes.leaving) for _ in parts]
    for pod_class, leaving in enumerate(nodes.leaving):
        for slot, pods in leaving.items():
            found[inside[slot]][pod_class] += pods
    return [tuple(each) for each in found]


def _pool(nodes: Nodes, part: int, sharing: Mapping[Pods, tuple[Sequence[NodeGate], int]], start: Pods) -> NodeClass:
    """These nodes as one. ``sharing`` has gates, and the nodes on which one of them has a value of its own."""
    check_time()
    first = _first(part)
    gates: list[tuple[Gate, ...]] = [() for _ in nodes.open]
    packs = False
    for members, (of_members, special) in sharing.items():
        enough = sum(map(mul, members, nodes.most))
        places, single = _places(of_members, members, part & special, part & ~special, enough)
        if places < enough:
            gate = (Gate(members, places - 1),)
            gates = [gate if is_in else own for is_in, own in zip(members, gates, strict=True)]
        packs |= not single
    return NodeClass(
        size=1,
        open=nodes.open_at(first),
        gates=tuple(gates),
        start=start,
        domains=tuple(column.of[first] for column in nodes.columns),
        held=(),
        nodes=part,
        pooled=True,
        packs=packs,
    )


def _places(gates: Sequence[NodeGate], members: Pods, special: int, others: int, enough: int) -> tuple[int, bool]:
    """How many pods of these classes the nodes take, up to ``enough``, and whether no node takes several.

    Gates have no value of their own on the ``others``.
    """
    weight = {id(each): each.weights[members.index(1)] for each in gates}

    def rooms(slot: int) -> Iterator[int]:
        for each in gates:
            value = each.values.get(slot, each.default) if each.sign else 0
            if value is not None:
                yield (each.base + each.sign * value) // weight[id(each)] + 1

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


def spread_on_nodes(nodes: Nodes) -> list[NodeSpread]:
    """The noted constraints in whose keys each node is a domain by itself."""
    return [NodeSpread(each.weights, each.floor(nodes.changing)) for each in nodes.by_node]


def spread_on_domains(nodes: Nodes, classes: Sequence[NodeClass]) -> list[DomainSpread]:
    """The noted constraints over domains of several nodes."""
    found = []
    for each in nodes.by_domain:
        base = [0] * len(each.column.values)
        for slot, pods in each.counts.items():
            base[each.column.of[slot]] += pods
        found.append(
            DomainSpread(
                key=nodes.key(each.column),
                weights=each.weights,
                base=tuple(base),
                eligible=tuple(sorted(each.column.domains(each.nodes))),
                counting=tuple(bool(each.nodes >> _first(of.nodes) & 1) for of in classes),
                enough=each.enough,
            )
        )
    return found


def _parts(every: int, masks: Sequence[int], columns: Sequence[Column]) -> list[int]:
    """The nodes divided: each part is in a mask as a whole or not at all, and has one value of each column."""
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
    """The same for all columns at once, in the same order; each node is looked at once, however many values exist."""
    alike: dict[tuple[int, ...], list[int]] = {}
    for slot in node_sets.to_slots(part):
        alike.setdefault(tuple([column.of[slot] for column in columns]), []).append(slot)
    texts = [(*column.values, "") for column in columns]  # the number of a node without the key is -1
    for values in sorted(
        alike, key=lambda each: [(number >= 0, of[number]) for number, of in zip(each, texts, strict=True)]
    ):
        yield node_sets.from_slots(alike[values], part.bit_length())
