"""The NodeResourcesFit plugin: rejects nodes with too few free resources.

`core.scheduler.not_evaluated` lists differences from kube-scheduler.

Source: kube-scheduler framework/plugins/noderesources/fit.go.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from webhook.core.api import gates
from webhook.core.api.pod_requests import PodRequest
from webhook.core.api.resources import OF_EVERY_NODE, PODS
from webhook.core.cached_property import cached_property
from webhook.core.index import node_sets
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.scheduler.plugins.status import OK, PluginResult, StatusOfNodes, unresolvable, unschedulable

NODE_RESOURCES_FIT = "NodeResourcesFit"
TOO_MANY_PODS = "Too many pods"


# Reasons, the nodes with exactly these reasons, and the nodes too small even without pods.
_Part = tuple[tuple[str, ...], int, int]


class FreeResources(Struct, frozen=True, dict=True):
    """Free and allocatable amounts of a pod's requested resources.

    Each tuple has one amount per node slot. CPU is in milli-CPU, every other resource in whole units.

    Attributes:
        free: Free amounts by resource. Contains only resources scarce on some node, in the order of kube-scheduler's
            reasons.
        allocatable: Allocatable amounts by resource. Contains only resources scarce on some node even without pods.
        wanted: The pod's request of each resource in ``free``.
    """

    free: Mapping[str, tuple[int, ...]]
    allocatable: Mapping[str, tuple[int, ...]]
    wanted: Mapping[str, int]

    @cached_property
    def short(self) -> tuple[tuple[str, int, int], ...]:
        """For each scarce resource: a reason, the nodes short of it, the too small nodes.

        A node is short of a resource if too little is free, and too small if too little is free even without pods. The
        result is cached. A review needs it several times for a pod, and the computation compares all nodes.
        """
        return tuple(
            (
                TOO_MANY_PODS if name == PODS else f"Insufficient {name}",
                node_sets.below(free, self.wanted[name]),
                node_sets.below(self.allocatable[name], self.wanted[name]) if name in self.allocatable else 0,
            )
            for name, free in self.free.items()
        )


def scarce_amounts(amounts: Sequence[tuple[str, int]], index: ReadOnlyIndex) -> Mapping[str, tuple[int, ...]]:
    """Return the free amounts of each resource scarce on some node, by slot.

    The resources keep the order of ``amounts``. The usual resources (`OF_EVERY_NODE`) share one lookup. Every other
    resource takes a lookup of its own: the pod's author chooses their number, and each lookup may add up all nodes.
    """
    usual, others = list[tuple[str, int]](), list[tuple[str, int]]()
    for amount in amounts:
        (usual if amount[0] in OF_EVERY_NODE else others).append(amount)
    free = index.nodes.short_of(tuple(usual))
    if not others:
        return free
    scarce = {**free}
    for amount in others:
        scarce.update(index.nodes.short_of((amount,)))
    return {name: scarce[name] for name, _ in amounts if name in scarce}


def free_resources(request: PodRequest, index: ReadOnlyIndex) -> FreeResources:
    """Return the amounts of those requested resources that are scarce on some node.

    The result has free and allocatable amounts.

    Source: noderesources/fit.go ``fitsRequest``.
    """
    amounts = dict(((PODS, 1), *request.amounts))
    free = scarce_amounts([(name, amount) for name, amount in amounts.items() if amount > 0], index)
    # Only scarce resources can be too large for a node. Upstream never calls the number of pods unresolvable.
    scarce = free if gates.FIT_IS_UNRESOLVABLE.holds(index.version) else {}
    wanted = {name: index.nodes.never_enough(name, amount) for name, amount in request.amounts if name in scarce}
    return FreeResources(
        free, {name: has for name, has in wanted.items() if has is not None}, {name: amounts[name] for name in free}
    )


def run_node_resources_fit(resources: FreeResources) -> PluginResult:
    """Run NodeResourcesFit. Source: noderesources/fit.go ``fitsRequest``."""

    def reject(candidates: int) -> list[StatusOfNodes]:
        # Nodes that lack the same resources share their reasons. So the set is split per resource, not per node.
        parts: list[_Part] = [((), candidates, 0)]
        for reason, short, never in resources.short:
            parts = _split(parts, reason, short, never)
        failed: list[StatusOfNodes] = []
        for reasons, nodes, never in parts:
            if reasons:
                # A request above the node's capacity is unresolvable, whatever the other reasons are.
                failed += [(unresolvable(*reasons), nodes & never), (unschedulable(*reasons), nodes & ~never)]
        return failed

    return PluginResult(OK, reject)


def _split(parts: Sequence[_Part], reason: str, failing: int, never: int) -> list[_Part]:
    """Add ``reason`` to the nodes in ``failing``.

    Nodes in a part share their reasons. A part is split in two if only some of its nodes fail. Nodes in ``never`` can
    never run the pod.
    """
    divided: list[_Part] = []
    for reasons, nodes, unresolved in parts:
        if nodes & failing:
            divided.append(((*reasons, reason), nodes & failing, unresolved | never))
        if nodes & ~failing:
            divided.append((reasons, nodes & ~failing, unresolved))
    return divided
