"""Where kube-scheduler would most likely put the pods: one after the other, each on a best node.

A forecast is no proof. Of several best nodes any is taken, pods come in any order, and scores that
`webhook.core.scheduler.scoring` leaves out may decide.
"""

from collections.abc import Sequence
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import Pod
from webhook.core.coming_pods.next_pod import problem_of
from webhook.core.context import Context
from webhook.core.index import node_sets
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.placement.game_from_cluster import PodBatch
from webhook.core.placement.simulation import Outcome
from webhook.core.scheduler.cycle import Cycle
from webhook.core.scheduler.scoring.node_scores import best_nodes, take_scoring
from webhook.core.what_if.play import Outcomes, batches_of, on_node

_RUNS = 100
# Nodes that are scored in all runs together, 10 µs each: so many that nobody waits for long.
_MOST_SCORED = 200_000
_SEED = 1  # any: equal questions get equal answers


class Likely(Struct, frozen=True):
    """A pod's most likely node; ``best`` is how many nodes were as good. Shape: ``batch`` counts over all workloads."""

    batch: int
    node: str
    best: int


class Forecast(Struct, frozen=True):
    """One run: where pods were placed, in order, and how many found no node.

    ``stuck`` counts the runs with such a pod among ``runs`` that broke ties by chance; 0 if one order is as good as
    any.
    """

    placed: tuple[Likely, ...]
    waiting: int
    stuck: int = 0
    runs: int = 0


def forecast(of: Outcomes, index: ClusterIndex, within: Context) -> Forecast | None:
    """The forecast for all workloads; None for a rolling update, and if it would take too long."""
    batches = batches_of(of.workloads)
    pods, nodes = sum(each.pods for each in batches), max(1, len(index.nodes.view()))
    affordable = _MOST_SCORED // (max(1, pods) * nodes)
    if of.unknown or not pods or not affordable or any(each.rollout for each in of.workloads):
        return None
    first = _run(batches, index, within, None)
    if of.whole.outcome is not Outcome.STUCK:
        return first
    runs, chance = min(_RUNS, affordable), Random(_SEED)  # noqa: S311 no secret
    stuck = sum(bool(_run(batches, index, within, chance).waiting) for _ in range(runs))
    return replace(first, stuck=stuck, runs=runs)


def _run(batches: Sequence[PodBatch], index: ClusterIndex, within: Context, chance: Random | None) -> Forecast:
    """One pod after the other; without ``chance`` in the order of the batches, each on the first of its best nodes."""
    left, placed, made = [each.pods for each in batches], list[Likely](), list[Pod]()
    tried = [*range(len(batches))]
    # Those of a batch come only after all of the batch that it is behind.
    while ready := [at for at in tried if left[at] and ((first := batches[at].behind) is None or not left[first])]:
        number = ready[0] if chance is None else chance.choices(ready, [left[each] for each in ready])[0]
        best = _best(batches[number], number, placed, index, within)
        if not best:
            tried.remove(number)  # until another pod found its place
            continue
        node = best[0] if chance is None else chance.choice(best)
        left[number] -= 1
        placed.append(Likely(number, node, len(best)))
        name = f"forecast/{len(made)}"  # that no other pod has
        made.append(on_node(batches[number].problem.pod, node, name, name))
        index.change("ADDED", made[-1])
        tried = [*range(len(batches))]
    for each in made:
        index.change("DELETED", each)
    return Forecast(tuple(placed), sum(left))


def _best(
    batch: PodBatch, number: int, placed: Sequence[Likely], index: ClusterIndex, within: Context
) -> tuple[str, ...]:
    pod = batch.problem.pod
    problem = problem_of(pod, within)
    cycle, scoring = Cycle(problem), take_scoring(index, problem)
    feasible = cycle.verdict().feasible if batch.nodes is None else cycle.verdict().feasible & batch.nodes
    for slot, room in batch.room.items():
        name = problem.nodes.names[slot]
        if sum(each.batch == number and each.node == name for each in placed) >= room:
            feasible &= ~(1 << slot)
    best = feasible if scoring is None else best_nodes(scoring, cycle, feasible)
    return tuple(problem.nodes.names[slot] for slot in node_sets.to_slots(best))
