"""What volumes that are there already mean for a StatefulSet: part of `spread-conflicts-affinity`."""

from collections.abc import Iterator

from webhook.core.placement.bounds import Home, addable_pinned
from webhook.core.placement.constraint_room import ConstraintRoom
from webhook.core.placement.pinned_claims import Missing
from webhook.core.rules.frame.rule import Finding
from webhook.core.rules.frame.subject import Placed
from webhook.core.rules.placement.frame.case import TemplateUnderRule, noun
from webhook.core.rules.placement.frame.remedies import (
    NODE_AFFINITY_POLICY,
    NODE_TAINTS_POLICY,
    WHEN_UNSATISFIABLE_FIELD,
    Remedy,
    first_that_helps,
    honoring,
    softened,
)
from webhook.core.text import plural, quoted


def pinned_replicas(case: TemplateUnderRule, rule: str) -> Iterator[Finding]:
    """The pods that do not run yet and whose volumes are where the constraint will not have them."""
    missing = None if case.ordinals is None else case.ordinals.to_place(case.wanted)
    if missing is None or not missing.pinned:
        return
    running = case.wanted - sum(missing.pinned.values()) - missing.free
    for tally in case.rooms:
        homes, free = _homes(tally, missing)
        if not any(home.pinned for home in homes.values()):
            continue  # no volume holds a pod anywhere: what is in the way is something else
        placeable = running + free + sum(home.pinned for home in homes.values())
        admitted = running + addable_pinned(tuple(homes.values()), tally.limit, free)
        if admitted < placeable and tally.hard.certain and not tally.unsteady and case.has_room(case.wanted):
            yield _finding(rule, case, tally, homes, admitted)


def _homes(tally: ConstraintRoom, missing: Missing) -> tuple[dict[int, Home], int]:
    """The domains with the pods that can be in no other, and how many pods may choose; those without a node are out."""
    column, free = tally.column, missing.free
    pinned: dict[int, int] = {}
    for nodes, many in missing.pinned.items():
        choices = column.domains(nodes & tally.open)
        if len(choices) > 1:
            free += many
        for number in choices if len(choices) == 1 else ():
            pinned[number] = pinned.get(number, 0) + many
    opened = tally.open_domains
    counting = column.domains(tally.domains.counting)
    return {number: Home(tally.count(number), pinned.get(number, 0), number in opened) for number in counting}, free


def _finding(
    rule: str, case: TemplateUnderRule, tally: ConstraintRoom, homes: dict[int, Home], admitted: int
) -> Finding:
    placed = case.placed[tally.hard.index]
    remedy = first_that_helps(case, admitted, _remedies(case, placed), field=WHEN_UNSATISFIABLE_FIELD, brings=_nothing)
    number, home = max(homes.items(), key=lambda each: (each[1].pinned, -each[0]))
    named = case.subject.policy.messages.name_domains(tally.column.key)
    where = f"{noun(tally)} {quoted(tally.column.values[number], 40)}" if named else f"one {noun(tally)}"
    said = f"{case.fit(admitted)}: volumes hold {plural(home.pinned, 'pod')} in {where}"
    return Finding(
        rule=rule,
        path=f"{placed.path}.{remedy.field}",
        summary=said,
        remedy=remedy.words,
        detail=f"{said}, and {placed.name} lets no {noun(tally)} get further than maxSkew {tally.limit.max_skew} ahead"
        f" of the others; the pods that volumes hold there do not run yet{case.stay}",
        fix=remedy.fix.text,
        edits=remedy.fix.edits,
        key=placed.key,
        warns=admitted < case.wanted,
        at_most=case.at_most,
    )


def _nothing(_: TemplateUnderRule) -> bool:
    """Pods with volumes of their own are not made anew where their zone is lost."""
    return False


def _remedies(case: TemplateUnderRule, placed: Placed) -> Iterator[Remedy]:
    """The changes to try, the smallest first."""
    for fields in ((NODE_TAINTS_POLICY,), (NODE_AFFINITY_POLICY,), (NODE_AFFINITY_POLICY, NODE_TAINTS_POLICY)):
        yield from honoring(case, placed, *fields)
    yield from softened(case, placed)
    if len(case.placed) > 1:
        yield from softened(case, *case.placed)
