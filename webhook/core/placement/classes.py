"""Classes of equal pods and of equal nodes."""

from msgspec import Struct

from webhook.core.placement.pod_limits import (
    AffinityLimit,
    AntiAffinityLimit,
    NodeLimit,
    Pods,
    SpreadLimit,
    weighted_sum,
)


class PodClass(Struct, frozen=True):
    """A set of equal pods to place.

    Attributes:
        in_turn: Whether the controller creates them one after the other.
        behind: Another class. All its pods need a node before the first pod of this class is created.
        on_nodes: The limits by constraints with one node per domain.
        on_domains: The limits by constraints over larger domains.
        apart: The limits by anti-affinity.
        near: The limit by affinity.
    """

    pods: int
    in_turn: bool = False
    behind: int | None = None
    on_nodes: tuple[SpreadLimit, ...] = ()
    on_domains: tuple[SpreadLimit, ...] = ()
    apart: tuple[AntiAffinityLimit, ...] = ()
    near: AffinityLimit | None = None


class NodeClass(Struct, frozen=True):
    """A set of equal nodes, or a pool of nodes.

    In a pool, only the total number of pods matters, not the number on each node.

    Attributes:
        size: The number of nodes. 1 for a pool.
        open: For each pod class, whether the nodes admit its pods, apart from spread constraints and other pods.
        node_limits: For each pod class, the limits on a node.
        start: For each pod class, the number of deletable pods on a node.
        domains: For each topology key, the number that identifies the nodes' domain. -1 without the label.
        held: For each constraint on nodes, the number of counted pods on a node at the start. None if the constraint
            does not count the node.
        nodes: The nodes as a bit set of slots.
        pooled: Whether the class is a pool.
        packs: Whether a node of the pool admits several pods. Then the number of nodes that admit a pod is unknown.
    """

    size: int
    open: tuple[bool, ...]
    node_limits: tuple[tuple[NodeLimit, ...], ...]
    start: Pods
    domains: tuple[int, ...]
    held: tuple[int | None, ...]
    nodes: int = 0
    pooled: bool = False
    packs: bool = False

    def ways(self, pod_class: int, pods: Pods, nodes: int) -> int:
        """Count the nodes of the class that can admit another pod of ``pod_class``.

        ``nodes`` is the number of nodes where each already has these ``pods``. In a pool, ``pods`` counts all pods in
        the pool, and ``nodes`` is not used.
        """
        if not self.pooled:
            return nodes
        left = [limit.bound + 1 - weighted_sum(limit.weights, pods) for limit in self.node_limits[pod_class]]
        return min((self.nodes.bit_count(), *left))
