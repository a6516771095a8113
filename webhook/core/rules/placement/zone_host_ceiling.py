"""Rules about how many pods hard constraints can ever admit on the nodes there are.

Every number is a bound that no order of placing exceeds; a fix is named only if evaluation shows that with it all
pods find a place.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from webhook.core.api.types import IGNORE
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.index import node_sets
from webhook.core.placement.bounds import Zone, addable_on_hosts
from webhook.core.placement.constraint_room import ConstraintRoom
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.rule import Answer, Finding, NotEvaluated, Rule, Severity, guarded, short_enough
from webhook.core.rules.frame.subject import Placed, Subject
from webhook.core.rules.placement import affinity_conflicts, zone_loss
from webhook.core.rules.placement.case import (
    TemplateUnderRule,
    is_replaced,
    is_replicated,
    noun,
    staying,
    templates_under_rule,
    unlike_the_scheduler,
)
from webhook.core.rules.placement.remedies import AFFINITY, TAINTS, WHEN, first_that_helps, honoring, softened
from webhook.core.text import plural

TAINTED = Rule(
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
    silent=(
        "where another domain would hold the minimum as low at these replicas; where no more pods have room without "
        "any hard constraint (resources, ports, volumes, affinity); for cordons, nodes that are not ready and nodes "
        "about to be replaced, unless their taint is known to be older than an hour; for Jobs, DaemonSets and single "
        "pods. It never warns where capacity grows."
    ),
)
CEILING = Rule(
    id="zone-host-ceiling",
    title="a zone and a host constraint together cap the replicas",
    severity=Severity.MEDIUM,
    mode=Mode.AUDIT,
    why=(
        "The hosts of a small zone fill up to their maxSkew, and then hold the zone at its count: the other zones may "
        "have maxSkew pods more, and hosts in them stay empty, so that no host anywhere may have another pod. It warns "
        "where that caps the replicas. No order of placing pods passes the number, if pods that run stay where they "
        "are; where something else caps them too, fewer fit."
    ),
    silent=(
        "where some order of placing finds a place for all; where one of the two constraints alone admits as few; "
        "where no more pods have room without any hard constraint; if the autoscaler's maximum fits; while nodes are "
        "away (cordoned, not ready, being replaced) that nodeTaintsPolicy Honor counts only when they are back; for "
        "Jobs, DaemonSets and single pods. It never warns where capacity grows."
    ),
)
RULES = (TAINTED, CEILING, affinity_conflicts.CONFLICTS, zone_loss.ZONE_LOSS)


def evaluate(subject: Subject) -> Iterator[Answer]:
    """What the rules say of a workload, or which of them could not look."""
    could = _could_speak(subject) if subject.placed and is_replicated(subject.workload) else ()
    if not could:
        return
    missing = subject.lacks("nodes", "pods") or unlike_the_scheduler(subject)
    if missing or subject.index is None:
        yield from (NotEvaluated(rule.id, missing) for rule in could)
        return
    for case in subject.timely(templates_under_rule(subject, subject.index)):
        found = [
            *guarded((TAINTED,), _tainted, case),
            *guarded((CEILING,), _zone_and_host, case),
            *guarded((affinity_conflicts.CONFLICTS,), affinity_conflicts.evaluate, case),
        ]
        yield from found
        # What does not fit today needs no word of what a loss would cost.
        if not any(isinstance(each, Finding) and each.warns for each in found):
            yield from guarded((zone_loss.ZONE_LOSS,), zone_loss.evaluate, case)


def _could_speak(subject: Subject) -> tuple[Rule, ...]:
    """The rules that the object gives something to look at."""
    hard = [placed.constraint for placed in subject.placed if placed.constraint.hard]
    if not hard:
        return ()
    could = []
    ignores = any(each.node_taints_policy in _IGNORES for each in hard)
    if ignores:
        could.append(TAINTED)
    if len(hard) > 1 and {ZONE, HOSTNAME} <= {each.topology_key for each in hard}:
        could.append(CEILING)
    if affinity_conflicts.is_about(subject.workload):
        could.append(affinity_conflicts.CONFLICTS)
    if ignores and is_replaced(subject.workload):
        could.append(zone_loss.ZONE_LOSS)
    return tuple(could)


_IGNORES = frozenset({None, IGNORE})


def _tainted(case: TemplateUnderRule) -> Iterator[Finding]:
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


def _rises(case: TemplateUnderRule, tally: ConstraintRoom, minimum: int) -> bool:
    """Whether the replicas are enough to lift every other domain above the minimum, and to pass maxSkew in one."""
    if case.wanted <= tally.limit.max_skew:
        return False
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
    found = first_that_helps(
        case,
        admitted,
        (*honoring(case, placed, TAINTS), *honoring(case, placed, TAINTS, AFFINITY)),
        field=TAINTS,
        brings=_brings,
    )
    lines = [f"{case.fit(admitted)}: {said}; {how}" for how in (found.words, found.words.removeprefix("set "))]
    return Finding(
        rule=TAINTED.id,
        path=f"{placed.path}.nodeTaintsPolicy",
        summary=f"{case.fit(admitted)}: {said}",
        remedy=found.words,
        warning=short_enough(TAINTED.id, *lines) if found.words else "",
        detail=(
            f"{case.fit(admitted)}: {said} ({plural(barred.bit_count(), 'node')}), and"
            f" maxSkew {tally.limit.max_skew} lets no other {noun(tally)} have more than {top};"
            f" nodeTaintsPolicy Ignore counts nodes although the pods do not tolerate their taints{case.stay}"
        ),
        fix=found.fix.text,
        edits=found.fix.edits,
        key=placed.key,
        warns=admitted < case.wanted,
        at_most=case.at_most,
    )


def _zone_and_host(case: TemplateUnderRule) -> Iterator[Finding]:
    for zones, pair, admitted in _ceilings(case):
        yield _capped(case, zones, pair, admitted)


def _ceilings(case: TemplateUnderRule) -> Iterator[tuple[ConstraintRoom, tuple[Placed, Placed], int]]:
    """The zone and host constraints that together admit fewer than each of them, and how many."""
    for zones, zone in case.subject.timely(zip(case.rooms, case.placed, strict=True)):
        for hosts, host in zip(case.rooms, case.placed, strict=True):
            if hosts.column.key != HOSTNAME or zones.column.key != ZONE:
                continue
            placed = max(zones.placed, hosts.placed)
            added = _added(zones, hosts, case.most - placed)
            if added is None or not all(each.addable is None or each.addable > added for each in (zones, hosts)):
                continue
            if case.has_room(placed + added + 1):
                yield zones, (zone, host), placed + added


def _brings(case: TemplateUnderRule) -> bool:
    """Whether something else is to be said of a case."""
    return any(True for _ in _ceilings(case)) or zone_loss.speaks(case)


def _added(zones: ConstraintRoom, hosts: ConstraintRoom, wanted: int) -> int | None:
    """How many more pods both constraints admit together; None for so many as are wanted, and where it is not known."""
    if not (zones.hard.certain and hosts.hard.certain and hosts.column.one_each) or zones.column.sets is None:
        return None
    if wanted <= 0 or zones.unsteady or hosts.unsteady:
        return None
    of = hosts.column.of
    pods = hosts.domains.match_num
    taken = hosts.column.nodes_of(tuple(pods))
    found = []
    for number in zones.column.domains(zones.domains.counting):
        inside = zones.open & zones.column.nodes(number)
        counts = Counter(pods[of[slot]] for slot in node_sets.to_slots(inside & taken))
        empty = (inside & ~taken).bit_count()
        found.append(Zone(zones.count(number), {**counts, 0: empty} if empty else counts))
    held = min((cell.pods for cell in hosts.cells if cell.room == 0), default=None)
    return addable_on_hosts(found, held, zones.limit, hosts.limit, wanted)


def _capped(case: TemplateUnderRule, zones: ConstraintRoom, placed: tuple[Placed, Placed], admitted: int) -> Finding:
    zone, host = placed
    of = f"{admitted} of {plural(case.wanted, 'pod')}" if admitted < case.wanted else plural(admitted, "pod")
    said = f"{_sizes(zones)} at most {of}{case.run}"
    tried = (*softened(case, host), *softened(case, zone), *softened(case, zone, host))
    found = first_that_helps(case, admitted, tried, field=WHEN, brings=zone_loss.speaks)
    loose = zone if found.fix.edits and found.fix.edits[0].path.startswith(f"{zone.path}.") else host
    return Finding(
        rule=CEILING.id,
        path=f"{loose.path}.{WHEN}",
        summary=said,
        remedy=found.words,
        detail=f"{said}: {zone.name} lets no zone get further than maxSkew {zone.constraint.max_skew} ahead of the"
        f" emptiest zone, and {host.name} no node further than maxSkew {host.constraint.max_skew} ahead of the emptiest"
        f" node{case.stay}",
        fix=found.fix.text,
        edits=found.fix.edits,
        key=f"{zone.key} {host.key}",
        warns=admitted < case.wanted,
        at_most=case.at_most,
    )


def _sizes(zones: ConstraintRoom) -> str:
    """``zones of 1 and 4 nodes hold``."""
    sizes = sorted((zones.open & zones.column.nodes(number)).bit_count() for number in zones.open_domains)
    if sizes[0] == sizes[-1]:
        many, each = len(sizes), plural(sizes[0], "node")
        return f"the zone of {each} holds" if many == 1 else f"{many:,} zones of {each} hold"
    if len(sizes) > _MOST_SIZES:
        return f"zones of {sizes[0]} to {plural(sizes[-1], 'node')} hold"
    return f"zones of {', '.join(map(str, sizes[:-1]))} and {plural(sizes[-1], 'node')} hold"


_MOST_SIZES = 4
