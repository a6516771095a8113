"""Pins: required node affinity for the zones of a shard, or for the allowed domains of a group."""

from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from webhook.core.api.types import Affinity, NodeSelectorRequirement, NodeSelectorTerm, Pod
from webhook.core.groups.affinity import NO_AFFINITY, NO_TERM, node_terms, with_node_terms, without_requirements
from webhook.core.groups.group import Fields, Group, with_fields


def pin_requirement(group: Group, zones: Sequence[str]) -> NodeSelectorRequirement | None:
    """Return a requirement for these zones, or else for the group's allowed domains.

    The domains apply if ``zones`` is empty. None if the group has no allowed domains either.
    """
    if zones:
        return NodeSelectorRequirement(key=group.zone_key, operator="In", values=tuple(zones))
    if group.domains is not None:
        return NodeSelectorRequirement(key=group.domains_key, operator="In", values=group.domains)
    return None


def pinned(affinity: Affinity, pin: NodeSelectorRequirement, *, instead: bool = False) -> Affinity:
    """Add the pin to each node affinity term that can match a node.

    With ``instead``, first remove the requirements on the pin's topology key with operator In, and add the pin to every
    term.

    Source: k8s.io/component-helpers scheduling/corev1/nodeaffinity/nodeaffinity.go ``isEmptyNodeSelectorTerm``.
    """
    terms = list[NodeSelectorTerm]()
    for term in node_terms(affinity) or (NodeSelectorTerm(match_expressions=()),):
        bare = without_requirements(term, partial(_is_about, pin.key)) if instead else term
        own = bare.match_expressions or ()
        has_it = sorted_values(pin) in map(sorted_values, own) or (term == NO_TERM and not instead)
        terms.append(bare if has_it else replace(bare, match_expressions=(*own, pin)))
    return with_node_terms(affinity, terms)


def sorted_values(requirement: NodeSelectorRequirement) -> NodeSelectorRequirement:
    """Return the requirement with sorted values, to compare it with another."""
    return replace(requirement, values=tuple(sorted(requirement.values or ())) or None)


def split_pin(group: Group, pod: Pod) -> tuple[Pod, tuple[str, ...]]:
    """Split off the pod's node affinity for the zones of its shard (the pin).

    A pin lists exactly as many zones as the shard has pods, so the shard needs every zone.

    Returns:
        The pod without the pin, and the zones. The unchanged pod and no zones, if it may use more or fewer zones.
    """
    terms = node_terms(pod.pod_spec.affinity)
    pins = {_pinned_zones(group, term) for term in terms}
    zones = next(iter(pins), ())
    if not group.keeps_zones_apart or len(pins) != 1 or not zones:
        return pod, ()
    left = [without_requirements(term, partial(_is_pin, group)) for term in terms]
    if NO_TERM in left:
        if any(term != NO_TERM for term in left):
            return pod, ()  # Terms are alternatives. An empty one would match no node.
        left = []
    affinity = with_node_terms(pod.pod_spec.affinity or NO_AFFINITY, left)
    return with_fields(pod, Fields(pod.pod_spec.constraints, None if affinity == NO_AFFINITY else affinity)), zones


def _is_about(key: str, requirement: NodeSelectorRequirement) -> bool:
    return (requirement.key, requirement.operator) == (key, "In")


def _pinned_zones(group: Group, term: NodeSelectorTerm) -> tuple[str, ...]:
    pins = [requirement.values or () for requirement in term.match_expressions or () if _is_pin(group, requirement)]
    return tuple(sorted(pins[0])) if len(pins) == 1 else ()


def _is_pin(group: Group, requirement: NodeSelectorRequirement) -> bool:
    return _is_about(group.zone_key, requirement) and len(requirement.values or ()) == group.pods_per_shard
