"""All nodes at one moment as a table (`NodeView`), and queries on nodes (`Nodes`).

The table has a column for each label key. A slot is a small number that a node keeps while it exists. Sets of nodes are
integers (`node_sets`).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from webhook.core.api.types import Node, Taint
from webhook.core.cached_property import cached_property
from webhook.core.index import node_sets
from webhook.core.index.label_column import Column
from webhook.core.index.view import View

# The free and allocatable amount of a slot without a node. It is more than any request, so the slot is never short.
NO_NODE = 2**62
# A view with more columns inherits none. This drops unused columns.
_MAX_INHERITED_COLUMNS = 64
# Kept views after node failures: two for each zone of a scan, and some more.
_MOST_AFTER = 32
_NO_LABELS: Mapping[str, str] = {}


class NodeRow(NamedTuple):
    """One node of a `NodeView`."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    unschedulable: bool
    soft_taints: tuple[Taint, ...] = ()


class NodeView:
    """All nodes of the cluster at one moment. Immutable.

    Each node has a number, its slot. Most attributes are tuples with an entry for each slot.

    Attributes:
        size: The number of slots.
        names: Node names by slot. "" for an empty slot.
        labels: Node labels by slot. None for an empty slot.
        live: The slots of the existing nodes, as a bit set.
        keys: The label keys of all nodes.
        soft_taints: The taints with the effect PreferNoSchedule, by slot. Only for nodes with such taints.
    """

    def __init__(self, rows: Sequence[NodeRow | None], live: int, keys: Iterable[str]) -> None:
        self.size = len(rows)
        self.live = live
        self.keys = frozenset(keys)
        self.names = tuple(["" if row is None else row.name for row in rows])
        self.labels = tuple([None if row is None else row.labels for row in rows])
        self._taints = tuple([None if row is None else row.taints for row in rows])
        self._unschedulable = tuple([row is not None and row.unschedulable for row in rows])
        # A dict, because most clusters have none, and a column would have an entry per node.
        self.soft_taints = {slot: row.soft_taints for slot, row in enumerate(rows) if row and row.soft_taints}
        self._columns: dict[str, Column] = {}
        self._after: dict[tuple[int, tuple[Taint, ...] | None], NodeView] = {}

    def losing(self, nodes: int, taints: tuple[Taint, ...] | None = None) -> "NodeView":
        """Return the view after a loss of these nodes.

        With ``taints``, the nodes stay and get these additional taints. Without, the nodes are deleted. The result is
        cached, because a scan needs the same zones many times.
        """
        known = self._after.get((nodes, taints))
        if known is None:
            rows, slots = self.rows(0, self.size), node_sets.to_slots(nodes & self.live)
            for slot in slots:
                row = rows[slot]
                rows[slot] = None if taints is None else row and row._replace(taints=(*row.taints, *taints))
            known = NodeView(rows, self.live if taints is not None else self.live & ~nodes, self.keys)
            known.inherit(self, slots)
            if len(self._after) >= _MOST_AFTER:
                self._after.clear()
            self._after[nodes, taints] = known
        return known

    def inherit(self, before: "NodeView", changed: Collection[int]) -> None:
        """Reuse the columns of an earlier view, if the column is the same in all ``changed`` slots."""
        columns = dict(before._columns)  # noqa: SLF001 Same class. A copy, since other threads can add columns now.
        if before.size != self.size or len(columns) > _MAX_INHERITED_COLUMNS:
            return
        self._columns = {
            key: column for key, column in columns.items() if not _differ(before.labels, self.labels, changed, key)
        }
        for name, mine, theirs in (
            ("slots", self.names, before.names),
            ("taint_classes", self._taints, before._taints),  # noqa: SLF001 as above
            ("unschedulable", self._unschedulable, before._unschedulable),  # noqa: SLF001 as above
        ):
            if name in before.__dict__ and all(mine[slot] == theirs[slot] for slot in changed):
                self.__dict__[name] = before.__dict__[name]

    def names_of(self, nodes: int) -> Iterator[str]:
        """The names of the nodes in a bit set, by slot."""
        return (self.names[slot] for slot in node_sets.to_slots(nodes))

    def rows(self, start: int, stop: int) -> list[NodeRow | None]:
        """Return the nodes in these slots as `NodeRow` objects. None for a slot without a node."""
        columns = self.names, self.labels, self._taints, self._unschedulable
        parts = (column[start:stop] for column in columns)
        return [
            None
            if labels is None
            else NodeRow(name, labels, taints or (), unschedulable, self.soft_taints.get(slot, ()))
            for slot, (name, labels, taints, unschedulable) in enumerate(zip(*parts, strict=True), start)
        ]

    def column(self, key: str) -> Column:
        """The label's column. It is cached only if some node has the label, since requests can name any label."""
        if key not in self.keys:
            return Column.absent(self._nowhere, key)
        column = self._columns.get(key)
        if column is None:
            column = self._columns.setdefault(key, Column(self.labels, key))
        return column

    @cached_property
    def _nowhere(self) -> list[int]:
        return [-1] * self.size

    @cached_property
    def slots(self) -> Mapping[str, int]:
        """The slot of each node by name."""
        return {name: slot for slot, name in enumerate(self.names) if self.live >> slot & 1}

    @cached_property
    def taint_classes(self) -> tuple[tuple[tuple[Taint, ...], int], ...]:
        """The different taint lists with their nodes, for filters. Nodes without taints are left out."""
        return _classes(enumerate(self._taints), self.size)

    @cached_property
    def soft_taint_classes(self) -> tuple[tuple[tuple[Taint, ...], int], ...]:
        """The different lists of PreferNoSchedule taints, each with its nodes as a bit set. Used to score nodes."""
        return _classes(self.soft_taints.items(), self.size)

    @cached_property
    def unschedulable(self) -> int:
        """The nodes with spec.unschedulable."""
        return node_sets.from_flags(bytes(self._unschedulable))

    def __len__(self) -> int:
        """The number of nodes."""
        return self.live.bit_count()


