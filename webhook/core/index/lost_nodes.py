"""The cluster as it would be after nodes failed, without a change to the index.

unreachable    the nodes are tainted and still there; pods left them, but those of StatefulSets, which nobody replaces
gone           the nodes are deleted, and whatever was on them
"""

from collections.abc import Mapping, Sequence
from typing import cast

from webhook.core.api.selectors import EVERYTHING, Selector
from webhook.core.api.types import Node, Taint
from webhook.core.api.well_known import NO_EXECUTE, NO_SCHEDULE, TAINT_UNREACHABLE
from webhook.core.index.overlay import Overlay
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.index.tables.node_table import NodeView
from webhook.core.index.tables.pod_groups import Counts

UNREACHABLE = tuple(Taint(key=TAINT_UNREACHABLE, effect=effect) for effect in (NO_SCHEDULE, NO_EXECUTE))


def unreachable_nodes(view: NodeView) -> int:
    """The nodes whose kubelet no longer reports. Nobody there completes the deletion of a pod.

    Source: pkg/controller/nodelifecycle node_lifecycle_controller.go ``monitorNodeHealth``.
    """
    return sum(
        members for taints, members in view.taint_classes if any(each.key == TAINT_UNREACHABLE for each in taints)
    )


def without_nodes(index: ReadOnlyIndex, lost: int, *, gone: bool) -> ReadOnlyIndex:
    """The index after these nodes, a set of `node_sets`, became unreachable or were deleted; none of their pods count.

    Shape: of unreachable nodes `runs` still says yes, since a StatefulSet's pod keeps its name there.
    """
    return cast(ReadOnlyIndex, _WithoutNodes(index, lost, gone=gone))


class _WithoutNodes(Overlay):
    """The answers about nodes, and about pods on them."""

    def __init__(self, below: ReadOnlyIndex, lost: int, *, gone: bool) -> None:
        super().__init__(below)
        self._lost, self._gone = lost, gone
        self._view = below.view().losing(lost, None if gone else UNREACHABLE)
        self._names: dict[str, frozenset[str]] = {}

    def view(self) -> NodeView:
        return self._view

    def node(self, name: str) -> Node | None:
        return self._below.node(name) if name in self._view.slots else None

    def count(self, namespace: str, selector: Selector, *, leaving: bool = False) -> Counts:
        return self._kept(self._below.count(namespace, selector, leaving=leaving))

    def runs(self, namespace: str, name: str) -> bool:
        if not self._below.runs(namespace, name):
            return False
        return not self._gone or name not in self._names_lost(namespace)

    def terms_matching(self, namespace: str, labels: Mapping[str, str]) -> Sequence[tuple[str, Counts]]:
        terms = ((key, self._kept(counts)) for key, counts in self._below.terms_matching(namespace, labels))
        return [each for each in terms if each[1]]

    def claim_users(self, namespace: str, name: str) -> Counts:
        return self._kept(self._below.claim_users(namespace, name))

    def _names_lost(self, namespace: str) -> frozenset[str]:
        known = self._names.get(namespace)
        if known is None:
            pods = self._below.pods_matching(namespace, EVERYTHING)
            known = self._names[namespace] = frozenset(name for name, slot in pods if self._lost >> slot & 1)
        return known

    def _kept(self, counts: Counts) -> Counts:
        return {slot: pods for slot, pods in counts.items() if not self._lost >> slot & 1}
