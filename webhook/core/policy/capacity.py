"""Whether nodes can be added to the cluster, and which domains exist even if no node is in them now.

Both are cheap enough for every review: the node table has the set of label keys, and caches columns.
"""

from webhook.core.api.well_known import NODE_POOL, PROVISIONER
from webhook.core.index.nodes import NodeView
from webhook.core.policy.policy import Capacity, Policy

# Labels of the nodes that Karpenter makes; the second until its release 0.32.
KARPENTER_LABELS = frozenset({NODE_POOL, PROVISIONER})
# Labels of nodes in pools that grow by themselves, or at one command: of Karpenter, EKS, GKE and AKS.
POOL_LABELS = KARPENTER_LABELS | {
    *("eks.amazonaws.com/nodegroup", "eks.amazonaws.com/compute-type", "alpha.eksctl.io/nodegroup-name"),
    "cloud.google.com/gke-nodepool",
    *("kubernetes.azure.com/agentpool", "agentpool"),
}


def grows(policy: Policy, nodes: NodeView) -> bool:
    """Whether a pod that fits no present node may fit an added one. AUTO: if any node has the label of a node pool."""
    if policy.capacity == Capacity.AUTO:
        return not POOL_LABELS.isdisjoint(nodes.keys)
    return policy.capacity == Capacity.GROWING


def has_karpenter(nodes: NodeView) -> bool:
    """Whether Karpenter made one of the nodes."""
    return not KARPENTER_LABELS.isdisjoint(nodes.keys)


def domain_count(policy: Policy, view: NodeView, key: str, nodes: int) -> int:
    """How many domains there are: those of the given nodes, and others that the configuration says exist."""
    column = view.column(key)
    others = {name for name in policy.domains.get(key, ()) if not column.with_value(name) & nodes}
    return column.domain_count(nodes) + len(others)
