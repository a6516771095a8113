"""Compute the new status of a group from its old status and the cluster.

The stored plan stays while it keeps the caps and provably places all pods. A plan without a proof, for example after
the loss of a node, also stays, since a changed template restarts its shard. The stored plan is replaced if the group's
author changes the group, or if no order places all pods. Until then, the condition `Planned` describes the new plan.
Fields that no workload has yet can change at any time.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

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
from webhook.core.groups.derive import (
    PlanResult,
    domain_noun,
    fresh_plan,
    in_a_domain,
    keeps_pins,
    kept_plan,
    stored_of,
)
from webhook.core.groups.fields import has_fields
from webhook.core.groups.group import Group, Shard, StoredPlan
from webhook.core.groups.plan import CapGuarantee, CapMethod, GroupPlan, Proof
from webhook.core.groups.status.distribution import CapUsage, cap_usages, propose_moves
from webhook.core.groups.status.forms import DatedCondition, SpreadGroupStatus, Unguarded
from webhook.core.groups.status.members import GroupMember, duplicate_shards, shards_in_cluster
from webhook.core.placement.placement_verdict import PlacementVerdict
from webhook.core.text import agree, one_line, plural, together

# Every user with permission to create a group triggers a plan. With more pods it would take minutes. Known groups are
# smaller.
MOST_PODS_PLANNED = 400
_MOST_PODS_SEARCHED = 40  # With at most so many pods, a search takes some seconds.
_MOST_NAMES = 20  # The most pods named in the status. The count has the others.
_MOST_MESSAGE = 1000  # The most characters of a condition's message, for kubectl describe.
_YES, _NO, _UNKNOWN = "True", "False", "Unknown"
_KIND = "StatefulSet"  # the default for a shard without a workload
_PROOFS = {
    Proof.ZONE_BY_ZONE: ("ZoneByZone", "zones do not affect one another, and each has room for its own pods"),
    Proof.ROOM: ("RoomIsLeft", "in any order, a node always admits the next pod"),
    Proof.SEARCH: ("EveryOrder", "the search tried every order of placing the pods"),
}


class ObservedGroup(Struct, frozen=True, kw_only=True):
    """A group with its workloads and pods in the cluster, at one moment.

    Attributes:
        generation: The generation of the group's spec.
        members: The workloads of the group.
        pods: The pods selected by the group, without finished and terminating pods.
        older: The older groups of the namespace. None for an unreadable group.
        context: The policy, and the cluster with these pods.
    """

    group: Group
    generation: int
    members: tuple[GroupMember, ...]
    pods: tuple[Pod, ...]
    older: tuple[Group | None, ...] = ()
    context: Context


class _Planned(NamedTuple):
    """A group's plan, as stored in the status of the SpreadGroup.

    Attributes:
        workloads: The workloads with their planned fields.
        revision: The revision of the planned fields.
        derived: The computed plan. It records whether all pods fit.
        held: A sentence about a better plan and its effect. The better plan applies only after a change of the spec.
            Empty without a better plan.
    """

    workloads: tuple[PlannedWorkload, ...]
    revision: str
    derived: PlanResult
    held: str = ""


def invalid_spec_status(
    faults: Sequence[str], generation: int, before: SpreadGroupStatus, now: str
) -> SpreadGroupStatus:
    """The status of a group with an invalid spec."""
    conditions = _refused("InvalidSpec", "; ".join(faults))
    return SpreadGroupStatus(
        observed_generation=generation, conditions=_date_conditions(conditions, before, generation, now)
    )


def unevaluated_status(why: str, generation: int, before: SpreadGroupStatus, now: str) -> SpreadGroupStatus:
    """Return a status with every condition unknown for the reason ``why``."""
    types = PLANNED, FITS, CANNOT_GET_STUCK, CAPS_HELD, DELIVERED
    conditions = [_condition(kind, _UNKNOWN, "NotEvaluated", f"not evaluated: {why}") for kind in types]
    return SpreadGroupStatus(
        observed_generation=generation, conditions=_date_conditions(conditions, before, generation, now)
    )


def assess(seen: ObservedGroup, before: SpreadGroupStatus) -> SpreadGroupStatus:
    """Compute the status of the group.

    Example:
        ``assess(ObservedGroup(group=group, generation=1, members=(), pods=(), context=context), SpreadGroupStatus())``
    """
    group, view = seen.group, seen.context.cluster.nodes.view()
    refused = _refusal(seen)
    planned = None if refused else _plan(seen, before)
    stored = stored_of(group, planned.workloads if planned else ())
    unguarded = sorted(pod.meta.name for pod in seen.pods if not _is_guarded(group, pod, stored))
    usages = cap_usages(group, seen.pods, view)
    conditions = [
        *(_plan_conditions(planned, seen) if planned else _refused(*refused or ("", ""))),
        _caps_held(usages),
        _delivered(seen, planned, stored, len(unguarded)),
    ]
    return SpreadGroupStatus(
        observed_generation=seen.generation,
        revision=planned.revision if planned else "",
        conditions=_date_conditions(conditions, before, seen.generation, seen.context.now),
        workloads=planned.workloads if planned else (),
        distribution=tuple(usage.written for usage in usages),
        moves=propose_moves(group, usages, seen.pods, stored.zones, view),
        unguarded=Unguarded(count=len(unguarded), pods=tuple(unguarded[:_MOST_NAMES])),
    )


def _refusal(seen: ObservedGroup) -> tuple[str, str] | None:
    """Return why the group gets no plan: reason and message of the condition. None if it gets a plan."""
    group = seen.group
    most = group.plan_for * group.pods_per_shard
    if group.pods == 1:
        return "OnePod", "the group expects only one pod, which cannot be spread"
    if most > MOST_PODS_PLANNED:
        return "TooLarge", f"the plan would cover {most:,} pods; the limit is {MOST_PODS_PLANNED}"
    if len(seen.older) >= MOST_GROUPS:
        return "TooManyGroups", f"only the {MOST_GROUPS} oldest groups of a namespace get a plan; this one is newer"
    if twice := duplicate_shards(seen.members):
        return "DuplicateShard", twice
    labels = [*(member.pod.labels for member in seen.members), *(pod.labels for pod in seen.pods)]
    for other in filter(None, seen.older):
        selector = compile_selector(other.selector)
        if other.selector == group.selector or any(map(selector.matches, labels)):
            return "Overlaps", f"the older SpreadGroup {one_line(other.name, 63)} selects some of the same pods"
    return None


# -- the plan


def _plan(seen: ObservedGroup, before: SpreadGroupStatus) -> _Planned:
    group = seen.group
    stored = stored_of(group, before.workloads)
    searches = group.pods <= _MOST_PODS_SEARCHED
    known = shards_in_cluster(group, seen.members, seen.context, stored.zones, searches=searches)
    changed = seen.generation != before.observed_generation
    kept = kept_plan(known, stored) if before.workloads else None
    if kept is not None and kept.fits:
        return _taken(seen, before, kept)
    # Pins only move if the spec changed.
    freed = shards_in_cluster(group, seen.members, seen.context, searches=searches) if changed else known
    fresh = fresh_plan(known, freed)
    if kept is not None and not changed and _stays(seen, stored, kept, fresh):
        return _held(seen, before, kept, fresh)
    return _taken(seen, before, fresh)


def _stays(seen: ObservedGroup, stored: StoredPlan, kept: PlanResult, fresh: PlanResult) -> bool:
    """Whether to keep the stored plan although it is not proven to place all pods.

    Keep it if the new plan is not proven either. Otherwise keep it if both are true:

    - A workload or pod has the fields of the stored plan, but not those of the new plan. Pods are checked too, because
      evenspread may not know the kind of their workload.
    - The stored plan may still place all pods, or the new plan pins a shard to other zones.
    """
    if fresh.plan is None or not fresh.fits:
        return True
    new = stored_of(seen.group, _workloads(seen, fresh.plan))
    pods = [*(member.pod for member in seen.members), *seen.pods]
    if not any(_is_guarded(seen.group, pod, stored) and not _is_guarded(seen.group, pod, new) for pod in pods):
        return False
    possible = kept.plan is not None and kept.plan.verdict is not PlacementVerdict.NO_FIT
    return possible or not keeps_pins(fresh.plan, stored)


def _taken(seen: ObservedGroup, before: SpreadGroupStatus, derived: PlanResult) -> _Planned:
    if derived.plan is None or derived.plan.verdict is PlacementVerdict.NO_FIT:
        return _Planned((), "", derived)
    workloads = tuple(_workloads(seen, derived.plan))
    return _Planned(workloads, _revision(seen.group, workloads, before), derived)


def _held(seen: ObservedGroup, before: SpreadGroupStatus, kept: PlanResult, fresh: PlanResult) -> _Planned:
    """Return the stored plan. Add a text about a new plan that places all pods.

    The text names the effect of the new plan, and the condition: a change of the spec applies it.
    """
    group, plan = seen.group, fresh.plan
    if plan is None or plan.verdict is not PlacementVerdict.FITS:
        return _Planned(before.workloads, before.revision, kept)
    workloads = tuple(_workloads(seen, plan))
    new = stored_of(group, workloads)
    effect = f"would restart {plural(_lacking(seen, new), 'workload')}"
    if not seen.members:
        others = sum(not _is_guarded(group, pod, new) for pod in seen.pods)
        effect = f"{plural(others, 'pod')} would lack the new fields"
    revision = _revision(group, workloads, before)
    text = f"revision {revision} would place all pods, but {effect}; change the spec to apply it"
    return _Planned(before.workloads, before.revision, kept, text)


def _workloads(seen: ObservedGroup, plan: GroupPlan) -> Iterator[PlannedWorkload]:
    kinds = {member.name: member.workload.kind for member in seen.members}
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


def _revision(group: Group, workloads: Sequence[PlannedWorkload], before: SpreadGroupStatus) -> str:
    """Return the old revision while the fields of all known shards stay the same, else a new revision."""
    old, new = stored_of(group, before.workloads), stored_of(group, workloads)
    common = old.zones.keys() & new.zones.keys()
    same = (old.constraints, old.apart) == (new.constraints, new.apart)
    if before.revision and same and all(old.zones[shard] == new.zones[shard] for shard in common):
        return before.revision
    text = msgspec.json.encode((new.constraints, new.zones, sorted(new.apart)), order="deterministic")
    return hashlib.blake2b(text, digest_size=4).hexdigest()


# -- who has the fields


def _is_guarded(group: Group, pod: Pod, stored: StoredPlan) -> bool:
    value = pod.labels.get(group.shard_label)
    if value is None or value not in stored.zones:
        return False
    return has_fields(group, Shard(name="", value=value, pod=pod), stored.constraints, stored.zones[value])


def _lacking(seen: ObservedGroup, stored: StoredPlan) -> int:
    """Count the workloads without the fields of this plan. Applying the plan would restart these workloads."""
    return sum(
        not _is_guarded(seen.group, member.pod, stored) for member in seen.members if member.shard in stored.zones
    )


# -- conditions


def _condition(kind: str, status: str, reason: str, message: str) -> DatedCondition:
    return DatedCondition(type=kind, status=status, reason=reason, message=one_line(message, _MOST_MESSAGE))


def _refused(reason: str, message: str) -> list[DatedCondition]:
    return [
        _condition(PLANNED, _NO, reason, message),
        _condition(FITS, _UNKNOWN, "NoPlan", "there is no plan"),
        _condition(CANNOT_GET_STUCK, _UNKNOWN, "NoPlan", "there is no plan"),
    ]


def _plan_conditions(planned: _Planned, seen: ObservedGroup) -> list[DatedCondition]:
    group, derived, plan = seen.group, planned.derived, planned.derived.plan
    if not planned.workloads or plan is None or plan.verdict is PlacementVerdict.NO_FIT:
        why = "; ".join(derived.reasons) or ("no order places all pods" if plan else "its fields break a cap")
        nearest = f"; the smallest change that fits: {'; or '.join(derived.nearest)}" if derived.nearest else ""
        kept = planned.held or f"revision {planned.revision} stays, but not all pods fit: {why}"
        return [
            _condition(PLANNED, _YES, "RevisionHeld" if planned.held else "Kept", kept)
            if planned.workloads
            else _condition(PLANNED, _NO, "Impossible", f"{why}{nearest}"),
            _condition(FITS, _NO, "DoesNotFit", f"{why}{nearest}"),
            _condition(CANNOT_GET_STUCK, _NO, "DoesNotFit", "no order places all pods"),
        ]
    keeping = [_guarantee(key, guarantee) for key, guarantee in plan.keeping.items()]
    parts = (
        f"{plural(group.shards, 'shard')} of {plural(group.pods_per_shard, 'pod')}",
        together(keeping) if keeping else "",
        f"unchanged up to {plan.same_up_to} shards" if plan.same_up_to else "",
        _unexpected(planned.workloads, seen.members),
    )
    text = "; ".join(filter(None, parts))
    reason = "RevisionHeld" if planned.held else "Planned"
    return [_condition(PLANNED, _YES, reason, planned.held or text), *_verdicts(plan)]


def _unexpected(planned: Sequence[PlannedWorkload], members: Sequence[GroupMember]) -> str:
    """Return the number of shards beyond the expected number, as a text. Empty without any."""
    more = len({member.shard for member in members} - {workload.shard for workload in planned})
    return f"{plural(more, 'shard')} beyond the expected number, without a plan" if more else ""


def _guarantee(key: str, guarantee: CapGuarantee) -> str:
    by = {
        CapMethod.NOTHING: "without a constraint",
        CapMethod.MAX_SKEW: "by maxSkew",
        CapMethod.EXACT: "by an exact cap",
        CapMethod.PINS: "by pins",
        CapMethod.LABEL: "by requiring the label",
    }
    return f"at most {plural(guarantee.worst, 'pod')} {in_a_domain(key)} {by[guarantee.way]}"


def _verdicts(plan: GroupPlan) -> Iterator[DatedCondition]:
    if plan.verdict is PlacementVerdict.FITS:
        reason, text = _PROOFS[plan.proof]
        yield _condition(FITS, _YES, "EveryOrder", "every order places all pods")
        yield _condition(CANNOT_GET_STUCK, _YES, reason, text)
    elif plan.verdict is PlacementVerdict.STUCK:
        yield _condition(FITS, _YES, "SomeOrders", "some orders place all pods")
        yield _condition(CANNOT_GET_STUCK, _NO, "CanGetStuck", "some orders leave a pod without a node")
    elif plan.outlook is not None and plan.outlook.gets_stuck:
        yield _condition(FITS, _UNKNOWN, "NotProven", "every tried order leaves a pod without a node")
        yield _condition(CANNOT_GET_STUCK, _NO, "CanGetStuck", "every tried order leaves a pod without a node")
    else:
        text = "no tried order leaves a pod without a node, but there is no proof for all orders"
        yield _condition(FITS, _UNKNOWN, "NotProven", text)
        yield _condition(CANNOT_GET_STUCK, _UNKNOWN, "NotProven", text)


def _caps_held(usages: Sequence[CapUsage]) -> DatedCondition:
    broken = [usage for usage in usages if usage.above]
    if broken:
        return _condition(CAPS_HELD, _NO, "CapExceeded", "; ".join(usage.text for usage in broken))
    uncounted = [usage for usage in usages if usage.uncounted]
    if uncounted:
        labels = (f"{one_line(usage.cap.topology_key, 63)} ({plural(usage.uncounted, 'pod')})" for usage in uncounted)
        text = f"no cap counts pods on nodes without the label {', '.join(labels)}"
        return _condition(CAPS_HELD, _UNKNOWN, "NodesWithoutLabel", text)
    fullest = (
        f"the fullest {domain_noun(usage.cap.topology_key)} has {usage.fullest} of {usage.most} pods"
        for usage in usages
    )
    return _condition(CAPS_HELD, _YES, "Held", ", ".join(fullest) or "there is no cap")


def _delivered(seen: ObservedGroup, planned: _Planned | None, stored: StoredPlan, unguarded: int) -> DatedCondition:
    if planned is None or not planned.workloads:
        return _condition(DELIVERED, _NO, "NoPlan", "there is no plan")
    if not seen.members and not seen.pods:
        text = "no workload or pod of this namespace has both the selector's labels and the shard label"
        return _condition(DELIVERED, _NO, "NothingSelected", text)
    group, lacking = seen.group, _lacking(seen, stored)
    if lacking:
        lacks, them = ("lacks", "it") if lacking == 1 else ("lack", "them")
        restart = f"the next update restarts {them}" if group.inject else f"applying the plan restarts {them}"
        text = f"{lacking} of {plural(len(seen.members), 'workload')} {lacks} the plan's fields; {restart}"
        return _condition(DELIVERED, _NO, "FieldsDiffer", text)
    if unguarded:
        unlabelled = sum(group.shard_label not in pod.labels for pod in seen.pods)
        text = f"{plural(unguarded, 'pod')} {agree(unguarded, 'lack')} the fields of the plan"
        text += f", {unlabelled} also the shard label {one_line(group.shard_label, 80)}" if unlabelled else ""
        return _condition(DELIVERED, _NO, "UnguardedPods", text)
    return _condition(DELIVERED, _YES, "Delivered", "all pods have the fields of the plan")


def _date_conditions(
    conditions: Sequence[DatedCondition], before: SpreadGroupStatus, generation: int, now: str
) -> tuple[DatedCondition, ...]:
    """Set each condition's generation and the time of its last status change."""
    return tuple(
        replace(
            condition,
            observed_generation=generation,
            last_transition_time=old.last_transition_time if old.status == condition.status else now,
        )
        for condition in conditions
        for old in (before.condition(condition.type),)
    )
