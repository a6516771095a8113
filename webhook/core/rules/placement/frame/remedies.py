"""Fixes of placement rules. They are tested smallest first, and the finding names the first successful fix."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import HONOR, IGNORE, NODE_TAINTS_POLICY, WHEN_UNSATISFIABLE
from webhook.core.changes.change import Change, Changes, hard_after, set_honor, soften
from webhook.core.placement.proofs.constraint_capacity import ConstraintCapacity, constraint_capacities
from webhook.core.placement.proofs.workload_problem import CountedConstraint
from webhook.core.rules.frame.fixes import Fix, all_of, changes, changes_in, removal, softening
from webhook.core.rules.frame.subject import Placed
from webhook.core.rules.placement.frame.case import TemplateUnderRule


class Remedy(Struct, frozen=True):
    """A change of a workload that resolves a finding. Empty if no change helps.

    Attributes:
        field: The field reported by the finding.
        words: The change, as text for a warning. Empty if no change helps.
        fix: The change, as a fix with edits. Empty if no change helps.
        hard: The hard constraints after the change.
        is_last_word: Whether the change ends the rule's findings for any number of pods. Such a change may place only
            the replicas, instead of the autoscaler's maximum.
    """

    field: str = WHEN_UNSATISFIABLE
    words: str = ""
    fix: Fix = Fix()
    hard: tuple[CountedConstraint, ...] = ()
    is_last_word: bool = True


def first_that_helps(
    case: TemplateUnderRule,
    admitted: int,
    remedies: Iterable[Remedy],
    *,
    field: str,
    brings: Callable[[TemplateUnderRule], bool],
) -> Remedy:
    """Return the first remedy after which every order places all pods.

    Without such a remedy, the result is an empty remedy. If ``brings`` finds a new problem after the remedy, the fix
    also sets nodeTaintsPolicy: Honor. If the problem remains, the fix is only text, without an edit.
    """
    tried = tuple(remedies)
    for target in case.targets(admitted):
        for each in tried:
            if (target == case.targets(admitted)[0] or each.is_last_word) and case.fits(each.hard, target):
                # A fix must not replace a finding with another.
                if not brings(case.with_hard(each.hard)) or brings(case):
                    return each
                more = _and_honoring(case, each)
                if more is None or not case.fits(more.hard, target) or brings(case.with_hard(more.hard)):
                    return replace(each, fix=each.fix.without_edits)
                return more
    return Remedy(field)


def fix_of(case: TemplateUnderRule, several: Changes) -> Fix:
    """Return the changes as a fix of the template."""
    placed = {each.index: each for each in case.placed}
    named, fixes = len({each.index for each in several}) > 1, []
    for index, group in groupby(several, key=lambda each: each.index):
        fields = {each.field: each.value for each in group}
        if fields.keys() & {WHEN_UNSATISFIABLE, ""}:
            fixes.append(softening(placed[index], case.subject.placed, named=named))
        else:
            fixes.append(changes(placed[index], at=None, named=named, **fields))
    return all_of(fixes)


def hard_with(case: TemplateUnderRule, several: Sequence[Change]) -> tuple[CountedConstraint, ...]:
    """The hard constraints of the template after the changes."""
    return tuple(
        replace(hard, constraint=after)
        for hard, placed in zip(case.facts.hard, case.placed, strict=True)
        if (after := hard_after(hard.constraint, placed.index, several)) is not None
    )


def _and_honoring(case: TemplateUnderRule, remedy: Remedy) -> Remedy | None:
    ignoring = [each.index for each in remedy.hard if each.constraint.node_taints_policy == IGNORE]
    hard = tuple(replace(each, constraint=replace(each.constraint, node_taints_policy=HONOR)) for each in remedy.hard)
    if not ignoring or not _spreads(case, hard):
        return None
    fix = changes_in([case.placed[each] for each in ignoring], _all_constraints(case), nodeTaintsPolicy=HONOR)
    return replace(remedy, fix=all_of((remedy.fix, fix)), hard=hard)


def honoring(case: TemplateUnderRule, placed: Placed, *fields: str) -> Iterator[Remedy]:
    """Yield fixes that change node policies from Ignore to Honor.

    The first fix changes this constraint, the second changes all constraints. If the first fix leaves this constraint
    with one domain, the constraint's removal replaces the first fix.
    """
    only = _honoring(case, (placed,), fields)
    every = _honoring(case, case.placed, fields)
    if only is not None:
        yield from (only,) if _spreads(case, only.hard) else _removed(case, placed)
    if every is not None and (only is None or every.hard != only.hard) and _spreads(case, every.hard):
        yield every


def _spreads(case: TemplateUnderRule, hard: Sequence[CountedConstraint]) -> bool:
    capacities = constraint_capacities(hard, case.candidates, case.facts.problem)
    return all(
        each.hard in case.facts.hard or each.column.domain_count(each.domains.counting) > 1 for each in capacities
    )


def _removed(case: TemplateUnderRule, placed: Placed) -> Iterator[Remedy]:
    """Yield the removal of the template's only constraint.

    A constraint next to others is kept: any constraint turns off the scheduler's default constraints.
    """
    if len(_all_constraints(case)) == 1:
        yield Remedy(WHEN_UNSATISFIABLE, f"remove {placed.name}", removal(placed), ())


def _honoring(case: TemplateUnderRule, several: Sequence[Placed], fields: Sequence[str]) -> Remedy | None:
    written = case.placed[0].template.pod.pod_spec.constraints
    changed = {field: [each for each in several if set_honor(written, each.index, field)] for field in fields}
    if not all(changed.values()):
        return None
    made = tuple(Change(each.index, field, HONOR) for field, group in changed.items() for each in group)
    words, every = f"set {' and '.join(fields)}: {HONOR}", _all_constraints(case)
    if len(several) == 1:
        fix = fix_of(case, made)
    else:
        fix = all_of(changes_in(group, every, **{field: HONOR}) for field, group in changed.items())
        touched = [each for each in several if any(each in group for group in changed.values())]
        names = "every constraint" if len(touched) == len(every) else " and ".join(each.name for each in touched)
        words = f"{words} in {names}"
    return Remedy(fields[0], words, fix, hard_with(case, made), is_last_word=fields[0] == NODE_TAINTS_POLICY)


def fewer_domains(case: TemplateUnderRule, capacity: ConstraintCapacity) -> Iterator[Remedy]:
    """Yield the change of minDomains to the number of domains. With a single domain, yield the constraint's removal."""
    placed, there = case.placed[capacity.hard.index], capacity.column.domain_count(capacity.domains.counting)
    if there > 1:
        made = (Change(placed.index, "minDomains", there),)
        words = f"use minDomains: {there}"
        yield Remedy("minDomains", words, fix_of(case, made), hard_with(case, made), is_last_word=False)
    else:
        yield from _removed(case, placed)


