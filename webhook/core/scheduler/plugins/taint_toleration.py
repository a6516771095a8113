"""The TaintToleration plugin: rejects nodes with an untolerated taint.

Source: kube-scheduler framework/plugins/tainttoleration/taint_toleration.go.
"""

from webhook.core.api import gates
from webhook.core.api.tolerations import first_untolerated
from webhook.core.api.types import Pod
from webhook.core.api.version import KubernetesVersion
from webhook.core.api.well_known import FILTERING_EFFECTS
from webhook.core.budget import check_time
from webhook.core.index.nodes import NodeView
from webhook.core.scheduler.plugins.status import OK, PluginResult, StatusOfNodes, unresolvable

TAINT_TOLERATION = "TaintToleration"
_UNTOLERATED = unresolvable("node(s) had untolerated taint(s)")


def run_taint_toleration(pod: Pod, nodes: NodeView, tolerated: int, version: KubernetesVersion) -> PluginResult:
    """Run TaintToleration: reject the nodes with a taint untolerated by the pod.

    ``tolerated`` is the bit set of the other nodes.

    Source: taint_toleration.go ``Filter``.
    """
    if gates.SHORT_TAINT_REASON.holds(version):
        return PluginResult(OK, lambda candidates: [(_UNTOLERATED, candidates & ~tolerated)])

    # Older releases name the first taint, so nodes are grouped by their lists of taints.
    def reject(candidates: int) -> list[StatusOfNodes]:
        failed = []
        for taints, members in nodes.taint_classes:
            check_time()
            taint = first_untolerated(taints, pod.pod_spec.tolerations, FILTERING_EFFECTS)
            if taint is not None:
                reason = f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"
                failed.append((unresolvable(reason), candidates & members))
        return failed

    return PluginResult(OK, reject)
