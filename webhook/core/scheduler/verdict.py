"""The scheduler's answer for one pod: a status for each node, and the text of the FailedScheduling event.

Source: kube-scheduler framework/types.go.
"""

from collections.abc import Sequence
from enum import StrEnum

from webhook.core.cached_property import cached_property
from webhook.core.index.nodes import NodeView
from webhook.core.scheduler.plugins.status import ERROR, OK, Status, StatusOfNodes


class Cause(StrEnum):
    """What is in the way of pods that no node admits; each caller says how it tells."""

    SPREAD = "spread"
    CAPACITY = "capacity"
    OTHER = "other"


class Verdict:
    """The scheduler's answer for every node.

    Shape: ``before`` is the result of PreFilter; ``failed`` has disjoint sets of nodes, each with the status that
    rejects them, of which the sentence does not tell of those in ``unsaid``; ``feasible`` pass all filters.
    Source: framework/types.go ``Diagnosis``.
    """

    def __init__(self, nodes: NodeView, pre_filter: Status, failed: Sequence[StatusOfNodes], unsaid: int = 0) -> None:
        self.nodes = nodes
        self.pre_filter = pre_filter
        self.failed = tuple(failed)
        self._unsaid = unsaid
        rejected = 0
        for _, members in failed:
            rejected |= members
        self.feasible = nodes.live & ~rejected

    @cached_property
    def codes(self) -> bytes:
        """A number per slot: 0 feasible, 1 Unschedulable, 2 UnschedulableAndUnresolvable, 3 an error, 4 no node."""
        # One byte per slot. Each set is written as binary digits, and a table turns its ones into the code's number;
        # the sets are disjoint, so the rows can be combined by OR.
        size, sets = self.nodes.size, [0, 0, 0]
        for status, members in self.failed:
            sets[_NUMBERS[status.code] - 1] |= members
        sets.append(((1 << size) - 1) & ~self.nodes.live)
        total = 0
        for number, members in enumerate(sets, start=1):
            if members:
                digits = format(members, f"0{size}b").encode().translate(_TABLES[number])
                total |= int.from_bytes(digits, "little")
        return total.to_bytes(size, "little")[::-1]

    def status(self, name: str) -> Status:
        """The status of one node.

        Errors: KeyError for a node that does not exist.
        Source: framework/interface.go ``NodeToStatus``.
        """
        slot = self.nodes.slots[name]
        return next((status for status, members in self.failed if members >> slot & 1), OK)

    @cached_property
    def sentence(self) -> str:
        """The text of the FailedScheduling event, without preemption's part; "" if a node is feasible or after errors.

        Source: framework/types.go ``FitError``, ``Error``.
        """
        total = len(self.nodes)
        # After an error the scheduler reports the error, and counts nothing.
        if self.pre_filter.code == ERROR or any(status.code == ERROR for status, members in self.failed if members):
            return ""
        if not total:
            return "no nodes available to schedule pods"
        if self.feasible:
            return ""
        # Rejected before any node was looked at, so that the reasons have no numbers.
        if self.pre_filter.rejected:
            return f"0/{total} nodes are available: {', '.join(self.pre_filter.reasons)}."
        counts: dict[str, int] = {}
        for status, members in self.failed:
            told = members & ~self._unsaid
            for reason in status.reasons if told else ():
                counts[reason] = counts.get(reason, 0) + told.bit_count()
        # Sorted as text: "10 …" comes before "2 …", as upstream has it.
        said = ", ".join(sorted(f"{n} {reason}" for reason, n in counts.items()))
        return f"0/{total} nodes are available: {said}." if said else f"0/{total} nodes are available:"


# `Verdict.codes`: a set of nodes is printed as 0 and 1, and for each code a table turns the 1 into its number.
_NUMBERS = {"Unschedulable": 1, "UnschedulableAndUnresolvable": 2, ERROR: 3}
_TABLES = tuple(bytes(number if char == ord("1") else 0 for char in range(256)) for number in range(5))
