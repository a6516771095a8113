"""From a group and a cluster to a plan; or what is in the way, and the nearest that is possible."""

from collections.abc import Iterable, Iterator
from fractions import Fraction

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.spread_group import PlannedWorkload
from webhook.core.api.well_known import HOSTNAME
from webhook.core.groups.affinity import apart_terms
from webhook.core.groups.caps import Cap
from webhook.core.groups.fields import only_labelled, ours, unpinned
from webhook.core.groups.group import Group, PlannedFor, Stored
from webhook.core.groups.plan import Plan, plan, plan_with_fields_of
from webhook.core.groups.zone_capacity import Capacity, capacity_of
from webhook.core.placement.outcome import PlacementOutcome
from webhook.core.text import listed, plural, segment_of, together

_NAMES = 6


class Derived(Struct, frozen=True, kw_only=True):
    """The answer about a group.

    Attributes:
        of: What is planned for.
        capacity: What the nodes take.
        plan: The plan. None if no fields keep the caps with all pods placed.
        reasons: Why there is none.
        nearest: Changes of the group after which all of it fits, in every order. Empty if it fits anyway.
    """

    of: PlannedFor
    capacity: Capacity
    plan: Plan | None
    reasons: tuple[str, ...] = ()
    nearest: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the plan is proven to place all pods."""
        return self.plan is not None and self.plan.verdict is PlacementOutcome.FITS


def derive(of: PlannedFor) -> Derived:
    """The plan of a group."""
    of = _bare(of)
    found = _derived(of)
    return found if found.fits else replace(found, nearest=tuple(_nearest(of)))


def fresh_plan(known: PlannedFor, freed: PlannedFor) -> Derived:
    """A plan that moves no pin; if none of these is proven, one that moves pins.

    Args:
        known: The group with the stored zones.
        freed: The group without them, or ``known`` again if no pin may move.
    """
    found = derive(known)
    if found.fits or freed.shards == known.shards:
        return found
    other = derive(freed)
    return other if other.fits else found


def kept_plan(known: PlannedFor, before: Stored) -> Derived:
    """The stored plan. None if its fields do not keep the caps any more, or no pin of it would stay."""
    of = _bare(known)
    # A node takes no more than the stored cap, which may be narrower than the group's.
    stored = (each for each in before.constraints if each != only_labelled(of.group, HOSTNAME))
    tops = [each.max_skew or 1 for each in stored if each.topology_key == HOSTNAME]
    narrow = tuple(Cap(topology_key=HOSTNAME, amount=Fraction(top)) for top in tops)
    capacity = capacity_of(replace(of, group=replace(of.group, caps=(*of.group.caps, *narrow))))
    reasons = tuple(_in_the_way(of.group, capacity))
    found = None if reasons else plan_with_fields_of(of, before, capacity)
    if found is not None and not keeps_pins(found, before):
        return Derived(
            of=of, capacity=capacity, plan=None, reasons=("zones that shards are pinned to take no pods now",)
        )
    return Derived(of=of, capacity=capacity, plan=found, reasons=reasons)


def keeps_pins(plan: Plan, stored: Stored) -> bool:
    """Whether no shard that had zones gets others."""
    new = {shard.value: zones for shard, zones in plan.pins}
    return all(zones == new.get(shard, zones) for shard, zones in stored.zones.items())


def stored_of(group: Group, workloads: Iterable[PlannedWorkload]) -> Stored:
    """The fields of these workloads of a status."""
    given = [*workloads]
    constraints = ours(group, given[0].topology_spread_constraints) if given else ()
    apart = frozenset(each.topology_key for each in apart_terms(given[0].affinity)) if given else frozenset()
    return Stored(constraints, {each.shard: each.zones for each in given}, apart)


def _bare(of: PlannedFor) -> PlannedFor:
    """The shards without the pins of their templates: their ``zones`` have them."""
    return replace(of, shards=tuple(replace(each, pod=unpinned(of.group, each.pod)[0]) for each in of.shards))


def _derived(of: PlannedFor) -> Derived:
    capacity = capacity_of(of)
    reasons = tuple(_in_the_way(of.group, capacity))
    return Derived(of=of, capacity=capacity, plan=None if reasons else plan(of, capacity), reasons=reasons)


def place(key: str) -> str:
    """What a domain of the key is called: ``node``, ``zone``."""
    return "node" if key == HOSTNAME else segment_of(key)


def on(key: str) -> str:
    """Where pods are that a cap counts: ``on a node``, ``in a zone``."""
    return f"{'on' if key == HOSTNAME else 'in'} a {place(key)}"


def _in_the_way(group: Group, of: Capacity) -> Iterator[str]:
    """Why no fields can place all pods within the caps."""
    pods, zone, on_zone = group.pods, segment_of(group.zone_key), group.most(group.zone_key)
    for cap in group.caps:
        if cap.enforced and cap.most(pods) < 1:
            yield f"{cap.text} of {plural(pods, 'pod')} is not even one {on(cap.topology_key)}"
            return
    if not of.of_zones:
        among = f" of the required domains {listed(group.domains, _NAMES)}" if group.domains else ""
        yield f"no node{among or f' with the label {group.zone_key}' * group.names_zones} takes a pod of the group"
        return
    if group.keeps_zones_apart and group.pods_per_shard > len(of.of_zones):
        there = f"{_only(len(of.of_zones), zone)} ({listed([*of.of_zones], _NAMES)})"
        yield f"the {group.pods_per_shard} pods of a shard share no {zone}, and {there}"
        return
    if HOSTNAME in group.never_share and group.pods_per_shard > of.nodes:
        yield f"the {group.pods_per_shard} pods of a shard share no node, and {_only(of.nodes, 'node')}"
        return
    each = group.shards if group.keeps_zones_apart else pods
    limits = {name: min(each, pods if on_zone is None else on_zone) for name in of.of_zones}
    if sum(limits.values()) < pods:
        sums = together(f"{most} in {name}" for name, most in limits.items())
        yield f"the caps leave room for no more than {sums}: {sum(limits.values())} of {pods} pods"
        return
    takes = {name: min(limits[name], room) for name, room in of.of_zones.items()}
    if sum(takes.values()) < pods:
        on_node = group.most(HOSTNAME)
        why = "" if on_node is None else f"with at most {on_node} on a node, "
        sums = together(f"{most} in {name}" for name, most in takes.items())
        yield f"{why}the nodes take no more than {sums}: {sum(takes.values())} of {pods} pods"


def _only(many: int, domain: str) -> str:
    return f"only {plural(many, domain)} {'takes' if many == 1 else 'take'} any"


def _nearest(of: PlannedFor) -> Iterator[str]:
    """Changes of one part of the group with which it is proven to fit: the smallest of each cap, and the shard rule."""
    group = of.group
    for cap in group.caps:
        if not cap.enforced:
            continue
        for most in range(max(1, cap.most(group.pods) + 1), group.pods + 1):
            other = replace(group, caps=tuple(_loosened(each, cap, most) for each in group.caps))
            if _fits(of, other):
                yield f"at most {most} of {group.pods} pods {on(cap.topology_key)}"
                break
    if group.keeps_zones_apart and _fits(of, replace(group, never_share=(HOSTNAME,))):
        yield "pods of a shard that share no node, instead of no zone"


def _loosened(each: Cap, cap: Cap, most: int) -> Cap:
    return replace(each, amount=Fraction(most), of_pods=False, strict=False) if each is cap else each


def _fits(of: PlannedFor, group: Group) -> bool:
    # Whether there are pins does not depend on pods that run; to move few of these is a search, and caps are many.
    shards = tuple(replace(each, running=()) for each in of.expected)
    return _derived(replace(of, group=group, shards=shards, searches=False)).fits
