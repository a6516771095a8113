"""Decide whether the cluster can add nodes, and count its domains.

The configuration can list more domains of the cluster. The functions are fast enough for every review, because the node
table caches label keys and their values.
"""

from webhook.core.api.well_known import NODE_POOL, PROVISIONER
from webhook.core.index.nodes import NodeView
from webhook.core.policy.options import Capacity
from webhook.core.policy.policy import Policy

# Labels of Karpenter's nodes. Karpenter used the second label until release 0.32.
_KARPENTER_LABELS = frozenset({NODE_POOL, PROVISIONER})
# Labels of nodes in pools that an autoscaler or one command can grow: Karpenter, EKS, GKE and AKS.
POOL_LABELS = _KARPENTER_LABELS | {
    *("eks.amazonaws.com/nodegroup", "eks.amazonaws.com/compute-type", "alpha.eksctl.io/nodegroup-name"),
    "cloud.google.com/gke-nodepool",
    *("kubernetes.azure.com/agentpool", "agentpool"),
}


def can_add_nodes(policy: Policy, nodes: NodeView) -> bool:
    """Whether new nodes may be added. `Capacity.AUTO` means yes if any node has the label of a node pool."""
    if policy.capacity == Capacity.AUTO:
        return not POOL_LABELS.isdisjoint(nodes.keys)
    return policy.capacity == Capacity.GROWING


def has_karpenter(nodes: NodeView) -> bool:
    """Whether any node is Karpenter's."""
    return not _KARPENTER_LABELS.isdisjoint(nodes.keys)


def domain_count(policy: Policy, view: NodeView, key: str, nodes: int) -> int:
    """Count the domains of ``nodes``, plus the configured domains without a node among ``nodes``."""
    column = view.column(key)
    others = {name for name in policy.domains.get(key, ()) if not column.with_value(name) & nodes}
    return column.domain_count(nodes) + len(others)
