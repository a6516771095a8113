"""Derive a group's plan for a cluster. If there is no plan, find the reasons and the nearest changes of the group."""

from collections.abc import Iterable, Iterator
from fractions import Fraction

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.spread_group import PlannedWorkload
from webhook.core.api.well_known import HOSTNAME
from webhook.core.groups.affinity import apart_terms
from webhook.core.groups.caps import Cap
from webhook.core.groups.group import Group, PlanInput, StoredPlan
from webhook.core.groups.group_constraints import label_constraint, replaced_constraints
from webhook.core.groups.plan import GroupPlan, choose_plan, plan_from_stored
from webhook.core.groups.zone_capacity import GroupCapacity, group_capacity
from webhook.core.groups.zone_pin import split_pin
from webhook.core.placement.placement_verdict import PlacementVerdict
from webhook.core.text import agree, listed, plural, segment_of, together

_NAMES = 6  # The most names in one message, to keep it on one line.


class PlanResult(Struct, frozen=True, kw_only=True):
    """The plan of a group, or why there is none.

    Attributes:
        capacity: How many pods the nodes take.
        plan: The plan. None if no fields keep the caps and place all pods.
        reasons: Why there is no plan.
        nearest: Changes of the group after which all its pods fit in every order. Empty if they already fit.
    """

    capacity: GroupCapacity
    plan: GroupPlan | None
    reasons: tuple[str, ...] = ()
    nearest: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the plan is proven to place all pods."""
        return self.plan is not None and self.plan.verdict is PlacementVerdict.FITS


def derive_plan(inputs: PlanInput) -> PlanResult:
    """Derive the plan of a group.

    Example:
        ``derive_plan(PlanInput(group=group, shards=shards, context=context)).plan.fields["redis-0"]`` are the fields of
        the workload ``redis-0``, if ``.fits`` is true.
    """
    inputs = _without_pins(inputs)
    derived = _derived(inputs)
    return derived if derived.fits else replace(derived, nearest=tuple(_nearest(inputs)))


def fresh_plan(known: PlanInput, freed: PlanInput) -> PlanResult:
    """Derive a plan that keeps the stored pins, or else a plan with other pins.

    The other plan is returned only if it is proven, and no plan with the stored pins is.

    Args:
        known: The group with the stored zones.
        freed: The group without the stored zones. Pass ``known`` here to keep all pins.
    """
    keeping = derive_plan(known)
    if keeping.fits or freed.shards == known.shards:
        return keeping
    moving = derive_plan(freed)
    return moving if moving.fits else keeping


def kept_plan(known: PlanInput, before: StoredPlan) -> PlanResult:
    """Check the stored plan against the cluster.

    In the result, ``plan`` is None if the stored fields break a cap, or if a stored pin has to move.
    """
    inputs = _without_pins(known)
    # The stored cap limits a node too. It can be lower than the group's.
    stored = (constraint for constraint in before.constraints if constraint != label_constraint(inputs.group, HOSTNAME))
    tops = [constraint.max_skew or 1 for constraint in stored if constraint.topology_key == HOSTNAME]
    narrow = tuple(Cap(topology_key=HOSTNAME, amount=Fraction(top)) for top in tops)
    capacity = group_capacity(replace(inputs, group=replace(inputs.group, caps=(*inputs.group.caps, *narrow))))
    reasons = tuple(_obstacles(inputs.group, capacity))
    plan = None if reasons else plan_from_stored(inputs, before, capacity)
    if plan is not None and not keeps_pins(plan, before):
        plan, reasons = None, ("a zone to which a shard is pinned takes no more pods",)
    return PlanResult(capacity=capacity, plan=plan, reasons=reasons)


def keeps_pins(plan: GroupPlan, stored: StoredPlan) -> bool:
    """Whether every shard with stored zones has the same zones in the plan."""
    new = {shard.value: zones for shard, zones in plan.pins}
    return all(zones == new.get(shard, zones) for shard, zones in stored.zones.items())


def stored_of(group: Group, workloads: Iterable[PlannedWorkload]) -> StoredPlan:
    """Read the stored plan from the workloads of a status."""
    entries = [*workloads]
    constraints = replaced_constraints(group, entries[0].topology_spread_constraints) if entries else ()
    apart = frozenset(term.topology_key for term in apart_terms(entries[0].affinity)) if entries else frozenset()
    return StoredPlan(constraints, {entry.shard: entry.zones for entry in entries}, apart)


def _without_pins(inputs: PlanInput) -> PlanInput:
    """Remove the pins from the pod templates. The pinned zones stay in ``zones`` of each shard."""
    shards = (replace(shard, pod=split_pin(inputs.group, shard.pod)[0]) for shard in inputs.shards)
    return replace(inputs, shards=tuple(shards))


def _derived(inputs: PlanInput) -> PlanResult:
    capacity = group_capacity(inputs)
    reasons = tuple(_obstacles(inputs.group, capacity))
    plan = None if reasons else choose_plan(inputs, capacity)
    return PlanResult(capacity=capacity, plan=plan, reasons=reasons)


def domain_noun(key: str) -> str:
    """The noun for a domain of the key: ``node``, ``zone``."""
    return "node" if key == HOSTNAME else segment_of(key)


def in_a_domain(key: str) -> str:
    """The place of pods in a domain of the key: ``on a node``, ``in a zone``."""
    return f"{'on' if key == HOSTNAME else 'in'} a {domain_noun(key)}"


def _obstacles(group: Group, capacity: GroupCapacity) -> Iterator[str]:
    """Yield the reasons why not all pods fit within the caps, whatever the fields."""
    pods, zone, zones, on_zone = group.pods, segment_of(group.zone_key), capacity.zones, group.most(group.zone_key)
    for cap in group.caps:
        if cap.enforced and cap.most(pods) < 1:
            yield f"{cap.text} of {plural(pods, 'pod')} allows no pod {in_a_domain(cap.topology_key)}"
            return
    if not zones:
        among = f" of the required domains {listed(group.domains, _NAMES)}" if group.domains else ""
        yield f"no node{among or f' with the label {group.zone_key}' * group.names_zones} takes a pod of the group"
        return
    if group.keeps_zones_apart and group.pods_per_shard > len(zones):
        yield f"{_must_differ(group, zone, len(zones))} ({listed([*zones], _NAMES)})"
        return
    if HOSTNAME in group.never_share and group.pods_per_shard > capacity.nodes:
        yield _must_differ(group, "node", capacity.nodes)
        return
    per_zone = group.shards if group.keeps_zones_apart else pods
    limits = {name: min(per_zone, pods if on_zone is None else on_zone) for name in zones}
    if sum(limits.values()) < pods:
        sums = together(f"{most} in {name}" for name, most in limits.items())
        yield f"the caps allow only {sums}: {sum(limits.values())} of {pods} pods"
        return
    takes = {name: min(limits[name], room) for name, room in zones.items()}
    if sum(takes.values()) < pods:
        on_node = group.most(HOSTNAME)
        why = "" if on_node is None else f"with at most {on_node} on a node, "
        sums = together(f"{most} in {name}" for name, most in takes.items())
        yield f"{why}the nodes take only {sums}: {sum(takes.values())} of {pods} pods"


def _must_differ(group: Group, domain: str, usable: int) -> str:
    only = f"only {plural(usable, domain)} {agree(usable, 'take')} pods"
    return f"the {group.pods_per_shard} pods of a shard never share a {domain}, but {only}"


def _nearest(inputs: PlanInput) -> Iterator[str]:
    """Yield single changes of the group after which the group provably fits.

    The changes are the smallest sufficient increase of each enforced cap, and a shard rule without zones.
    """
    group = inputs.group
    for cap in group.caps:
        if not cap.enforced:
            continue
        for most in range(max(1, cap.most(group.pods) + 1), group.pods + 1):
            raised = replace(cap, amount=Fraction(most), of_pods=False, strict=False)
            if _fits(inputs, replace(group, caps=tuple(raised if other is cap else other for other in group.caps))):
                yield f"at most {most} of {group.pods} pods {in_a_domain(cap.topology_key)}"
                break
    if group.keeps_zones_apart and _fits(inputs, replace(group, never_share=(HOSTNAME,))):
        yield "pods of a shard may share a zone, but no node"


def _fits(inputs: PlanInput, group: Group) -> bool:
    # Running pods only decide which pods move, not whether pins exist. Without them, no search for moves is needed.
    shards = tuple(replace(shard, running=()) for shard in inputs.expected)
    return _derived(replace(inputs, group=group, shards=shards, searches=False)).fits
