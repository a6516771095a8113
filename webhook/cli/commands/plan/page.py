"""The page of ``evenspread plan``: what is asked, what the caps as maxSkew come to, what keeps them, and its proof."""

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from webhook.answers.planned import PlanAnswer
from webhook.cli.commands.plan.manifests import PlannedGroup, spec_of
from webhook.cli.terminal import BOLD, DIM, GREEN, RED, YELLOW, Paint, wrapped
from webhook.core.api.types import SpreadConstraint
from webhook.core.groups.derive import domain_noun, in_a_domain
from webhook.core.groups.group import Group, ZonePins
from webhook.core.groups.plan import CapGuarantee, CapMethod, GroupPlan, Proof
from webhook.core.placement.outcome import PlacementOutcome, Step
from webhook.core.text import listed, one_line, plural, together
from webhook.core.what_if.ending import PodMove
from webhook.core.yaml_text import block

_MOST_ROWS = 12
_MOST_STEPS = 24
_ZONES = 8
_NAME = 40
_LEAST = 0.01


def render(target: PlannedGroup, *, color: bool) -> Iterator[str]:
    """The page, piece by piece."""
    paint, of = Paint(color=color), target.answer
    yield from _asked(target, paint)
    yield "\n"
    yield from _before(of, paint)
    yield "\n"
    plan = of.derived.plan
    if plan is None:
        yield paint("no fields can do", RED, BOLD) + "\n"
        for reason in of.derived.reasons:
            yield from wrapped(reason, indent="  ")
    else:
        yield from _after(of, plan, paint)
    if of.derived.nearest:
        yield "the nearest that fits, in every order:\n"
        for each in of.derived.nearest:
            yield from wrapped(each, indent="  ")
    if plan is not None:
        yield from _fields(target, plan, paint)


def _asked(target: PlannedGroup, paint: Paint) -> Iterator[str]:
    of = target.answer
    group, capacity = of.group, of.derived.capacity
    apart = f", which share no {together(map(domain_noun, group.never_share))}" if group.never_share else ""
    shards = f"{plural(group.shards, 'shard')} of {plural(group.pods_per_shard, 'pod')}{apart}"
    yield paint(f"group {one_line(group.name, _NAME)}: {shards}; {plural(group.pods, 'pod')}", BOLD) + "\n"
    for cap in group.caps:
        seen = "" if cap.enforced else " (observed only)"
        share = f"{cap.text} of the pods: " if cap.of_pods else ""
        yield f"  {in_a_domain(cap.topology_key)}  {share}at most {cap.most(group.pods)}{seen}\n"
    zones = listed([one_line(zone, _NAME) for zone in capacity.zones], _ZONES) or "none"
    where = (
        f"{domain_noun(group.zone_key)}s that take pods: {zones}; " if group.names_zones else "nodes that take pods: "
    )
    nodes = plural(capacity.nodes, "node") if group.names_zones else capacity.nodes
    yield f"  {where}{nodes}\n"
    if of.known.running:
        run = "pod runs" if of.known.running == 1 else "pods run"
        yield from wrapped(f"note: {of.known.running} {run} already; all are placed anew here", indent="  ")
    if empty := [one_line(each, _NAME) for each in group.domains or () if each not in capacity.zones]:
        yield from wrapped(f"note: no node takes a pod in {together(empty)}, which the group names", indent="  ")
    if of.stands:
        whose = "that are stored for it" if target.stored else "of its templates"
        yield f"  note: the fields {whose} keep the caps, and stay\n"
    for note in target.notes:
        yield from wrapped(f"note: {note}", indent="  ")


