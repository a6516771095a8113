"""PodTopologySpread's scores of nodes by soft constraints.

    raw score = sum over constraints of: matching pods in the node's domain * log(domains + 2) + maxSkew - 1
    score     = 100 * (highest + lowest - raw score) / highest

A lower raw score is better. The node with the lowest raw score gets the highest score.

Source: kube-scheduler podtopologyspread/scoring.go.
"""

import math
from collections.abc import Mapping

from msgspec import Struct

from webhook.core.api.well_known import HOSTNAME
from webhook.core.index import node_sets
from webhook.core.index.pods import Counts
from webhook.core.scheduler.plugins.pod_topology_spread import EligibleNodes
from webhook.core.scheduler.plugins.spread_constraints import Constraint, CountedConstraints

MAX_NODE_SCORE = 100  # kube-scheduler framework/interface.go MaxNodeScore
# Upstream's mark of nodes without a score. It also mistakes a raw score of -1 for this mark.
_INVALID = -1


class _ScoredNodes(Struct, frozen=True):
    """The nodes with the required keys, and the slots of the nodes to score. Source: scoring.go ``preScoreState``."""

    eligible: EligibleNodes
    with_keys: int
    scored: tuple[int, ...]


def scores(counted: CountedConstraints, eligible: EligibleNodes, feasible: int) -> dict[int, int] | None:
    """Return normalised scores by slot. None without a soft constraint.

    Source: scoring.go ``PreScore``, ``Score``, ``NormalizeScore``.
    """
    nodes = eligible.nodes
    if not counted.constraints or counted.error or not nodes.live:
        return None
    with_keys = nodes.live
    if counted.require_all:
        for constraint in counted.constraints:
            with_keys &= nodes.column(constraint.topology_key).present
    scoring = _ScoredNodes(eligible, with_keys, tuple(node_sets.to_slots(feasible & with_keys)))
    raw = dict.fromkeys(scoring.scored, 0.0)
    for constraint, counts in zip(counted.constraints, counted.counts, strict=True):
        domain_of = nodes.column(constraint.topology_key).domain_of
        # A key with many domains has few pods in each. The logarithm of their number makes keys comparable. A larger
        # maxSkew adds the same to every node and so reduces the relative differences.
        weight, pods_near = _weighed(constraint, counts, scoring)
        for slot in scoring.scored:
            # Only system defaults score nodes without the key. This constraint adds nothing to them.
            if domain_of[slot] >= 0:
                raw[slot] += pods_near.get(slot, 0) * weight + (constraint.max_skew - 1)
    rounded = {slot: _rounded(score) for slot, score in raw.items()}
    return {**dict.fromkeys(node_sets.to_slots(feasible), 0), **_normalised(rounded)}


def _weighed(constraint: Constraint, counts: Counts, scoring: _ScoredNodes) -> tuple[float, Counts]:
    """Return the weight of the topology key, and the matching pods in each scored node's domain.

    All scored nodes without the key share the domain of the empty value. Pods are counted per node for hostname,
    without node policies.

    Source: scoring.go ``PreScore``, ``topologyNormalizingWeight``.
    """
    if constraint.topology_key == HOSTNAME:
        return math.log(len(scoring.scored) + 2), counts
    column = scoring.eligible.nodes.column(constraint.topology_key)
    empty = column.numbers.get("", -1)

    def domain(slot: int) -> int:
        return empty if column.domain_of[slot] < 0 else column.domain_of[slot]

    considered = dict.fromkeys(map(domain, scoring.scored), 0)
    members = node_sets.flags(scoring.eligible.counted(constraint, scoring.with_keys), len(column.domain_of))
    for slot, number in counts.items():
        if members[slot] and domain(slot) in considered:
            considered[domain(slot)] += number
    return math.log(len(considered) + 2), {slot: considered[domain(slot)] for slot in scoring.scored}


def _rounded(score: float) -> int:
    """Round half away from zero. Source: math/floor.go ``Round``."""
    return math.floor(score + 0.5) if score >= 0 else math.ceil(score - 0.5)


def _normalised(raw: Mapping[int, int]) -> dict[int, int]:
    """Source: scoring.go ``NormalizeScore``."""
    if not raw:
        return {}
    lowest, highest = min(raw.values()), max(0, *raw.values())
    # Without matching pods all nodes are equally good.
    if highest == 0:
        return {slot: 0 if score == _INVALID else MAX_NODE_SCORE for slot, score in raw.items()}
    return {
        slot: 0 if score == _INVALID else _divided(MAX_NODE_SCORE * (highest + lowest - score), highest)
        for slot, score in raw.items()
    }


def _divided(number: int, divisor: int) -> int:
    """Divide and truncate towards zero, like Go. Source: scoring.go ``NormalizeScore``."""
    return number // divisor if number >= 0 else -(-number // divisor)
