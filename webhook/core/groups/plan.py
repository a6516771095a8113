"""Choose fields that keep the caps of a group in every order, and prove that all its pods fit.

Three methods keep a cap. The first with a proof wins:

    maxSkew      the largest safe one (`caps.safe_max_skew`)
    exact cap    minDomains above the number of domains turns maxSkew into the most pods of a domain
    pins         a zone for each pod of a shard (`pins`), and an exact cap on nodes

A plan can get stuck if some order of placing its pods leaves a pod without a node. Three proofs exclude this:

- With pins, each zone only gets its own pods, and has room for them. Zones do not affect one another.
- With exact caps, a pod finds no node only after more pods are placed than the group has (`_fewest_behind`).
- For small groups, a search follows every order (`outlook`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import SpreadConstraint
from webhook.core.api.well_known import HOSTNAME
from webhook.core.context import problem_of
from webhook.core.groups.caps import MIN_DOMAINS_OF_A_CAP, fullest, safe_max_skew
from webhook.core.groups.fields import shard_fields
from webhook.core.groups.group import Fields, Group, PlanInput, Shard, StoredPlan, ZonePins, with_fields
from webhook.core.groups.group_constraints import exact_cap, group_constraint, label_constraint
from webhook.core.groups.outlook import EFFORT, Outlook, simulate_orders
from webhook.core.groups.pins import kept_zones, pin_zones
from webhook.core.groups.zone_capacity import GroupCapacity
from webhook.core.placement.game_from_cluster import PodBatch
from webhook.core.placement.placement_verdict import PlacementVerdict
from webhook.core.placement.proofs.pinned_claims import volumes_are_unknown
from webhook.core.policy.capacity import has_karpenter
from webhook.core.policy.defaults import Defaults
from webhook.core.policy.policy import Policy
from webhook.core.scheduler.profile import DEFAULT_SCHEDULER

# With more shards, the search exceeds its limit of states and proves nothing.
_MOST_SEARCHED = 4


class CapMethod(StrEnum):
    """The method by which a plan keeps a cap."""

    NOTHING = "nothing is needed"
    MAX_SKEW = "maxSkew"
    EXACT = "exact cap"
    PINS = "pins"
    LABEL = "nodes with the label"


class Proof(StrEnum):
    """The proof that no scheduling order leaves a pod without a node."""

    ZONE_BY_ZONE = "zone by zone"
    ROOM = "room is left in every state"
    SEARCH = "every order was looked at"
    NONE = "not proven"


class CapGuarantee(Struct, frozen=True):
    """The method that keeps a cap, and the most pods of a domain in any order."""

    way: CapMethod
    worst: int


class GroupPlan(Struct, frozen=True, kw_only=True):
    """The planned fields of each shard, and whether all pods fit with these fields.

    Attributes:
        shards: The expected shards.
        constraints: The hard constraints of all shards.
        fields: The fields by the name of the shard's workload. Includes constraints and affinity already in its
            template.
        keeping: The guarantee for each cap, by topology key.
        verdict: Whether all pods fit in every order.
        proof: The proof of a fitting plan.
        zone_pins: The pins of shards to zones. None without pins.
        outlook: The result of the search. None if the proof needs no search.
        same_up_to: The largest number of shards for which these fields keep the caps and all pods fit.
    """

    group: Group
    shards: tuple[Shard, ...]
    constraints: tuple[SpreadConstraint, ...]
    fields: Mapping[str, Fields]
    keeping: Mapping[str, CapGuarantee]
    verdict: PlacementVerdict
    proof: Proof
    zone_pins: ZonePins | None = None
    outlook: Outlook | None = None
    same_up_to: int = 0

    @property
    def pins(self) -> list[tuple[Shard, tuple[str, ...]]]:
        zones = self.zone_pins.of_shards if self.zone_pins is not None else ((),) * len(self.shards)
        return [*zip(self.shards, zones, strict=True)]


class _Candidate(Struct, frozen=True, kw_only=True):
    """Fields for the templates of a group's shards, not yet proven to keep the caps.

    All shards get the same constraints. Each shard can have its own zone pins.

    Attributes:
        constraints: The hard constraints of all shards.
        keeping: How the fields keep each cap, by topology key.
        zone_pins: The pins of the expected shards.
        pinned: The number of shards with pins.
    """

    constraints: tuple[SpreadConstraint, ...]
    keeping: Mapping[str, CapGuarantee]
    zone_pins: ZonePins | None = None
    pinned: int = 0


def choose_plan(inputs: PlanInput, capacity: GroupCapacity) -> GroupPlan:
    """Choose the first proven plan for the expected shards, or else the least bad plan.

    The caps must leave room for all pods.
    """
    unproven = list[GroupPlan]()
    for candidate in _candidates(inputs, capacity):
        judged = _judged(inputs, candidate, capacity)
        if judged.verdict is PlacementVerdict.FITS:
            return judged
        unproven.append(judged)
    return min((_searched(inputs, plan, capacity) for plan in unproven), key=_rank)


def plan_from_stored(inputs: PlanInput, stored: StoredPlan, capacity: GroupCapacity) -> GroupPlan | None:
    """Build a plan from the stored fields, with a verdict on whether all pods fit.

    None if these fields break a cap, or if a stored zone no longer exists. The shards of ``inputs`` must have the
    stored zones.
    """
    candidate = _stored_candidate(inputs.group, inputs.shards, stored, capacity)
    if candidate is None:
        return None
    judged = _judged(inputs, candidate, capacity)
    return judged if judged.verdict is PlacementVerdict.FITS else _searched(inputs, judged, capacity)


def pod_batches(inputs: PlanInput, fields: Mapping[str, Fields], capacity: GroupCapacity) -> list[PodBatch]:
    """Build a batch of equal pods for each expected shard. Shards with equal pods share a batch."""
    group = inputs.group
    batches = [
        PodBatch(
            problem=problem_of(with_fields(shard.pod, fields[shard.name]), inputs.context),
            pods=group.pods_per_shard,
            in_turn=shard.in_turn,
        )
        for shard in inputs.expected
    ]
    if not group.never_share and capacity.alike:
        return [replace(batches[0], pods=group.pods, in_turn=False)]
    return batches


def _rank(plan: GroupPlan) -> tuple[int, float]:
    """Return a sort key for plans: by placement verdict, best first.

    The best plan is proven to place all pods. The next has an unknown verdict. Then come plans with pods left over in
    some orders (rare before frequent), then plans with pods left over in all orders. A plan with an unknown verdict and
    a known order that leaves a pod over is also in the last group.
    """
    order = (PlacementVerdict.FITS, PlacementVerdict.UNKNOWN, PlacementVerdict.STUCK, PlacementVerdict.NO_FIT)
    never = plan.verdict is PlacementVerdict.UNKNOWN and plan.outlook is not None and plan.outlook.gets_stuck
    verdict = PlacementVerdict.NO_FIT if never else plan.verdict
    return order.index(verdict), 0.0 if plan.outlook is None else plan.outlook.stuck or 0.0


def _candidates(inputs: PlanInput, capacity: GroupCapacity) -> Iterator[_Candidate]:
    group, shards, capped = inputs.group, inputs.shards, [*_capped_keys(inputs.group)]
    pins = _pins(group, shards, capacity) if group.keeps_zones_apart else None
    limited = [(key, most) for key, most in capped if not _kept_by_shards(group, key, most)]
    exact = [exact_cap(group, key, most) for key, most in limited]
    safe_skews = [(key, safe_max_skew(group.pods, capacity.domains(key), most) or 0) for key, most in limited]
    skewed = [group_constraint(group, key, skew) for key, skew in safe_skews]
    # Karpenter interprets exact caps differently from the scheduler when it creates nodes.
    by_karpenter = pins and has_karpenter(inputs.index.nodes.view())
    kept = [] if by_karpenter else [_kept(group, constraints, capacity) for constraints in (skewed, exact)]
    if pins is not None:
        on_nodes = [constraint for constraint in exact if constraint.topology_key != group.zone_key]
        pinned = _kept(group, on_nodes, capacity, *pins)
        # Only pins decide the number of pods in each zone. With caps alone, some orders leave a zone empty.
        kept = [pinned, *kept] if group.even else [*kept, pinned]
    for bare in filter(None, kept):
        candidate = _labelled(group, bare, capacity)
        fields = (shard_fields(group, shard, candidate.constraints) for shard in shards)
        defaulted = _are_defaulted(shards, fields, inputs.context.policy)
        yield replace(candidate, constraints=(_no_cap(group, shards),)) if defaulted else candidate


def _labelled(group: Group, candidate: _Candidate, capacity: GroupCapacity) -> _Candidate:
    """Add a constraint over each of the group's topology keys missing on some node.

    Without this constraint, all pods of the group could go to such a node, where no cap counts them.
    """
    constraints, keeping = [*candidate.constraints], {**candidate.keeping}
    for key in _to_label(group, candidate.constraints, capacity, pins=candidate.zone_pins is not None):
        constraints.append(label_constraint(group, key))
        kept_apart = _kept_by_shards(group, key, group.shards)
        keeping[key] = CapGuarantee(CapMethod.LABEL, group.shards if kept_apart else group.pods)
    return replace(candidate, constraints=tuple(constraints), keeping=keeping)


def _to_label(
    group: Group, constraints: Iterable[SpreadConstraint], capacity: GroupCapacity, *, pins: bool
) -> Iterator[str]:
    """Yield the group's topology keys missing on some node, except keys with a constraint, pin or required domain."""
    required = {constraint.topology_key for constraint in constraints}
    required |= {group.zone_key} if pins else set()
    required |= {group.domains_key} if group.domains is not None else set()
    needed = [group.zone_key] if group.names_zones else []
    # Pods of a shard in different zones are on different nodes, even without hostname labels.
    if not group.keeps_zones_apart and (HOSTNAME in group.never_share or group.most(HOSTNAME) is not None):
        needed.append(HOSTNAME)
    return (key for key in needed if key in capacity.unlabelled and key not in required)


