"""Where kube-scheduler would most likely put a pod: the nodes with the highest sum of weighted scores.

    index, problem -> take_scoring(...) -> Scoring       under the index's lock, as `take`
    Scoring, nodes -> node_scores(...), best_nodes(...)  without it

Of several best nodes the scheduler takes one, which one is not foreseen. Left out: ImageLocality (no images of nodes
are known), VolumeBinding (of claims that wait for their first consumer), weights and strategies of a configured
profile, and that the scheduler looks at only a part of more than 100 nodes.

Source: kube-scheduler schedule_one.go ``prioritizeNodes``; config/v1/default_plugins.go.
"""

from collections.abc import Mapping

from msgspec import Struct

from webhook.core.api.resources import CPU, MEMORY, scored_request
from webhook.core.index import node_sets
from webhook.core.index.pods import Counts, preferred_terms, resolve_term
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.scheduler.cycle import Cycle
from webhook.core.scheduler.plugins.inter_pod_affinity import INTER_POD_AFFINITY, pods_meeting_all, with_namespaces
from webhook.core.scheduler.plugins.node_affinity import NODE_AFFINITY
from webhook.core.scheduler.plugins.node_resources_fit import NODE_RESOURCES_FIT
from webhook.core.scheduler.plugins.pod_topology_spread import POD_TOPOLOGY_SPREAD
from webhook.core.scheduler.plugins.spread_scoring import scores
from webhook.core.scheduler.plugins.taint_toleration import TAINT_TOLERATION
from webhook.core.scheduler.problem import Problem
from webhook.core.scheduler.scoring.allocation import ResourceUse, balanced_allocation, least_allocated
from webhook.core.scheduler.scoring.preferences import inter_pod_affinity, node_affinity, taint_toleration

BALANCED_ALLOCATION = "NodeResourcesBalancedAllocation"
# The weights of the default profile, the same since 1.31. Source: config/v1/default_plugins.go getDefaultPlugins.
WEIGHTS: Mapping[str, int] = {
    TAINT_TOLERATION: 3,
    NODE_AFFINITY: 2,
    NODE_RESOURCES_FIT: 1,
    POD_TOPOLOGY_SPREAD: 2,
    INTER_POD_AFFINITY: 2,
    BALANCED_ALLOCATION: 1,
}


class Scoring(Struct, frozen=True):
    """Everything that the scores of nodes depend on, at one moment; ``drawn`` as `inter_pod_affinity` takes it."""

    problem: Problem
    resources: tuple[ResourceUse, ...]
    drawn: tuple[tuple[str, Counts], ...]


def take_scoring(index: ReadOnlyIndex, problem: Problem) -> Scoring | None:
    """Copy what scores depend on; None if the index does not keep it.

    Shape: the problem is of the same moment.
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
    return Scoring(problem, tuple(resources), (*_wanted(problem, index), *facts.drawn))


def _wanted(problem: Problem, index: ReadOnlyIndex) -> tuple[tuple[str, Counts], ...]:
    """The pod's own preferred terms: topology key, and the weight of the pods on each node that match the term.

    Source: interpodaffinity/scoring.go ``processExistingPod``, ``mergeAffinityTermNamespacesIfNotEmpty``.
    """
    affinity, namespace = problem.pod.pod_spec.affinity, problem.pod.meta.namespace
    # An invalid term fails the pod before any node is scored.
    if affinity is None or problem.neighbours.error:
        return ()
    signed = ((affinity.pod_affinity, 1), (affinity.pod_anti_affinity, -1))
    found = []
    for weight, written in ((sign * weight, term) for of, sign in signed for weight, term in preferred_terms(of)):
        term, live = with_namespaces(resolve_term(written, namespace), index), problem.nodes.live
        pods = pods_meeting_all((term,), index)
        found.append((term.topology_key, {slot: weight * number for slot, number in pods.items() if live >> slot & 1}))
    return tuple(found)


def node_scores(of: Scoring, cycle: Cycle, feasible: int) -> Mapping[str, Mapping[int, int]] | None:
    """The weighted score of each plugin for each feasible node, by slot; none from a plugin that does not score.

    Shape: ``cycle`` is of the same problem. None if a preferred term of node affinity is invalid: kube-apiserver lets
    some through, and the scheduler fails on each of them.
    Source: runtime/framework.go ``RunScorePlugins``.
    """
    problem, slots = of.problem, tuple(node_sets.to_slots(feasible))
    view, spec = problem.nodes, problem.pod.pod_spec
    added = problem.profile.added_affinity if problem.profile is not None else None
    own = spec.affinity.node_affinity if spec.affinity is not None else None
    preferred = tuple(term for each in (added, own) if each is not None for term in each.preferred or ())
    affinity = node_affinity(view, preferred, slots)
    if affinity is None:
        return None
    found = {
        TAINT_TOLERATION: taint_toleration(view.soft_taints, spec.tolerations, slots),
        NODE_AFFINITY: affinity,
        NODE_RESOURCES_FIT: least_allocated(of.resources, slots),
        POD_TOPOLOGY_SPREAD: scores(problem.soft, cycle.eligible, feasible) or {},
        INTER_POD_AFFINITY: inter_pod_affinity(view, of.drawn, slots),
        BALANCED_ALLOCATION: balanced_allocation(of.resources, slots, problem.version),
    }
    return {plugin: {slot: score * WEIGHTS[plugin] for slot, score in each.items()} for plugin, each in found.items()}


def best_nodes(of: Scoring, cycle: Cycle, feasible: int) -> int:
    """The feasible nodes with the highest sum of scores, one of which the scheduler takes; as a set of `node_sets`.

    Shape: none if a preferred term is invalid.
    Source: schedule_one.go ``prioritizeNodes``; framework/sorted_nodes.go ``Pop``.
    """
    found = node_scores(of, cycle, feasible)
    if found is None:
        return 0
    totals = dict.fromkeys(node_sets.to_slots(feasible), 0)
    for each in found.values():
        for slot, score in each.items():
            totals[slot] += score
    highest = max(totals.values(), default=0)
    return node_sets.from_slots([slot for slot, total in totals.items() if total == highest], of.problem.nodes.size)
