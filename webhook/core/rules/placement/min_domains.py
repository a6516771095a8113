"""The rule about minDomains: a number of domains that the cluster does not have, so that maxSkew is a cap."""

from collections.abc import Iterator, Sequence

from webhook.core.changes.change import Change
from webhook.core.defaulting.injection import injected_into
from webhook.core.placement.proofs.constraint_room import ConstraintRoom, constraint_rooms
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.fixes import Fix
from webhook.core.rules.frame.rule import Finding, Severity
from webhook.core.rules.frame.subject import Placed, Subject
from webhook.core.rules.frame.usable_nodes import CAPPING_MIN_DOMAINS
from webhook.core.rules.placement.frame.case import TemplateUnderRule
from webhook.core.rules.placement.frame.each_template import PlacementRule
from webhook.core.rules.placement.frame.lost_zones import costs_pods
from webhook.core.rules.placement.frame.remedies import Remedy, fewer_domains, first_that_helps, hard_with, loosened
from webhook.core.text import plural

_FIELD = "minDomains"


def concerns(_subject: Subject, hard: Sequence[Placed]) -> bool:
    """Whether a hard constraint asks for several domains."""
    return any(map(_is_asking, hard))


def evaluate(case: TemplateUnderRule) -> Iterator[Finding]:
    """What the rule says of each constraint of one template."""
    if case.grows:
        return
    for tally, placed in zip(case.rooms, case.placed, strict=True):
        if _is_asking(placed) and not injected_into(placed.template.template):
            yield from _capped(case, tally, placed)


MIN_DOMAINS_UNREACHABLE = PlacementRule(
    id="min-domains-unreachable",
    title="minDomains is above the number of eligible domains, and caps the replicas",
    severity=Severity.MEDIUM,
    mode=Mode.AUDIT,
    only_audits=True,
    why=(
        "With fewer domains than minDomains the minimum is 0, so that maxSkew is a cap on the pods of each domain: the "
        "replicas above it stay Pending. No order of placing pods passes the number, if pods that run stay where they "
        "are; where something else caps them too, fewer fit. A fix is named only if with it all pods find a place in "
        "every order."
    ),
    of_template=evaluate,
    concerns=concerns,
)


def _is_asking(placed: Placed) -> bool:
    return 1 < (placed.constraint.min_domains or 1) < CAPPING_MIN_DOMAINS


def _capped(case: TemplateUnderRule, tally: ConstraintRoom, placed: Placed) -> Iterator[Finding]:
    """A minimum of 0 for ever: no domain gets more matching pods than maxSkew."""
    wanted, cap, admitted = placed.constraint.min_domains or 1, tally.limit.max_skew, tally.most
    eligible = tally.column.domains(tally.domains.counting)
    if not eligible or len(eligible) + _empty(case, tally) >= wanted or admitted is None or admitted >= case.wanted:
        return
    domain_count = len(eligible)
    # If as few fit without it, something else is the limit, and minDomains is not to blame.
    fewer = hard_with(case, _fewer(tally, placed))
    most = constraint_rooms(fewer, case.candidates, case.places.problem)[tally.hard.index].most
    if (most is not None and most <= admitted) or not case.has_room(admitted + 1):
        return
    domains, count = plural(domain_count, placed.noun), "counts" if domain_count == 1 else "count"
    said = f"{case.fit(admitted)}: minDomains is {wanted} but {domains} {count}"
    remedy = first_that_helps(case, admitted, _remedies(case, tally, placed), field=_FIELD, brings=costs_pods)
    yield Finding(
        rule=MIN_DOMAINS_UNREACHABLE.id,
        path=f"{placed.path}.{remedy.field}",
        summary=f"{said}, with at most {plural(cap, 'pod')}{'' if domain_count == 1 else ' each'}",
        remedy=remedy.words,
        warning=f"{said}; {remedy.words}".removesuffix("; "),
        detail=f"with fewer than minDomains {wanted} the minimum counts as 0, so that maxSkew {cap} is the most"
        f" matching pods that one {placed.noun} may hold: {domains} may hold {cap * domain_count} in all{case.stay}",
        **remedy.fix.fields,
        key=placed.key,
        at_most=case.at_most,
    )


def _empty(case: TemplateUnderRule, tally: ConstraintRoom) -> int:
    """The domains that the configuration names and that have no eligible node."""
    names, counting = case.subject.policy.domains.get(tally.column.key, ()), tally.domains.counting
    return sum(not tally.column.with_value(name) & counting for name in names)


def _fewer(tally: ConstraintRoom, placed: Placed) -> tuple[Change, ...]:
    return (Change(placed.index, _FIELD, tally.column.domain_count(tally.domains.counting)),)


def _remedies(case: TemplateUnderRule, tally: ConstraintRoom, placed: Placed) -> Iterator[Remedy]:
    """The changes to try, the smallest first."""
    yield from fewer_domains(case, tally)
    if tally.column.domain_count(tally.domains.counting) == 1:
        yield Remedy(_FIELD, "remove minDomains", Fix("remove minDomains"), hard_with(case, _fewer(tally, placed)))
    yield from loosened(case, placed)
