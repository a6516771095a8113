"""One label key over all nodes: the value of each node, and the nodes of each value."""

from collections.abc import Mapping, Sequence

from webhook.core.cached_property import cached_property
from webhook.core.index import node_sets

# Up to this many values, a column keeps a set of nodes for each. Zones and node pools have few values, hostnames
# thousands. The limit must stay below 256, because a value's number must fit a byte.
_FEW_VALUES = 64
_KEPT_ANSWERS = 16  # sets of eligible nodes whose domains are kept


class Column:
    """One label key over all nodes.

    Attributes:
        key: The label key.
        domain_of: By slot, the index of the node's value in ``values``. -1 for a node without the key.
        values: The different values.
        numbers: The index of each value.
    """

    def __init__(self, labels: Sequence[Mapping[str, str] | None], key: str) -> None:
        numbers: dict[str, int] = {}
        self.key = key
        self.domain_of = [
            numbers.setdefault(has[key], len(numbers)) if has is not None and key in has else -1 for has in labels
        ]
        self.values = tuple(numbers)
        self.numbers: Mapping[str, int] = numbers
        self._domains: dict[int, frozenset[int]] = {}

    @classmethod
    def absent(cls, domain_of: list[int], key: str) -> "Column":
        """The column of a label key that no node has. All such columns share ``domain_of``, which never changes."""
        column = cls((), key)
        column.domain_of = domain_of
        return column

    @cached_property
    def present(self) -> int:
        """The nodes with the key."""
        return node_sets.from_flags(bytes(number >= 0 for number in self.domain_of)) if self.values else 0

    @cached_property
    def one_each(self) -> bool:
        """Whether all nodes have different values, like hostnames."""
        return self.present.bit_count() == len(self.values)

    @cached_property
    def sets(self) -> tuple[int, ...] | None:
        """A set of nodes for each label value, by the value's number. None for too many values."""
        if len(self.values) > _FEW_VALUES:
            return None
        if not self.values:
            return ()
        # One byte per node, 0 for no value. The nodes of a value are this row with all other numbers mapped to 0.
        wide = bytes(number + 1 for number in self.domain_of)
        table = bytearray(256)
        nodes = []
        for number in range(1, len(self.values) + 1):
            table[number] = 1
            nodes.append(node_sets.from_flags(wide.translate(table)))
            table[number] = 0
        return tuple(nodes)

    @cached_property
    def _slots(self) -> tuple[tuple[int, ...], ...]:
        members: list[list[int]] = [[] for _ in self.values]
        for slot, number in enumerate(self.domain_of):
            if number >= 0:
                members[number].append(slot)
        return tuple(map(tuple, members))

    def nodes(self, number: int) -> int:
        """Return the nodes whose label has the value with this number, as a set."""
        if self.sets is not None:
            return self.sets[number]
        nodes = 0
        for slot in self._slots[number]:
            nodes |= 1 << slot
        return nodes

    def nodes_of(self, numbers: Sequence[int]) -> int:
        """Return a bit set of the nodes with one of these label values.

        Args:
            numbers: The numbers of the values in this column.
        """
        if self.sets is not None:
            nodes = 0
            for number in numbers:
                nodes |= self.sets[number]
            return nodes
        slots = [slot for number in numbers for slot in self._slots[number]]
        return node_sets.from_slots(slots, len(self.domain_of))

    def with_value(self, value: str) -> int:
        """The nodes with this value."""
        number = self.numbers.get(value)
        return 0 if number is None else self.nodes(number)

    def domains(self, nodes: int) -> frozenset[int]:
        """The domain numbers of the nodes in this bit set."""
        # Most callers ask for all nodes with the key, which needs no look-up.
        if nodes & self.present == self.present:
            return self._every
        known = self._domains.get(nodes)
        if known is None:
            if len(self._domains) > _KEPT_ANSWERS:
                self._domains.clear()
            if self.sets is not None:
                known = frozenset(number for number, members in enumerate(self.sets) if members & nodes)
            else:
                known = frozenset(map(self.domain_of.__getitem__, node_sets.to_slots(nodes & self.present)))
            self._domains[nodes] = known
        return known

    def domain_count(self, nodes: int) -> int:
        """The number of different values of these nodes."""
        return (nodes & self.present).bit_count() if self.one_each else len(self.domains(nodes))

    @cached_property
    def _every(self) -> frozenset[int]:
        return frozenset(range(len(self.values)))
