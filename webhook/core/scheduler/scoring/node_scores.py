"""Predict kube-scheduler's node: the node with the highest sum of weighted scores.

    index, problem -> take_scoring(...) -> facts
    facts, nodes -> node_scores(...), best_nodes(...)

Among several best nodes the scheduler chooses at random. Not scored: ImageLocality (images of nodes are unknown),
VolumeBinding (for claims with delayed binding), and weights and strategies of a configured profile. On more than 100
nodes the scheduler scores only some.

Source: kube-scheduler schedule_one.go ``prioritizeNodes``; config/v1/default_plugins.go.
"""

from collections.abc import Mapping

from msgspec import Struct

from webhook.core.api.pod_requests import scored_request
from webhook.core.api.resources import CPU, MEMORY
from webhook.core.index import node_sets
from webhook.core.index.affinity_terms import preferred_terms, resolve_term
from webhook.core.index.pods import Counts
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.scheduler.cycle import Cycle
from webhook.core.scheduler.plugins.inter_pod_affinity import INTER_POD_AFFINITY
from webhook.core.scheduler.plugins.neighbours import pods_meeting_all, with_namespaces
from webhook.core.scheduler.plugins.node_affinity import NODE_AFFINITY
from webhook.core.scheduler.plugins.node_resources_fit import NODE_RESOURCES_FIT
from webhook.core.scheduler.plugins.pod_topology_spread import POD_TOPOLOGY_SPREAD
from webhook.core.scheduler.plugins.spread_scoring import scores
from webhook.core.scheduler.plugins.taint_toleration import TAINT_TOLERATION
from webhook.core.scheduler.problem import Problem
from webhook.core.scheduler.scoring.allocation import ResourceUse, balanced_allocation, least_allocated
from webhook.core.scheduler.scoring.preferences import inter_pod_affinity, node_affinity, taint_toleration

_BALANCED_ALLOCATION = "NodeResourcesBalancedAllocation"
# The weights of the default profile, unchanged since 1.31. Source: config/v1/default_plugins.go getDefaultPlugins.
_WEIGHTS: Mapping[str, int] = {
    TAINT_TOLERATION: 3,
    NODE_AFFINITY: 2,
    NODE_RESOURCES_FIT: 1,
    POD_TOPOLOGY_SPREAD: 2,
    INTER_POD_AFFINITY: 2,
    _BALANCED_ALLOCATION: 1,
}


class _ScoreFacts(Struct, frozen=True):
    """All facts for the nodes' scores. ``term_weights`` is the argument of `preferences.inter_pod_affinity`."""

    problem: Problem
    resources: tuple[ResourceUse, ...]
    term_weights: tuple[tuple[str, Counts], ...]


def take_scoring(index: ReadOnlyIndex, problem: Problem) -> _ScoreFacts | None:
    """Copy from the index the facts for the node scores of this pod. ``problem`` must come from the same index state.

    None if the index keeps no facts for scores.

    Source: noderesources/fit.go ``PreScore``; interpodaffinity/scoring.go ``PreScore``.
    """
    pod = problem.pod
    facts = index.pods.score_facts(pod.meta.namespace, pod.labels)
    if facts is None:
        return None
    requested = dict(problem.request.amounts)
    scored = scored_request(pod)
    resources = []
    for number, name in enumerate((CPU, MEMORY)):
        free, allocatable = index.nodes.amounts(name)
        assumed = {slot: amounts[number] for slot, amounts in facts.assumed.items()}
        resources.append(ResourceUse(free, allocatable, assumed, requested.get(name, 0), scored[number]))
    return _ScoreFacts(problem, tuple(resources), (*_weighted_terms(problem, index), *facts.term_weights))


def _weighted_terms(problem: Problem, index: ReadOnlyIndex) -> tuple[tuple[str, Counts], ...]:
    """Return each preferred affinity term of the pod as topology key and node weights.

    The weights are by node slot. A node's weight is the term's weight times the number of matching pods on the node.
    Anti-affinity has negative weights.

    Source: interpodaffinity/scoring.go ``processExistingPod``, ``mergeAffinityTermNamespacesIfNotEmpty``.
    """
    spec, namespace = problem.pod.pod_spec, problem.pod.meta.namespace
    # An invalid term rejects the pod before any score.
    if problem.neighbours.error:
        return ()
    signed = ((spec.pod_affinity, 1), (spec.pod_anti_affinity, -1))
    weighted = []
    for weight, written in ((sign * weight, term) for side, sign in signed for weight, term in preferred_terms(side)):
        term, live = with_namespaces(resolve_term(written, namespace), index), problem.nodes.live
        pods = pods_meeting_all((term,), index)
        by_slot = {slot: weight * number for slot, number in pods.items() if live >> slot & 1}
        weighted.append((term.topology_key, by_slot))
    return tuple(weighted)


def node_scores(scoring: _ScoreFacts, cycle: Cycle, feasible: int) -> Mapping[str, Mapping[int, int]] | None:
    """Return the weighted score of each feasible node, by plugin and node slot.

    A plugin without scores has an empty mapping. ``scoring`` and ``cycle`` must be about the same pod and cluster. None
    for an invalid preferred term of node affinity: kube-apiserver accepts some invalid terms, and the scheduler fails
    on them.

    Source: runtime/framework.go ``RunScorePlugins``.
    """
    problem, slots = scoring.problem, tuple(node_sets.to_slots(feasible))
    view, spec = problem.nodes, problem.pod.pod_spec
    added = problem.profile.added_affinity if problem.profile is not None else None
    own = spec.affinity.node_affinity if spec.affinity is not None else None
    preferred = tuple(term for side in (added, own) if side is not None for term in side.preferred or ())
    affinity = node_affinity(view, preferred, slots)
    if affinity is None:
        return None
    by_plugin = {
        TAINT_TOLERATION: taint_toleration(view.soft_taints, spec.tolerations, slots),
        NODE_AFFINITY: affinity,
        NODE_RESOURCES_FIT: least_allocated(scoring.resources, slots),
        POD_TOPOLOGY_SPREAD: scores(problem.soft, cycle.eligible, feasible) or {},
        INTER_POD_AFFINITY: inter_pod_affinity(view, scoring.term_weights, slots),
        _BALANCED_ALLOCATION: balanced_allocation(scoring.resources, slots, problem.version),
    }
    return {
        plugin: {slot: score * _WEIGHTS[plugin] for slot, score in row.items()} for plugin, row in by_plugin.items()
    }


def best_nodes(scoring: _ScoreFacts, cycle: Cycle, feasible: int) -> int:
    """Return the feasible nodes with the highest sum of scores, as a set (`node_sets`).

    Empty for an invalid preferred term.

    Source: schedule_one.go ``prioritizeNodes``; framework/sorted_nodes.go ``Pop``.
    """
    by_plugin = node_scores(scoring, cycle, feasible)
    if by_plugin is None:
        return 0
    totals = dict.fromkeys(node_sets.to_slots(feasible), 0)
    for row in by_plugin.values():
        for slot, score in row.items():
            totals[slot] += score
    highest = max(totals.values(), default=0)
    best = [slot for slot, total in totals.items() if total == highest]
    return node_sets.from_slots(best, scoring.problem.nodes.size)
