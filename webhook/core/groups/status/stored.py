"""What an earlier plan of a group left: the fields of its shards, which stay as long as they do."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from webhook.core.api.spread_group import PlannedWorkload
from webhook.core.api.types import SpreadConstraint
from webhook.core.groups.derive import Derived, derive, derive_standing
from webhook.core.groups.fields import ours
from webhook.core.groups.group import Group, Standing
from webhook.core.groups.plan import Plan
from webhook.core.groups.status.members import Gathered
from webhook.core.policy.policy import Policy


class Stored(NamedTuple):
    """What each shard gets, by the value of the shard label; the constraints of all, and what none of them shares."""

    constraints: tuple[SpreadConstraint, ...] = ()
    zones: Mapping[str, tuple[str, ...]] = {}
    apart: frozenset[str] = frozenset()


def stored_of(group: Group, workloads: Iterable[PlannedWorkload]) -> Stored:
    """The fields of these workloads of a status."""
    given = [*workloads]
    constraints = ours(group, given[0].topology_spread_constraints) if given else ()
    of_pods = given[0].affinity.pod_anti_affinity if given and given[0].affinity is not None else None
    terms = (of_pods.required if of_pods is not None else None) or ()
    return Stored(constraints, {each.shard: each.zones for each in given}, frozenset(it.topology_key for it in terms))


def kept(known: Gathered, stored: Stored, policy: Policy, *, searches: bool) -> Derived:
    """The plan with what is stored: None where this does not keep the caps, or no pin of it would stay."""
    standing = Standing(stored.constraints, pins=any(stored.zones.values()))
    found = derive_standing(known.group, known.shards, standing, known.index, policy, searches=searches)
    if found.plan is not None and not keeps_pins(found.plan, stored):
        return replace(found, plan=None, reasons=("zones that shards are pinned to take no pods now",))
    return found


def anew(known: Gathered, freed: Gathered, policy: Policy, *, searches: bool) -> Derived:
    """A plan that moves no pin; where none of these is proven, one that moves pins.

    Shape: ``freed`` is the same group without stored zones; ``known`` again, where no pin may move.
    """
    found = derive(known.group, known.shards, known.index, policy, searches=searches)
    if found.fits or freed.shards == known.shards:
        return found
    other = derive(freed.group, freed.shards, freed.index, policy, searches=searches)
    return other if other.fits else found


def keeps_pins(plan: Plan, stored: Stored) -> bool:
    """Whether no shard that had zones gets others."""
    new = {shard.value: zones for shard, zones in plan.pins}
    return all(zones == new.get(shard, zones) for shard, zones in stored.zones.items())
