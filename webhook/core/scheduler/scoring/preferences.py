"""Scores of soft taints, preferred node affinity and preferred pod affinity.

Source: kube-scheduler tainttoleration/taint_toleration.go, nodeaffinity/node_affinity.go, interpodaffinity/scoring.go.
"""

from collections.abc import Iterable, Mapping, Sequence

from webhook.core.api.node_selectors import compile_node_selector
from webhook.core.api.tolerations import tolerates
from webhook.core.api.types import NodeSelector, PreferredSchedulingTerm, Taint, Toleration
from webhook.core.index import node_sets
from webhook.core.index.nodes import NodeView
from webhook.core.scheduler.plugins.node_selection import nodes_of_terms
from webhook.core.scheduler.plugins.spread_scoring import MAX_NODE_SCORE


def taint_toleration(
    taints: Mapping[int, Sequence[Taint]], tolerations: Sequence[Toleration] | None, feasible: Iterable[int]
) -> dict[int, int]:
    """Return the score of each feasible node, by node slot.

    Untolerated PreferNoSchedule taints lower the score.

    Source: tainttoleration/taint_toleration.go ``Score``, ``NormalizeScore``.
    """
    counts = {slot: _intolerable(taints.get(slot, ()), tolerations) for slot in feasible}
    return {slot: MAX_NODE_SCORE - share for slot, share in _scaled_to_highest(counts).items()}


def _intolerable(taints: Iterable[Taint], tolerations: Sequence[Toleration] | None) -> int:
    """Source: taint_toleration.go ``countIntolerableTaintsPreferNoSchedule``."""
    return sum(not any(tolerates(toleration, taint) for toleration in tolerations or ()) for taint in taints)


def node_affinity(
    view: NodeView, preferred: Iterable[PreferredSchedulingTerm], feasible: Iterable[int]
) -> dict[int, int] | None:
    """Score nodes by the weights of matching preferred terms. The scores are by slot. None for an invalid term.

    Source: nodeaffinity/node_affinity.go ``Score``; component-helpers nodeaffinity.go ``NewPreferredSchedulingTerms``.
    """
    weights = dict.fromkeys(feasible, 0)
    for term in preferred:
        written = (term.preference,) if term.preference is not None else ()
        compiled = compile_node_selector(NodeSelector(node_selector_terms=written))
        if term.weight and any(compiled_term.invalid for compiled_term in compiled):
            return None
        for slot in node_sets.to_slots(nodes_of_terms(view, compiled)):
            if slot in weights:
                weights[slot] += term.weight or 0
    return _scaled_to_highest(weights)


def _scaled_to_highest(scores: dict[int, int]) -> dict[int, int]:
    """Scale the scores so that the highest becomes 100. Source: helper/normalize_score.go ``DefaultNormalizeScore``."""
    highest = max(scores.values(), default=0)
    return {slot: MAX_NODE_SCORE * score // highest for slot, score in scores.items()} if highest else scores


def inter_pod_affinity(
    view: NodeView, term_weights: Iterable[tuple[str, Mapping[int, int]]], feasible: Iterable[int]
) -> dict[int, int]:
    """Score nodes by the weights of pods in their domains. The scores are by slot, and scaled.

    ``term_weights`` has for each topology key the weights of pods by slot. A weight counts for every node of the pod's
    domain.

    Source: interpodaffinity/scoring.go ``processTerm``, ``Score``, ``NormalizeScore``.
    """
    by_key: dict[str, dict[int, int]] = {}
    for key, weights in term_weights:
        domains, sums = view.column(key).domain_of, by_key.setdefault(key, {})
        for slot, weight in weights.items():
            sums[domains[slot]] = sums.get(domains[slot], 0) + weight
    totals = dict.fromkeys(feasible, 0)
    for key, sums in by_key.items():
        domains = view.column(key).domain_of
        for slot in totals:
            if domains[slot] >= 0:
                totals[slot] += sums.get(domains[slot], 0)
    lowest, highest = min(totals.values(), default=0), max(totals.values(), default=0)
    if lowest == highest:
        return dict.fromkeys(totals, 0)
    return {slot: int(MAX_NODE_SCORE * ((total - lowest) / (highest - lowest))) for slot, total in totals.items()}
