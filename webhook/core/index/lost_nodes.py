"""Views of the cluster after nodes fail or pods terminate. The index itself does not change.

unreachable    the nodes are tainted but still exist; their pods are gone, except unreplaced pods of StatefulSets
gone           the nodes are deleted with their pods
terminated     terminating pods are gone, except those on unreachable nodes
"""

from collections.abc import Mapping, Sequence

from webhook.core.api.selectors import Selector
from webhook.core.api.types import Node, Taint
from webhook.core.api.well_known import NO_EXECUTE, NO_SCHEDULE, TAINT_UNREACHABLE
from webhook.core.index.nodes import Nodes, NodeView
from webhook.core.index.overlay import without_named
from webhook.core.index.pods import Counts, PodOnNode, Pods
from webhook.core.index.read_only import ReadOnlyIndex

UNREACHABLE = tuple(Taint(key=TAINT_UNREACHABLE, effect=effect) for effect in (NO_SCHEDULE, NO_EXECUTE))


def unreachable_nodes(view: NodeView) -> int:
    """The nodes whose kubelet no longer reports, so their terminating pods stay.

    Source: pkg/controller/nodelifecycle node_lifecycle_controller.go ``monitorNodeHealth``.
    """
    return sum(
        members for taints, members in view.taint_classes if any(taint.key == TAINT_UNREACHABLE for taint in taints)
    )


def without_nodes(index: ReadOnlyIndex, lost: int, *, gone: bool) -> ReadOnlyIndex:
    """The index after these nodes became unreachable or were deleted. Their pods do not count.

    `Pods.on_node` still returns pods of unreachable nodes, since a StatefulSet's pod keeps its name there.

    Args:
        index: The cluster.
        lost: The nodes, as a set of `node_sets`.
        gone: Whether the nodes are deleted.
    """
    view = index.nodes.view().losing(lost, None if gone else UNREACHABLE)
    pods = _PodsElsewhere(index.pods, lost, gone=gone)
    return ReadOnlyIndex(index, nodes=_RemainingNodes(index.nodes, view), pods=pods)


def keeps_name(index: ReadOnlyIndex, namespace: str, name: str) -> bool:
    """Whether a pod still occupies its name.

    If so, its StatefulSet cannot create a replacement. A terminating pod frees its name when its kubelet completes the
    deletion. A kubelet on an unreachable node cannot.

    Source: statefulset/stateful_set_control.go ``processReplica``.
    """
    pod = index.pods.on_node(namespace, name)
    return pod is not None and not (pod.terminates and _goes(pod, unreachable_nodes(index.nodes.view())))


def terminated(index: ReadOnlyIndex, namespace: str, own: Selector) -> ReadOnlyIndex:
    """The index after kubelets completed the deletion of the terminating pods selected by ``own``."""
    if index.pods.count(namespace, own, terminating=True) == index.pods.count(namespace, own):
        return index
    stays = unreachable_nodes(index.nodes.view())
    pods = ((name, index.pods.on_node(namespace, name)) for name, _ in index.pods.matching(namespace, own))
    gone = {name: pod for name, pod in pods if pod is not None and pod.terminates and _goes(pod, stays)}
    return without_named(index, namespace, gone) if gone else index


def _goes(pod: PodOnNode, unreachable: int) -> bool:
    return not unreachable >> pod.slot & 1


class _RemainingNodes(Nodes):
    def __init__(self, below: Nodes, view: NodeView) -> None:
        super().__init__(below)
        self._view = view

    def view(self) -> NodeView:
        return self._view

    def get(self, name: str) -> Node | None:
        return self._below.get(name) if name in self._view.slots else None


class _PodsElsewhere(Pods):
    def __init__(self, below: Pods, lost: int, *, gone: bool) -> None:
        super().__init__(below)
        self._lost, self._gone = lost, gone

    def count(self, namespace: str, selector: Selector, *, terminating: bool = False) -> Counts:
        return self._kept(self._below.count(namespace, selector, terminating=terminating))

    def on_node(self, namespace: str, name: str) -> PodOnNode | None:
        pod = self._below.on_node(namespace, name)
        return None if pod is not None and self._gone and self._lost >> pod.slot & 1 else pod

    def terms_matching(self, namespace: str, labels: Mapping[str, str]) -> Sequence[tuple[str, Counts]]:
        terms = ((key, self._kept(counts)) for key, counts in self._below.terms_matching(namespace, labels))
        return [term for term in terms if term[1]]

    def claim_users(self, namespace: str, name: str) -> Counts:
        return self._kept(self._below.claim_users(namespace, name))

    def _kept(self, counts: Counts) -> Counts:
        return {slot: pods for slot, pods in counts.items() if not self._lost >> slot & 1}