def _are_defaulted(shards: Iterable[Shard], fields: Iterable[Fields], policy: Policy) -> bool:
    """Whether the cluster's defaults add hard constraints to pods without any."""
    injected = _injects(policy.defaults)
    hard = {
        each.name for each in policy.scheduler_profiles if any(default.hard for default in each.default_constraints)
    }
    return (injected or bool(hard)) and any(
        not given.constraints and (injected or (shard.pod.pod_spec.scheduler_name or DEFAULT_SCHEDULER) in hard)
        for shard, given in zip(shards, fields, strict=True)
    )


def _injects(defaults: Defaults) -> bool:
    overriding = (default for override in defaults.overrides for default in override.default_constraints)
    return defaults.injects and any(
        default.constraint.hard or default.hard_when_domains is not None
        for default in (*defaults.default_constraints, *overriding)
    )


def _no_cap(group: Group, shards: Sequence[Shard]) -> SpreadConstraint:
    """Build a constraint that rejects no node. Pods without one would get the cluster's default constraints."""
    return exact_cap(group, HOSTNAME, group.most(HOSTNAME) or len(shards) * group.pods_per_shard)


def _stored_candidate(
    group: Group, shards: Sequence[Shard], stored: StoredPlan, capacity: GroupCapacity
) -> _Candidate | None:
    """Return a plan candidate from the stored fields of the group's plan.

    None if the stored fields break a cap of the current group.
    """
    has_pins = any(stored.zones.values())
    pins = _pins(group, shards, capacity) if has_pins and group.keeps_zones_apart else None
    if (has_pins and pins is None) or any(_to_label(group, stored.constraints, capacity, pins=has_pins)):
        return None
    return _kept(group, stored.constraints, capacity, *pins or (None, 0))


