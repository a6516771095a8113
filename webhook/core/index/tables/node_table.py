"""The table of nodes and their free resources. A node's slot is its index in the lists of the table."""

from collections import Counter
from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from itertools import islice

from webhook.core.api.pod_requests import PodRequest
from webhook.core.api.quantity import int64
from webhook.core.api.resources import OF_EVERY_NODE, PODS, allocatable_of
from webhook.core.api.types import MAX_INT64, Node, Taint
from webhook.core.api.well_known import FILTERING_EFFECTS, PREFER_NO_SCHEDULE
from webhook.core.budget import check_time
from webhook.core.index.nodes import NO_NODE, NodeRow, Nodes, NodeView
from webhook.core.index.tables.shrinking import drop, drop_under

# Resources that always have a column. Others get one on request, up to a limit, since users can name any resource.
_ALWAYS_NAMES = frozenset(OF_EVERY_NODE)
_MAX_COLUMNS = 32  # Each has two numbers per node, up to 80 bytes: 0.4 MB with 5,000 nodes.
# In slots. This many, or a quarter of all, can stay unused. A view of another size inherits no columns.
_SPARE = 64


def _row_of(node: Node) -> NodeRow:
    # Without timeAdded, so nodes with the same taints are equal.
    taints = [Taint(key=taint.key, value=taint.value, effect=taint.effect) for taint in node.taints]
    hard = tuple([taint for taint in taints if taint.effect in FILTERING_EFFECTS])
    soft = tuple([taint for taint in taints if taint.effect == PREFER_NO_SCHEDULE])
    return NodeRow(node.name, node.labels, hard, bool(node.spec and node.spec.unschedulable), soft)


