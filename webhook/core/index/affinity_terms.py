"""Compile the selectors and namespaces of pod affinity and anti-affinity terms, like kube-scheduler."""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from webhook.core.api.selectors import Selector, compile_selector
from webhook.core.api.types import PodAffinity, PodAffinityTerm


class Term(Struct, frozen=True):
    """A required pod affinity or anti-affinity term of a pod, with compiled selectors.

    Source: k8s.io/kube-scheduler framework/types.go ``newAffinityTerm``.
    """

    topology_key: str
    namespaces: frozenset[str]
    namespace_selector: Selector
    selector: Selector

    def in_namespace(self, namespace: str, labels: Mapping[str, str] | None) -> bool:
        """Whether the term applies to pods of this namespace. Source: kube-scheduler framework/types.go ``Matches``."""
        return namespace in self.namespaces or self.namespace_selector.matches(labels or {})


def resolve_term(term: PodAffinityTerm, namespace: str) -> Term:
    """Compile an affinity term of a pod in this namespace.

    Raises:
        ValueError: A selector is invalid.

    Source: kube-scheduler framework/types.go ``newAffinityTerm``, ``getNamespacesFromPodAffinityTerm``.
    """
    own = not term.namespaces and term.namespace_selector is None
    selector = compile_selector(term.label_selector)  # Compiled first, because upstream reports its fault first.
    return Term(
        topology_key=term.topology_key,
        namespaces=frozenset({namespace} if own else term.namespaces or ()),
        namespace_selector=compile_selector(term.namespace_selector),
        selector=selector,
    )


def preferred_terms(affinity: PodAffinity) -> Iterator[tuple[int, PodAffinityTerm]]:
    """The preferred terms with their weights.

    Source: kube-scheduler framework/types.go ``GetWeightedAffinityTerms``.
    """
    for term in affinity.preferred or ():
        if term.pod_affinity_term is not None:
            yield term.weight or 0, term.pod_affinity_term
