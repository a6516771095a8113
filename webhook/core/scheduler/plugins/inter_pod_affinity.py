"""The InterPodAffinity plugin: required affinity and anti-affinity between pods.

A node admits the pod if three conditions hold, tested in this order:

    affinity         for every term, the node's domain has a pod that matches all terms; or no pod in the cluster
                     does, the pod matches its own terms, and the node has all keys (the first of its kind)
    anti-affinity    for none of the pod's own terms does the node's domain have a matching pod
    existing pods    no anti-affinity term of a pod in the node's domain matches the pod

Terminating pods count.

Source: kube-scheduler interpodaffinity/filtering.go.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from webhook.core.api import gates
from webhook.core.api.selectors import EVERYTHING, NOTHING, Selector, SelectorError
from webhook.core.api.types import Affinity, Pod, PodAffinityTerm
from webhook.core.api.version import KubernetesVersion
from webhook.core.budget import check_time
from webhook.core.index.nodes import NodeView
from webhook.core.index.pods import Counts, Term, preferred_terms, resolve_term
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.scheduler.plugins.status import OK, PASSES, PluginResult, StatusOfNodes, unresolvable, unschedulable

INTER_POD_AFFINITY = "InterPodAffinity"
NO_AFFINITY = unresolvable("node(s) didn't match pod affinity rules")
REJECTED_BY_OWN = unschedulable("node(s) didn't match pod anti-affinity rules")
REJECTED_BY_EXISTING = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")


class Neighbours(Struct, frozen=True):
    """The existing pods that matter to the incoming pod's affinity, and those whose anti-affinity it matters to.

    Shape: counts are by slot, and include nodes that are gone. ``wanted`` are the pod's affinity terms and ``together``
    the pods that match all of them; ``own`` are its anti-affinity terms and ``apart[i]`` the pods that match
    ``own[i]``; ``rejecting`` are the matching anti-affinity terms of existing pods: topology key, and those pods.
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
    """Count the existing pods that matter to a pod's affinity. Source: filtering.go ``PreFilter``."""
    affinity, namespace = pod.pod_spec.affinity, pod.meta.namespace
    rejecting = tuple(index.pods.terms_matching(namespace, pod.labels))
    if affinity is None:
        return Neighbours(matches_itself=True, existing_terms=rejecting)
    near, far = affinity.pod_affinity, affinity.pod_anti_affinity
    faults: list[tuple[str, SelectorError]] = []
    wanted = _resolved(near.required if near else None, namespace, "requiredAffinityTerms", faults)
    own = _resolved(far.required if far else None, namespace, "requiredAntiAffinityTerms", faults)
    # These are read for their faults alone: they only score, but an invalid one fails the pod nevertheless.
    _resolved((term for _, term in preferred_terms(near)), namespace, "preferredAffinityTerms", faults)
    _resolved((term for _, term in preferred_terms(far)), namespace, "preferredAntiAffinityTerms", faults)
    if faults:
        texts = [f"{kind}: {error.text(index.version)}" for kind, error in faults]
        return Neighbours(error=texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
    wanted = tuple(with_namespaces(term, index) for term in wanted)
    own = tuple(with_namespaces(term, index) for term in own)
    return Neighbours(
        affinity_terms=wanted,
        affinity_pods=pods_meeting_all(wanted, index) if wanted else {},
        matches_itself=all(term.in_namespace(namespace, {}) and term.selector.matches(pod.labels) for term in wanted),
        anti_affinity_terms=own,
        anti_affinity_pods=tuple(pods_meeting_all((term,), index) for term in own),
        existing_terms=rejecting,
    )


def _resolved(
    terms: Iterable[PodAffinityTerm] | None, namespace: str, kind: str, faults: list[tuple[str, SelectorError]]
) -> tuple[Term, ...]:
    """Source: framework/types.go ``Update``; kube-scheduler framework/types.go ``GetAffinityTerms``."""
    try:
        return tuple(resolve_term(term, namespace) for term in terms or ())
    except SelectorError as error:
        faults.append((kind, error))
        return ()


def with_namespaces(term: Term, index: ReadOnlyIndex) -> Term:
    """The term with its namespace selector replaced by the namespaces that it selects now.

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
    return Term(
        topology_key=term.topology_key,
        namespaces=term.namespaces | chosen,
        namespace_selector=EVERYTHING if _is_widened(selector, index.version) else NOTHING,
        selector=term.selector,
    )


def _is_widened(selector: Selector, version: KubernetesVersion) -> bool:
    """Whether a namespace selector selects every namespace, which is not what it says.

    Source: plugin.go ``mergeAffinityTermNamespacesIfNotEmpty``, which changes a copy of the term from 1.34 to 1.36.
    """
    # Where the selector stays beside the namespaces, it is asked about each of them without its labels.
    return gates.NAMESPACES_NOT_MERGED.holds(version) and not selector.empty and selector.matches({})


def widened_terms(pod: Pod, version: KubernetesVersion) -> Iterator[str]:
    """The pod's required terms that apply to every namespace, which is not what they say: ``podAffinity[0]``.

    Errors: none; nothing is said of terms beside one that cannot be read.
    """
    affinity = pod.pod_spec.affinity or Affinity()
    for name, side in (("podAffinity", affinity.pod_affinity), ("podAntiAffinity", affinity.pod_anti_affinity)):
        for place, term in enumerate(_resolved(side.required if side else None, pod.meta.namespace, name, [])):
            if _is_widened(term.namespace_selector, version):
                yield f"{name}[{place}]"


def pods_meeting_all(terms: tuple[Term, ...], index: ReadOnlyIndex) -> Counts:
    """How many pods on each node match every term. Source: filtering.go ``podMatchesAllAffinityTerms``."""
    # A pod has to match all terms at once, so they are counted as one selector.
    joined: Selector = EVERYTHING
    for term in terms:
        if term.selector.nothing:
            return {}
        joined = joined.joined(term.selector.requirements)
    total: dict[int, int] = {}
    for namespace in _common_namespaces(terms, index):
        # Terminating pods still hold their place here, unlike for spread constraints.
        for slot, pods in index.pods.count(namespace, joined, leaving=True).items():
            total[slot] = total.get(slot, 0) + pods
    return total


def _common_namespaces(terms: tuple[Term, ...], index: ReadOnlyIndex) -> Iterable[str]:
    limited = [term.namespaces for term in terms if not term.namespace_selector.empty]
    return frozenset.intersection(*limited) if limited else index.pods.namespaces()


def run_inter_pod_affinity(neighbours: Neighbours, nodes: NodeView) -> PluginResult:
    """The plugin's result. Source: filtering.go ``Filter``."""
    if neighbours.error:
        return PluginResult(unresolvable(f"parsing pod: {neighbours.error}"))
    rejected = _nodes_in_domains(nodes, neighbours.existing_terms)
    if not (neighbours.affinity_terms or neighbours.anti_affinity_terms or rejected):
        return PASSES

    def decide(asked: int) -> list[StatusOfNodes]:
        # In upstream's order, in which a node says only the first that fails.
        lonely = asked & ~_nodes_meeting_affinity(neighbours, nodes)
        asked &= ~lonely
        own = asked & _nodes_in_domains(
            nodes, ((term.topology_key, counts) for term, counts in zip(neighbours.anti_affinity_terms, neighbours.anti_affinity_pods, strict=True))
        )
        asked &= ~own
        return [(NO_AFFINITY, lonely), (REJECTED_BY_OWN, own), (REJECTED_BY_EXISTING, asked & rejected)]

    return PluginResult(OK, decide)


def _nodes_in_domains(nodes: NodeView, terms: Iterable[tuple[str, Counts]]) -> int:
    """The nodes in the same domain as a counted pod, for any of the terms (topology key and counts).

    Source: filtering.go ``satisfyPodAntiAffinity``, ``satisfyExistingPodsAntiAffinity``.
    """
    shared = 0
    by_key: dict[str, set[int]] = {}
    for key, counts in terms:
        of = nodes.column(key).of
        by_key.setdefault(key, set()).update([of[slot] for slot in counts])
    for key, domains in by_key.items():
        # Nodes without the key share no domain.
        domains.discard(-1)
        shared |= nodes.column(key).nodes_of(tuple(domains))
    return shared


def _nodes_meeting_affinity(neighbours: Neighbours, nodes: NodeView) -> int:
    """The nodes that meet the first condition of the module's docstring.

    Source: filtering.go ``nodeTopologyMatchesAffinity``.
    """
    with_keys = near = nodes.live
    anybody = False
    for term in neighbours.affinity_terms:
        column = nodes.column(term.topology_key)
        with_keys &= column.present
        domains = {column.of[slot] for slot in neighbours.affinity_pods} - {-1}
        anybody = anybody or bool(domains)
        near &= column.nodes_of(tuple(domains))
    # The first of pods that want to be together may go anywhere with the keys, or none could ever start.
    if not anybody and neighbours.matches_itself:
        return with_keys
    return near & with_keys
