"""A table with the facts about pods that only node scores need.

These are preferred affinity, and the requests assumed for pods without requests. The webhook's index does not keep this
table, because admission needs no scores. Every pod with preferences would take memory.
"""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from webhook.core.api.pod_requests import existing_request, scored_existing
from webhook.core.api.resources import CPU, MEMORY
from webhook.core.api.types import Pod, PodAffinityTerm
from webhook.core.api.version import KubernetesVersion
from webhook.core.index.affinity_terms import Term, preferred_terms, resolve_term
from webhook.core.index.nodes import NodeView
from webhook.core.index.pods import ScoreFacts
from webhook.core.index.tables.pod_groups import bump
from webhook.core.index.tables.shrinking import drop

# The weight of an existing pod's required affinity term for a pod that it matches.
# Source: config/v1/defaults.go SetDefaults_InterPodAffinityArgs.
_HARD_POD_AFFINITY_WEIGHT = 1
_Weighted = tuple[int, Term]


class _Scored(Struct, frozen=True):
    """The contribution of one pod to the scores of its node."""

    node: str
    assumed: tuple[int, int]
    terms: tuple[_Weighted, ...]


class ScoreTable:
    """The scheduled pods relevant to node scores: their resources and preferred affinity."""

    def __init__(self) -> None:
        self._pods: dict[tuple[str, str], _Scored] = {}
        self._assumed: dict[str, tuple[int, int]] = {}
        self._terms: dict[Term, dict[str, int]] = {}  # the weight of all pods that have it, by node

    def put_pod(self, pod: Pod, key: str, version: KubernetesVersion) -> None:
        """Add or replace a pod on a node."""
        self.remove_pod(pod.meta.namespace, key)
        held = dict(existing_request(pod, version).amounts)
        cpu, memory = scored_existing(pod, version)
        assumed = cpu - held.get(CPU, 0), memory - held.get(MEMORY, 0)
        scored = _Scored(pod.pod_spec.node_name or "", assumed, tuple(_terms_of(pod)))
        if scored.terms or any(assumed):
            self._pods[pod.meta.namespace, key] = scored
            self._add(scored, 1)

    def remove_pod(self, namespace: str, key: str) -> None:
        """Remove a pod, if present."""
        scored = drop(self._pods, (namespace, key))
        if scored is not None:
            self._add(scored, -1)

    def _add(self, scored: _Scored, sign: int) -> None:
        cpu, memory = self._assumed.get(scored.node, (0, 0))
        total = cpu + sign * scored.assumed[0], memory + sign * scored.assumed[1]
        self._assumed[scored.node] = total
        if not any(total):
            drop(self._assumed, scored.node)
        for weight, term in scored.terms:
            nodes = self._terms.setdefault(term, {})
            bump(nodes, scored.node, sign * weight)
            if not nodes:
                drop(self._terms, term)

    def facts(
        self, view: NodeView, namespace: str, namespace_labels: Mapping[str, str] | None, labels: Mapping[str, str]
    ) -> ScoreFacts:
        """Return the existing pods' facts for the node scores of a pod with these labels.

        Source: interpodaffinity/scoring.go ``processExistingPod``; framework/types.go ``AddPod``.
        """
        slots = view.slots
        term_weights = (
            (term.topology_key, {slots[node]: weight for node, weight in nodes.items() if node in slots})
            for term, nodes in self._terms.items()
            if term.in_namespace(namespace, namespace_labels) and term.selector.matches(labels)
        )
        return ScoreFacts(
            assumed={slots[node]: amounts for node, amounts in self._assumed.items() if node in slots},
            term_weights=tuple(term for term in term_weights if term[1]),
        )


def _terms_of(pod: Pod) -> Iterator[_Weighted]:
    """The pod's terms that raise or lower node scores for matching pods, with their weights."""
    namespace, near, far = pod.meta.namespace, pod.pod_spec.pod_affinity, pod.pod_spec.pod_anti_affinity
    required = ((_HARD_POD_AFFINITY_WEIGHT, term) for term in near.required or ())
    yield from _resolved(required, namespace)
    yield from _resolved(preferred_terms(near), namespace)
    yield from ((-weight, term) for weight, term in _resolved(preferred_terms(far), namespace))


def _resolved(terms: Iterator[tuple[int, PodAffinityTerm]], namespace: str) -> tuple[_Weighted, ...]:
    """Compile the affinity terms of a pod in ``namespace``, each with its weight.

    Empty if any term is invalid, as in kube-scheduler.

    Source: framework/types.go ``Update``.
    """
    try:
        return tuple((weight, resolve_term(term, namespace)) for weight, term in terms)
    except ValueError:
        return ()
