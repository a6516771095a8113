"""Find the nodes of a DaemonSet, and build its pod for a node.

Source: pkg/controller/daemon/daemon_controller.go ``NodeShouldRunDaemonPod``; daemon/util/daemonset_util.go
``AddOrUpdateDaemonPodTolerations``, ``ReplaceDaemonSetPodNodeNameNodeAffinity``.
"""

from msgspec.structs import replace

from webhook.core.api.node_selectors import compile_required_nodes
from webhook.core.api.types import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    Toleration,
)
from webhook.core.api.well_known import (
    NO_EXECUTE,
    NO_SCHEDULE,
    NODE_NAME_FIELD,
    TAINT_DISK_PRESSURE,
    TAINT_MEMORY_PRESSURE,
    TAINT_NETWORK_UNAVAILABLE,
    TAINT_NOT_READY,
    TAINT_PID_PRESSURE,
    TAINT_UNREACHABLE,
    TAINT_UNSCHEDULABLE,
)
from webhook.core.index.nodes import NodeView
from webhook.core.scheduler.plugins.node_selection import tolerated_nodes, usable_nodes

_ALWAYS = (
    *((TAINT_NOT_READY, NO_EXECUTE), (TAINT_UNREACHABLE, NO_EXECUTE), (TAINT_DISK_PRESSURE, NO_SCHEDULE)),
    *((TAINT_MEMORY_PRESSURE, NO_SCHEDULE), (TAINT_PID_PRESSURE, NO_SCHEDULE), (TAINT_UNSCHEDULABLE, NO_SCHEDULE)),
)
_IN_HOST_NETWORK = ((TAINT_NETWORK_UNAVAILABLE, NO_SCHEDULE),)


def with_daemon_tolerations(pod: Pod) -> Pod:
    """Add the tolerations of every DaemonSet pod.

    Source: daemon/util/daemonset_util.go ``AddOrUpdateDaemonPodTolerations``.
    """
    spec = pod.pod_spec
    taints = _ALWAYS + (_IN_HOST_NETWORK if spec.host_network else ())
    added = tuple(Toleration(key=key, operator="Exists", effect=effect) for key, effect in taints)
    return replace(pod, spec=replace(spec, tolerations=(*(spec.tolerations or ()), *added)))


def wanted_nodes(pod: Pod, view: NodeView) -> int:
    """The nodes meant to run the DaemonSet's pod. ``pod`` needs the tolerations of `with_daemon_tolerations`.

    Source: daemon/daemon_controller.go ``NodeShouldRunDaemonPod``, ``predicates``.
    """
    spec = pod.pod_spec
    nodes = usable_nodes(view, compile_required_nodes(spec.node_selector, spec.affinity))
    if spec.node_name:
        nodes &= sum(1 << slot for slot in [view.slots.get(spec.node_name)] if slot is not None)
    return nodes & tolerated_nodes(view, spec.tolerations)


def pod_for_node(pod: Pod, node: str) -> Pod:
    """Build the pod for a node. The node's name replaces the required node affinity.

    Source: daemon/util/daemonset_util.go ``ReplaceDaemonSetPodNodeNameNodeAffinity``.
    """
    affinity = pod.pod_spec.affinity or Affinity()
    field = NodeSelectorRequirement(key=NODE_NAME_FIELD, operator="In", values=(node,))
    required = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(field,)),))
    pinned = replace(affinity, node_affinity=replace(affinity.node_affinity or NodeAffinity(), required=required))
    return replace(pod, spec=replace(pod.pod_spec, affinity=pinned))


def target_node(pod: Pod) -> str | None:
    """The intended node of a DaemonSet's pod. None if its affinity names no node.

    Source: daemon/util/daemonset_util.go ``GetTargetNodeName``.
    """
    for term in pod.pod_spec.node_terms or ():
        for field in term.match_fields or ():
            if (field.key, field.operator) == (NODE_NAME_FIELD, "In") and field.values:
                return field.values[0]
    return None