def _kept(
    group: Group,
    constraints: Sequence[SpreadConstraint],
    capacity: GroupCapacity,
    zone_pins: ZonePins | None = None,
    pinned: int = 0,
) -> _Candidate | None:
    """Return a plan candidate with these constraints and pins, and with the guarantee for each cap.

    None if they do not keep every cap.
    """
    keeping, capped = dict[str, CapGuarantee](), dict(_capped_keys(group))
    given = {
        constraint.topology_key: constraint for constraint in constraints if not _is_no_cap(group, constraint, capped)
    }
    if any(constraint.selector != group.selector for constraint in constraints) or not given.keys() <= capped.keys():
        return None
    for key, most in capped.items():
        own = given.get(key)
        skew = own.max_skew or 0 if own is not None else 0
        if zone_pins is not None and key == group.zone_key:
            keeping[key] = CapGuarantee(CapMethod.PINS, max(zone_pins.of_zones.values()))
        elif own is not None and own.min_domains == MIN_DOMAINS_OF_A_CAP:
            keeping[key] = CapGuarantee(CapMethod.EXACT, skew)
        elif own is not None:
            keeping[key] = CapGuarantee(CapMethod.MAX_SKEW, fullest(group.pods, capacity.domains(key), skew))
        elif _kept_by_shards(group, key, most):
            labelled = label_constraint(group, key) in constraints
            keeping[key] = CapGuarantee(CapMethod.LABEL if labelled else CapMethod.NOTHING, group.shards)
        else:
            return None
        if keeping[key].worst > most:
            return None
    return _Candidate(constraints=tuple(constraints), keeping=keeping, zone_pins=zone_pins, pinned=pinned)