def _classes(
    taints_by_slot: Iterable[tuple[int, tuple[Taint, ...] | None]], size: int
) -> tuple[tuple[tuple[Taint, ...], int], ...]:
    classes: dict[tuple[Taint, ...], list[int]] = {}
    for slot, taints in taints_by_slot:
        if taints:
            classes.setdefault(taints, []).append(slot)
    return tuple((taints, node_sets.from_slots(slots, size)) for taints, slots in classes.items())


def _differ(
    before: Sequence[Mapping[str, str] | None],
    after: Sequence[Mapping[str, str] | None],
    slots: Collection[int],
    key: str,
) -> bool:
    """Whether the label's value differs in one of the slots."""
    return any((before[slot] or _NO_LABELS).get(key) != (after[slot] or _NO_LABELS).get(key) for slot in slots)


class Nodes(View["Nodes"]):
    """Queries about the nodes of the cluster.

    Amounts of resources are by node slot. CPU is in milli-CPU, every other resource in whole units. Some slots belong
    to deleted nodes.
    """

    def view(self) -> NodeView:
        """All current nodes, as an immutable value."""
        return self._below.view()

    def get(self, name: str) -> Node | None:
        """The node of this name."""
        return self._below.get(name)

    def short_of(self, amounts: tuple[tuple[str, int], ...]) -> Mapping[str, tuple[int, ...]]:
        """The free amounts of each scarce resource, by node slot.

        A resource is scarce if some node has less free than the requested amount.
        """
        return self._below.short_of(amounts)

    def never_enough(self, resource: str, amount: int) -> tuple[int, ...] | None:
        """The allocatable amounts of a resource by slot. None if every node has at least ``amount``."""
        return self._below.never_enough(resource, amount)

    def amounts(self, resource: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The free and the allocatable amounts of a resource, by slot."""
        return self._below.amounts(resource)