def _before(of: PlanAnswer, paint: Paint) -> Iterator[str]:
    """What the fields before come to: the template's own, or the caps as maxSkew."""
    seen, what = of.seen, "the fields of the templates" if of.own else "the caps taken for maxSkew"
    if seen is None:
        yield "no cap is enforced\n"
        return
    said = together(
        f"{domain_noun(each.topology_key or '')} {each.max_skew}" for each in of.naive.constraints if each.hard
    )
    yield from wrapped(f"{what} ({said})", paint, BOLD)
    fine = True
    if seen.gets_stuck:
        fine = False
        odds = f" in {_share(seen.stuck)} of the orders" if seen.stuck is not None and not seen.sampled else ""
        odds = odds or " in every order that was tried" * (seen.stuck == 1)
        yield from wrapped(f"can get stuck{odds}, so:", paint, RED, indent="  ")
        yield from _steps(of, of.named(seen.witness))
        yield from wrapped(f"then no node takes {together(_left(of, seen.witness))}", indent="    ")
    for key, pods in of.broken.items():
        fine = False
        worst, most = seen.worst[key], of.group.most(key)
        where = f"{domain_noun(key)} {one_line(worst.domain, _NAME)}"
        yield from wrapped(f"can put {pods} pods into {where}, where {most} may be, so:", paint, RED, indent="  ")
        yield from _steps(of, of.named(worst.steps))
    if fine:
        sure = "no order gets stuck or breaks a cap" if seen.exact else "nothing wrong was found in some hundred orders"
        yield from wrapped(sure, paint, GREEN, indent="  ")


def _share(of: float) -> str:
    """A share of orders in percent: 0% and 100% only if exact."""
    if 0 < of < _LEAST:
        return f"less than {_LEAST:.0%}"
    return f"more than {1 - _LEAST:.0%}" if 1 - _LEAST < of < 1 else f"{of:.0%}"


def _left(of: PlanAnswer, witness: Sequence[Step]) -> list[str]:
    """The next pod of each shard that lacks pods."""
    made = Counter(step.batch for step in witness)
    shards = of.known.shards[: of.group.shards] if of.group.never_share else ()
    left = [
        f"{one_line(shard.name, _NAME)}-{made[number]}"
        for number, shard in enumerate(shards)
        if made[number] < of.group.pods_per_shard
    ]
    return left or [plural(of.group.pods - len(witness), "pod")]


def _steps(of: PlanAnswer, steps: Sequence[PodMove]) -> Iterator[str]:
    column, slots = of.known.index.nodes.view().column(of.group.zone_key), of.known.index.nodes.view().slots
    told = []
    for each in steps[:_MOST_STEPS]:
        number = column.of[slots[each.node]]
        zone = f" ({one_line(column.values[number], _NAME)})" if number >= 0 else ""
        told.append(f"{one_line(each.pod, _NAME)} -> {one_line(each.node, _NAME)}{zone}")
    rest = f"; {len(steps) - _MOST_STEPS} more" if len(steps) > _MOST_STEPS else ""
    yield from wrapped(f"{', '.join(told)}{rest}", indent="    ")


_COLORS = {PlacementOutcome.FITS: GREEN, PlacementOutcome.NO_FIT: RED}
_VERDICTS = {
    PlacementOutcome.FITS: "fits: every order places all pods, and no cap can be broken",
    PlacementOutcome.STUCK: "can get stuck, though no cap can be broken",
    PlacementOutcome.NO_FIT: "does not fit",
    PlacementOutcome.UNKNOWN: "is not proven to fit; no cap can be broken",
}
_PROOFS = {
    Proof.SEARCH: "proof: every order was looked at",
    Proof.ROOM: "proof: with every number of pods placed, some node is open to each that is missing",
    Proof.NONE: "not proven: there are more orders than can be followed",
}


def _after(of: PlanAnswer, plan: GroupPlan, paint: Paint) -> Iterator[str]:
    yield paint("what keeps the caps", BOLD) + "\n"
    for key, each in plan.keeping.items():
        yield from wrapped(f"{domain_noun(key)}: {_way(of.group, plan, key, each)}", indent="  ")
    stuck = plan.outlook.stuck if plan.outlook is not None and plan.outlook.gets_stuck else None
    verdict = PlacementOutcome.STUCK if stuck and plan.verdict is PlacementOutcome.UNKNOWN else plan.verdict
    yield from wrapped(_VERDICTS[verdict], paint, _COLORS.get(verdict, YELLOW), indent="  ")
    yield from wrapped(_proof(of, plan), indent="  ")
    if stuck and verdict is PlacementOutcome.STUCK:
        yield from wrapped(f"{_share(stuck)} of the orders that were tried get stuck", indent="  ")
    if plan.verdict is PlacementOutcome.FITS and of.group.plan_for > of.group.shards:
        yield from wrapped(f"these fields keep the caps of up to {plan.same_up_to} shards", indent="  ")
    if plan.zone_pins is not None:
        yield "\n"
        yield from _picture(of.group, plan, plan.zone_pins)


