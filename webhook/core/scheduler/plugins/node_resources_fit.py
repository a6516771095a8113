"""NodeResourcesFit: nodes with less than the pod requests.

Known differences from kube-scheduler are in `core.scheduler.problem.NOT_EVALUATED`.

Source: kube-scheduler framework/plugins/noderesources/fit.go.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from webhook.core.api.resources import PODS, PodRequest
from webhook.core.index import node_sets
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.scheduler.plugins.status import OK, Ran, StatusOfNodes, unresolvable, unschedulable

NODE_RESOURCES_FIT = "NodeResourcesFit"
TOO_MANY_PODS = "Too many pods"


# Reasons, the nodes with exactly these reasons, and the nodes that could never have enough even without pods.
_Part = tuple[tuple[str, ...], int, int]


class Room(Struct, frozen=True):
    """Free and allocatable amounts of the resources that a pod requests.

    Shape: by slot. ``free`` has only resources that are short on some node, in the order of reasons; ``allocatable``
    only those of which some node could never have enough.
    Unit: cpu in milli-CPU, everything else in whole units.
    """

    free: Mapping[str, tuple[int, ...]]
    allocatable: Mapping[str, tuple[int, ...]]


def room_for(request: PodRequest, index: ReadOnlyIndex) -> Room:
    """Copy the amounts that decide about this request: of resources that every node has enough of, none.

    Source: noderesources/fit.go ``fitsRequest``.
    """
    free = {}
    for name, amount in ((PODS, 1), *request.amounts):
        short = index.short_of(name, amount) if amount > 0 else None
        if short is not None:
            free[name] = short
    # Only for what is short somewhere does it matter whether the node could ever have enough. The number of pods is
    # left out: upstream never calls it unresolvable.
    wanted = {name: index.never_enough(name, amount) for name, amount in request.amounts if name in free}
    return Room(free, {name: has for name, has in wanted.items() if has is not None})


def run_node_resources_fit(request: PodRequest, room: Room) -> Ran:
    """The result of NodeResourcesFit. Source: noderesources/fit.go ``fitsRequest``."""

    def decide(asked: int) -> list[StatusOfNodes]:
        # Nodes that lack the same resources share their reasons, so sets are divided once for each resource, instead of
        # collecting reasons node by node.
        parts: list[_Part] = [((), asked, 0)]
        for name, amount in ((PODS, 1), *request.amounts):
            if name in room.free:
                short = node_sets.below(room.free[name], amount)
                never = node_sets.below(room.allocatable[name], amount) if name in room.allocatable else 0
                parts = _split(parts, TOO_MANY_PODS if name == PODS else f"Insufficient {name}", short, never)
        failed: list[StatusOfNodes] = []
        for reasons, nodes, never in parts:
            if reasons:
                # Where one resource is more than the node has when empty, no preemption helps, whatever the others say.
                failed += [(unresolvable(*reasons), nodes & never), (unschedulable(*reasons), nodes & ~never)]
        return failed

    return Ran(OK, decide)


def _split(parts: Sequence[_Part], reason: str, failing: int, never: int) -> list[_Part]:
    """Divide each part into the nodes that fail for one more reason, and the others."""
    divided: list[_Part] = []
    for reasons, nodes, unresolved in parts:
        if nodes & failing:
            divided.append(((*reasons, reason), nodes & failing, unresolved | never))
        if nodes & ~failing:
            divided.append((reasons, nodes & ~failing, unresolved))
    return divided