def _all_constraints(case: TemplateUnderRule) -> tuple[Placed, ...]:
    return tuple(each for each in case.subject.placed if each.template is case.placed[0].template)


def loosened(case: TemplateUnderRule, placed: Placed) -> Iterator[Remedy]:
    """Yield the change of this constraint to soft, then the change of all hard constraints."""
    yield from made_soft(case, placed)
    if len(case.placed) > 1:
        yield from made_soft(case, *case.placed)


def made_soft(case: TemplateUnderRule, *several: Placed) -> Iterator[Remedy]:
    """Yield the fix that makes these constraints soft.

    If the template already has the same soft constraint, the fix removes the hard one. If a constraint has fewer than
    two domains, the fix removes it, but only if the template has no other constraint.
    """
    domains = {each.hard.index: each.column.domain_count(each.domains.counting) for each in case.capacities}
    if any(domains[case.placed.index(each)] < 2 for each in several):
        yield from _removed(case, several[0])
        return
    written = case.placed[0].template.pod.pod_spec.constraints
    soft = [soften(written, each.index) for each in several]
    words = [
        f"make {each.short_name} ScheduleAnyway" if made[0].field else f"remove {each.name}"
        for each, made in zip(several, soft, strict=True)
    ]
    if len(several) > 1 and all(made[0].field for made in soft):
        words = [f"make {' and '.join(each.short_name for each in several)} ScheduleAnyway"]
    every = tuple(each for made in soft for each in made)
    yield Remedy(WHEN_UNSATISFIABLE, " and ".join(words), fix_of(case, every), hard_with(case, every))
