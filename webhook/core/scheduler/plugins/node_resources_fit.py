"""The filters that look at one node at a time: its name, cordon, taints, labels, ports and resources.

Each works on sets of nodes that are alike. Known differences from kube-scheduler are in
`core.scheduler.problem.NOT_EVALUATED`.

Source: kube-scheduler framework/plugins nodename, nodeunschedulable, tainttoleration, nodeaffinity, nodeports,
noderesources/fit.go.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from webhook.core.api import gates
from webhook.core.api.resources import PODS, PodRequest
from webhook.core.api.selectors import IN, RequiredNodes, first_untolerated
from webhook.core.api.types import ANY_ADDRESS, NodeSelector, NodeSelectorTerm, Pod, Taint
from webhook.core.api.version import KubernetesVersion
from webhook.core.api.well_known import FILTERING_EFFECTS, NO_SCHEDULE, NODE_NAME_FIELD, TAINT_UNSCHEDULABLE
from webhook.core.index import node_sets
from webhook.core.index.node_table import NodeView
from webhook.core.index.pod_table import HostPort
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.scheduler.plugins.status import OK, PASSES, Ran, Status, StatusOfNodes, unresolvable, unschedulable

NODE_NAME = "NodeName"
NODE_UNSCHEDULABLE = "NodeUnschedulable"
TAINT_TOLERATION = "TaintToleration"
NODE_AFFINITY = "NodeAffinity"
NODE_PORTS = "NodePorts"
NODE_RESOURCES_FIT = "NodeResourcesFit"

_OTHER_NAME = unresolvable("node(s) didn't match the requested node name")
_CORDONED = unresolvable("node(s) were unschedulable")
_UNTOLERATED = unresolvable("node(s) had untolerated taint(s)")
_NOT_SELECTED = unresolvable("node(s) didn't match Pod's node affinity/selector")
_NOT_ENFORCED = unresolvable("node(s) didn't match scheduler-enforced node affinity")
_TERMS_CONFLICT = unresolvable("pod affinity terms conflict")
_PORTS_TAKEN = unschedulable("node(s) didn't have free ports for the requested pod ports")
TOO_MANY_PODS = "Too many pods"

_CORDON_TAINT = Taint(key=TAINT_UNSCHEDULABLE, effect=NO_SCHEDULE)


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


def run_node_name(pod: Pod, nodes: NodeView, version: KubernetesVersion) -> Ran:
    """The result of NodeName. Source: node_name.go ``Filter``."""
    name = pod.pod_spec.node_name
    if not name:
        return Ran(OK)
    slot = nodes.slots.get(name)
    # If no node has the name, all nodes are others.
    others = ~(0 if slot is None else 1 << slot)
    # In these releases PreFilter names the node, and no other filter sees another.
    allowed = frozenset({name}) if version >= gates.NODE_NAME_BEFORE_FILTERS.since else None
    return Ran(OK, lambda asked: [(_OTHER_NAME, asked & others)], allowed)


def run_node_unschedulable(pod: Pod, nodes: NodeView) -> Ran:
    """The result of NodeUnschedulable. Source: node_unschedulable.go ``Filter``."""
    tolerated = first_untolerated((_CORDON_TAINT,), pod.pod_spec.tolerations, FILTERING_EFFECTS) is None
    return Ran(OK) if tolerated else Ran(OK, lambda asked: [(_CORDONED, asked & nodes.unschedulable)])


def run_taint_toleration(pod: Pod, nodes: NodeView, tolerated: int, version: KubernetesVersion) -> Ran:
    """The result of TaintToleration; ``tolerated`` are the nodes without an untolerated taint.

    Source: taint_toleration.go ``Filter``.
    """
    if version >= gates.SHORT_TAINT_REASON.since:
        return Ran(OK, lambda asked: [(_UNTOLERATED, asked & ~tolerated)])

    # Older releases say which taint was first, so nodes are told apart by their lists of taints.
    def decide(asked: int) -> list[StatusOfNodes]:
        failed = []
        for taints, members in nodes.taint_classes:
            taint = first_untolerated(taints, pod.pod_spec.tolerations, FILTERING_EFFECTS)
            if taint is not None:
                reason = f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"
                failed.append((unresolvable(reason), asked & members))
        return failed

    return Ran(OK, decide)


def run_node_affinity(pod: Pod, required: RequiredNodes, usable: int, enforced: int | None = None) -> Ran:
    """The result of NodeAffinity.

    Shape: ``usable`` are the nodes that the pod's own node affinity allows, ``enforced`` those that the scheduler's
    configuration allows, None if it adds no affinity.
    Source: node_affinity.go ``PreFilter``, ``Filter``.
    """
    spec = pod.pod_spec
    affinity = spec.affinity.node_affinity if spec.affinity else None
    selector = affinity.required if affinity else None
    if selector is None and spec.node_selector is None and enforced is None:
        return PASSES
    # If every term names its nodes, PreFilter leaves no others, and the sentence says so of all the rest at once.
    names = None if selector is None or not required.terms else _required_names(selector)
    if names is not None and not names:
        return Ran(_TERMS_CONFLICT)
    if enforced is None:
        return Ran(OK, lambda asked: [(_NOT_SELECTED, asked & ~usable)], names)
    return Ran(
        OK, lambda asked: [(_NOT_ENFORCED, asked & ~enforced), (_NOT_SELECTED, asked & enforced & ~usable)], names
    )


def _required_names(selector: NodeSelector) -> frozenset[str] | None:
    """The node names that the terms allow; None if some term does not restrict the name.

    Source: nodeaffinity/node_affinity.go ``PreFilter``.
    """
    names: frozenset[str] = frozenset()
    for term in selector.node_selector_terms or ():
        named = _names_of_term(term)
        if named is None:
            return None
        names |= named
    return names


def _names_of_term(term: NodeSelectorTerm) -> frozenset[str] | None:
    """Source: nodeaffinity/node_affinity.go ``PreFilter``."""
    named: frozenset[str] | None = None
    for condition in term.match_fields or ():
        if condition.key == NODE_NAME_FIELD and condition.operator == IN:
            values = frozenset(condition.values or ())
            named = values if named is None else named & values
    return named


def run_node_ports(wanted: Sequence[HostPort], taken: Mapping[int, Sequence[HostPort]]) -> Ran:
    """The result of NodePorts.

    Shape: ``taken`` has the host ports in use by slot.
    Source: node_ports.go ``fitsPorts``.
    """
    if not wanted:
        return PASSES
    conflicting = 0
    # ``taken`` has only nodes where some port is in use: most have none.
    for slot, ports in taken.items():
        if any(ports_conflict(one, other) for one in wanted for other in ports):
            conflicting |= 1 << slot
    return Ran(OK, lambda asked: [(_PORTS_TAKEN, asked & conflicting)])


def ports_conflict(one: HostPort, other: HostPort) -> bool:
    """Whether two host ports are the same, on one address or on any.

    Source: kube-scheduler framework/types.go ``CheckConflict``.
    """
    # 0.0.0.0 stands for every address of the node, and so conflicts with each of them.
    return one[1:] == other[1:] and (one[0] == other[0] or ANY_ADDRESS in (one[0], other[0]))


def run_node_resources_fit(request: PodRequest, room: Room) -> Ran:
    """The result of NodeResourcesFit. Source: noderesources/fit.go ``fitsRequest``."""

    def decide(asked: int) -> list[StatusOfNodes]:
        # Nodes that lack the same resources share their reasons, so sets are divided once for each resource, instead of
        # collecting reasons node by node.
        parts: list[_Part] = [((), asked, 0)]
        for name, amount in ((PODS, 1), *request.amounts):
            if name in room.free:
                short = _below(room.free[name], amount)
                never = _below(room.allocatable[name], amount) if name in room.allocatable else 0
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


def _below(amounts: Sequence[int], wanted: int) -> int:
    """The nodes with less than the wanted amount."""
    return node_sets.from_flags(bytes([amount < wanted for amount in amounts]))


def named(status: Status, plugin: str) -> Status:
    """The status with the plugin's name."""
    return Status(status.code, plugin, status.reasons)
