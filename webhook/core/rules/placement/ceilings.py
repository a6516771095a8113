"""Find limits on the number of replicas that can get a node.

The causes are counted tainted nodes, too few domains, or a small zone with full hosts. Each limit holds in every
placement order. A fix is suggested only if all pods then fit in every order.
"""

from collections.abc import Iterator, Sequence

from webhook.core.api.types import IGNORE, NODE_AFFINITY_POLICY, NODE_TAINTS_POLICY, WHEN_UNSATISFIABLE
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.changes.change import Change
from webhook.core.defaulting.record import injected_constraints
from webhook.core.placement.proofs.constraint_capacity import ConstraintCapacity, constraint_capacities
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.fixes import Fix
from webhook.core.rules.frame.rule import Finding, Severity, short_enough
from webhook.core.rules.frame.subject import Placed, Subject
from webhook.core.rules.frame.usable_nodes import CAPPING_MIN_DOMAINS
from webhook.core.rules.placement.frame.case import (
    PlacementRule,
    TemplateUnderRule,
    counts_tainted_nodes,
    noun,
    staying,
)
from webhook.core.rules.placement.frame.lost_zones import costs_pods
from webhook.core.rules.placement.frame.remedies import (
    Remedy,
    fewer_domains,
    first_that_helps,
    hard_with,
    honoring,
    loosened,
    made_soft,
)
from webhook.core.text import plural


def _tainted(case: TemplateUnderRule) -> Iterator[Finding]:
    for capacity, placed in zip(case.capacities, case.placed, strict=True):
        constraint = capacity.domains.constraint
        admitted, minimum = capacity.most, capacity.minimum
        if constraint.node_taints_policy != IGNORE or admitted is None or minimum is None or not capacity.open:
            continue
        if not capacity.limit.enough or (admitted >= case.most and not _rises(case, capacity, minimum)):
            continue
        barred = capacity.column.domains(case.candidates.barred & capacity.domains.counting)
        held = [number for number in capacity.closed & barred if capacity.count(number) == minimum]
        if held and case.has_room(admitted + 1):
            yield _holding(case, capacity, placed, held, admitted)


TAINTED = PlacementRule(
    id="tainted-nodes-counted",
    title="tainted nodes count as nearly empty domains and limit the others",
    severity=Severity.MEDIUM,
    mode=Mode.AUDIT,
    why=(
        "With `nodeTaintsPolicy: Ignore`, the default, a domain counts even if your pods tolerate none of its "
        "nodes. It usually stays at 0 pods, so every other domain can hold only maxSkew pods. The rule reports "
        "this if it caps your replicas."
    ),
    of_template=_tainted,
    concerns=counts_tainted_nodes,
)


def _rises(case: TemplateUnderRule, capacity: ConstraintCapacity, minimum: int) -> bool:
    """Whether the closed domain will limit the workload's other pods.

    The replicas must exceed maxSkew, and must suffice to raise every domain with capacity above the global minimum.
    """
    if case.wanted <= capacity.limit.max_skew:
        return False
    # The pods needed to lift all others above the minimum. Until then, the tainted domain limits nothing.
    missing = sum(
        domains * (minimum + 1 - cell.pods)
        for cell, domains in capacity.cells.items()
        if cell.room != 0 and cell.pods <= minimum
    )
    return capacity.placed + missing <= case.wanted