def _is_no_cap(group: Group, constraint: SpreadConstraint, capped: Mapping[str, int]) -> bool:
    """Whether the constraint can never reject a labelled node, so a cap does not depend on it."""
    if constraint == label_constraint(group, constraint.topology_key or ""):
        return True
    loose = constraint.min_domains == MIN_DOMAINS_OF_A_CAP and (constraint.max_skew or 0) >= group.pods
    return loose and constraint.topology_key == HOSTNAME and HOSTNAME not in capped


def _kept_by_shards(group: Group, key: str, most: int) -> bool:
    """Whether ``never_share`` alone keeps the cap: it allows each shard at most one pod in a domain."""
    apart = group.keeps_zones_apart if key == group.zone_key else bool(group.never_share)
    return apart and most >= group.shards


def _capped_keys(group: Group) -> Iterator[tuple[str, int]]:
    for key in dict.fromkeys(cap.topology_key for cap in group.caps if cap.enforced):
        yield key, group.most(key) or 0


def _pins(group: Group, shards: Sequence[Shard], capacity: GroupCapacity) -> tuple[ZonePins, int] | None:
    """Return the zone pins of the first ``group.shards`` shards, and a shard count.

    The count is the largest number of shards whose plan has the same pins. None if no pins keep the caps. Pods stay in
    their zones only as far as the caps allow.
    """
    settled, running = [shard.zones for shard in shards], [shard.running for shard in shards]
    first = _zone_pins(group, settled[: group.shards], running, capacity)
    if first is None:
        return None
    settled[: group.shards] = kept_zones(first.of_shards, settled, running)
    running[: group.shards] = [()] * group.shards
    top = group.most(group.zone_key)
    for many in range(len(shards), group.shards, -1):
        pins = _zone_pins(group, settled[:many], running, capacity)
        expected = None if pins is None else _first_pins(pins, group.shards)
        if expected is not None and (top is None or max(expected.of_zones.values()) <= top):
            return expected, many
    return first, group.shards


def _zone_pins(
    group: Group, settled: Sequence[Sequence[str]], running: Sequence[Sequence[str]], capacity: GroupCapacity
) -> ZonePins | None:
    """Pin shards to zones, within the caps of a group of this size.

    ``settled`` has an entry for each shard: its already fixed zones. None if impossible.
    """
    most = replace(group, shards=len(settled)).most(group.zone_key)
    rooms = {zone: room if most is None else min(room, most) for zone, room in capacity.zones.items()}
    return pin_zones(settled, group.pods_per_shard, rooms, running)


def _first_pins(pins: ZonePins, shards: int) -> ZonePins:
    first = pins.of_shards[:shards]
    return ZonePins(first, {zone: sum(zone in zones for zones in first) for zone in pins.of_zones})


def _judged(inputs: PlanInput, candidate: _Candidate, capacity: GroupCapacity) -> GroupPlan:
    """Return the plan of a candidate, with a verdict on whether all pods fit.

    The verdict comes from a proof. Without a proof, it comes from a simulation of the orders for a group with few pods,
    and is UNKNOWN for a larger group.
    """
    group, shards = inputs.group, inputs.expected
    pins = candidate.zone_pins.of_shards if candidate.zone_pins is not None else ((),) * len(shards)
    fields = {
        shard.name: shard_fields(group, shard, candidate.constraints, zones)
        for shard, zones in zip(shards, pins, strict=True)
    }
    defaulted = _are_defaulted(shards, fields.values(), inputs.context.policy)
    plan = GroupPlan(
        group=group,
        shards=shards,
        constraints=candidate.constraints,
        fields=fields,
        keeping=candidate.keeping,
        verdict=PlacementVerdict.UNKNOWN,
        proof=Proof.NONE if defaulted or _is_unproven(inputs, shards) else _proof(group, candidate, capacity),
        zone_pins=candidate.zone_pins,
    )
    if plan.proof is not Proof.NONE:
        plan = replace(plan, verdict=PlacementVerdict.FITS)
    elif _are_few(inputs):
        plan = _searched(inputs, plan, capacity)
    fits = plan.verdict is PlacementVerdict.FITS
    return replace(plan, same_up_to=_same_up_to(group, candidate, capacity)) if fits else plan


