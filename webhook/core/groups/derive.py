"""From a group and a cluster to a plan; or what is in the way, and the nearest that is possible."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.well_known import HOSTNAME
from webhook.core.groups.caps import Cap
from webhook.core.groups.fields import only_labelled, unpinned
from webhook.core.groups.group import Group, Shard, Standing
from webhook.core.groups.plan import Plan, Setting, as_it_stands, plan
from webhook.core.groups.zone_capacity import Rooms, rooms
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.simulation import Outcome
from webhook.core.policy.capacity import has_karpenter
from webhook.core.policy.policy import Policy
from webhook.core.text import listed, plural, segment_of, together

_NAMES = 6


class Derived(Struct, frozen=True, kw_only=True):
    """The answer about a group.

    Shape: ``plan`` is None where no fields keep the caps with all pods placed; ``reasons`` say why. ``nearest`` are
    changes of the group after which all of it fits, in every order; none where it does anyway.
    """

    group: Group
    setting: Setting
    plan: Plan | None
    reasons: tuple[str, ...] = ()
    nearest: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the plan is proven to place all pods."""
        return self.plan is not None and self.plan.verdict is Outcome.FITS


def derive(
    group: Group, shards: Sequence[Shard], index: ReadOnlyIndex, policy: Policy, *, searches: bool = True
) -> Derived:
    """The plan of a group in a cluster that has none of its pods.

    Shape: ``shards`` has one for each that is planned for, and at least one. Without ``searches`` no order is played
    out, which takes minutes for some hundred pods: what nothing else proves is unknown.
    """
    shards = _bare(group, shards)
    found = _derived(group, shards, index, policy, searches=searches)
    if found.fits:
        return found
    return replace(found, nearest=tuple(_nearest(group, shards, index, policy)))


def derive_standing(  # noqa: PLR0913 as `derive`, and what stands
    group: Group,
    shards: Sequence[Shard],
    before: Standing,
    index: ReadOnlyIndex,
    policy: Policy,
    *,
    searches: bool = True,
) -> Derived:
    """The same with the fields of an earlier plan: it is None too where these do not keep the caps any more."""
    shards = _bare(group, shards)
    # Of what a node takes, the cap that stands, which may be narrower than the group's.
    stored = (each for each in before.constraints if each != only_labelled(group, HOSTNAME))
    tops = [each.max_skew or 1 for each in stored if each.topology_key == HOSTNAME]
    narrow = tuple(Cap(topology_key=HOSTNAME, amount=Fraction(top)) for top in tops)
    setting = _setting(replace(group, caps=(*group.caps, *narrow)), shards, index, policy, searches=searches)
    reasons = tuple(_in_the_way(group, setting.rooms))
    found = None if reasons else as_it_stands(group, shards, before, setting)
    return Derived(group=group, setting=setting, plan=found, reasons=reasons)


def _bare(group: Group, shards: Sequence[Shard]) -> list[Shard]:
    """The shards without pins of their templates: where they hold, the zones of the shard say so."""
    return [replace(each, pod=unpinned(group, each.pod)[0]) for each in shards]


def _derived(group: Group, shards: Sequence[Shard], index: ReadOnlyIndex, policy: Policy, *, searches: bool) -> Derived:
    setting = _setting(group, shards, index, policy, searches=searches)
    reasons = tuple(_in_the_way(group, setting.rooms))
    found = None if reasons else plan(group, shards, setting)
    return Derived(group=group, setting=setting, plan=found, reasons=reasons)


def _setting(group: Group, shards: Sequence[Shard], index: ReadOnlyIndex, policy: Policy, *, searches: bool) -> Setting:
    pods = len(shards) * group.pods_per_shard
    return Setting(
        index=index,
        policy=policy,
        rooms=rooms(group, shards, pods, index, policy),
        pins_first=has_karpenter(index.nodes.view()),
        searches=searches,
    )


def place(key: str) -> str:
    """What a domain of the key is called: ``node``, ``zone``."""
    return "node" if key == HOSTNAME else segment_of(key)


def on(key: str) -> str:
    """Where pods are that a cap counts: ``on a node``, ``in a zone``."""
    return f"{'on' if key == HOSTNAME else 'in'} a {place(key)}"


def _in_the_way(group: Group, of: Rooms) -> Iterator[str]:
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


def _nearest(group: Group, shards: Sequence[Shard], index: ReadOnlyIndex, policy: Policy) -> Iterator[str]:
    """Changes of one part of the group with which it is proven to fit: the smallest of each cap, and the shard rule."""
    for cap in group.caps:
        if not cap.enforced:
            continue
        for most in range(max(1, cap.most(group.pods) + 1), group.pods + 1):
            other = replace(group, caps=tuple(_loosened(each, cap, most) for each in group.caps))
            if _fits(other, shards, index, policy):
                yield f"at most {most} of {group.pods} pods {on(cap.topology_key)}"
                break
    if group.keeps_zones_apart and _fits(replace(group, never_share=(HOSTNAME,)), shards, index, policy):
        yield "pods of a shard that share no node, instead of no zone"


def _loosened(each: Cap, cap: Cap, most: int) -> Cap:
    return replace(each, amount=Fraction(most), of_pods=False, strict=False) if each is cap else each


def _fits(group: Group, shards: Sequence[Shard], index: ReadOnlyIndex, policy: Policy) -> bool:
    # Whether there are pins does not depend on pods that run; to move few of these is a search, and caps are many.
    anew = [replace(each, running=()) for each in shards[: group.shards]]
    return _derived(group, anew, index, policy, searches=False).fits
