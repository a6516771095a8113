"""The text page of ``evenspread plan``.

It shows the group, faults of the pods' placement without the plan, the plan and its proof.
"""

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from webhook.answers.planned import PlanAnswer
from webhook.cli.commands.plan.manifests import PlannedGroup, spec_of
from webhook.cli.output.page import BOLD, DIM, GREEN, RED, YELLOW, paint, wrapped
from webhook.core.api.types import SpreadConstraint
from webhook.core.groups.derive import domain_noun, in_a_domain
from webhook.core.groups.group import Group, ZonePins
from webhook.core.groups.plan import CapGuarantee, CapMethod, GroupPlan, Proof
from webhook.core.placement.placement_verdict import PlacementVerdict, Step
from webhook.core.text import listed, one_line, plural, together
from webhook.core.what_if.ending import PodMove
from webhook.core.yaml_text import block

# With all of them, the page fits two screens.
_MAX_SHARDS = 12
_MAX_STEPS = 24
_MAX_ZONES = 8  # columns of the picture; with usual names they fit 80 columns
_NAME = 40  # characters
_MIN_SHARE = 0.01  # smaller shares are printed as "less than 1%"


def render(target: PlannedGroup) -> Iterator[str]:
    """Render the page, piece by piece."""
    answer = target.answer
    yield from _group(target)
    yield "\n"
    yield from _present_fields(answer)
    yield "\n"
    plan = answer.derived.plan
    if plan is None:
        yield paint("no fields keep the caps", RED, BOLD) + "\n"
        for reason in answer.derived.reasons:
            yield from wrapped(reason, indent="  ")
    else:
        yield from _plan(answer, plan)
    if answer.derived.nearest:
        yield "the smallest changes that fit in every order:\n"
        for change in answer.derived.nearest:
            yield from wrapped(change, indent="  ")
    if plan is not None:
        yield from _fields(target, plan)


def _group(target: PlannedGroup) -> Iterator[str]:
    answer = target.answer
    group, capacity = answer.group, answer.derived.capacity
    apart = f" that share no {together(map(domain_noun, group.never_share))}" if group.never_share else ""
    shards = f"{plural(group.shards, 'shard')} of {plural(group.pods_per_shard, 'pod')}{apart}"
    yield paint(f"group {one_line(group.name, _NAME)}: {shards}; {plural(group.pods, 'pod')}", BOLD) + "\n"
    for cap in group.caps:
        suffix = "" if cap.enforced else " (observed only)"
        share = f"{cap.text} of the pods: " if cap.of_pods else ""
        yield f"  {in_a_domain(cap.topology_key)}  {share}at most {cap.most(group.pods)}{suffix}\n"
    zones = listed([one_line(zone, _NAME) for zone in capacity.zones], _MAX_ZONES) or "none"
    where = f"admitting {domain_noun(group.zone_key)}s: {zones}; " if group.names_zones else "admitting nodes: "
    nodes = plural(capacity.nodes, "node") if group.names_zones else capacity.nodes
    yield f"  {where}{nodes}\n"
    if running := answer.known.running:
        run = "1 pod runs" if running == 1 else f"{running} pods run"
        yield from wrapped(f"note: {run} already; the plan places all pods from the start", indent="  ")
    if empty := [one_line(zone, _NAME) for zone in group.domains or () if zone not in capacity.zones]:
        yield from wrapped(
            f"note: the group names {together(empty)}, but no node there admits a pod of the group", indent="  "
        )
    if answer.stands:
        fields = "the stored fields" if target.stored else "the fields of the templates"
        yield f"  note: {fields} keep the caps and stay\n"
    for note in target.notes:
        yield from wrapped(f"note: {note}", indent="  ")