def _way(group: Group, plan: GroupPlan, key: str, of: CapGuarantee) -> str:
    where, pods = domain_noun(key), plural(of.worst, "pod")
    match of.way:
        case CapMethod.NOTHING:
            return f"no constraint; the {group.shards} shards have at most one pod each {in_a_domain(key)}"
        case CapMethod.LABEL:
            few = "" if group.most(key) is None else f"; at most {pods} {in_a_domain(key)}"
            return f"a constraint keeps pods off nodes without the label{few}"
        case CapMethod.PINS:
            return f"each shard is pinned to {plural(group.pods_per_shard, where)}; a {where} gets at most {pods}"
        case CapMethod.EXACT:
            return f"maxSkew {of.worst} with minDomains above the number of {where}s: at most {pods} {in_a_domain(key)}"
        case _:
            skew = next(each.max_skew for each in _constraints(plan) if each.topology_key == key)
            return f"maxSkew {skew}, the largest that lets no {where} hold more than {pods}"


def _constraints(plan: GroupPlan) -> tuple[SpreadConstraint, ...]:
    return next(iter(plan.fields.values())).constraints


def _proof(of: PlanAnswer, plan: GroupPlan) -> str:
    if plan.proof is not Proof.ZONE_BY_ZONE or plan.zone_pins is None:
        return _PROOFS[plan.proof]
    capacity, where = of.derived.capacity, domain_noun(of.group.zone_key)
    each = together(
        f"{one_line(zone, _NAME)} {pods} of {capacity.zones[zone]}"
        for zone, pods in [*plan.zone_pins.of_zones.items()][:_ZONES]
    )
    return f"proof: no pod takes the place of another {where}'s, and each {where} has room for its own ({each})"


def _picture(group: Group, plan: GroupPlan, loads: ZonePins) -> Iterator[str]:
    """A row a shard, a column a zone."""
    zones = [*loads.of_zones][:_ZONES]
    names = [one_line(each.name, _NAME) for each in plan.shards]
    width = max(map(len, [*names[:_MOST_ROWS], "pods"]))
    widths = [max(3, len(one_line(zone, _NAME))) for zone in zones]

    def row(name: str, cells: Mapping[str, str]) -> str:
        told = (cells.get(zone, ".").rjust(each) for zone, each in zip(zones, widths, strict=True))
        return f"  {name:{width}}  {'  '.join(told)}"

    yield row("", {zone: one_line(zone, _NAME) for zone in zones}) + "\n"
    for name, given in [*zip(names, loads.of_shards, strict=True)][:_MOST_ROWS]:
        yield row(name, dict.fromkeys(given, "#")) + "\n"
    if len(names) > _MOST_ROWS:
        yield f"  and {plural(len(names) - _MOST_ROWS, 'more shard')}\n"
    most = group.most(group.zone_key)
    allowed = f"  at most {most}" if most is not None else ""
    yield f"{row('pods', {zone: str(loads.of_zones[zone]) for zone in zones})}{allowed}\n"


def _fields(target: PlannedGroup, plan: GroupPlan, paint: Paint) -> Iterator[str]:
    """The constraints of all shards, and the affinity of one."""
    name, fields = next(iter(plan.fields.items()))
    text = block({key: value for key, value in spec_of(fields).items() if value})
    yield "\n" + paint(f"pod template of {one_line(name, _NAME)}", BOLD) + "\n"
    yield textwrap.indent(text, "  ")
    restarts = target.answer.restarts(plan)
    restart = f"; a changed template restarts its shard, so {plural(restarts, 'workload')} would"
    how = (
        "-o patch prints a command for each shard that there is, -o manifest all that there is to apply"
        f"{restart if restarts else '; no template that there is changes'}"
        if target.written
        else "-o manifest prints the SpreadGroup and a StatefulSet for each shard, to fill in and apply"
    )
    yield from wrapped(how, paint, DIM)
