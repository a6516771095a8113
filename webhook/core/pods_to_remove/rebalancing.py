"""Plan the repair of a workload's skew: evictions within PodDisruptionBudgets, each replacement in the right domain."""

from collections import Counter
from collections.abc import Sequence

from webhook.core.api.selectors import Selector, valid_selector
from webhook.core.api.well_known import CONTROLLER_REVISION_HASH, POD_TEMPLATE_HASH
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.placement_verdict import Effort
from webhook.core.pods_to_create.next_pod import NextPod
from webhook.core.pods_to_remove.disruption_budget import DisruptionBudget
from webhook.core.pods_to_remove.eviction_search import NoPlan, RepairPlan, plan_evictions
from webhook.core.workloads.labels_at_creation import is_placeholder
from webhook.core.workloads.workload import Workload

_EFFORT = Effort(states=4_000)  # A few seconds in the worst case.
_REVISIONS = (POD_TEMPLATE_HASH, CONTROLLER_REVISION_HASH)


def repair_plan(
    next_pod: NextPod, own: Selector | None, budgets: Sequence[DisruptionBudget], effort: Effort = _EFFORT
) -> RepairPlan:
    """Plan the fewest evictions that bring the hard constraints of a workload within maxSkew.

    Args:
        next_pod: The workload's next pod, and the cluster.
        own: Selects the workload's pods. None if unknown.
        budgets: The PodDisruptionBudgets of the cluster.
        effort: The limit of the search.
    """
    if own is None or (reason := _unknown(next_pod.source.workload)) is not None:
        return RepairPlan(reason=NoPlan.CONTROLLER if own is None else reason)
    if (reason := _unsettled(next_pod, own)) is not None:
        return RepairPlan(reason=reason)
    within, namespace = next_pod.context, next_pod.source.namespace
    running = {name for name, _ in within.cluster.pods.matching(namespace, own)}
    kept = _kept(within.cluster, namespace, budgets)
    plan = plan_evictions(next_pod.pod, within, own, running - kept, effort)
    if plan.reason is None or not running & kept:
        return plan
    free = plan_evictions(next_pod.pod, within, own, running, effort)
    return free if free.reason is not None else RepairPlan(reason=NoPlan.BUDGETS)


def _unknown(workload: Workload) -> NoPlan | None:
    """Why the replacement of an evicted pod is unknown."""
    if workload.is_pod or not workload.built_in:
        return NoPlan.CONTROLLER
    return NoPlan.VOLUMES if workload.claims is not None and workload.claims.names else None


def _unsettled(next_pod: NextPod, own: Selector) -> NoPlan | None:
    """Why the workload's pods may change without an eviction."""
    index, namespace = next_pod.context.cluster, next_pod.source.namespace
    running = index.pods.count(namespace, own)
    # The API server's default is 1 replica.
    replicas = next_pod.source.template.replicas
    if sum(running.values()) != (1 if replicas is None else replicas):
        return NoPlan.UNSETTLED
    live = index.nodes.view().live
    names = index.pods.matching(namespace, own)  # With terminating pods.
    if len(names) != sum(running.values()) or not all(live >> slot & 1 for slot in running):
        return NoPlan.UNSETTLED
    pods = [pod for name, _ in names if (pod := index.pods.on_node(namespace, name)) is not None]
    for key in _REVISIONS:
        revisions = {pod.labels[key] for pod in pods if key in pod.labels}
        latest = next_pod.pod.labels.get(key, "")
        if len(revisions) > 1 or (revisions and latest and not is_placeholder(latest) and revisions != {latest}):
            return NoPlan.ROLLOUT
    neighbours = next_pod.problem.neighbours
    return NoPlan.AFFINITY if neighbours.affinity_terms and neighbours.matches_itself else None


def _kept(index: ReadOnlyIndex, namespace: str, budgets: Sequence[DisruptionBudget]) -> set[str]:
    """Return the names of the pods that the API server does not evict.

    It evicts no pod with several budgets. Source: pod/storage/eviction.go ``getPodDisruptionBudgets``.
    """
    kept, selected = set[str](), Counter[str]()
    for budget in budgets:
        selector = valid_selector(budget.spec.selector)
        if budget.metadata.namespace == namespace and selector is not None:
            names = [name for name, _ in index.pods.matching(namespace, selector)]
            selected.update(names)
            kept.update(() if budget.allows else names)
    return kept | {name for name, number in selected.items() if number > 1}
