"""NodeResourcesFit: nodes with less than the pod requests.

Known differences from kube-scheduler are in `core.scheduler.problem.NOT_EVALUATED`.

Source: kube-scheduler framework/plugins/noderesources/fit.go.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from webhook.core.api import gates
from webhook.core.api.resources import OF_EVERY_NODE, PODS, PodRequest
from webhook.core.cached_property import cached_property
from webhook.core.index import node_sets
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.scheduler.plugins.status import OK, PluginResult, StatusOfNodes, unresolvable, unschedulable

NODE_RESOURCES_FIT = "NodeResourcesFit"
TOO_MANY_PODS = "Too many pods"


# Reasons, the nodes with exactly these reasons, and the nodes that could never have enough even without pods.
_Part = tuple[tuple[str, ...], int, int]


class FreeResources(Struct, frozen=True, dict=True):
    """Free and allocatable amounts of the resources that a pod requests.

    Shape: ``free`` and ``allocatable`` are by slot. ``free`` has only resources that are short on some node, in the
    order of reasons, and ``wanted`` what the pod requests of them; ``allocatable`` only those of which some node could
    never have enough.
    Unit: cpu in milli-CPU, everything else in whole units.
    """

    free: Mapping[str, tuple[int, ...]]
    allocatable: Mapping[str, tuple[int, ...]]
    wanted: Mapping[str, int]

    @cached_property
    def short(self) -> tuple[tuple[str, int, int], ...]:
        """For each resource upstream's reason, the nodes with too little of it, and those that never have enough.

        Computed once: a review asks several times about the same pod, and 5,000 nodes are compared for each.
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
    """The free amounts by slot of those resources of which some node has less, in the same order.

    What every node has is one question. Any other may have to be added up over all nodes while the index is held, and
    whoever writes the pod chooses how many there are: each is a question by itself.
    """
    usual, others = list[tuple[str, int]](), list[tuple[str, int]]()
    for each in amounts:
        (usual if each[0] in OF_EVERY_NODE else others).append(each)
    free = index.nodes.short_of(tuple(usual))
    if not others:
        return free
    found = {**free}
    for each in others:
        found.update(index.nodes.short_of((each,)))
    return {name: found[name] for name, _ in amounts if name in found}


def free_resources(request: PodRequest, index: ReadOnlyIndex) -> FreeResources:
    """Copy the amounts that decide about this request: of resources that every node has enough of, none.

    Source: noderesources/fit.go ``fitsRequest``.
    """
    amounts = dict(((PODS, 1), *request.amounts))
    free = scarce_amounts([(name, amount) for name, amount in amounts.items() if amount > 0], index)
    # Only for what is short somewhere does it matter whether the node could ever have enough. The number of pods is
    # left out: upstream never calls it unresolvable.
    told = gates.FIT_IS_UNRESOLVABLE.holds(index.version)
    wanted = {name: index.nodes.never_enough(name, amount) for name, amount in request.amounts if told and name in free}
    return FreeResources(
        free, {name: has for name, has in wanted.items() if has is not None}, {name: amounts[name] for name in free}
    )


def run_node_resources_fit(resources: FreeResources) -> PluginResult:
    """The result of NodeResourcesFit. Source: noderesources/fit.go ``fitsRequest``."""

    def decide(asked: int) -> list[StatusOfNodes]:
        # Nodes that lack the same resources share their reasons, so sets are divided once for each resource, instead of
        # collecting reasons node by node.
        parts: list[_Part] = [((), asked, 0)]
        for reason, short, never in resources.short:
            parts = _split(parts, reason, short, never)
        failed: list[StatusOfNodes] = []
        for reasons, nodes, never in parts:
            if reasons:
                # Where one resource is more than the node has when empty, no preemption helps, whatever the others say.
                failed += [(unresolvable(*reasons), nodes & never), (unschedulable(*reasons), nodes & ~never)]
        return failed

    return PluginResult(OK, decide)


def _split(parts: Sequence[_Part], reason: str, failing: int, never: int) -> list[_Part]:
    """Divide each part into the nodes that fail for one more reason, and the others."""
    divided: list[_Part] = []
    for reasons, nodes, unresolved in parts:
        if nodes & failing:
            divided.append(((*reasons, reason), nodes & failing, unresolved | never))
        if nodes & ~failing:
            divided.append((reasons, nodes & ~failing, unresolved))
    return divided
