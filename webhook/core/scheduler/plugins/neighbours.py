"""Find existing pods relevant to an incoming pod's affinity and anti-affinity.

Source: kube-scheduler interpodaffinity filtering.go, plugin.go; framework/types.go.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api import gates
from webhook.core.api.requirements import SelectorError
from webhook.core.api.selectors import EVERYTHING, NOTHING, Selector
from webhook.core.api.types import Pod, PodAffinityTerm
from webhook.core.api.version import KubernetesVersion
from webhook.core.budget import check_time
from webhook.core.index.affinity_terms import Term, preferred_terms, resolve_term
from webhook.core.index.pods import Counts
from webhook.core.index.read_only import ReadOnlyIndex


class Neighbours(Struct, frozen=True):
    """Existing pods that matter for the incoming pod's affinity, by node slot.

    Slots of deleted nodes can be included.

    Attributes:
        affinity_terms: The pod's affinity terms.
        affinity_pods: The number of pods on each node that match all affinity terms.
        matches_itself: Whether the pod matches its own affinity terms.
        anti_affinity_terms: The pod's anti-affinity terms.
        anti_affinity_pods: For each anti-affinity term, the number of matching pods on each node.
        existing_terms: Anti-affinity terms of existing pods that match the incoming pod. Each is the topology key, and
            the number of pods with the term on each node.
        error: The error about an invalid term. Empty without an error.

    Source: interpodaffinity/filtering.go ``preFilterState``.
    """

    affinity_terms: tuple[Term, ...] = ()
    affinity_pods: Counts = {}
    matches_itself: bool = False
    anti_affinity_terms: tuple[Term, ...] = ()
    anti_affinity_pods: tuple[Counts, ...] = ()
    existing_terms: tuple[tuple[str, Counts], ...] = ()
    error: str = ""


def count_neighbours(pod: Pod, index: ReadOnlyIndex) -> Neighbours:
    """Count the existing pods that matter for a pod's affinity. Source: filtering.go ``PreFilter``."""
    spec, namespace = pod.pod_spec, pod.meta.namespace
    existing_terms = tuple(index.pods.terms_matching(namespace, pod.labels))
    if spec.affinity is None:
        return Neighbours(matches_itself=True, existing_terms=existing_terms)
    near, far = spec.pod_affinity, spec.pod_anti_affinity
    faults: list[tuple[str, SelectorError]] = []
    affinity_terms = _resolved(near.required, namespace, "requiredAffinityTerms", faults)
    anti_affinity_terms = _resolved(far.required, namespace, "requiredAntiAffinityTerms", faults)
    # These only score, but an invalid one rejects the pod.
    _resolved((term for _, term in preferred_terms(near)), namespace, "preferredAffinityTerms", faults)
    _resolved((term for _, term in preferred_terms(far)), namespace, "preferredAntiAffinityTerms", faults)
    if faults:
        texts = [f"{kind}: {error.text(index.version)}" for kind, error in faults]
        return Neighbours(error=texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
    affinity_terms = tuple(with_namespaces(term, index) for term in affinity_terms)
    anti_affinity_terms = tuple(with_namespaces(term, index) for term in anti_affinity_terms)
    return Neighbours(
        affinity_terms=affinity_terms,
        affinity_pods=pods_meeting_all(affinity_terms, index) if affinity_terms else {},
        matches_itself=all(
            term.in_namespace(namespace, {}) and term.selector.matches(pod.labels) for term in affinity_terms
        ),
        anti_affinity_terms=anti_affinity_terms,
        anti_affinity_pods=tuple(pods_meeting_all((term,), index) for term in anti_affinity_terms),
        existing_terms=existing_terms,
    )


def _resolved(
    terms: Iterable[PodAffinityTerm] | None, namespace: str, kind: str, faults: list[tuple[str, SelectorError]]
) -> tuple[Term, ...]:
    """Compile pod affinity terms. ``namespace`` is the default namespace of a term.

    If a term is invalid, the result is empty, and ``kind`` and the error are added to ``faults``.

    Source: framework/types.go ``GetAffinityTerms``.
    """
    try:
        return tuple(resolve_term(term, namespace) for term in terms or ())
    except SelectorError as error:
        faults.append((kind, error))
        return ()


def with_namespaces(term: Term, index: ReadOnlyIndex) -> Term:
    """Replace the term's namespace selector by the names of the selected namespaces.

    Source: plugin.go ``mergeAffinityTermNamespacesIfNotEmpty``.
    """
    selector = term.namespace_selector
    if selector.empty or selector.nothing:
        return term
    chosen = set[str]()
    for name, labels in index.namespaces.all_labels().items():
        check_time()
        if selector.matches(labels):
            chosen.add(name)
    remaining = EVERYTHING if _is_widened(selector, index.version) else NOTHING
    return replace(term, namespaces=term.namespaces | chosen, namespace_selector=remaining)


def _is_widened(selector: Selector, version: KubernetesVersion) -> bool:
    """Whether upstream, by mistake, applies a namespace selector to every namespace.

    Source: plugin.go ``mergeAffinityTermNamespacesIfNotEmpty``, which changes a copy of the term from 1.34 to 1.36.
    """
    # If the selector stays next to the namespaces, upstream matches it against each namespace without labels.
    return gates.NAMESPACES_NOT_MERGED.holds(version) and not selector.empty and selector.matches({})


def widened_terms(pod: Pod, version: KubernetesVersion) -> Iterator[str]:
    """Yield the pod's affinity terms that upstream wrongly applies to every namespace.

    Only required terms are examined. The result is a path such as ``podAffinity[0]`` for each term. A list with an
    invalid term is skipped.

    Source: plugin.go ``mergeAffinityTermNamespacesIfNotEmpty``, from 1.34 to 1.36.
    """
    spec = pod.pod_spec
    for name, side in (("podAffinity", spec.pod_affinity), ("podAntiAffinity", spec.pod_anti_affinity)):
        for place, term in enumerate(_resolved(side.required, pod.meta.namespace, name, [])):
            if _is_widened(term.namespace_selector, version):
                yield f"{name}[{place}]"


def pods_meeting_all(terms: tuple[Term, ...], index: ReadOnlyIndex) -> Counts:
    """Count the pods on each node that match every term. Source: filtering.go ``podMatchesAllAffinityTerms``."""
    # A pod must match all terms at once, so they are counted as one selector.
    joined: Selector = EVERYTHING
    for term in terms:
        if term.selector.nothing:
            return {}
        joined = joined.joined(term.selector.requirements)
    total: dict[int, int] = {}
    for namespace in _common_namespaces(terms, index):
        # Terminating pods still count here, unlike for spread constraints.
        for slot, pods in index.pods.count(namespace, joined, terminating=True).items():
            total[slot] = total.get(slot, 0) + pods
    return total


def _common_namespaces(terms: tuple[Term, ...], index: ReadOnlyIndex) -> Iterable[str]:
    limited = [term.namespaces for term in terms if not term.namespace_selector.empty]
    return frozenset.intersection(*limited) if limited else index.pods.namespaces()
