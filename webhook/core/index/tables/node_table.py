"""The nodes as columns over slots: values of a label, groups of equal taints, allocatable and free resources.

A slot is a small number that a node keeps while it exists; sets of nodes are integers (`node_sets`). Verdicts read a
`NodeView`, which never changes: after a change of a label or a taint, the next caller gets a new one.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import NamedTuple

from webhook.core.api.quantity import int64
from webhook.core.api.resources import OF_EVERY_NODE, PODS, PodRequest, allocatable_of
from webhook.core.api.types import MAX_INT64, Node, Taint
from webhook.core.api.well_known import FILTERING_EFFECTS, PREFER_NO_SCHEDULE
from webhook.core.cached_property import cached_property
from webhook.core.index import node_sets
from webhook.core.index.tables.label_column import Column
from webhook.core.index.tables.shrinking import drop, drop_under

# Free and allocatable amount in a slot without a node: more than any request, so that it is never short of anything.
NO_NODE = 2**62
# A view with more columns than this inherits none, so that columns nobody asks for any more are dropped.
_MAX_INHERITED_COLUMNS = 64
# What is kept of a view after nodes failed: two for each of the zones that a scan looks at, and some more.
_MOST_AFTER = 32
_NO_LABELS: Mapping[str, str] = {}
# Resources that have a column always; of others, so many that were asked for last. Anybody may ask for more.
_ALWAYS_NAMES = frozenset(OF_EVERY_NODE)
_MAX_COLUMNS = 32  # each has two numbers a node, up to 80 bytes: 0.4 MB with 5,000 nodes
# So many slots may stay unused, or a quarter of all: nodes come and go, and a view of another size inherits nothing.
_SPARE = 64


class NodeRow(NamedTuple):
    """What a `NodeView` says of one node."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    unschedulable: bool
    soft_taints: tuple[Taint, ...] = ()


class NodeView:
    """All nodes at one moment; made of rows by slot, None for an empty slot.

    Shape: ``names``, ``labels`` and ``taints`` are by slot; ``names[slot]`` is "" for an empty slot; ``live`` are
    the nodes that exist, ``keys`` the label keys that any of them has.
    """

    def __init__(self, facts: Sequence["_Facts | NodeRow | None"], live: int, keys: Iterable[str]) -> None:
        self.size = len(facts)
        self.live = live
        self.keys = frozenset(keys)
        self.names = tuple(["" if fact is None else fact.name for fact in facts])
        self.labels = tuple([None if fact is None else fact.labels for fact in facts])
        self._taints = tuple([None if fact is None else fact.taints for fact in facts])
        self._unschedulable = tuple([fact is not None and fact.unschedulable for fact in facts])
        # Most clusters have none: a column would be as long as there are nodes.
        self._soft_taints = {slot: fact.soft_taints for slot, fact in enumerate(facts) if fact and fact.soft_taints}
        self._columns: dict[str, Column] = {}
        self._after: dict[tuple[int, tuple[Taint, ...] | None], NodeView] = {}

    def losing(self, nodes: int, taints: tuple[Taint, ...] | None = None) -> "NodeView":
        """The view after these nodes got more ``taints``, or with None were deleted.

        Shape: kept as long as this one, which never changes: a scan asks about the same zones again and again.
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
        """Reuse what an earlier view has computed, as far as it still holds: a new taint changes no label.

        Shape: ``changed`` are the slots in which the views may differ.
        """
        columns = dict(before._columns)  # noqa: SLF001 of its own class; a copy, since others may add to it now
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
        """The names of these nodes, by slot."""
        return (self.names[slot] for slot in node_sets.to_slots(nodes))

    def rows(self, start: int, stop: int) -> list[NodeRow | None]:
        """The nodes of these slots, as the constructor takes them."""
        columns = self.names, self.labels, self._taints, self._unschedulable
        parts = (column[start:stop] for column in columns)
        return [
            None
            if labels is None
            else NodeRow(name, labels, taints or (), unschedulable, self._soft_taints.get(slot, ()))
            for slot, (name, labels, taints, unschedulable) in enumerate(zip(*parts, strict=True), start)
        ]

    def column(self, key: str) -> Column:
        """The label's column. Columns of labels that no node has are not kept: requests can name any number of them."""
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
        """The different lists of taints that filters ask for, each with its nodes; nodes without any are left out."""
        return _classes(enumerate(self._taints), self.size)

    @cached_property
    def soft_taint_classes(self) -> tuple[tuple[tuple[Taint, ...], int], ...]:
        """The same of taints with the effect PreferNoSchedule, which no filter asks for."""
        return _classes(self._soft_taints.items(), self.size)

    @cached_property
    def unschedulable(self) -> int:
        """The nodes with spec.unschedulable."""
        return node_sets.from_flags(bytes(self._unschedulable))

    def __len__(self) -> int:
        """How many nodes there are."""
        return self.live.bit_count()


