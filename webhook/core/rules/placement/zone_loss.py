"""The rule about the loss of a zone: its nodes stay for a while, count with no pod, and hold the other zones down."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from webhook.core.api.selectors import first_untolerated
from webhook.core.api.types import IGNORE, Taint
from webhook.core.api.well_known import FILTERING_EFFECTS, NO_EXECUTE, NO_SCHEDULE, TAINT_UNREACHABLE, ZONE
from webhook.core.index import node_sets
from webhook.core.placement.bounds import stranded
from webhook.core.placement.constraint_room import ConstraintRoom, constraint_rooms
from webhook.core.placement.workload_problem import CountedConstraint
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.rule import Finding, Rule, Severity
from webhook.core.rules.frame.subject import Placed
from webhook.core.rules.placement.case import TemplateUnderRule, is_replaced
from webhook.core.rules.placement.remedies import NOTHING, TAINTS, Remedy, honoring
from webhook.core.text import plural, quoted

ZONE_LOSS = Rule(
    id="zone-loss-strands-pods",
    title="replacements stay Pending if one zone is lost",
    severity=Severity.MEDIUM,
    mode=Mode.AUDIT,
    why=(
        "The nodes of a lost zone stay in the cluster, tainted and not ready, until somebody removes them. Under "
        "nodeTaintsPolicy Ignore, the default, their zone counts with 0 pods, and the other zones may not take the "
        "replacements. The number is of the zone whose loss costs most: so many stay Pending whatever the order in "
        "which pods are placed, and in some orders more."
    ),
    silent=(
        "where it is not certain that all replicas fit today; where the pods that stay Pending would find no room "
        "without hard constraints either; for kinds whose pods are not replaced by themselves when their node is gone "
        "(StatefulSets), and pods that tolerate that for ever; where pods of other workloads are counted, or only some "
        "of the replicas run."
    ),
)
# Kubernetes puts them on every node that it does not hear of: one keeps pods off, the other takes those there away,
# unless they tolerate it for ever.
_KEEPS_OFF = Taint(key=TAINT_UNREACHABLE, effect=NO_SCHEDULE)
_EVICTS = Taint(key=TAINT_UNREACHABLE, effect=NO_EXECUTE)


def evaluate(case: TemplateUnderRule) -> Iterator[Finding]:
    """What the rule says of one template."""
    for placed, zone, lost, pending in _worst(case):
        yield _finding(case, placed, zone, lost, pending)


def speaks(case: TemplateUnderRule) -> bool:
    """Whether there is something to be said."""
    return any(True for _ in _worst(case))


def _worst(case: TemplateUnderRule) -> Iterator[tuple[Placed, str, int, int]]:
    """The zone whose loss costs most, if there is one, with its nodes, how many pods, and the constraint to blame."""
    zones = case.places.problem.nodes.column(ZONE)
    if not is_replaced(case.subject.workload) or zones.sets is None or not _is_moved(case):
        return
    found: list[tuple[int, str, int, Placed]] = []
    for zone, lost in case.subject.timely(zip(zones.values, zones.sets, strict=True)):
        pending = _pending(case, lost)
        worst = max(pending, default=0)
        if worst:
            found.append((-worst, zone, lost, case.placed[pending.index(worst)]))
    if not found or not case.fits_today():
        return
    for negative, zone, lost, placed in case.subject.timely(sorted(found, key=lambda each: each[:2])):
        if case.has_room(case.wanted + negative + 1, lost=lost):  # else it is room that they lack
            yield placed, zone, lost, -negative
            return


def _is_moved(case: TemplateUnderRule) -> bool:
    """Whether pods leave a node that is not heard of, and no new ones go there."""
    tolerations = case.places.problem.pod.pod_spec.tolerations or ()
    for_ever = tuple(each for each in tolerations if each.toleration_seconds is None)
    return (
        first_untolerated((_KEEPS_OFF,), tolerations, FILTERING_EFFECTS) is not None
        and first_untolerated((_EVICTS,), for_ever, FILTERING_EFFECTS) is not None
    )


def _pending(case: TemplateUnderRule, lost: int) -> Sequence[int]:
    """The fewest replacements that each constraint leaves Pending if these nodes are lost; 0 if nothing is proven."""
    if case.running == case.wanted:
        return _pending_of_running(case, lost)
    return [_pending_of_new(case, tally, lost) if _counts_taints(tally) else 0 for tally in case.rooms]


def _counts_taints(tally: ConstraintRoom) -> bool:
    return tally.domains.constraint.node_taints_policy == IGNORE and tally.hard.certain


def _pending_of_running(case: TemplateUnderRule, lost: int) -> Sequence[int]:
    """Where all replicas run: those on lost nodes, without the ones that find a place beside the others."""
    is_lost = node_sets.flags(lost, case.places.problem.nodes.size)
    gone = sum(pods for slot, pods in case.places.running.items() if is_lost[slot])
    if not gone or any(each.own != each.counts for each in case.places.hard):
        return [0] * len(case.rooms)  # what becomes of pods of others is not known
    here = case.candidates
    left = replace(
        here,
        eligible=replace(here.eligible, tolerated=here.eligible.tolerated & ~lost),
        open=here.open & ~lost,
    )
    hard = tuple(_without(each, is_lost) for each in case.places.hard)
    return [
        max(0, gone - tally.addable) if _counts_taints(tally) and tally.addable is not None else 0
        for tally in constraint_rooms(hard, left, case.places.problem)
    ]


def _without(hard: CountedConstraint, is_lost: Sequence[int]) -> CountedConstraint:
    counts = {slot: pods for slot, pods in hard.counts.items() if not is_lost[slot]}
    return replace(hard, counts=counts, own=counts)


def _pending_of_new(case: TemplateUnderRule, tally: ConstraintRoom, lost: int) -> int:
    """Where none runs: however they are placed before the loss."""
    if tally.hard.counts or case.running:
        return 0  # what stands there now may be further apart than the constraint would have let it
    column, before = tally.column, tally.open
    staying = column.domain_count(before & ~lost)
    gone = column.domain_count(before) - staying
    pinned = not tally.limit.enough or any(cell.room == 0 for cell in tally.cells)
    return stranded(case.wanted, tally.limit.max_skew, staying, gone, pinned=pinned) if gone else 0


def _finding(case: TemplateUnderRule, placed: Placed, zone: str, lost: int, pending: int) -> Finding:
    remedy = _remedy(case, placed, lost)
    name = f"zone {quoted(zone, 40)}" if case.subject.policy.messages.name_domains(ZONE) else "a zone"
    said = f"if {name} goes NotReady, at least {pending} of {case.wanted} stay Pending"
    return Finding(
        rule=ZONE_LOSS.id,
        path=f"{placed.path}.{TAINTS}",
        summary=said,
        remedy=remedy.words,
        detail=f"{said}: its nodes are tainted and still count for {placed.name} with 0 pods,"
        f" so that no other {placed.noun} may have more than {plural(placed.constraint.max_skew or 0, 'pod')}",
        fix=remedy.fix.text,
        edits=remedy.fix.edits,
        key=placed.key,
        warns=False,
    )


def _remedy(case: TemplateUnderRule, placed: Placed, lost: int) -> Remedy:
    """What lets all replicas run, before and after the loss, and leaves nothing to be said of another zone."""
    for each in honoring(case, placed, TAINTS):
        after = case.fits(each.hard, case.wanted, lost=lost)
        if after and case.fits(each.hard, case.wanted) and not _goes_on(case, each):
            return each
    return NOTHING


def _goes_on(case: TemplateUnderRule, remedy: Remedy) -> bool:
    """Whether the loss of another zone costs pods all the same."""
    ignoring = any(each.constraint.node_taints_policy == IGNORE for each in remedy.hard)
    return ignoring and speaks(case.with_hard(remedy.hard))
