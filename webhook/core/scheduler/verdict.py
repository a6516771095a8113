"""kube-scheduler's verdict: each node's status, and the FailedScheduling message.

Source: kube-scheduler framework/types.go.
"""

from collections.abc import Sequence
from enum import StrEnum

from webhook.core.cached_property import cached_property
from webhook.core.index.nodes import NodeView
from webhook.core.scheduler.plugins.status import OK, Code, Status, StatusOfNodes


class Cause(StrEnum):
    """The main reason for unschedulable pods.

    SPREAD if they fit without hard constraints. Else CAPACITY if they fit without limits of resources, host ports and
    volumes. Else OTHER.
    """

    SPREAD = "spread"
    CAPACITY = "capacity"
    OTHER = "other"


class Verdict:
    """The status of every node for a pod.

    Attributes:
        pre_filter: The result of PreFilter.
        failed: Disjoint sets of nodes, each with the rejecting status.
        feasible: The nodes that pass all filters.

    Source: framework/types.go ``Diagnosis``.
    """

    def __init__(self, nodes: NodeView, pre_filter: Status, failed: Sequence[StatusOfNodes], unnamed: int = 0) -> None:
        self.nodes = nodes
        self.pre_filter = pre_filter
        self.failed = tuple(failed)
        self._unnamed = unnamed
        rejected = 0
        for _, members in failed:
            rejected |= members
        self.feasible = nodes.live & ~rejected

    def status(self, name: str) -> Status:
        """Return the status of a node.

        Raises:
            KeyError: The node is unknown.

        Source: framework/interface.go ``NodeToStatus``.
        """
        slot = self.nodes.slots[name]
        return next((status for status, members in self.failed if members >> slot & 1), OK)

    @cached_property
    def sentence(self) -> str:
        """The FailedScheduling message without the part about preemption. Empty with a feasible node or an error.

        Source: framework/types.go ``FitError``, ``Error``.
        """
        total = len(self.nodes)
        # After an error the scheduler reports only the error.
        if self.pre_filter.code == Code.ERROR or any(
            status.code == Code.ERROR for status, members in self.failed if members
        ):
            return ""
        if not total:
            return "no nodes available to schedule pods"
        if self.feasible:
            return ""
        # A rejection before any node has reasons without numbers.
        if self.pre_filter.rejected:
            return f"0/{total} nodes are available: {', '.join(self.pre_filter.reasons)}."
        counts: dict[str, int] = {}
        for status, members in self.failed:
            named = members & ~self._unnamed
            for reason in status.reasons if named else ():
                counts[reason] = counts.get(reason, 0) + named.bit_count()
        # Sorted as text like upstream: "10 …" comes before "2 …".
        reasons = ", ".join(sorted(f"{n} {reason}" for reason, n in counts.items()))
        return f"0/{total} nodes are available: {reasons}." if reasons else f"0/{total} nodes are available:"