def _present_fields(answer: PlanAnswer) -> Iterator[str]:
    """Yield the pods' placement without the plan: with the templates' own constraints, else with caps as maxSkew."""
    outlook, title = answer.seen, "the fields of the templates" if answer.own else "the caps used as maxSkew"
    if outlook is None:
        yield "no cap is enforced\n"
        return
    hard = [constraint for constraint in answer.naive.constraints if constraint.hard]
    values = together(f"{domain_noun(constraint.topology_key or '')} {constraint.max_skew}" for constraint in hard)
    yield from wrapped(f"{title} ({values})", BOLD)
    if outlook.gets_stuck:
        is_exact = outlook.stuck is not None and not outlook.sampled
        odds = f" in {_share(outlook.stuck)} of the orders" if is_exact and outlook.stuck is not None else ""
        odds = odds or " in every tried order" * (outlook.stuck == 1)
        yield from wrapped(f"can get stuck{odds}, for example:", RED, indent="  ")
        yield from _steps(answer, answer.named(outlook.witness))
        yield from wrapped(f"then no node admits {together(_unplaced(answer, outlook.witness))}", indent="    ")
    for key, pods in answer.broken.items():
        worst, most = outlook.worst[key], answer.group.most(key)
        where = f"{domain_noun(key)} {one_line(worst.domain, _NAME)}"
        text = f"can place {pods} pods in {where}, above its cap of {most}, for example:"
        yield from wrapped(text, RED, indent="  ")
        yield from _steps(answer, answer.named(worst.steps))
    if not outlook.gets_stuck and not answer.broken:
        text = "every order places all pods and keeps the caps"
        if not outlook.exact:
            text = "no stuck pod or broken cap in hundreds of orders"
        yield from wrapped(text, GREEN, indent="  ")


def _share(share: float) -> str:
    """A share of orders in percent. 0% and 100% are exact."""
    if 0 < share < _MIN_SHARE:
        return f"less than {_MIN_SHARE:.0%}"
    return f"more than {1 - _MIN_SHARE:.0%}" if 1 - _MIN_SHARE < share < 1 else f"{share:.0%}"


def _unplaced(answer: PlanAnswer, witness: Sequence[Step]) -> list[str]:
    """The next pod of each incomplete shard."""
    placed = Counter(step.batch for step in witness)
    shards = answer.known.shards[: answer.group.shards] if answer.group.never_share else ()
    pods = [
        f"{one_line(shard.name, _NAME)}-{placed[number]}"
        for number, shard in enumerate(shards)
        if placed[number] < answer.group.pods_per_shard
    ]
    return pods or [plural(answer.group.pods - len(witness), "pod")]


def _steps(answer: PlanAnswer, steps: Sequence[PodMove]) -> Iterator[str]:
    view = answer.known.index.nodes.view()
    column, texts = view.column(answer.group.zone_key), list[str]()
    for step in steps[:_MAX_STEPS]:
        number = column.domain_of[view.slots[step.node]]
        zone = f" ({one_line(column.values[number], _NAME)})" if number >= 0 else ""
        texts.append(f"{one_line(step.pod, _NAME)} -> {one_line(step.node, _NAME)}{zone}")
    rest = f"; {len(steps) - _MAX_STEPS} more" if len(steps) > _MAX_STEPS else ""
    yield from wrapped(f"{', '.join(texts)}{rest}", indent="    ")


_COLORS = {PlacementVerdict.FITS: GREEN, PlacementVerdict.NO_FIT: RED}
_VERDICTS = {
    PlacementVerdict.FITS: "fits: every order places all pods, and no order breaks a cap",
    PlacementVerdict.STUCK: "can get stuck, but no order breaks a cap",
    PlacementVerdict.NO_FIT: "does not fit",
    PlacementVerdict.UNKNOWN: "is not proven to fit, but no order breaks a cap",
}
_PROOFS = {
    Proof.SEARCH: "proof: all orders of placement were simulated",
    Proof.ROOM: "proof: after each placement in any order, a node admits each remaining pod",
    Proof.NONE: "not proven: there are too many orders to simulate, or facts are missing",
}


def _plan(answer: PlanAnswer, plan: GroupPlan) -> Iterator[str]:
    """Yield the lines about a plan: its method for each cap, its verdict and its proof."""
    group = answer.group
    yield paint("the plan", BOLD) + "\n"
    for key, keeping in plan.keeping.items():
        yield from wrapped(f"{domain_noun(key)}: {_method(group, plan, key, keeping)}", indent="  ")
    stuck = plan.outlook.stuck if plan.outlook is not None and plan.outlook.gets_stuck else None
    verdict = PlacementVerdict.STUCK if stuck and plan.verdict is PlacementVerdict.UNKNOWN else plan.verdict
    yield from wrapped(_VERDICTS[verdict], _COLORS.get(verdict, YELLOW), indent="  ")
    yield from wrapped(_proof(answer, plan), indent="  ")
    if stuck and verdict is PlacementVerdict.STUCK:
        yield from wrapped(f"{_share(stuck)} of the tried orders get stuck", indent="  ")
    if plan.verdict is PlacementVerdict.FITS and group.plan_for > group.shards:
        yield from wrapped(f"these fields also keep the caps with up to {plan.same_up_to} shards", indent="  ")
    if plan.zone_pins is not None:
        yield "\n"
        yield from _picture(group, plan, plan.zone_pins)


