"""The NodeAffinity plugin: nodeSelector and required node affinity.

Source: kube-scheduler framework/plugins/nodeaffinity/node_affinity.go.
"""

from webhook.core.api.node_selectors import RequiredNodes, values_in
from webhook.core.api.types import NodeSelector, Pod
from webhook.core.api.well_known import NODE_NAME_FIELD
from webhook.core.scheduler.plugins.status import OK, PASSES, PluginResult, unresolvable

NODE_AFFINITY = "NodeAffinity"
_NOT_SELECTED = unresolvable("node(s) didn't match Pod's node affinity/selector")
_NOT_ENFORCED = unresolvable("node(s) didn't match scheduler-enforced node affinity")
_TERMS_CONFLICT = unresolvable("pod affinity terms conflict")


def run_node_affinity(pod: Pod, required: RequiredNodes, usable: int, enforced: int | None = None) -> PluginResult:
    """Run NodeAffinity.

    ``usable`` are the nodes allowed by the pod's node affinity, ``enforced`` those allowed by the scheduler's
    configuration (None without added affinity).

    Source: node_affinity.go ``PreFilter``, ``Filter``.
    """
    spec = pod.pod_spec
    affinity = spec.affinity.node_affinity if spec.affinity else None
    selector = affinity.required if affinity else None
    if selector is None and spec.node_selector is None and enforced is None:
        return PASSES
    # If every term names its nodes, PreFilter leaves only these. The message has one reason for all others.
    names = None if selector is None or not required.terms else _required_names(selector)
    if names is not None and not names:
        return PluginResult(_TERMS_CONFLICT)
    if enforced is None:
        return PluginResult(OK, lambda candidates: [(_NOT_SELECTED, candidates & ~usable)], names)
    return PluginResult(
        OK,
        lambda candidates: [(_NOT_ENFORCED, candidates & ~enforced), (_NOT_SELECTED, candidates & enforced & ~usable)],
        names,
    )


def _required_names(selector: NodeSelector) -> frozenset[str] | None:
    """Return the node names allowed by the terms. None if any name is allowed.

    Source: nodeaffinity/node_affinity.go ``PreFilter``.
    """
    names: frozenset[str] = frozenset()
    for term in selector.node_selector_terms or ():
        named = values_in(term.match_fields, NODE_NAME_FIELD)
        if named is None:
            return None
        names |= named
    return names