def _classes(
    of: Iterable[tuple[int, tuple[Taint, ...] | None]], size: int
) -> tuple[tuple[tuple[Taint, ...], int], ...]:
    classes: dict[tuple[Taint, ...], list[int]] = {}
    for slot, taints in of:
        if taints:
            classes.setdefault(taints, []).append(slot)
    return tuple((taints, node_sets.from_slots(slots, size)) for taints, slots in classes.items())


def _differ(
    before: Sequence[Mapping[str, str] | None],
    after: Sequence[Mapping[str, str] | None],
    slots: Collection[int],
    key: str,
) -> bool:
    """Whether the label has another value in one of the slots."""
    return any((before[slot] or _NO_LABELS).get(key) != (after[slot] or _NO_LABELS).get(key) for slot in slots)


class _Facts:
    __slots__ = ("allocatable", "labels", "name", "soft_taints", "taints", "unschedulable")

    def __init__(self, node: Node) -> None:
        self.name = node.name
        self.labels = node.labels
        # Without the time at which they were added, so that nodes with the same taints are alike.
        taints = [Taint(key=taint.key, value=taint.value, effect=taint.effect) for taint in node.taints]
        self.taints = tuple(taint for taint in taints if taint.effect in FILTERING_EFFECTS)
        self.soft_taints = tuple(taint for taint in taints if taint.effect == PREFER_NO_SCHEDULE)
        self.unschedulable = bool(node.spec and node.spec.unschedulable)
        self.allocatable = allocatable_of(node)

    def same_view(self, other: "_Facts") -> bool:
        """Whether both look the same in a `NodeView`, which has no resources."""
        mine = self.labels, self.taints, self.soft_taints, self.unschedulable
        return mine == (other.labels, other.taints, other.soft_taints, other.unschedulable)