def _method(group: Group, plan: GroupPlan, key: str, keeping: CapGuarantee) -> str:
    where, pods = domain_noun(key), plural(keeping.worst, "pod")
    match keeping.way:
        case CapMethod.NOTHING:
            return f"no constraint; the {group.shards} shards have at most one pod each {in_a_domain(key)}"
        case CapMethod.LABEL:
            limit = "" if group.most(key) is None else f"; at most {pods} {in_a_domain(key)}"
            return f"a constraint excludes nodes without the label{limit}"
        case CapMethod.PINS:
            return f"each shard is pinned to {plural(group.pods_per_shard, where)}; a {where} gets at most {pods}"
        case CapMethod.EXACT:
            limit = f"at most {pods} {in_a_domain(key)}"
            return f"maxSkew {keeping.worst} with minDomains above the number of {where}s: {limit}"
        case _:
            skew = next(constraint.max_skew for constraint in _constraints(plan) if constraint.topology_key == key)
            return f"maxSkew {skew}, the largest that limits each {where} to {pods}"


def _constraints(plan: GroupPlan) -> tuple[SpreadConstraint, ...]:
    return next(iter(plan.fields.values())).constraints


def _proof(answer: PlanAnswer, plan: GroupPlan) -> str:
    if plan.proof is not Proof.ZONE_BY_ZONE or plan.zone_pins is None:
        return _PROOFS[plan.proof]
    capacity, where = answer.derived.capacity, domain_noun(answer.group.zone_key)
    loads = together(
        f"{one_line(zone, _NAME)} {pods} of {capacity.zones[zone]}"
        for zone, pods in [*plan.zone_pins.of_zones.items()][:_MAX_ZONES]
    )
    return f"proof: pods of different {where}s do not compete, and each {where} has capacity for its pods ({loads})"


def _picture(group: Group, plan: GroupPlan, loads: ZonePins) -> Iterator[str]:
    """Yield a row for each shard, with a column for each zone."""
    zones = [*loads.of_zones][:_MAX_ZONES]
    names = [one_line(shard.name, _NAME) for shard in plan.shards]
    width = max(map(len, [*names[:_MAX_SHARDS], "pods"]))
    widths = [max(3, len(one_line(zone, _NAME))) for zone in zones]

    def row(name: str, cells: Mapping[str, str]) -> str:
        texts = (cells.get(zone, ".").rjust(columns) for zone, columns in zip(zones, widths, strict=True))
        return f"  {name:{width}}  {'  '.join(texts)}"

    yield row("", {zone: one_line(zone, _NAME) for zone in zones}) + "\n"
    for name, own_zones in [*zip(names, loads.of_shards, strict=True)][:_MAX_SHARDS]:
        yield row(name, dict.fromkeys(own_zones, "#")) + "\n"
    if len(names) > _MAX_SHARDS:
        yield f"  and {plural(len(names) - _MAX_SHARDS, 'more shard')}\n"
    most = group.most(group.zone_key)
    allowed = f"  at most {most}" if most is not None else ""
    yield f"{row('pods', {zone: str(loads.of_zones[zone]) for zone in zones})}{allowed}\n"


def _fields(target: PlannedGroup, plan: GroupPlan) -> Iterator[str]:
    """Yield the planned fields of the first shard, and the ``-o`` options to print all shards."""
    name, fields = next(iter(plan.fields.items()))
    text = block({key: value for key, value in spec_of(fields).items() if value})
    yield "\n" + paint(f"pod template of {one_line(name, _NAME)}", BOLD) + "\n"
    yield textwrap.indent(text, "  ")
    restarts = target.answer.restarts(plan)
    effect = f"applying the plan restarts the pods of {plural(restarts, 'workload')}"
    usage = (
        "-o patch prints a command for each existing shard, -o manifest all objects; "
        f"{effect if restarts else 'no existing template changes'}"
        if target.written
        else "-o manifest prints the SpreadGroup and a StatefulSet for each shard, to fill in and apply"
    )
    yield from wrapped(usage, DIM)
