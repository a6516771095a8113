"""The InterPodAffinity plugin: required affinity and anti-affinity between pods.

A node admits the pod under three conditions, tested in this order:

    affinity         for every term, the node's domain has a pod that matches all terms; or no pod in the cluster
                     does, the pod matches its own terms, and the node has all keys (the first pod of its kind)
    anti-affinity    for none of the pod's own terms does the node's domain have a matching pod
    existing pods    no anti-affinity term of a pod in the node's domain matches the pod

Terminating pods count.

Source: kube-scheduler interpodaffinity/filtering.go.
"""

from collections.abc import Iterable

from webhook.core.index.nodes import NodeView
from webhook.core.index.pods import Counts
from webhook.core.scheduler.plugins.neighbours import Neighbours
from webhook.core.scheduler.plugins.status import OK, PASSES, PluginResult, StatusOfNodes, unresolvable, unschedulable

INTER_POD_AFFINITY = "InterPodAffinity"
NO_AFFINITY = unresolvable("node(s) didn't match pod affinity rules")
REJECTED_BY_OWN = unschedulable("node(s) didn't match pod anti-affinity rules")
REJECTED_BY_EXISTING = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")


def run_inter_pod_affinity(neighbours: Neighbours, nodes: NodeView) -> PluginResult:
    """Run InterPodAffinity. Source: filtering.go ``Filter``."""
    if neighbours.error:
        return PluginResult(unresolvable(f"parsing pod: {neighbours.error}"))
    rejected = _nodes_in_domains(nodes, neighbours.existing_terms)
    if not (neighbours.affinity_terms or neighbours.anti_affinity_terms or rejected):
        return PASSES

    def reject(candidates: int) -> list[StatusOfNodes]:
        # In upstream's order: only the first failing condition gives the node's reason.
        lonely = candidates & ~_nodes_meeting_affinity(neighbours, nodes)
        candidates &= ~lonely
        own_terms = zip(neighbours.anti_affinity_terms, neighbours.anti_affinity_pods, strict=True)
        own = candidates & _nodes_in_domains(nodes, ((term.topology_key, counts) for term, counts in own_terms))
        candidates &= ~own
        return [(NO_AFFINITY, lonely), (REJECTED_BY_OWN, own), (REJECTED_BY_EXISTING, candidates & rejected)]

    return PluginResult(OK, reject)


def _nodes_in_domains(nodes: NodeView, terms: Iterable[tuple[str, Counts]]) -> int:
    """Return the nodes whose domain has a counted pod, for any of the terms.

    Source: filtering.go ``satisfyPodAntiAffinity``, ``satisfyExistingPodsAntiAffinity``.
    """
    shared = 0
    by_key: dict[str, set[int]] = {}
    for key, counts in terms:
        domain_of = nodes.column(key).domain_of
        by_key.setdefault(key, set()).update([domain_of[slot] for slot in counts])
    for key, domains in by_key.items():
        # Nodes without the key are in no domain.
        domains.discard(-1)
        shared |= nodes.column(key).nodes_of(tuple(domains))
    return shared


def _nodes_meeting_affinity(neighbours: Neighbours, nodes: NodeView) -> int:
    """Return the nodes that meet the condition on affinity. Source: filtering.go ``nodeTopologyMatchesAffinity``."""
    with_keys = near = nodes.live
    any_match = False
    for term in neighbours.affinity_terms:
        column = nodes.column(term.topology_key)
        with_keys &= column.present
        domains = {column.domain_of[slot] for slot in neighbours.affinity_pods} - {-1}
        any_match = any_match or bool(domains)
        near &= column.nodes_of(tuple(domains))
    # The first pod of a group with affinity to itself can go to any node with the keys. Otherwise none could start.
    if not any_match and neighbours.matches_itself:
        return with_keys
    return near & with_keys