class Nodes:
    """All nodes by slot, with what the pods on each leave free.

    Shape: a slot may hold pods before its node exists and after it is gone. ``allocatable`` and ``free`` are columns,
    of resources that nodes offer; slots without a node are at NO_NODE, less what pods use there. ``free`` may be
    negative. What is not among the columns is added up when somebody asks: whoever may create pods could name any
    number of resources, and a column is as long as the cluster has nodes.
    Unit: cpu in milli-CPU, everything else in whole units.
    """

    def __init__(self) -> None:
        self._slots: dict[str, int] = {}
        self._unused: list[int] = []  # a heap
        self._names: list[str] = []
        self._facts: list[_Facts | None] = []
        self._live = 0
        self._keys: Counter[str] = Counter()  # how many nodes have each label key, never 0
        self._view: NodeView | None = None
        self._last: NodeView | None = None
        self._changed: set[int] = set()  # slots, since the last view
        self._pods: list[int] = []
        self._offers: Counter[str] = Counter()  # how many nodes offer each resource, never 0
        self._held: dict[int, dict[str, int]] = {}  # what pods take of resources that are not in OF_EVERY_NODE, by slot
        self.allocatable: dict[str, list[int]] = {name: [] for name in OF_EVERY_NODE}
        self.free: dict[str, list[int]] = {name: [] for name in OF_EVERY_NODE}
        # A lower bound of the smallest free amount of each resource, exact unless the resource is in `_risen`: most
        # requests fit every node, and comparing with one number shows it.
        self._least: dict[str, int] = dict.fromkeys(self.free, NO_NODE)
        self._risen: set[str] = set()
        self._smallest: dict[str, int] = {}  # the same of allocatable amounts, where it was asked for

    def view(self) -> NodeView:
        """The nodes as they are now."""
        if self._view is None:
            self._view = NodeView(self._facts, self._live, self._keys)
            if self._last is not None:
                self._view.inherit(self._last, self._changed)
            self._last = self._view
            self._changed.clear()
        return self._view

    def names(self) -> tuple[str, ...]:
        """The node name of each slot, including nodes that are gone or not there yet."""
        return tuple(self._names)

    def put(self, node: Node) -> None:
        """Add or replace a node."""
        slot = self.slot(node.name)
        facts, before = _Facts(node), self._facts[slot]
        self._facts[slot] = facts
        # Most updates are a kubelet's heartbeat, after which the view is as it was.
        if before is None or not facts.same_view(before):
            _recount(self._keys, {} if before is None else before.labels, facts.labels)
            self._live |= 1 << slot
            self._view = None
            self._changed.add(slot)
        if before is None or facts.allocatable != before.allocatable:
            self._recount_offers({} if before is None else before.allocatable, facts.allocatable)
            for name in self.allocatable:
                self._give(name, slot, facts.allocatable.get(name, 0))

    def remove(self, name: str) -> None:
        """Remove a node; its slot stays taken until its pods are gone too."""
        slot = self._slots.get(name)
        facts = None if slot is None else self._facts[slot]
        if slot is None or facts is None:
            return
        _recount(self._keys, facts.labels, {})
        self._recount_offers(facts.allocatable, {})
        self._facts[slot] = None
        self._live &= ~(1 << slot)
        self._view = None
        self._changed.add(slot)
        for resource in self.allocatable:
            self._give(resource, slot, NO_NODE)
        self.release(slot)

    def slot(self, name: str) -> int:
        """The slot of the node with that name, which need not exist yet."""
        slot = self._slots.get(name)
        if slot is None:
            slot = self._slots[name] = self._free_slot()
            self._names[slot] = name
        return slot

    def use(self, slot: int, request: PodRequest, sign: int) -> None:
        """Add (1) or take away (-1) one pod with this request."""
        self._pods[slot] += sign
        self._take(PODS, slot, sign)
        for name, amount in request.amounts:
            taken = amount if sign > 0 else -amount
            if name in self.free:
                self._take(name, slot, taken)
            if name not in _ALWAYS_NAMES:
                self._hold(name, slot, taken)

    def short_of(self, name: str, amount: int) -> tuple[int, ...] | None:
        """A copy of the free amounts of a resource by slot; None if every node has this amount free."""
        if not self._has_column(name):
            return _unless_enough(self._added_up(name)[0], amount)
        free = self.free[name]
        if amount > self._least[name] and name in self._risen:
            self._risen.discard(name)
            self._least[name] = min(free, default=NO_NODE)
        return None if amount <= self._least[name] else tuple(free)

    def never_enough(self, name: str, amount: int) -> tuple[int, ...] | None:
        """A copy of the allocatable amounts of a resource by slot; None if every node has this amount."""
        if not self._has_column(name):
            return _unless_enough(self._added_up(name)[1], amount)
        allocatable, smallest = self.allocatable[name], self._smallest.get(name)
        if smallest is None:
            smallest = self._smallest[name] = min(allocatable, default=NO_NODE)
        return None if amount <= smallest else tuple(allocatable)

    def amounts(self, name: str) -> tuple[Sequence[int], Sequence[int]]:
        """The free and the allocatable amounts of a resource, by slot."""
        return (self.free[name], self.allocatable[name]) if self._has_column(name) else self._added_up(name)

    def release(self, slot: int) -> None:
        """Make a slot available again, if its node is gone and no pod is left on it."""
        if self._facts[slot] is None and not self._pods[slot]:
            drop(self._slots, self._names[slot])
            self._names[slot] = ""
            heappush(self._unused, slot)
            if len(self._unused) > max(_SPARE, len(self._names) // 4):
                self._shrink()

    def _has_column(self, name: str) -> bool:
        """Whether the resource has a column, which is made for one that some node offers."""
        if name in self.free:
            return True
        if name not in self._offers:
            return False
        if len(self.free) >= len(OF_EVERY_NODE) + _MAX_COLUMNS:
            self._drop_column(next(islice(self.free, len(OF_EVERY_NODE), None)))
        self.free[name], self.allocatable[name] = self._added_up(name)
        self._least[name] = min(self.free[name])
        return True

    def _drop_column(self, name: str) -> None:
        del self.free[name], self.allocatable[name], self._least[name]
        self._risen.discard(name)
        self._smallest.pop(name, None)

    def _added_up(self, name: str) -> tuple[list[int], list[int]]:
        """The free and the allocatable amounts of a resource that has no column."""
        if name in self._offers:
            allocatable = [NO_NODE if facts is None else facts.allocatable.get(name, 0) for facts in self._facts]
        else:
            allocatable = [NO_NODE if facts is None else 0 for facts in self._facts]
        free = allocatable.copy()
        for slot, held in self._held.items():
            free[slot] = int64(free[slot] - held.get(name, 0))
        return free, allocatable

    def _recount_offers(self, before: Mapping[str, int], after: Mapping[str, int]) -> None:
        _recount(self._offers, before, after)
        for name in [name for name in self.free if name not in OF_EVERY_NODE and name not in self._offers]:
            self._drop_column(name)

    def _hold(self, name: str, slot: int, amount: int) -> None:
        left = self._held.get(slot, {}).get(name, 0) + amount
        if left:
            self._held.setdefault(slot, {})[name] = left
        else:
            drop_under(self._held, slot, name)

    def _take(self, name: str, slot: int, amount: int) -> None:
        free = self.free[name]
        before = free[slot]
        left = before - amount
        if not -MAX_INT64 <= left <= MAX_INT64:
            left = int64(left)  # Source: scheduler framework/types.go ``Resource.Add``, which wraps around
        free[slot] = left
        if left < self._least[name]:
            self._least[name] = left
        elif before == self._least[name]:  # it may have been the only one with so little
            self._risen.add(name)

    def _give(self, name: str, slot: int, amount: int) -> None:
        allocatable = self.allocatable[name]
        self._take(name, slot, allocatable[slot] - amount)
        allocatable[slot] = amount
        self._smallest.pop(name, None)

    def _free_slot(self) -> int:
        """The lowest slot that is unused, so that those at the end can be given back."""
        if self._unused:
            return heappop(self._unused)
        self._facts.append(None)
        self._names.append("")
        self._pods.append(0)
        for table in (self.allocatable, self.free):
            for amounts in table.values():
                amounts.append(NO_NODE)
        self._view = None
        self._changed.add(len(self._facts) - 1)
        return len(self._facts) - 1

    def _shrink(self) -> None:
        """Give back the unused slots at the end."""
        size = len(self._names)
        while size and self._slots.get(self._names[size - 1]) != size - 1:
            size -= 1
        if size == len(self._names):
            return
        del self._facts[size:], self._names[size:]
        for numbers in (self._pods, *self.allocatable.values(), *self.free.values()):
            del numbers[size:]
        self._unused = [slot for slot in self._unused if slot < size]
        heapify(self._unused)
        self._changed = {slot for slot in self._changed if slot < size}
        self._view = None


def _unless_enough(amounts: list[int], wanted: int) -> tuple[int, ...] | None:
    return None if wanted <= min(amounts, default=NO_NODE) else tuple(amounts)


def _recount(counts: Counter[str], before: Mapping[str, object], after: Mapping[str, object]) -> None:
    """Take away one for each key before, and add one for each key after; none stays at 0."""
    counts.update(after.keys())
    for key in before:
        counts[key] -= 1
        if not counts[key]:
            drop(counts, key)