def _holding(
    case: TemplateUnderRule, capacity: ConstraintCapacity, placed: Placed, held: Sequence[int], admitted: int
) -> Finding:
    barred = case.candidates.barred & capacity.domains.counting & capacity.column.nodes_of(tuple(held))
    kind = "tainted" if barred & ~case.facts.problem.nodes.unschedulable else "cordoned"
    said = staying(case, capacity, held, kind)
    top = capacity.limit.max_skew + capacity.count(held[0])
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
    return TAINTED.finding(
        placed,
        "nodeTaintsPolicy",
        remedy.fix,
        summary=f"{case.fit(admitted)}: {said}",
        remedy=remedy.words,
        warning=short_enough(TAINTED.id, *lines) if remedy.words else "",
        detail=(
            f"{case.fit(admitted)}: {said} ({plural(barred.bit_count(), 'node')}), and"
            f" maxSkew {capacity.limit.max_skew} limits every other {noun(capacity)} to {top};"
            f" nodeTaintsPolicy: Ignore counts nodes with taints the pods do not tolerate{case.stay}"
        ),
        warns=admitted < case.wanted,
        at_most=case.at_most,
    )


def _brings(case: TemplateUnderRule) -> bool:
    return any(True for _ in case.ceilings()) or costs_pods(case)


_MIN_DOMAINS = "minDomains"


def _asks_for_domains(_subject: Subject, hard: Sequence[Placed]) -> bool:
    """Whether a hard constraint requires several domains by minDomains."""
    return any(map(_is_asking, hard))


def _too_few_domains(case: TemplateUnderRule) -> Iterator[Finding]:
    if case.grows:
        return
    for capacity, placed in zip(case.capacities, case.placed, strict=True):
        if _is_asking(placed) and not injected_constraints(placed.template.pod):
            yield from _capped_by_domains(case, capacity, placed)


MIN_DOMAINS_UNREACHABLE = PlacementRule(
    id="min-domains-unreachable",
    title="minDomains exceeds the number of eligible domains and caps the replicas",
    severity=Severity.MEDIUM,
    mode=Mode.AUDIT,
    only_audits=True,
    why=(
        "With fewer eligible domains than minDomains, the global minimum is 0. maxSkew then caps the pods in each "
        "domain, and your other replicas stay Pending."
    ),
    of_template=_too_few_domains,
    concerns=_asks_for_domains,
)


def _is_asking(placed: Placed) -> bool:
    return 1 < (placed.constraint.min_domains or 1) < CAPPING_MIN_DOMAINS


def _capped_by_domains(case: TemplateUnderRule, capacity: ConstraintCapacity, placed: Placed) -> Iterator[Finding]:
    """Yield a finding if fewer domains than minDomains exist. The minimum is then 0, and maxSkew caps each domain."""
    wanted, cap, admitted = placed.constraint.min_domains or 1, capacity.limit.max_skew, capacity.most
    eligible = capacity.column.domains(capacity.domains.counting)
    if not eligible or len(eligible) + _empty(case, capacity) >= wanted or admitted is None or admitted >= case.wanted:
        return
    domain_count = len(eligible)
    # If as few fit without it, something else is the limit, and minDomains is not to blame.
    fewer = hard_with(case, _fewer(capacity, placed))
    most = constraint_capacities(fewer, case.candidates, case.facts.problem)[capacity.hard.index].most
    if (most is not None and most <= admitted) or not case.has_room(admitted + 1):
        return
    domains = plural(domain_count, placed.noun)
    said = f"{case.fit(admitted)}: minDomains {wanted}, but {plural(domain_count, f'eligible {placed.noun}')}"
    remedy = first_that_helps(
        case, admitted, _fixes_of_domains(case, capacity, placed), field=_MIN_DOMAINS, brings=costs_pods
    )
    yield MIN_DOMAINS_UNREACHABLE.finding(
        placed,
        remedy.field,
        remedy.fix,
        summary=f"{said}, with at most {plural(cap, 'pod')}{'' if domain_count == 1 else ' each'}",
        remedy=remedy.words,
        warning=f"{said}; {remedy.words}".removesuffix("; "),
        detail=f"with fewer eligible {placed.noun}s than minDomains {wanted} the global minimum is 0, so maxSkew {cap}"
        f" limits each {placed.noun} to {plural(cap, 'matching pod')}; {domains} can hold"
        f" {cap * domain_count}{case.stay}",
        at_most=case.at_most,
    )


