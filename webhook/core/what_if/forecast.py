"""Forecast the nodes chosen by kube-scheduler: one pod at a time, by score.

A forecast is not a proof. The scheduler picks any of several best nodes, pods arrive in any order, and scores missing
from `webhook.core.scheduler.scoring` may decide.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.context import Context, problem_of
from webhook.core.index import node_sets
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.placement.game_from_cluster import PodBatch
from webhook.core.placement.placement_verdict import PlacementVerdict
from webhook.core.scheduler.cycle import Cycle
from webhook.core.scheduler.plugins.node_volume_limits import NODE_VOLUME_LIMITS, free_attachments
from webhook.core.scheduler.scoring.node_scores import best_nodes, take_scoring
from webhook.core.what_if.ending import pod_on_node
from webhook.core.what_if.joint_simulation import JointVerdict, batches_of

_RUNS = 100  # Random runs, for a share in percent.
# The most nodes to score in all runs together, about 10 µs each.
_MOST_SCORED = 200_000
_SEED = 1  # Any number, so that repeated forecasts are equal.


class _ForecastNode(Struct, frozen=True):
    """The most likely node of a pod.

    Attributes:
        batch: The number of the pod's batch, counted over all workloads.
        best: The number of equally good nodes.
    """

    batch: int
    node: str
    best: int


class Forecast(Struct, frozen=True):
    """A simulated run of the scheduler, and a summary of random runs.

    Attributes:
        placed: The placed pods in order.
        waiting: The number of pods without a node.
        stuck: The number of random runs that leave a pod without a node.
        runs: The number of random runs. 0 if all orders are equally good.
    """

    placed: tuple[_ForecastNode, ...]
    waiting: int
    stuck: int = 0
    runs: int = 0


def forecast(joint: JointVerdict, index: ClusterIndex, context: Context) -> Forecast | None:
    """Forecast the node of each pod of all simulated workloads.

    None for a rolling update, for an unknown placement, without pods, or with too many pods.
    """
    batches = batches_of(joint.workloads)
    pods, nodes = sum(batch.pods for batch in batches), max(1, len(index.nodes.view()))
    affordable = _MOST_SCORED // (max(1, pods) * nodes)
    if joint.unknown or not pods or not affordable or any(workload.rollout for workload in joint.workloads):
        return None
    first = _run(batches, index, context, None)
    if joint.whole.verdict is not PlacementVerdict.STUCK:
        return first
    runs, chance = min(_RUNS, affordable), Random(_SEED)  # noqa: S311 no secret
    stuck = sum(bool(_run(batches, index, context, chance).waiting) for _ in range(runs))
    return replace(first, stuck=stuck, runs=runs)


def _run(batches: Sequence[PodBatch], index: ClusterIndex, context: Context, chance: Random | None) -> Forecast:
    """Place one pod after the other on a node with the best score. Order and ties are random with ``chance``."""
    left, placed = [batch.pods for batch in batches], list[_ForecastNode]()
    tried = [*range(len(batches))]
    slots = index.nodes.view().slots
    wanted = sum((Counter(batch.volumes * batch.pods) for batch in batches), Counter[str]())
    free = {driver: free_attachments(driver, volumes, index) for driver, volumes in wanted.items()}
    with index.temporary_pods() as add:
        # Some batches wait until all pods of another batch are placed.
        while ready := [at for at in tried if left[at] and ((first := batches[at].behind) is None or not left[first])]:
            number = ready[0] if chance is None else chance.choices(ready, [left[at] for at in ready])[0]
            best = _best(batches[number], free, index, context)
            if not best:
                tried.remove(number)  # Skip this batch until another pod is placed.
                continue
            node = best[0] if chance is None else chance.choice(best)
            left[number] -= 1
            for driver in batches[number].volumes:
                if slots[node] in free[driver]:
                    free[driver][slots[node]] -= 1
            name = f"forecast/{len(placed)}"  # A unique name.
            placed.append(_ForecastNode(number, node, len(best)))
            add(pod_on_node(batches[number].problem.pod, node, name, name))
            tried = [*range(len(batches))]
    return Forecast(tuple(placed), sum(left))


def _best(
    batch: PodBatch, free: Mapping[str, Mapping[int, int]], index: ClusterIndex, context: Context
) -> tuple[str, ...]:
    """Return the best nodes. ``free`` has the free attachments of each CSI driver by node slot."""
    pod = batch.problem.pod
    problem = problem_of(pod, context)
    cycle, scoring = Cycle(problem), take_scoring(index, problem)
    feasible = cycle.verdict().feasible if batch.nodes is None else cycle.verdict().feasible & batch.nodes
    for driver in batch.volumes if NODE_VOLUME_LIMITS in problem.filters else ():
        needed = batch.volumes.count(driver)
        full = [slot for slot, attachable in free[driver].items() if attachable < needed]
        feasible &= ~node_sets.from_slots(full, problem.nodes.size)
    best = feasible if scoring is None else best_nodes(scoring, cycle, feasible)
    return tuple(problem.nodes.names[slot] for slot in node_sets.to_slots(best))
