"""The rule about tainted nodes that count for a constraint, and hold all others down with the few pods they have."""

from collections.abc import Iterator, Sequence

from webhook.core.api.types import IGNORE
from webhook.core.changes.change import NODE_AFFINITY_POLICY, NODE_TAINTS_POLICY
from webhook.core.placement.proofs.constraint_room import ConstraintRoom
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.rule import Finding, Severity, short_enough
from webhook.core.rules.frame.subject import Placed
from webhook.core.rules.placement.frame.case import TemplateUnderRule, counts_tainted_nodes, noun, staying
from webhook.core.rules.placement.frame.each_template import PlacementRule
from webhook.core.rules.placement.frame.lost_zones import costs_pods
from webhook.core.rules.placement.frame.remedies import first_that_helps, honoring
from webhook.core.text import plural


def evaluate(case: TemplateUnderRule) -> Iterator[Finding]:
    """What the rule says of one template."""
    for tally, placed in zip(case.rooms, case.placed, strict=True):
        constraint = tally.domains.constraint
        admitted, minimum = tally.most, tally.minimum
        if constraint.node_taints_policy != IGNORE or admitted is None or minimum is None or not tally.open:
            continue
        if not tally.limit.enough or (admitted >= case.most and not _rises(case, tally, minimum)):
            continue
        barred = tally.column.domains(case.candidates.barred & tally.domains.counting)
        held = [number for number in tally.closed & barred if tally.count(number) == minimum]
        if held and case.has_room(admitted + 1):
            yield _holding(case, tally, placed, held, admitted)


TAINTED = PlacementRule(
    id="tainted-nodes-counted",
    title="tainted nodes count with too few pods, which caps the other zones or nodes",
    severity=Severity.MEDIUM,
    mode=Mode.AUDIT,
    why=(
        "With nodeTaintsPolicy Ignore, the default, a domain whose nodes the pod does not tolerate counts all the "
        "same, with the pods that it has, most often 0: no other domain may hold more than maxSkew pods more. It warns "
        "where that caps the replicas. No order of placing pods passes the number, if pods that run stay where they "
        "are; where something else caps them too, fewer fit. A fix is named only if with it all pods find a place in "
        "every order."
    ),
    of_template=evaluate,
    concerns=counts_tainted_nodes,
)


def _rises(case: TemplateUnderRule, tally: ConstraintRoom, minimum: int) -> bool:
    """Whether the replicas are enough to lift every other domain above the minimum, and to pass maxSkew in one."""
    if case.wanted <= tally.limit.max_skew:
        return False
    # What it takes to lift all others above the minimum: before that, the tainted domain holds nothing down.
    missing = sum(
        domains * (minimum + 1 - cell.pods)
        for cell, domains in tally.cells.items()
        if cell.room != 0 and cell.pods <= minimum
    )
    return tally.placed + missing <= case.wanted


def _holding(
    case: TemplateUnderRule, tally: ConstraintRoom, placed: Placed, held: Sequence[int], admitted: int
) -> Finding:
    barred = case.candidates.barred & tally.domains.counting & tally.column.nodes_of(tuple(held))
    kind = "tainted" if barred & ~case.places.problem.nodes.unschedulable else "cordoned"
    said = staying(case, tally, held, kind)
    top = tally.limit.max_skew + tally.count(held[0])
    remedy = first_that_helps(
        case,
        admitted,
        (
            *honoring(case, placed, NODE_TAINTS_POLICY),
            *honoring(case, placed, NODE_TAINTS_POLICY, NODE_AFFINITY_POLICY),
        ),
        field=NODE_TAINTS_POLICY,
        brings=_brings,
    )
    lines = [f"{case.fit(admitted)}: {said}; {how}" for how in (remedy.words, remedy.words.removeprefix("set "))]
    return Finding(
        rule=TAINTED.id,
        path=f"{placed.path}.nodeTaintsPolicy",
        summary=f"{case.fit(admitted)}: {said}",
        remedy=remedy.words,
        warning=short_enough(TAINTED.id, *lines) if remedy.words else "",
        detail=(
            f"{case.fit(admitted)}: {said} ({plural(barred.bit_count(), 'node')}), and"
            f" maxSkew {tally.limit.max_skew} lets no other {noun(tally)} have more than {top};"
            f" nodeTaintsPolicy Ignore counts nodes although the pods do not tolerate their taints{case.stay}"
        ),
        **remedy.fix.fields,
        key=placed.key,
        warns=admitted < case.wanted,
        at_most=case.at_most,
    )


def _brings(case: TemplateUnderRule) -> bool:
    """Whether something else is to be said of a case."""
    return any(True for _ in case.ceilings()) or costs_pods(case)
