"""TaintToleration: nodes with a taint that the pod does not tolerate.

Source: kube-scheduler framework/plugins/tainttoleration/taint_toleration.go.
"""

from webhook.core.api import gates
from webhook.core.api.selectors import first_untolerated
from webhook.core.api.types import Pod
from webhook.core.api.version import KubernetesVersion
from webhook.core.api.well_known import FILTERING_EFFECTS
from webhook.core.budget import check_time
from webhook.core.index.nodes import NodeView
from webhook.core.scheduler.plugins.status import OK, PluginResult, StatusOfNodes, unresolvable

TAINT_TOLERATION = "TaintToleration"
_UNTOLERATED = unresolvable("node(s) had untolerated taint(s)")


def run_taint_toleration(pod: Pod, nodes: NodeView, tolerated: int, version: KubernetesVersion) -> PluginResult:
    """The result of TaintToleration; ``tolerated`` are the nodes without an untolerated taint.

    Source: taint_toleration.go ``Filter``.
    """
    if gates.SHORT_TAINT_REASON.holds(version):
        return PluginResult(OK, lambda asked: [(_UNTOLERATED, asked & ~tolerated)])

    # Older releases say which taint was first, so nodes are told apart by their lists of taints.
    def decide(asked: int) -> list[StatusOfNodes]:
        failed = []
        for taints, members in nodes.taint_classes:
            check_time()
            taint = first_untolerated(taints, pod.pod_spec.tolerations, FILTERING_EFFECTS)
            if taint is not None:
                reason = f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"
                failed.append((unresolvable(reason), asked & members))
        return failed

    return PluginResult(OK, decide)
