"""The NodeUnschedulable plugin: rejects cordoned nodes.

Source: kube-scheduler framework/plugins/nodeunschedulable/node_unschedulable.go.
"""

from webhook.core.api.tolerations import first_untolerated
from webhook.core.api.types import Pod
from webhook.core.api.well_known import CORDON_TAINT, FILTERING_EFFECTS
from webhook.core.index.nodes import NodeView
from webhook.core.scheduler.plugins.status import OK, PluginResult, unresolvable

NODE_UNSCHEDULABLE = "NodeUnschedulable"
_CORDONED = unresolvable("node(s) were unschedulable")


def run_node_unschedulable(pod: Pod, nodes: NodeView) -> PluginResult:
    """Run NodeUnschedulable. Source: node_unschedulable.go ``Filter``."""
    if not nodes.unschedulable or not first_untolerated((CORDON_TAINT,), pod.pod_spec.tolerations, FILTERING_EFFECTS):
        return PluginResult(OK)
    return PluginResult(OK, lambda candidates: [(_CORDONED, candidates & nodes.unschedulable)])
