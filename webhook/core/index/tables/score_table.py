"""What only the scheduler's scores of nodes depend on: what pods count as, whom they prefer, and soft taints.

An index that answers admission has none of it: there nothing asks for scores, and every pod that prefers others would
take memory.
"""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from webhook.core.api.resources import CPU, MEMORY, existing_request, scored_existing
from webhook.core.api.types import Node, Pod, PodAffinity, PodAffinityTerm, Taint
from webhook.core.api.version import KubernetesVersion
from webhook.core.api.well_known import PREFER_NO_SCHEDULE
from webhook.core.index.tables.node_table import NodeView
from webhook.core.index.tables.pod_groups import bump
from webhook.core.index.tables.pod_table import Term, resolve_term
from webhook.core.index.tables.shrinking import drop

# What a required affinity term of an existing pod weighs for a pod that it matches.
# Source: config/v1/defaults.go SetDefaults_InterPodAffinityArgs.
_HARD_POD_AFFINITY_WEIGHT = 1
_Weighted = tuple[int, Term]


class ScoreFacts(Struct, frozen=True):
    """What scores depend on beside what filters ask; by slot, of nodes that exist.

    Shape: ``assumed`` is the CPU and memory that pods count as beyond what they request; ``taints`` are those with the
    effect PreferNoSchedule; ``drawn`` are the terms of existing pods that match the pod: topology key, and their
    weight on each node, negative for terms of anti-affinity.
    Unit: milli-CPU, bytes.
    """

    assumed: Mapping[int, tuple[int, int]]
    taints: Mapping[int, tuple[Taint, ...]]
    drawn: tuple[tuple[str, Mapping[int, int]], ...]

    def joined(self, other: "ScoreFacts") -> "ScoreFacts":
        """The facts of both, taints those of the first."""
        assumed = dict(self.assumed)
        for slot, (cpu, memory) in other.assumed.items():
            before = assumed.get(slot, (0, 0))
            assumed[slot] = before[0] + cpu, before[1] + memory
        return ScoreFacts(assumed, self.taints, (*self.drawn, *other.drawn))


class _Scored(Struct, frozen=True):
    """What one pod adds to its node."""

    node: str
    assumed: tuple[int, int]
    terms: tuple[_Weighted, ...]


class ScoreTable:
    """The pods on nodes and the soft taints of nodes, as far as scores depend on them."""

    def __init__(self) -> None:
        self._pods: dict[tuple[str, str], _Scored] = {}
        self._assumed: dict[str, tuple[int, int]] = {}
        self._terms: dict[Term, dict[str, int]] = {}  # the weight of all pods that have it, by node
        self._taints: dict[str, tuple[Taint, ...]] = {}

    def put_node(self, node: Node) -> None:
        """Add or replace a node."""
        taints = tuple(taint for taint in node.taints if taint.effect == PREFER_NO_SCHEDULE)
        if taints:
            self._taints[node.name] = taints
        else:
            self.remove_node(node)

    def remove_node(self, node: Node) -> None:
        """Remove a node."""
        drop(self._taints, node.name)

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
        """Remove a pod, if it is there."""
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
        """What the scores for a pod with these labels depend on.

        Source: interpodaffinity/scoring.go ``processExistingPod``; framework/types.go ``AddPod``.
        """
        slots = view.slots
        drawn = (
            (term.topology_key, {slots[node]: weight for node, weight in nodes.items() if node in slots})
            for term, nodes in self._terms.items()
            if term.in_namespace(namespace, namespace_labels) and term.selector.matches(labels)
        )
        return ScoreFacts(
            assumed={slots[node]: amounts for node, amounts in self._assumed.items() if node in slots},
            taints={slots[node]: taints for node, taints in self._taints.items() if node in slots},
            drawn=tuple(each for each in drawn if each[1]),
        )


def _terms_of(pod: Pod) -> Iterator[_Weighted]:
    """The terms of a pod that make nodes better or worse for pods that they match."""
    affinity, namespace = pod.pod_spec.affinity, pod.meta.namespace
    if affinity is None:
        return
    near, far = affinity.pod_affinity, affinity.pod_anti_affinity
    required = ((_HARD_POD_AFFINITY_WEIGHT, term) for term in (near.required if near else None) or ())
    yield from _resolved(required, namespace)
    yield from _resolved(preferred_terms(near), namespace)
    yield from ((-weight, term) for weight, term in _resolved(preferred_terms(far), namespace))


def preferred_terms(affinity: PodAffinity | None) -> Iterator[tuple[int, PodAffinityTerm]]:
    """The preferred terms with their weights.

    Source: kube-scheduler framework/types.go ``GetWeightedAffinityTerms``.
    """
    for each in (affinity.preferred if affinity else None) or ():
        if each.pod_affinity_term is not None:
            yield each.weight or 0, each.pod_affinity_term


def _resolved(terms: Iterator[tuple[int, PodAffinityTerm]], namespace: str) -> tuple[_Weighted, ...]:
    """The terms; none if one of them cannot be read, as upstream. Source: framework/types.go ``Update``."""
    try:
        return tuple((weight, resolve_term(term, namespace)) for weight, term in terms)
    except ValueError:
        return ()
