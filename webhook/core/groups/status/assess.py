"""A group, its status before, and what there is in the cluster -> its status now.

The plan that is stored stays as long as it keeps the caps and is proven to place all pods. One that is not proven any
more, as after a node was lost, stays too, until the group's author changes the group, or until no order at all places
its pods: a template that changes restarts its shard. Fields that no workload has change freely. The condition `Planned`
says meanwhile what a plan made anew would change.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct

from webhook.core.api.selectors import compile_selector
from webhook.core.api.spread_group import (
    CANNOT_GET_STUCK,
    CAPS_HELD,
    DELIVERED,
    FITS,
    MOST_GROUPS,
    PLANNED,
    PlannedWorkload,
)
from webhook.core.api.types import Pod
from webhook.core.context import Context
from webhook.core.groups.derive import Derived, fresh_plan, keeps_pins, kept_plan, on, stored_of
from webhook.core.groups.fields import has_fields
from webhook.core.groups.group import Group, Shard, Stored
from webhook.core.groups.plan import Plan, Proof, Way
from webhook.core.groups.status.distribution import Spread, moves, spreads
from webhook.core.groups.status.forms import Dated, Status, Unguarded, dated
from webhook.core.groups.status.members import Member, duplicate_shards, shards_in_cluster
from webhook.core.placement.outcome import PlacementOutcome
from webhook.core.text import one_line, plural, together

# Whoever may create a group has its plan made: of more pods, in none of the groups that we know, it would take minutes.
MOST_PODS_PLANNED = 400
_MOST_PODS_PLAYED = 40
_MOST_NAMES = 20
_MOST_MESSAGE = 1000
_YES, _NO, _UNKNOWN = "True", "False", "Unknown"
_KIND = "StatefulSet"  # of a shard that is yet to be made, where nobody says more
_PROOFS = {
    Proof.ZONE_BY_ZONE: ("ZoneByZone", "zones do not touch one another, and each has room for its own pods"),
    Proof.ROOM: ("RoomIsLeft", "in every state with a pod to place, there is a node for it"),
    Proof.SEARCH: ("EveryOrder", "every order in which the pods can be placed was followed"),
}


class ObservedGroup(Struct, frozen=True, kw_only=True):
    """A group and what there is of it in the cluster, at one moment.

    Attributes:
        group: The group.
        generation: Of its spec.
        members: Its workloads.
        pods: Those that it selects, without finished pods and those that are being deleted.
        older: The other groups of its namespace that were there first. None for an unreadable one.
        within: The policy, and the cluster with these pods.
    """

    group: Group
    generation: int
    members: tuple[Member, ...]
    pods: tuple[Pod, ...]
    older: tuple[Group | None, ...] = ()
    within: Context


class _Planned(NamedTuple):
    """The workloads with their fields, what these come to, and what a fresh plan would change."""

    workloads: tuple[PlannedWorkload, ...]
    revision: str
    derived: Derived
    held: str = ""


def unreadable(faults: Sequence[str], generation: int, before: Status, now: str) -> Status:
    """The status of a group whose spec says nothing that can be planned."""
    conditions = _refused("InvalidSpec", "; ".join(faults))
    return Status(observed_generation=generation, conditions=dated(conditions, before, generation, now))


def not_evaluated(why: str, generation: int, before: Status, now: str) -> Status:
    """The status of a group of which nothing is known."""
    of = PLANNED, FITS, CANNOT_GET_STUCK, CAPS_HELD, DELIVERED
    conditions = [_condition(each, _UNKNOWN, "NotEvaluated", f"not evaluated: {why}") for each in of]
    return Status(observed_generation=generation, conditions=dated(conditions, before, generation, now))


def assess(seen: ObservedGroup, before: Status) -> Status:
    """The status of the group."""
    group, view = seen.group, seen.within.cluster.nodes.view()
    refused = _refusal(seen)
    planned = None if refused else _plan(seen, before)
    stored = stored_of(group, planned.workloads if planned else ())
    unguarded = sorted(each.meta.name for each in seen.pods if not _is_guarded(group, each, stored))
    found = spreads(group, seen.pods, view)
    conditions = [
        *(_said(planned, seen) if planned else _refused(*refused or ("", ""))),
        _caps_held(found),
        _delivered(seen, planned, stored, len(unguarded)),
    ]
    return Status(
        observed_generation=seen.generation,
        revision=planned.revision if planned else "",
        conditions=dated(conditions, before, seen.generation, seen.within.now),
        workloads=planned.workloads if planned else (),
        distribution=tuple(each.written for each in found),
        moves=moves(group, found, seen.pods, stored.zones, view),
        unguarded=Unguarded(count=len(unguarded), pods=tuple(unguarded[:_MOST_NAMES])),
    )


def _refusal(seen: ObservedGroup) -> tuple[str, str] | None:
    """Why no plan is made at all: reason and message."""
    group = seen.group
    most = group.plan_for * group.pods_per_shard
    if group.pods == 1:
        return "OnePod", "one shard of one pod is expected, and one pod cannot be spread"
    if most > MOST_PODS_PLANNED:
        return "TooLarge", f"{most:,} pods are to be planned for; at most {MOST_PODS_PLANNED} are"
    if len(seen.older) >= MOST_GROUPS:
        return "TooManyGroups", f"of a namespace the {MOST_GROUPS} oldest groups are planned, and this one is younger"
    if twice := duplicate_shards(seen.members):
        return "DuplicateShard", twice
    labels = [*(each.pod.labels for each in seen.members), *(each.labels for each in seen.pods)]
    for other in filter(None, seen.older):
        selector = compile_selector(other.selector)
        if other.selector == group.selector or any(map(selector.matches, labels)):
            return (
                "Overlaps",
                f"SpreadGroup {one_line(other.name, 63)} was there first, and selects pods of this one too",
            )
    return None


# -- the plan


def _plan(seen: ObservedGroup, before: Status) -> _Planned:
    group = seen.group
    stored = stored_of(group, before.workloads)
    searches = group.pods <= _MOST_PODS_PLAYED  # some seconds at most
    known = shards_in_cluster(group, seen.members, seen.within, stored.zones, searches=searches)
    asked = seen.generation != before.observed_generation
    standing = kept_plan(known, stored) if before.workloads else None
    if standing is not None and standing.fits:
        return _taken(seen, before, standing)
    # Pins move only if somebody asked for another plan.
    freed = shards_in_cluster(group, seen.members, seen.within, searches=searches) if asked else known
    fresh = fresh_plan(known, freed)
    if standing is not None and not asked and _stays(seen, stored, standing, fresh):
        return _held(seen, before, standing, fresh)
    return _taken(seen, before, fresh)


def _stays(seen: ObservedGroup, stored: Stored, standing: Derived, fresh: Derived) -> bool:
    """Whether unproven fields stay. Fields that no pod has change freely.

    Pods count too: their author can be a workload of an unknown kind.
    """
    if fresh.plan is None or not fresh.fits:
        return True
    new = stored_of(seen.group, _workloads(seen, fresh.plan))
    pods = [*(each.pod for each in seen.members), *seen.pods]
    if not any(_is_guarded(seen.group, each, stored) and not _is_guarded(seen.group, each, new) for each in pods):
        return False
    possible = standing.plan is not None and standing.plan.verdict is not PlacementOutcome.NO_FIT
    return possible or not keeps_pins(fresh.plan, stored)


def _taken(seen: ObservedGroup, before: Status, found: Derived) -> _Planned:
    if found.plan is None or found.plan.verdict is PlacementOutcome.NO_FIT:
        return _Planned((), "", found)
    workloads = tuple(_workloads(seen, found.plan))
    return _Planned(workloads, _revision(seen.group, workloads, before), found)


def _held(seen: ObservedGroup, before: Status, standing: Derived, fresh: Derived) -> _Planned:
    """The stored plan, beside a fresh one that any change of the spec takes."""
    group, plan = seen.group, fresh.plan
    if plan is None or plan.verdict is not PlacementOutcome.FITS:
        return _Planned(before.workloads, before.revision, standing)
    workloads = tuple(_workloads(seen, plan))
    new = stored_of(group, workloads)
    restarts = f"{plural(_lacking(seen, new), 'workload')} would restart"
    if not seen.members:
        others = sum(not _is_guarded(group, each, new) for each in seen.pods)
        restarts = f"{plural(others, 'pod')} would be without its fields"
    revision = _revision(group, workloads, before)
    text = f"revision {revision} would place all pods, and {restarts}; any change of "
    return _Planned(before.workloads, before.revision, standing, f"{text}the spec takes it")


def _workloads(seen: ObservedGroup, plan: Plan) -> Iterator[PlannedWorkload]:
    kinds = {each.name: each.workload.kind for each in seen.members}
    otherwise = next(iter(kinds.values()), _KIND)
    for shard, zones in plan.pins:
        fields = plan.fields[shard.name]
        yield PlannedWorkload(
            kind=kinds.get(shard.name, otherwise),
            name=shard.name,
            shard=shard.value,
            zones=zones,
            topology_spread_constraints=fields.constraints,
            affinity=fields.affinity,
        )


def _revision(group: Group, workloads: Sequence[PlannedWorkload], before: Status) -> str:
    """The revision before, unless a shard with fields gets others."""
    old, new = stored_of(group, before.workloads), stored_of(group, workloads)
    common = old.zones.keys() & new.zones.keys()
    same = (old.constraints, old.apart) == (new.constraints, new.apart)
    if before.revision and same and all(old.zones[shard] == new.zones[shard] for shard in common):
        return before.revision
    text = msgspec.json.encode((new.constraints, new.zones, sorted(new.apart)), order="deterministic")
    return hashlib.blake2b(text, digest_size=4).hexdigest()


# -- who has the fields


def _is_guarded(group: Group, pod: Pod, stored: Stored) -> bool:
    value = pod.labels.get(group.shard_label)
    if value is None or value not in stored.zones:
        return False
    return has_fields(group, Shard(name="", value=value, pod=pod), stored.constraints, stored.zones[value])


def _lacking(seen: ObservedGroup, stored: Stored) -> int:
    """How many workloads lack these fields and would restart."""
    return sum(not _is_guarded(seen.group, each.pod, stored) for each in seen.members if each.shard in stored.zones)


# -- conditions


def _condition(of: str, status: str, reason: str, message: str) -> Dated:
    return Dated(type=of, status=status, reason=reason, message=one_line(message, _MOST_MESSAGE))


def _refused(reason: str, message: str) -> list[Dated]:
    return [
        _condition(PLANNED, _NO, reason, message),
        _condition(FITS, _UNKNOWN, "NoPlan", "there is no plan"),
        _condition(CANNOT_GET_STUCK, _UNKNOWN, "NoPlan", "there is no plan"),
    ]


def _said(of: _Planned, seen: ObservedGroup) -> list[Dated]:
    group, plan = seen.group, of.derived.plan
    if not of.workloads or plan is None or plan.verdict is PlacementOutcome.NO_FIT:
        why = "; ".join(of.derived.reasons) or (
            "no order places all pods" if plan else "its fields do not keep the caps"
        )
        nearest = f"; the nearest that fits: {'; or '.join(of.derived.nearest)}" if of.derived.nearest else ""
        stands = of.held or f"revision {of.revision} stays, though not all pods can be placed: {why}"
        planned = (
            _condition(PLANNED, _YES, "RevisionHeld" if of.held else "Kept", stands)
            if of.workloads
            else _condition(PLANNED, _NO, "Impossible", f"{why}{nearest}")
        )
        return [
            planned,
            _condition(FITS, _NO, "DoesNotFit", f"{why}{nearest}"),
            _condition(CANNOT_GET_STUCK, _NO, "DoesNotFit", "not all pods fit in any order"),
        ]
    keeping = [f"{on(key)} {_way(each.way, each.worst)}" for key, each in plan.keeping.items()]
    parts = (
        f"{plural(group.shards, 'shard')} of {plural(group.pods_per_shard, 'pod')}",
        together(keeping) if keeping else "",
        f"the same up to {plan.same_up_to} shards" if plan.same_up_to else "",
        _unexpected(of.workloads, seen.members),
    )
    text = "; ".join(filter(None, parts))
    reason = "RevisionHeld" if of.held else "Planned"
    return [_condition(PLANNED, _YES, reason, of.held or text), *_verdicts(plan)]


def _unexpected(planned: Sequence[PlannedWorkload], members: Sequence[Member]) -> str:
    """How many running shards are not expected. Empty if none."""
    more = len({each.shard for each in members} - {each.shard for each in planned})
    return f"{plural(more, 'shard')} more than expected {'is' if more == 1 else 'are'} not planned" if more else ""


def _way(way: Way, worst: int) -> str:
    by = {
        Way.NOTHING: "without a constraint",
        Way.MAX_SKEW: "by maxSkew",
        Way.EXACT: "by an exact cap",
        Way.PINS: "by pins",
        Way.LABEL: "on nodes with its label",
    }
    return f"at most {plural(worst, 'pod')} {by[way]}"


def _verdicts(plan: Plan) -> Iterator[Dated]:
    """Whether all pods fit, and whether that depends on the order."""
    if plan.verdict is PlacementOutcome.FITS:
        reason, text = _PROOFS[plan.proof]
        yield _condition(FITS, _YES, "EveryOrder", "every order places all pods")
        yield _condition(CANNOT_GET_STUCK, _YES, reason, text)
    elif plan.verdict is PlacementOutcome.STUCK:
        yield _condition(FITS, _YES, "SomeOrders", "some orders place all pods")
        yield _condition(CANNOT_GET_STUCK, _NO, "CanGetStuck", "some orders leave a pod without a node")
    elif plan.outlook is not None and plan.outlook.gets_stuck:
        yield _condition(FITS, _UNKNOWN, "NotProven", "every order that was tried leaves a pod without a node")
        yield _condition(CANNOT_GET_STUCK, _NO, "CanGetStuck", "every order that was tried leaves a pod without a node")
    else:
        yield _condition(FITS, _UNKNOWN, "NotProven", "no order was found that leaves a pod out, and no proof")
        yield _condition(CANNOT_GET_STUCK, _UNKNOWN, "NotProven", "no order was found that gets stuck, and no proof")


def _caps_held(found: Sequence[Spread]) -> Dated:
    broken = [each for each in found if each.above]
    if broken:
        return _condition(CAPS_HELD, _NO, "CapExceeded", "; ".join(each.text for each in broken))
    uncounted = [each for each in found if each.uncounted]
    if uncounted:
        said = (f"{plural(each.uncounted, 'pod')} without {one_line(each.cap.topology_key, 63)}" for each in uncounted)
        return _condition(CAPS_HELD, _UNKNOWN, "NodesWithoutLabel", f"on nodes without the label: {', '.join(said)}")
    told = (f"{on(each.cap.topology_key)} {each.fullest} of {each.most}" for each in found)
    return _condition(CAPS_HELD, _YES, "Held", f"the most pods {', '.join(told)}" if found else "there is no cap")


def _delivered(seen: ObservedGroup, planned: _Planned | None, stored: Stored, unguarded: int) -> Dated:
    if planned is None or not planned.workloads:
        return _condition(DELIVERED, _NO, "NoPlan", "there is no plan")
    if not seen.members and not seen.pods:
        text = "no workload and no pod of this namespace has the labels of the selector and of the shard"
        return _condition(DELIVERED, _NO, "NothingSelected", text)
    group, lacking = seen.group, _lacking(seen, stored)
    if lacking:
        has, restart, they = ("has", "restarts", "it is") if lacking == 1 else ("have", "restart", "they are")
        when = f"when {they} written next" if group.inject else "with these"
        text = f"{lacking} of {plural(len(seen.members), 'workload')} {has} other fields, and {restart} {when}"
        return _condition(DELIVERED, _NO, "FieldsDiffer", text)
    if unguarded:
        strays = sum(group.shard_label not in each.labels for each in seen.pods)
        text = f"{plural(unguarded, 'pod')} {'is' if unguarded == 1 else 'are'} without the fields of the plan"
        label = f", {strays} for want of the label {one_line(group.shard_label, 80)}, which tells the shards apart"
        text += label if strays else ""
        return _condition(DELIVERED, _NO, "UnguardedPods", text)
    return _condition(DELIVERED, _YES, "Delivered", "all pods have the fields of the plan")