class NodeTable(Nodes):
    """All nodes by slot, with their free resources.

    A slot can hold pods before its node exists and after its deletion. A resource without a column is added up on
    demand. A pod can name any number of resources, and a column needs one number per node.

    Attributes:
        allocatable: The columns of offered resources, in milli-CPU and whole units. NO_NODE for slots without a node.
        free: The allocatable amount minus the pods' requests. It can be negative.
    """

    def __init__(self) -> None:
        self._slots: dict[str, int] = {}
        self._unused: list[int] = []  # a heap
        self._names: list[str] = []
        self._nodes: dict[str, Node] = {}
        self._rows: list[NodeRow | None] = []
        self._offered: list[Mapping[str, int]] = []  # the allocatable resources, by slot
        self._live = 0
        self._keys: Counter[str] = Counter()  # the number of nodes with each label key, never 0
        self._view: NodeView | None = None
        self._last: NodeView | None = None
        self._changed: set[int] = set()  # the slots changed since the last view
        self._pods: list[int] = []
        self._offers: Counter[str] = Counter()  # the number of nodes with each resource, never 0
        self._held: dict[int, dict[str, int]] = {}  # the pods' requests of resources not in OF_EVERY_NODE, by slot
        self.allocatable: dict[str, list[int]] = {name: [] for name in OF_EVERY_NODE}
        self.free: dict[str, list[int]] = {name: [] for name in OF_EVERY_NODE}
        # A lower bound of each resource's smallest free amount. It is exact unless the resource is in `_risen`. Most
        # requests fit every node, which a comparison with this number proves.
        self._least: dict[str, int] = dict.fromkeys(self.free, NO_NODE)
        self._risen: set[str] = set()
        self._smallest: dict[str, int] = {}  # the smallest allocatable amounts, computed on demand

    def all(self) -> tuple[Node, ...]:
        """All nodes, even if cordoned or unready."""
        return tuple(self._nodes.values())

    def is_empty(self) -> bool:
        """Whether no node is known."""
        return not self._nodes

    def get(self, name: str) -> Node | None:
        check_time()
        return self._nodes.get(name)

    def view(self) -> NodeView:
        check_time()
        if self._view is None:
            self._view = NodeView(self._rows, self._live, self._keys)
            if self._last is not None:
                self._view.inherit(self._last, self._changed)
            self._last = self._view
            self._changed.clear()
        return self._view

    def names(self) -> tuple[str, ...]:
        """The node name of each slot, including deleted and future nodes."""
        return tuple(self._names)

    def put(self, node: Node) -> None:
        """Add or replace a node."""
        self._nodes[node.name] = node
        slot = self.slot(node.name)
        row, before = _row_of(node), self._rows[slot]
        # Most updates are heartbeats of a kubelet, which do not change the view.
        if row != before:
            self._rows[slot] = row
            _recount(self._keys, {} if before is None else before.labels, row.labels)
            self._live |= 1 << slot
            self._view = None
            self._changed.add(slot)
        offered = allocatable_of(node)
        if before is None or offered != self._offered[slot]:
            self._recount_offers(self._offered[slot], offered)
            self._offered[slot] = offered
            for name in self.allocatable:
                self._give(name, slot, offered.get(name, 0))

    def remove(self, node: Node) -> None:
        """Remove the node of this name. Its slot stays taken until its pods are gone too."""
        drop(self._nodes, node.name)
        slot = self._slots.get(node.name)
        row = None if slot is None else self._rows[slot]
        if slot is None or row is None:
            return
        _recount(self._keys, row.labels, {})
        self._recount_offers(self._offered[slot], {})
        self._rows[slot], self._offered[slot] = None, {}
        self._live &= ~(1 << slot)
        self._view = None
        self._changed.add(slot)
        for resource in self.allocatable:
            self._give(resource, slot, NO_NODE)
        self.release(slot)

    def slot(self, name: str) -> int:
        """The slot of the node with this name. The node may not exist yet."""
        slot = self._slots.get(name)
        if slot is None:
            slot = self._slots[name] = self._free_slot()
            self._names[slot] = name
        return slot

    def use(self, slot: int, request: PodRequest, sign: int) -> None:
        """Add the resources of a pod to the node in this slot (``sign`` 1) or remove them (-1)."""
        self._pods[slot] += sign
        self._take(PODS, slot, sign)
        for name, amount in request.amounts:
            taken = amount if sign > 0 else -amount
            if name in self.free:
                self._take(name, slot, taken)
            if name not in _ALWAYS_NAMES:
                self._hold(name, slot, taken)

    def short_of(self, amounts: tuple[tuple[str, int], ...]) -> Mapping[str, tuple[int, ...]]:
        return {name: free for name, amount in amounts if (free := self._short_of(name, amount)) is not None}

    def _short_of(self, name: str, amount: int) -> tuple[int, ...] | None:
        if not self._has_column(name):
            return _unless_enough(self._added_up(name)[0], amount)
        free = self.free[name]
        if amount > self._least[name] and name in self._risen:
            self._risen.discard(name)
            self._least[name] = min(free, default=NO_NODE)
        return None if amount <= self._least[name] else tuple(free)

    def never_enough(self, resource: str, amount: int) -> tuple[int, ...] | None:
        if not self._has_column(resource):
            return _unless_enough(self._added_up(resource)[1], amount)
        allocatable, smallest = self.allocatable[resource], self._smallest.get(resource)
        if smallest is None:
            smallest = self._smallest[resource] = min(allocatable, default=NO_NODE)
        return None if amount <= smallest else tuple(allocatable)

    def amounts(self, resource: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        check_time()
        if not self._has_column(resource):
            free, allocatable = self._added_up(resource)
            return tuple(free), tuple(allocatable)
        return tuple(self.free[resource]), tuple(self.allocatable[resource])

    def release(self, slot: int) -> None:
        """Free a row of the table for another node.

        ``slot`` is the row's number. A row with a node or with pods is kept.
        """
        if self._rows[slot] is None and not self._pods[slot]:
            drop(self._slots, self._names[slot])
            self._names[slot] = ""
            heappush(self._unused, slot)
            if len(self._unused) > max(_SPARE, len(self._names) // 4):
                self._shrink()

    def _has_column(self, name: str) -> bool:
        """Whether the table has a column for the resource.

        If some node offers the resource, creates a missing column.
        """
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
        """Add up the free and the allocatable amounts of a resource without a precomputed column."""
        if name in self._offers:
            nodes = zip(self._rows, self._offered, strict=True)
            allocatable = [NO_NODE if row is None else offered.get(name, 0) for row, offered in nodes]
        else:
            allocatable = [NO_NODE if row is None else 0 for row in self._rows]
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
            left = int64(left)  # Wraps around. Source: scheduler framework/types.go ``Resource.Add``
        free[slot] = left
        if left < self._least[name]:
            self._least[name] = left
        elif before == self._least[name]:  # This slot may have been the only one with the smallest amount.
            self._risen.add(name)

    def _give(self, name: str, slot: int, amount: int) -> None:
        allocatable = self.allocatable[name]
        self._take(name, slot, allocatable[slot] - amount)
        allocatable[slot] = amount
        self._smallest.pop(name, None)

    def _free_slot(self) -> int:
        """The lowest unused slot, so slots at the end can be released."""
        if self._unused:
            return heappop(self._unused)
        self._rows.append(None)
        self._offered.append({})
        self._names.append("")
        self._pods.append(0)
        for table in (self.allocatable, self.free):
            for amounts in table.values():
                amounts.append(NO_NODE)
        self._view = None
        self._changed.add(len(self._rows) - 1)
        return len(self._rows) - 1

    def _shrink(self) -> None:
        """Release the unused slots at the end."""
        size = len(self._names)
        while size and self._slots.get(self._names[size - 1]) != size - 1:
            size -= 1
        if size == len(self._names):
            return
        del self._rows[size:], self._offered[size:], self._names[size:]
        for numbers in (self._pods, *self.allocatable.values(), *self.free.values()):
            del numbers[size:]
        self._unused = [slot for slot in self._unused if slot < size]
        heapify(self._unused)
        self._changed = {slot for slot in self._changed if slot < size}
        self._view = None


def _unless_enough(amounts: list[int], wanted: int) -> tuple[int, ...] | None:
    return None if wanted <= min(amounts, default=NO_NODE) else tuple(amounts)


def _recount(counts: Counter[str], before: Mapping[str, object], after: Mapping[str, object]) -> None:
    """Subtract one for each key before, and add one for each key after. Drop keys at 0."""
    counts.update(after.keys())
    for key in before:
        counts[key] -= 1
        if not counts[key]:
            drop(counts, key)