def _empty(case: TemplateUnderRule, capacity: ConstraintCapacity) -> int:
    names, counting = case.subject.policy.domains.get(capacity.column.key, ()), capacity.domains.counting
    return sum(not capacity.column.with_value(name) & counting for name in names)


def _fewer(capacity: ConstraintCapacity, placed: Placed) -> tuple[Change, ...]:
    return (Change(placed.index, _MIN_DOMAINS, capacity.column.domain_count(capacity.domains.counting)),)


def _fixes_of_domains(case: TemplateUnderRule, capacity: ConstraintCapacity, placed: Placed) -> Iterator[Remedy]:
    yield from fewer_domains(case, capacity)
    if capacity.column.domain_count(capacity.domains.counting) == 1:
        yield Remedy(
            _MIN_DOMAINS, "remove minDomains", Fix("remove minDomains"), hard_with(case, _fewer(capacity, placed))
        )
    yield from loosened(case, placed)


_MAX_ZONES_LISTED = 4  # With more zones, a message has only the smallest and the largest number of nodes.


def _over_zones_and_hosts(_subject: Subject, hard: Sequence[Placed]) -> bool:
    return {ZONE, HOSTNAME} <= {each.constraint.topology_key for each in hard}


def _full_zones(case: TemplateUnderRule) -> Iterator[Finding]:
    for zones, pair, admitted in case.ceilings():
        yield _capped_by_zone(case, zones, pair, admitted)


CEILING = PlacementRule(
    id="zone-host-ceiling",
    title="a zone constraint and a hostname constraint together cap the replicas",
    severity=Severity.MEDIUM,
    mode=Mode.AUDIT,
    why=(
        "Under the hostname constraint, a small zone holds few pods. The zone constraint then limits every other "
        "zone to maxSkew more, so some nodes there stay empty. These empty nodes limit all nodes under the "
        "hostname constraint. The rule reports this if it caps your replicas."
    ),
    of_template=_full_zones,
    concerns=_over_zones_and_hosts,
)


def _capped_by_zone(
    case: TemplateUnderRule, zones: ConstraintCapacity, placed: tuple[Placed, Placed], admitted: int
) -> Finding:
    zone, host = placed
    of = f"{admitted} of {plural(case.wanted, 'pod')}" if admitted < case.wanted else plural(admitted, "pod")
    said = f"{_zone_sizes(zones)} at most {of}{case.run}"
    tried = (*made_soft(case, host), *made_soft(case, zone), *made_soft(case, zone, host))
    remedy = first_that_helps(case, admitted, tried, field=WHEN_UNSATISFIABLE, brings=costs_pods)
    loose = zone if remedy.fix.edits and remedy.fix.edits[0].path.startswith(f"{zone.path}.") else host
    return CEILING.finding(
        loose,
        WHEN_UNSATISFIABLE,
        remedy.fix,
        summary=said,
        remedy=remedy.words,
        detail=f"{said}: by maxSkew, {zone.name} allows each zone {zone.constraint.max_skew} more than the emptiest"
        f" zone, and {host.name} allows each node {host.constraint.max_skew} more than the emptiest node{case.stay}",
        key=f"{zone.key} {host.key}",
        warns=admitted < case.wanted,
        at_most=case.at_most,
    )


def _zone_sizes(zones: ConstraintCapacity) -> str:
    sizes = sorted((zones.open & zones.column.nodes(number)).bit_count() for number in zones.open_domains)
    if sizes[0] == sizes[-1]:
        many, each = len(sizes), plural(sizes[0], "node")
        return f"the zone of {each} holds" if many == 1 else f"{many:,} zones of {each} hold"
    if len(sizes) > _MAX_ZONES_LISTED:
        return f"zones of {sizes[0]} to {plural(sizes[-1], 'node')} hold"
    return f"zones of {', '.join(map(str, sizes[:-1]))} and {plural(sizes[-1], 'node')} hold"
