"""The changes that rules about places offer: each is tried, smallest first, and the first that helps is named."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import HONOR, IGNORE
from webhook.core.changes.fix import Fix, all_of, without_edits
from webhook.core.placement.proofs.constraint_room import constraint_rooms
from webhook.core.placement.proofs.workload_problem import CountedConstraint
from webhook.core.rules.frame.edits import changes, changes_in, removal, softening
from webhook.core.rules.frame.subject import Placed
from webhook.core.rules.placement.frame.case import TemplateUnderRule

NODE_TAINTS_POLICY = "nodeTaintsPolicy"
NODE_AFFINITY_POLICY = "nodeAffinityPolicy"
WHEN_UNSATISFIABLE_FIELD = "whenUnsatisfiable"
_ATTRIBUTES = {NODE_TAINTS_POLICY: "node_taints_policy", NODE_AFFINITY_POLICY: "node_affinity_policy"}


class Remedy(Struct, frozen=True):
    """One change; without words and fix where there is none.

    Shape: ``field`` is what the finding points at, ``words`` are for a warning, ``hard`` the hard constraints after
    it. ``is_last_word`` says that the rule has nothing to say of the constraint afterwards, however many pods fit.
    """

    field: str = WHEN_UNSATISFIABLE_FIELD
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
    """The first after which all pods find a place in every order, else nothing, at that field.

    Shape: ``brings`` is whether something else is to be said of a case, now that all pods fit. Then the fix leaves
    nodes that pods do not tolerate out of the count as well; where that does not do either, it is for people alone.
    """
    tried = tuple(remedies)
    for target in case.targets(admitted):
        for each in tried:
            if (target == case.targets(admitted)[0] or each.is_last_word) and case.fits(each.hard, target):
                # A fix must not trade one finding for another.
                if not brings(case.with_hard(each.hard)) or brings(case):
                    return each
                more = _and_honoring(case, each)
                if more is None or not case.fits(more.hard, target) or brings(case.with_hard(more.hard)):
                    return replace(each, fix=without_edits(each.fix))
                return more
    return Remedy(field)


def _and_honoring(case: TemplateUnderRule, remedy: Remedy) -> Remedy | None:
    """The same, with nodeTaintsPolicy Honor in the hard constraints that are left."""
    left = tuple(case.placed[each.index] for each in remedy.hard if _ignores(each, NODE_TAINTS_POLICY))
    hard = tuple(_with_policies(each, (NODE_TAINTS_POLICY,)) for each in remedy.hard)
    if not left or not _spreads(case, hard):
        return None
    fix = changes_in(left, _constraints(case), nodeTaintsPolicy=HONOR)
    return replace(remedy, fix=all_of((remedy.fix, fix)), hard=hard)


def honoring(case: TemplateUnderRule, placed: Placed, *fields: str) -> Iterator[Remedy]:
    """Policies that are Ignore made Honor: in this constraint, then in all that have them.

    Shape: a constraint that this leaves a single domain would have no effect: it is taken out instead.
    """
    only = _honoring(case, (placed,), fields)
    every = _honoring(case, case.placed, fields)
    if only is not None:
        yield from (only,) if _spreads(case, only.hard) else removed(case, placed)
    if every is not None and (only is None or every.hard != only.hard) and _spreads(case, every.hard):
        yield every


def _spreads(case: TemplateUnderRule, hard: Sequence[CountedConstraint]) -> bool:
    """Whether each of the constraints that are not as they were has two domains or more."""
    rooms = constraint_rooms(hard, case.candidates, case.places.problem)
    return all(
        tally.hard in case.places.hard or tally.column.domain_count(tally.domains.counting) > 1 for tally in rooms
    )


def removed(case: TemplateUnderRule, placed: Placed) -> Iterator[Remedy]:
    """Remove a constraint of one domain, if it is the only one; beside others, it keeps defaults away."""
    if len(_constraints(case)) == 1:
        yield Remedy(WHEN_UNSATISFIABLE_FIELD, f"remove {placed.name}", removal(placed), ())


def _honoring(case: TemplateUnderRule, several: Sequence[Placed], fields: Sequence[str]) -> Remedy | None:
    changed = {
        field: tuple(each for each in several if _ignores(case.places.hard[case.placed.index(each)], field))
        for field in fields
    }
    if not all(changed.values()):
        return None
    hard = tuple(
        _with_policies(each, [field for field in fields if placed in changed[field]])
        for each, placed in zip(case.places.hard, case.placed, strict=True)
    )
    constraints = _constraints(case)
    if len(several) == 1:
        fix = changes(several[0], at=None, named=False, **dict.fromkeys(fields, HONOR))
    else:
        fix = all_of(changes_in(changed[field], constraints, **{field: HONOR}) for field in fields)
    where = ""
    if len(several) > 1:
        touched = [each for each in several if any(each in group for group in changed.values())]
        where = f" in {_names(touched, constraints)}"
    return Remedy(
        fields[0],
        f"set {' and '.join(fields)}: {HONOR}{where}",
        fix,
        hard,
        is_last_word=fields[0] == NODE_TAINTS_POLICY,
    )


def _with_policies(hard: CountedConstraint, fields: Iterable[str]) -> CountedConstraint:
    honored = {_ATTRIBUTES[field]: HONOR for field in fields}
    return replace(hard, constraint=replace(hard.constraint, **honored))


def _constraints(case: TemplateUnderRule) -> tuple[Placed, ...]:
    """All constraints of the template, soft ones included."""
    return tuple(each for each in case.subject.placed if each.template is case.placed[0].template)


def _names(several: Sequence[Placed], every: Sequence[Placed]) -> str:
    return "every constraint" if len(several) == len(every) else " and ".join(each.name for each in several)


def _ignores(hard: CountedConstraint, field: str) -> bool:
    return bool(getattr(hard.constraint, _ATTRIBUTES[field]) == IGNORE)


def softened(case: TemplateUnderRule, *several: Placed) -> Iterator[Remedy]:
    """Constraints made soft; where a soft twin of one is there, out with it.

    Shape: a soft constraint that has a single domain would have no effect: where it is the only one, it is taken out.
    """
    domains = {tally.hard.index: tally.column.domain_count(tally.domains.counting) for tally in case.rooms}
    if any(domains[case.placed.index(each)] < 2 for each in several):
        yield from removed(case, several[0])
        return
    fixes = [softening(each, case.subject.placed, named=len(several) > 1) for each in several]
    words = [
        f"remove {each.name}" if fix.text.startswith("remove") else f"make {each.short_name} ScheduleAnyway"
        for each, fix in zip(several, fixes, strict=True)
    ]
    if len(several) > 1 and all(each.startswith("make") for each in words):
        words = [f"make {' and '.join(each.short_name for each in several)} ScheduleAnyway"]
    kept = tuple(each for each, placed in zip(case.places.hard, case.placed, strict=True) if placed not in several)
    yield Remedy(WHEN_UNSATISFIABLE_FIELD, " and ".join(words), all_of(fixes), kept)
