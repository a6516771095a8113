"""What nodes are liked for: soft taints, preferred node affinity, and preferences between pods.

Source: kube-scheduler tainttoleration/taint_toleration.go, nodeaffinity/node_affinity.go, interpodaffinity/scoring.go.
"""

from collections.abc import Iterable, Mapping, Sequence

from webhook.core.api.selectors import compile_node_selector, tolerates
from webhook.core.api.types import NodeSelector, PreferredSchedulingTerm, Taint, Toleration
from webhook.core.index import node_sets
from webhook.core.index.nodes import NodeView
from webhook.core.scheduler.plugins.node_selection import nodes_of_terms
from webhook.core.scheduler.scoring.allocation import MAX_NODE_SCORE


def taint_toleration(
    taints: Mapping[int, Sequence[Taint]], tolerations: Sequence[Toleration] | None, feasible: Iterable[int]
) -> dict[int, int]:
    """The scores by slot: the fewer soft taints a node has that the pod does not tolerate, the better.

    Source: tainttoleration/taint_toleration.go ``Score``, ``NormalizeScore``.
    """
    counts = {slot: _intolerable(taints.get(slot, ()), tolerations) for slot in feasible}
    return {slot: MAX_NODE_SCORE - share for slot, share in _of_highest(counts).items()}


def _intolerable(taints: Iterable[Taint], tolerations: Sequence[Toleration] | None) -> int:
    """Source: taint_toleration.go ``countIntolerableTaintsPreferNoSchedule``."""
    return sum(not any(tolerates(each, taint) for each in tolerations or ()) for taint in taints)


def node_affinity(
    view: NodeView, preferred: Iterable[PreferredSchedulingTerm], feasible: Iterable[int]
) -> dict[int, int] | None:
    """The scores by slot: the sum of the weights of the terms that select the node; None for a term that is invalid.

    Source: nodeaffinity/node_affinity.go ``Score``; component-helpers nodeaffinity.go ``NewPreferredSchedulingTerms``.
    """
    weights = dict.fromkeys(feasible, 0)
    for term in preferred:
        written = (term.preference,) if term.preference is not None else ()
        compiled = compile_node_selector(NodeSelector(node_selector_terms=written))
        if term.weight and any(each.invalid for each in compiled):
            return None
        for slot in node_sets.to_slots(nodes_of_terms(view, compiled)):
            if slot in weights:
                weights[slot] += term.weight or 0
    return _of_highest(weights)


def _of_highest(scores: dict[int, int]) -> dict[int, int]:
    """The scores as shares of the highest. Source: helper/normalize_score.go ``DefaultNormalizeScore``."""
    highest = max(scores.values(), default=0)
    return {slot: MAX_NODE_SCORE * score // highest for slot, score in scores.items()} if highest else scores


def inter_pod_affinity(
    view: NodeView, drawn: Iterable[tuple[str, Mapping[int, int]]], feasible: Iterable[int]
) -> dict[int, int]:
    """The scores by slot: the weights in all of its domains, between the lowest and the highest sum.

    Shape: ``drawn`` are topology keys, each with what pods on a node add to every node of its domain.
    Source: interpodaffinity/scoring.go ``processTerm``, ``Score``, ``NormalizeScore``.
    """
    by_key: dict[str, dict[int, int]] = {}
    for key, weights in drawn:
        of, sums = view.column(key).of, by_key.setdefault(key, {})
        for slot, weight in weights.items():
            sums[of[slot]] = sums.get(of[slot], 0) + weight
    totals = dict.fromkeys(feasible, 0)
    for key, sums in by_key.items():
        of = view.column(key).of
        for slot in totals:
            if of[slot] >= 0:
                totals[slot] += sums.get(of[slot], 0)
    lowest, highest = min(totals.values(), default=0), max(totals.values(), default=0)
    if lowest == highest:
        return dict.fromkeys(totals, 0)
    return {slot: int(MAX_NODE_SCORE * ((each - lowest) / (highest - lowest))) for slot, each in totals.items()}
