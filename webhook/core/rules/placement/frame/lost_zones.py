"""Count the pods left Pending after the loss of a zone.

The nodes of a lost zone still count, with 0 pods, so maxSkew limits the other zones.
"""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from webhook.core.api.tolerations import first_untolerated, is_evicted
from webhook.core.api.types import IGNORE
from webhook.core.api.well_known import FILTERING_EFFECTS, ZONE
from webhook.core.index import node_sets
from webhook.core.index.lost_nodes import UNREACHABLE
from webhook.core.placement.proofs.bounds import stranded
from webhook.core.placement.proofs.constraint_capacity import ConstraintCapacity, constraint_capacities
from webhook.core.placement.proofs.workload_problem import CountedConstraint
from webhook.core.rules.frame.subject import Placed
from webhook.core.rules.placement.frame.case import TemplateUnderRule


class Loss(NamedTuple):
    """The loss of a zone.

    Attributes:
        placed: The constraint that leaves pods Pending.
        zone: The zone's name.
        nodes: The zone's nodes.
        pending: The pods that stay Pending in every order.
    """

    placed: Placed
    zone: str
    nodes: int
    pending: int


def costs_pods(case: TemplateUnderRule) -> bool:
    """Whether the loss of some zone leaves pods Pending for certain."""
    return worst_loss(case) is not None


def worst_loss(case: TemplateUnderRule) -> Loss | None:
    """Return the zone loss that leaves the most pods Pending in every order.

    None if every zone can be lost without such Pending pods, or if missing capacity is the cause.
    """
    zones = case.facts.problem.nodes.column(ZONE)
    if not case.subject.workload.traits.replaces or zones.sets is None or not _is_moved(case):
        return None
    losses: list[tuple[int, str, int, Placed]] = []
    for zone, lost in case.subject.while_time_is_left(zip(zones.values, zones.sets, strict=True)):
        pending = _pending(case, lost)
        worst = max(pending, default=0)
        if worst:
            losses.append((-worst, zone, lost, case.placed[pending.index(worst)]))
    if not losses or not case.fits_today():
        return None
    for negative, zone, lost, placed in case.subject.while_time_is_left(sorted(losses, key=lambda each: each[:2])):
        if case.has_room(case.wanted + negative + 1, lost=lost):  # otherwise capacity is the cause
            return Loss(placed, zone, lost, -negative)
    return None


def _is_moved(case: TemplateUnderRule) -> bool:
    tolerations = case.facts.problem.pod.pod_spec.tolerations or ()
    keeps_off, evicts = UNREACHABLE
    is_kept_off = first_untolerated((keeps_off,), tolerations, FILTERING_EFFECTS) is not None
    return is_kept_off and is_evicted(tolerations, evicts)


def _pending(case: TemplateUnderRule, lost: int) -> Sequence[int]:
    """Return, for each constraint, a proven minimum of Pending pods after the zone loss. 0 without a proof."""
    if case.running == case.wanted:
        return _pending_of_running(case, lost)
    return [_pending_of_new(case, capacity, lost) if _counts_taints(capacity) else 0 for capacity in case.capacities]


def _counts_taints(capacity: ConstraintCapacity) -> bool:
    return capacity.domains.constraint.node_taints_policy == IGNORE and capacity.hard.certain


def _pending_of_running(case: TemplateUnderRule, lost: int) -> Sequence[int]:
    is_lost = node_sets.flags(lost, case.facts.problem.nodes.size)
    gone = sum(pods for slot, pods in case.facts.running.items() if is_lost[slot])
    if not gone or any(each.own != each.counts for each in case.facts.hard):
        return [0] * len(case.capacities)  # what becomes of pods of others is not known
    here = case.candidates
    left = replace(
        here,
        eligible=replace(here.eligible, tolerated=here.eligible.tolerated & ~lost),
        open=here.open & ~lost,
    )
    hard = tuple(_without(each, is_lost) for each in case.facts.hard)
    return [
        max(0, gone - capacity.addable) if _counts_taints(capacity) and capacity.addable is not None else 0
        for capacity in constraint_capacities(hard, left, case.facts.problem)
    ]


def _without(hard: CountedConstraint, is_lost: Sequence[int]) -> CountedConstraint:
    counts = {slot: pods for slot, pods in hard.counts.items() if not is_lost[slot]}
    return replace(hard, counts=counts, own=counts)


def _pending_of_new(case: TemplateUnderRule, capacity: ConstraintCapacity, lost: int) -> int:
    """Return the fewest Pending pods, over all placements, after losing nodes.

    0 if the workload has running pods, or the constraint already counts pods. ``lost`` is a bit set of nodes.
    """
    if capacity.hard.counts or case.running:
        return 0  # what stands there now may be further apart than the constraint would have let it
    column, before = capacity.column, capacity.open
    staying = column.domain_count(before & ~lost)
    gone = column.domain_count(before) - staying
    pinned = not capacity.limit.enough or any(cell.room == 0 for cell in capacity.cells)
    return stranded(case.wanted, capacity.limit.max_skew, staying, gone, pinned=pinned) if gone else 0
