"""The rule about a zone and a host constraint that together admit fewer pods than each of them.

The number is a bound that no order of placing exceeds; a fix is named only if evaluation shows that with it all pods
find a place.
"""

from collections.abc import Iterator, Sequence

from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.changes.change import WHEN_UNSATISFIABLE
from webhook.core.placement.proofs.constraint_room import ConstraintRoom
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.rule import Finding, Severity
from webhook.core.rules.frame.subject import Placed, Subject
from webhook.core.rules.placement.frame.case import TemplateUnderRule
from webhook.core.rules.placement.frame.each_template import PlacementRule
from webhook.core.rules.placement.frame.lost_zones import costs_pods
from webhook.core.rules.placement.frame.remedies import first_that_helps, made_soft
from webhook.core.text import plural

_MAX_ZONES_LISTED = 4  # zones whose nodes are listed; of more, the smallest and the largest number


def concerns(_subject: Subject, hard: Sequence[Placed]) -> bool:
    """Whether there are hard constraints over zones and over hosts."""
    return len(hard) > 1 and {ZONE, HOSTNAME} <= {each.constraint.topology_key for each in hard}


def evaluate(case: TemplateUnderRule) -> Iterator[Finding]:
    """What the rule says of one template."""
    for zones, pair, admitted in case.ceilings():
        yield _capped(case, zones, pair, admitted)


CEILING = PlacementRule(
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
    of_template=evaluate,
    concerns=concerns,
)


def _capped(case: TemplateUnderRule, zones: ConstraintRoom, placed: tuple[Placed, Placed], admitted: int) -> Finding:
    zone, host = placed
    of = f"{admitted} of {plural(case.wanted, 'pod')}" if admitted < case.wanted else plural(admitted, "pod")
    said = f"{_sizes(zones)} at most {of}{case.run}"
    tried = (*made_soft(case, host), *made_soft(case, zone), *made_soft(case, zone, host))
    remedy = first_that_helps(case, admitted, tried, field=WHEN_UNSATISFIABLE, brings=costs_pods)
    loose = zone if remedy.fix.edits and remedy.fix.edits[0].path.startswith(f"{zone.path}.") else host
    return Finding(
        rule=CEILING.id,
        path=f"{loose.path}.{WHEN_UNSATISFIABLE}",
        summary=said,
        remedy=remedy.words,
        detail=f"{said}: {zone.name} lets no zone get further than maxSkew {zone.constraint.max_skew} ahead of the"
        f" emptiest zone, and {host.name} no node further than maxSkew {host.constraint.max_skew} ahead of the emptiest"
        f" node{case.stay}",
        **remedy.fix.fields,
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
    if len(sizes) > _MAX_ZONES_LISTED:
        return f"zones of {sizes[0]} to {plural(sizes[-1], 'node')} hold"
    return f"zones of {', '.join(map(str, sizes[:-1]))} and {plural(sizes[-1], 'node')} hold"
