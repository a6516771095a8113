"""The NodeName plugin: a pod with spec.nodeName fits only this node.

Source: kube-scheduler framework/plugins/nodename/node_name.go.
"""

from webhook.core.api import gates
from webhook.core.api.types import Pod
from webhook.core.api.version import KubernetesVersion
from webhook.core.index.nodes import NodeView
from webhook.core.scheduler.plugins.status import OK, PluginResult, unresolvable

NODE_NAME = "NodeName"

_OTHER_NAME = unresolvable("node(s) didn't match the requested node name")


def run_node_name(pod: Pod, nodes: NodeView, version: KubernetesVersion) -> PluginResult:
    """Run NodeName. Source: node_name.go ``Filter``."""
    name = pod.pod_spec.node_name
    if not name:
        return PluginResult(OK)
    slot = nodes.slots.get(name)
    # Without a node of this name, all nodes are others.
    others = ~(0 if slot is None else 1 << slot)
    # With this gate, PreFilter names the node, and no other filter sees the other nodes.
    allowed = frozenset({name}) if gates.NODE_NAME_BEFORE_FILTERS.holds(version) else None
    return PluginResult(OK, lambda candidates: [(_OTHER_NAME, candidates & others)], allowed)
