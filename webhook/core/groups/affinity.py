"""Read and replace the required terms of a pod's affinity."""

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from webhook.core.api.types import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
)

NO_AFFINITY = Affinity()
NO_TERM = NodeSelectorTerm()
_NO_NODES = NodeAffinity()
_NO_PODS = PodAffinity()


def node_terms(affinity: Affinity | None) -> tuple[NodeSelectorTerm, ...]:
    """The required node affinity terms. They are alternatives."""
    nodes = affinity.node_affinity if affinity is not None else None
    return (nodes.required.node_selector_terms if nodes is not None and nodes.required is not None else None) or ()


def with_node_terms(affinity: Affinity, terms: Iterable[NodeSelectorTerm]) -> Affinity:
    """Replace the required node affinity terms."""
    given = tuple(terms)
    required = NodeSelector(node_selector_terms=given) if given else None
    nodes = replace(affinity.node_affinity or _NO_NODES, required=required)
    return replace(affinity, node_affinity=None if nodes == _NO_NODES else nodes)


def apart_terms(affinity: Affinity | None) -> tuple[PodAffinityTerm, ...]:
    """The required anti-affinity terms."""
    apart = affinity.pod_anti_affinity if affinity is not None else None
    return (apart.required if apart is not None else None) or ()


def with_apart_terms(affinity: Affinity, terms: Iterable[PodAffinityTerm]) -> Affinity:
    """Replace the required anti-affinity terms."""
    apart = replace(affinity.pod_anti_affinity or _NO_PODS, required=tuple(terms) or None)
    return replace(affinity, pod_anti_affinity=None if apart == _NO_PODS else apart)


def without_requirements(
    term: NodeSelectorTerm, is_removed: Callable[[NodeSelectorRequirement], bool]
) -> NodeSelectorTerm:
    """Return the term without the requirements for which ``is_removed`` is true."""
    kept = tuple(requirement for requirement in term.match_expressions or () if not is_removed(requirement))
    return replace(term, match_expressions=kept or None)
