"""The rule about the loss of a zone: its nodes stay for a while, count with no pod, and hold the other zones down."""

from collections.abc import Iterator

from msgspec.structs import replace

from webhook.core import bits
from webhook.core.ceiling import stranded
from webhook.core.kinds import Workload
from webhook.core.model import HONOR, IGNORE, ZONE, Taint
from webhook.core.nodes import FILTERING_EFFECTS
from webhook.core.places import Tally
from webhook.core.policy import Mode
from webhook.core.rules.cases import Case
from webhook.core.rules.finding import Finding, Placed, Rule, Severity, one_line
from webhook.core.selectors import first_untolerated

ZONE_LOSS = Rule(
    id="zone-loss-strands-pods",
    title="replacements stay Pending if one zone is lost",
    severity=Severity.MEDIUM,
    mode=Mode.AUDIT,
    why=(
        "The nodes of a lost zone stay in the cluster, tainted and not ready, until somebody removes them. Under "
        "nodeTaintsPolicy Ignore, the default, their zone counts with 0 pods, and the other zones may not take the "
        "replacements. The number is of the zone whose loss costs most."
    ),
    silent=(
        "for kinds whose pods are not replaced by themselves when their node is gone (StatefulSets), where the other "
        "zones lack the room anyway, where pods of other workloads are counted before all replicas run, and where the "
        "replicas do not fit even with all zones."
    ),
)
_REPLACED = frozenset({"Deployment", "ReplicaSet", "ReplicationController", "Rollout", "CloneSet"})
# Kubernetes puts it on every node that it does not hear of; pods tolerate its NoExecute twin for a while, not this.
_UNREACHABLE = Taint(key="node.kubernetes.io/unreachable", effect="NoSchedule")


def is_replaced(workload: Workload) -> bool:
    """Whether the controller makes new pods for those on nodes that are gone."""
    return workload.kind in _REPLACED


def evaluate(case: Case) -> Iterator[Finding]:
    """What the rule says of one template."""
    if not is_replaced(case.subject.workload):
        return
    nodes, tolerations = case.places.problem.nodes, case.places.problem.pod.pod_spec.tolerations
    zones = nodes.column(ZONE)
    if zones.sets is None or first_untolerated((_UNREACHABLE,), tolerations, FILTERING_EFFECTS) is None:
        return
    found: list[tuple[int, str, int, Placed]] = []
    for zone, lost in case.subject.timely(zip(zones.values, zones.sets, strict=True)):
        for tally, placed in zip(case.tallies, case.placed, strict=True):
            if tally.domains.constraint.node_taints_policy == IGNORE and (pending := _pending(case, tally, lost)):
                found.append((-pending, zone, lost, placed))
    for negative, zone, lost, placed in sorted(found, key=lambda each: each[:2])[:1]:
        if case.fits((), case.wanted + negative + 1, lost=lost):  # else it is room that they lack
            yield _finding(case, placed, zone, lost, -negative)


def _pending(case: Case, tally: Tally, lost: int) -> int:
    """The fewest replacements that the constraint leaves Pending if these nodes are lost; 0 where nothing is proven."""
    column, before = tally.column, tally.open
    staying = column.domain_count(before & ~lost)
    gone = column.domain_count(before) - staying
    admitted = tally.most
    if not gone or not staying or not tally.hard.certain or (admitted is not None and admitted < case.wanted):
        return 0
    if not column.one_each:
        left = column.domains(before) - column.domains(before & ~lost)
        if tally.domains.counting & column.nodes_of(tuple(left)) & ~lost:
            return 0  # a domain that reaches beyond the zone does not lose all that it counts
    skew, own = tally.limit.max_skew, sum(case.places.running.values())
    if own == case.wanted == tally.placed:
        is_lost = bits.flags(lost, len(column.of))
        pods_lost = sum(pods for slot, pods in case.places.running.items() if is_lost[slot])
        return max(0, pods_lost - _replaceable(tally, before & ~lost, skew))
    if tally.hard.counts:
        return 0  # what stands there now may be further apart than the constraint would have let it
    pinned = not tally.limit.enough or any(cell.room == 0 for cell in tally.cells)
    return stranded(case.wanted, skew, staying, gone, pinned=pinned)


def _replaceable(tally: Tally, left: int, skew: int) -> int:
    """How many pods the domains that are left may take, up to maxSkew each: the lost one counts 0."""
    column, pods = tally.column, tally.domains.match_num
    if column.one_each:
        is_left = bits.flags(left, len(column.of))
        full = sum(min(pods[column.of[slot]], skew) for slot in tally.hard.counts if is_left[slot])
    else:
        full = sum(min(pods[number], skew) for number in pods if column.nodes(number) & left)
    return skew * column.domain_count(left) - full


def _finding(case: Case, placed: Placed, zone: str, lost: int, pending: int) -> Finding:
    honoring = [
        replace(each, constraint=replace(each.constraint, node_taints_policy=HONOR)) for each in case.places.hard
    ]
    remedy = ""
    if case.fits(honoring, case.wanted, lost=lost):
        others = sum(each.constraint.node_taints_policy == IGNORE for each in case.places.hard) > 1
        remedy = f"nodeTaintsPolicy: Honor{' in every constraint' if others else ''}"
    name = "a zone" if case.subject.policy.messages.detail == "minimal" else f"zone {one_line(zone, 40)}"
    said = f"if {name} goes NotReady, {pending} of {case.wanted} stay Pending"
    return Finding(
        rule=ZONE_LOSS.id,
        path=f"{placed.path}.nodeTaintsPolicy",
        summary=said,
        remedy=remedy and f"set {remedy}",
        detail=f"{said}: its nodes are tainted and still count for {placed.name} with 0 pods,"
        f" so that no other domain may take more than {placed.constraint.max_skew}",
        fix=remedy and "nodeTaintsPolicy: Honor",
        key=placed.key,
        warns=False,
    )