def _searched(inputs: PlanInput, plan: GroupPlan, capacity: GroupCapacity) -> GroupPlan:
    """Search the scheduling orders of the plan's pods, and add the result to the plan.

    The search stops at a limit. The plan is returned unchanged if it already has a search result, or if
    ``inputs.searches`` is false.
    """
    if plan.outlook is not None or not inputs.searches:
        return plan
    outlook = simulate_plan(inputs, plan.fields, capacity, plan.keeping)
    unread = outlook.verdict is PlacementVerdict.FITS and _is_unproven(inputs, plan.shards)
    verdict = PlacementVerdict.UNKNOWN if unread else outlook.verdict
    proof = Proof.SEARCH if verdict is PlacementVerdict.FITS else Proof.NONE
    return replace(plan, verdict=verdict, proof=proof, outlook=outlook)


def simulate_plan(
    inputs: PlanInput, fields: Mapping[str, Fields], capacity: GroupCapacity, keys: Iterable[str]
) -> Outlook:
    """Simulate the group's expected shards with the given fields.

    Return the verdict, and the fullest domain of each topology key in ``keys``.
    """
    effort = EFFORT if _are_few(inputs) else replace(EFFORT, states=1)
    return simulate_orders(pod_batches(inputs, fields, capacity), inputs.index, keys, effort)


def _are_few(inputs: PlanInput) -> bool:
    return len(inputs.expected) <= _MOST_SEARCHED or not inputs.group.never_share


def _is_unproven(inputs: PlanInput, shards: Sequence[Shard]) -> bool:
    """Whether a plan for these pods has no proof.

    evenspread does not evaluate devices and PodGroups. It also does not know which volumes the running pods free.
    """
    specs, running = [shard.pod.pod_spec for shard in shards], bool(inputs.running)
    if any(spec.resource_claims or spec.scheduling_group for spec in specs):
        return True
    problems = (problem_of(shard.pod, inputs.context) for shard in shards if shard.pod.pod_spec.volumes)
    pods, index = inputs.group.pods, inputs.index
    return any(volumes_are_unknown(problem, pods, index, running=running) for problem in problems)


def _proof(group: Group, candidate: _Candidate, capacity: GroupCapacity) -> Proof:
    """Return the proof that all pods fit in every order. NONE if only a search can show it."""
    if not capacity.alike or any(guarantee.way is CapMethod.MAX_SKEW for guarantee in candidate.keeping.values()):
        return Proof.NONE
    if candidate.zone_pins is not None:
        return Proof.ZONE_BY_ZONE
    behind = _fewest_behind(group, capacity, candidate.keeping)
    return Proof.ROOM if behind is None or behind >= group.pods else Proof.NONE


def _fewest_behind(group: Group, capacity: GroupCapacity, keeping: Mapping[str, CapGuarantee]) -> int | None:
    """Return the fewest placed pods with which another pod can be left without a node.

    It is a lower bound. None if every pod of every shard always finds a node.
    """
    on_zone = keeping.get(group.zone_key)
    top = on_zone.worst if on_zone is not None and on_zone.way is CapMethod.EXACT else group.pods
    full = sorted(min(room, top) for room in capacity.zones.values())
    others = group.pods_per_shard - 1
    if group.keeps_zones_apart:
        # A zone with room for a pod of every shard never closes for a shard without a pod there.
        closing = [pods for pods in full if pods < group.shards]
        own = others - (len(full) - len(closing))
        return None if own < 0 else sum(closing[: len(closing) - own]) + others
    # Nodes with a pod of this shard may have no other pod. The bound is lowest if all these nodes are in one zone.
    missing = others * ((capacity.on_node or 1) - 1)
    return sum(full) - max(min(room, top) - min(room - missing, top) for room in capacity.zones.values())


def _same_up_to(group: Group, candidate: _Candidate, capacity: GroupCapacity) -> int:
    """Return the largest number of shards for which these fields are proven to work.

    With the fields, all caps hold and all pods fit in every order. The number is at least the group's number of shards.
    Proofs by a search of orders are not tried.
    """
    if candidate.zone_pins is not None:
        return candidate.pinned if capacity.alike else group.shards
    last = group.shards
    for many in range(group.shards + 1, group.plan_for + 1):
        grown = replace(group, shards=many)
        kept = all(
            guarantee.way is CapMethod.EXACT
            or (guarantee.way is CapMethod.LABEL and grown.most(key) is None)
            or _kept_by_shards(grown, key, grown.most(key) or 0)
            for key, guarantee in candidate.keeping.items()
        )
        if not kept or _proof(grown, candidate, capacity) is Proof.NONE:
            break
        last = many
    return last
