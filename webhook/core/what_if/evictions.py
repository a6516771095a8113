"""Compute the pods deleted or evicted by an event, such as a drain."""

from collections.abc import Iterable, Sequence

from webhook.core.api.tolerations import is_evicted
from webhook.core.api.types import Pod, Taint
from webhook.core.api.well_known import MIRROR_ANNOTATION
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.lost_nodes import unreachable_nodes
from webhook.core.index.owners import controller_kind
from webhook.core.workloads.kinds import traits


def delete_terminating_pods(index: ClusterIndex, pods: Iterable[Pod]) -> list[Pod]:
    """Delete the terminating pods, as kubelets will, and return them.

    Pods on unreachable nodes stay. Static pods stay too, because the kubelet creates the mirror pod again at once.
    """
    view, gone = index.nodes.view(), list[Pod]()
    lost = unreachable_nodes(view)
    for pod in pods:
        slot = view.slots.get(pod.pod_spec.node_name or "")
        if (
            pod.meta.deletion_timestamp is not None
            and not (slot is not None and lost >> slot & 1)
            and MIRROR_ANNOTATION not in (pod.meta.annotations or {})
            and index.pods.on_node(pod.meta.namespace, pod.meta.name) is not None
        ):
            index.change("DELETED", pod)
            gone.append(pod)
    return gone


def is_replaced(pod: Pod) -> bool:
    """Whether the pod's controller creates a replacement once the pod is gone.

    A ReplicaSet and a Job replace a pod as soon as it terminates. A StatefulSet and a DaemonSet wait until it is gone.
    Source: controller/controller_utils.go ``FilterActivePods``; statefulset/stateful_set_control.go ``processReplica``;
    daemon/daemon_controller.go ``podsShouldBeOnNode``.
    """
    kind = traits(controller_kind(pod) or ("", ""))
    return pod.meta.deletion_timestamp is None or kind.ordered or kind.on_every_node


def evictable_pods(pods: Sequence[Pod]) -> list[Pod]:
    """Return the pods except DaemonSet pods and static pods."""
    return [
        pod
        for pod in pods
        if MIRROR_ANNOTATION not in (pod.meta.annotations or {})
        and not traits(controller_kind(pod) or ("", "")).on_every_node
    ]


def intolerant_pods(pods: Sequence[Pod], taint: Taint) -> list[Pod]:
    return [pod for pod in evictable_pods(pods) if is_evicted(pod.pod_spec.tolerations or (), taint)]


def evict(pods: Sequence[Pod], index: ClusterIndex) -> list[Pod]:
    """Delete the pods from the index. Return the deleted pods that their controllers create again.

    DaemonSet pods and static pods are never returned.
    """
    for pod in pods:
        index.change("DELETED", pod)
    return [pod for pod in evictable_pods(pods) if is_replaced(pod)]
