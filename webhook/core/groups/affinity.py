"""Edits of a pod's affinity: the nodes that it requires, and the pods that it keeps apart from."""

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
    """The required terms about nodes, which are alternatives."""
    nodes = affinity.node_affinity if affinity is not None else None
    return (nodes.required.node_selector_terms if nodes is not None and nodes.required is not None else None) or ()


def with_node_terms(affinity: Affinity, terms: Iterable[NodeSelectorTerm]) -> Affinity:
    """The affinity with these terms about nodes instead of its own."""
    given = tuple(terms)
    required = NodeSelector(node_selector_terms=given) if given else None
    nodes = replace(affinity.node_affinity or _NO_NODES, required=required)
    return replace(affinity, node_affinity=None if nodes == _NO_NODES else nodes)


def apart_terms(affinity: Affinity | None) -> tuple[PodAffinityTerm, ...]:
    """The required terms of anti-affinity."""
    apart = affinity.pod_anti_affinity if affinity is not None else None
    return (apart.required if apart is not None else None) or ()


def with_apart_terms(affinity: Affinity, terms: Iterable[PodAffinityTerm]) -> Affinity:
    """The affinity with these terms of anti-affinity instead of its own."""
    apart = replace(affinity.pod_anti_affinity or _NO_PODS, required=tuple(terms) or None)
    return replace(affinity, pod_anti_affinity=None if apart == _NO_PODS else apart)


def without(term: NodeSelectorTerm, is_left_out: Callable[[NodeSelectorRequirement], bool]) -> NodeSelectorTerm:
    """The term without some requirements."""
    kept = tuple(each for each in term.match_expressions or () if not is_left_out(each))
    return replace(term, match_expressions=kept or None)


def pinned(affinity: Affinity, wanted: NodeSelectorRequirement, *, instead: bool = False) -> Affinity:
    """The affinity with this requirement in each term that matches a node; ``instead`` of other domains of its key.

    Source: k8s.io/component-helpers scheduling/corev1/nodeaffinity/nodeaffinity.go ``isEmptyNodeSelectorTerm``.
    """
    terms = list[NodeSelectorTerm]()
    for term in node_terms(affinity) or (NodeSelectorTerm(match_expressions=()),):
        bare = without(term, lambda each: (each.key, each.operator) == (wanted.key, "In")) if instead else term
        own = bare.match_expressions or ()
        has_it = sorted_values(wanted) in map(sorted_values, own) or (term == NO_TERM and not instead)
        terms.append(bare if has_it else replace(bare, match_expressions=(*own, wanted)))
    return with_node_terms(affinity, terms)


def sorted_values(each: NodeSelectorRequirement) -> NodeSelectorRequirement:
    """The requirement with its values in order."""
    return replace(each, values=tuple(sorted(each.values or ())) or None)
