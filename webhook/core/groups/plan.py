"""Which fields keep the caps of a group in every order, and whether its pods all find a node with them.

Three ways to keep a cap, tried in this order; the first with which no order gets stuck is taken:

    maxSkew      the largest that is safe (`caps.safe_max_skew`)
    exact cap    minDomains above the number of domains, so that maxSkew is the most pods of a domain
    pins         a zone for each pod of a shard (`pins`), which decides what each zone holds; an exact cap on nodes

That no order gets stuck is shown in one of three ways. Pins leave nothing to chance: a pod only goes to a zone that
keeps a place for it, and zones do not touch one another, so each need only take its own pods. With exact caps, a shard
that finds no node leaves a number of pods behind that the group does not reach (`_fewest_behind`). Of small groups
every order is followed (`outlook`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import SpreadConstraint
from webhook.core.api.well_known import HOSTNAME
from webhook.core.groups.caps import MIN_DOMAINS_OF_A_CAP, fullest, safe_max_skew
from webhook.core.groups.fields import derived, exact_cap, max_skew, only_labelled, with_fields
from webhook.core.groups.group import Fields, Group, Loads, PlannedFor, Shard, Stored
from webhook.core.groups.outlook import EFFORT, Outlook, outlook
from webhook.core.groups.pins import pin, staying
from webhook.core.groups.zone_capacity import Capacity
from webhook.core.placement.game_from_cluster import PodBatch
from webhook.core.placement.outcome import PlacementOutcome
from webhook.core.policy.capacity import has_karpenter
from webhook.core.policy.defaults import Defaults
from webhook.core.policy.lookup import profile_for
from webhook.core.policy.policy import Policy
from webhook.core.scheduler.problem import take
from webhook.core.scheduler.profile import DEFAULT_SCHEDULER, SchedulerProfile

# Of more shards the search meets more states than it may, and says nothing.
_MOST_SEARCHED = 4


class Way(StrEnum):
    """How a cap is kept."""

    NOTHING = "nothing is needed"
    MAX_SKEW = "maxSkew"
    EXACT = "exact cap"
    PINS = "pins"
    LABEL = "nodes with the label"


class Proof(StrEnum):
    """How it is known that no order gets stuck."""

    ZONE_BY_ZONE = "zone by zone"
    ROOM = "room is left in every state"
    SEARCH = "every order was looked at"
    NONE = "not proven"


class Keeping(Struct, frozen=True):
    """How the cap of a key is kept, and the most pods that a domain can come to hold."""

    way: Way
    worst: int


class Plan(Struct, frozen=True, kw_only=True):
    """Fields for each shard, and what they come to.

    Attributes:
        shards: The expected shards.
        constraints: The hard constraints of all shards.
        fields: By the name of the shard's workload, with what its template has besides.
        keeping: How each cap is kept, by topology key.
        loads: The pins. None without any.
        outlook: What the orders come to. None if a proof needs none.
        same_up_to: Up to how many shards these fields keep the caps and all pods fit.
    """

    group: Group
    shards: tuple[Shard, ...]
    constraints: tuple[SpreadConstraint, ...]
    fields: Mapping[str, Fields]
    keeping: Mapping[str, Keeping]
    verdict: PlacementOutcome
    proof: Proof
    loads: Loads | None = None
    outlook: Outlook | None = None
    same_up_to: int = 0

    @property
    def pins(self) -> list[tuple[Shard, tuple[str, ...]]]:
        """Each shard with the zones that it is pinned to."""
        zones = self.loads.of_shards if self.loads is not None else ((),) * len(self.shards)
        return [*zip(self.shards, zones, strict=True)]


class _Candidate(Struct, frozen=True, kw_only=True):
    """Constraints for every shard, and the zones of each.

    Attributes:
        constraints: Those of all shards.
        keeping: How each cap is kept, by key.
        loads: The pins of the expected shards.
        pinned: For how many shards there are zones.
    """

    constraints: tuple[SpreadConstraint, ...]
    keeping: Mapping[str, Keeping]
    loads: Loads | None = None
    pinned: int = 0


def plan(of: PlannedFor, capacity: Capacity) -> Plan:
    """The best plan for the expected shards: the first that is proven, else the one of which the least is known.

    The caps have to leave room for all pods.
    """
    unproven = list[Plan]()
    for each in _candidates(of, capacity):
        judged = _judged(of, each, capacity)
        if judged.verdict is PlacementOutcome.FITS:
            return replace(judged, same_up_to=_same_up_to(of.group, each, capacity))
        unproven.append(judged)
    return min((_played(of, each, capacity) for each in unproven), key=_rank)


def plan_with_fields_of(of: PlannedFor, before: Stored, capacity: Capacity) -> Plan | None:
    """The plan with fields of an earlier one. None if these do not keep the caps, or their zones are gone.

    The shards have the zones of that plan.
    """
    found = _standing(of.group, of.shards, before, capacity)
    if found is None:
        return None
    judged = _judged(of, found, capacity)
    if judged.verdict is PlacementOutcome.FITS:
        return replace(judged, same_up_to=_same_up_to(of.group, found, capacity))
    return _played(of, judged, capacity)


def batches(of: PlannedFor, fields: Mapping[str, Fields], capacity: Capacity) -> list[PodBatch]:
    """The pods of the expected shards with these fields. Shards that nothing tells apart are one batch."""
    group, policy = of.group, of.within.policy
    found = [
        PodBatch(
            problem=take(
                of.index,
                with_fields(each.pod, fields[each.name]),
                profile=profile_for(policy, each.pod.pod_spec.scheduler_name),
            ),
            pods=group.pods_per_shard,
            in_turn=each.in_turn,
        )
        for each in of.expected
    ]
    if not group.never_share and capacity.alike:
        return [replace(found[0], pods=group.pods, in_turn=False)]
    return found


def _rank(of: Plan) -> tuple[int, float]:
    """Unknown before stuck, and rarely stuck before often stuck."""
    order = (PlacementOutcome.FITS, PlacementOutcome.UNKNOWN, PlacementOutcome.STUCK, PlacementOutcome.NO_FIT)
    never = of.verdict is PlacementOutcome.UNKNOWN and of.outlook is not None and of.outlook.gets_stuck
    verdict = PlacementOutcome.NO_FIT if never else of.verdict
    return order.index(verdict), 0.0 if of.outlook is None else of.outlook.stuck or 0.0


def _candidates(of: PlannedFor, capacity: Capacity) -> Iterator[_Candidate]:
    group, shards, capped = of.group, of.shards, [*_capped_keys(of.group)]
    pins = _pins(group, shards, capacity) if group.keeps_zones_apart else None
    limited = [(key, most) for key, most in capped if not _kept_by_shards(group, key, most)]
    exact = [exact_cap(group, key, most) for key, most in limited]
    skewed = [
        max_skew(group, key, safe_max_skew(group.pods, capacity.domains(key), most) or 0) for key, most in limited
    ]
    # Karpenter makes nodes, and reads exact caps in another way than the scheduler.
    found = (
        []
        if pins and has_karpenter(of.index.nodes.view())
        else [_kept(group, each, capacity) for each in (skewed, exact)]
    )
    if pins is not None:
        pinned = _kept(group, [each for each in exact if each.topology_key != group.zone_key], capacity, *pins)
        # Only pins decide how many pods each zone gets: with caps alone some orders leave a zone empty.
        found = [pinned, *found] if group.even else [*found, pinned]
    for bare in filter(None, found):
        each = _labelled(group, bare, capacity)
        fields = (derived(group, shard, each.constraints) for shard in shards)
        defaulted = _are_defaulted(shards, fields, of.within.policy)
        yield replace(each, constraints=(_no_cap(group, shards),)) if defaulted else each


def _labelled(group: Group, of: _Candidate, capacity: Capacity) -> _Candidate:
    """The candidate with a constraint over each key that pods need and some node lacks.

    Else all pods of the group could go to such a node, where no cap counts them.
    """
    constraints, keeping = [*of.constraints], {**of.keeping}
    for key in _to_label(group, of.constraints, capacity, pins=of.loads is not None):
        constraints.append(only_labelled(group, key))
        kept_apart = _kept_by_shards(group, key, group.shards)
        keeping[key] = Keeping(Way.LABEL, group.shards if kept_apart else group.pods)
    return replace(of, constraints=tuple(constraints), keeping=keeping)


def _to_label(
    group: Group, constraints: Iterable[SpreadConstraint], capacity: Capacity, *, pins: bool
) -> Iterator[str]:
    """The needed keys that some node lacks and that no constraint, pin or domain requires."""
    required = {each.topology_key for each in constraints}
    required |= {group.zone_key} if pins else set()
    required |= {group.domains_key} if group.domains is not None else set()
    needed = [group.zone_key] if group.names_zones else []
    # Pods of a shard that share no zone share no node either, whatever label a node lacks.
    if not group.keeps_zones_apart and (HOSTNAME in group.never_share or group.most(HOSTNAME) is not None):
        needed.append(HOSTNAME)
    return (key for key in needed if key in capacity.unlabelled and key not in required)


def _are_defaulted(shards: Iterable[Shard], fields: Iterable[Fields], policy: Policy) -> bool:
    """Whether the cluster's defaults add hard constraints to pods that have none."""
    injected, strict = _injects(policy.defaults), {*map(_strict_name, policy.scheduler_profiles)}
    return (injected or any(strict)) and any(
        not each.constraints and (injected or (shard.pod.pod_spec.scheduler_name or DEFAULT_SCHEDULER) in strict)
        for shard, each in zip(shards, fields, strict=True)
    )


def _strict_name(profile: SchedulerProfile) -> str:
    """The scheduler's name, if its own constraints are hard."""
    return profile.name if any(each.hard for each in profile.default_constraints) else ""


def _injects(defaults: Defaults) -> bool:
    """Whether our webhook may add hard constraints to a pod."""
    given = (*defaults.default_constraints, *(each for of in defaults.overrides for each in of.default_constraints))
    return defaults.injects and any(each.constraint.hard or each.hard_when_domains is not None for each in given)


def _no_cap(group: Group, shards: Sequence[Shard]) -> SpreadConstraint:
    """A constraint that rejects no node. A pod that has one gets none of the cluster's defaults."""
    return exact_cap(group, HOSTNAME, group.most(HOSTNAME) or len(shards) * group.pods_per_shard)


def _standing(group: Group, shards: Sequence[Shard], before: Stored, capacity: Capacity) -> _Candidate | None:
    """The stored fields, judged by the group as it is now."""
    has_pins = any(before.zones.values())
    pins = _pins(group, shards, capacity) if has_pins and group.keeps_zones_apart else None
    if (has_pins and pins is None) or any(_to_label(group, before.constraints, capacity, pins=has_pins)):
        return None
    return _kept(group, before.constraints, capacity, *pins or (None, 0))


def _kept(
    group: Group,
    constraints: Sequence[SpreadConstraint],
    capacity: Capacity,
    loads: Loads | None = None,
    pinned: int = 0,
) -> _Candidate | None:
    """How these constraints and pins keep each cap. None if they do not."""
    keeping, capped = dict[str, Keeping](), dict(_capped_keys(group))
    given = {each.topology_key: each for each in constraints if not _is_no_cap(group, each, capped)}
    if any(each.selector != group.selector for each in constraints) or not given.keys() <= capped.keys():
        return None
    for key, most in capped.items():
        each = given.get(key)
        skew = each.max_skew or 0 if each is not None else 0
        if loads is not None and key == group.zone_key:
            keeping[key] = Keeping(Way.PINS, max(loads.of_zones.values()))
        elif each is not None and each.min_domains == MIN_DOMAINS_OF_A_CAP:
            keeping[key] = Keeping(Way.EXACT, skew)
        elif each is not None:
            keeping[key] = Keeping(Way.MAX_SKEW, fullest(group.pods, capacity.domains(key), skew))
        elif _kept_by_shards(group, key, most):
            labelled = only_labelled(group, key) in constraints
            keeping[key] = Keeping(Way.LABEL if labelled else Way.NOTHING, group.shards)
        else:
            return None
        if keeping[key].worst > most:
            return None
    return _Candidate(constraints=tuple(constraints), keeping=keeping, loads=loads, pinned=pinned)


def _is_no_cap(group: Group, constraint: SpreadConstraint, capped: Mapping[str, int]) -> bool:
    """Whether the constraint rejects no labelled node for any pod of the group."""
    if constraint == only_labelled(group, constraint.topology_key or ""):
        return True
    loose = constraint.min_domains == MIN_DOMAINS_OF_A_CAP and (constraint.max_skew or 0) >= group.pods
    return loose and constraint.topology_key == HOSTNAME and HOSTNAME not in capped


def _kept_by_shards(group: Group, key: str, most: int) -> bool:
    """Whether the cap holds because each shard has at most one pod in a domain."""
    apart = group.keeps_zones_apart if key == group.zone_key else bool(group.never_share)
    return apart and most >= group.shards


def _capped_keys(group: Group) -> Iterator[tuple[str, int]]:
    for key in dict.fromkeys(each.topology_key for each in group.caps if each.enforced):
        yield key, group.most(key) or 0


def _pins(group: Group, shards: Sequence[Shard], capacity: Capacity) -> tuple[Loads, int] | None:
    """Zones for the expected shards, and for how many shards they can stay. None if there is no way.

    The caps of the expected shards decide which pods stay where they are.
    """
    settled, running = [each.zones for each in shards], [each.running for each in shards]
    first = _loads(group, settled[: group.shards], running, capacity)
    if first is None:
        return None
    settled[: group.shards] = staying(first.of_shards, settled, running)
    running[: group.shards] = [()] * group.shards
    top = group.most(group.zone_key)
    for many in range(len(shards), group.shards, -1):
        loads = _loads(group, settled[:many], running, capacity)
        found = None if loads is None else _of_first(loads, group.shards)
        if found is not None and (top is None or max(found.of_zones.values()) <= top):
            return found, many
    return first, group.shards


def _loads(
    group: Group, settled: Sequence[Sequence[str]], running: Sequence[Sequence[str]], capacity: Capacity
) -> Loads | None:
    """Pins for as many shards as ``settled`` has, within the caps of so many."""
    most = replace(group, shards=len(settled)).most(group.zone_key)
    open_ = {zone: room if most is None else min(room, most) for zone, room in capacity.of_zones.items()}
    return pin(settled, group.pods_per_shard, open_, running)


def _of_first(loads: Loads, shards: int) -> Loads:
    """The pins of the first shards, and what the zones hold of them."""
    given = loads.of_shards[:shards]
    return Loads(given, {zone: sum(zone in each for each in given) for zone in loads.of_zones})


def _judged(of: PlannedFor, candidate: _Candidate, capacity: Capacity) -> Plan:
    """The plan with a verdict: by a proof, else by playing it out."""
    group, shards = of.group, of.expected
    pins = candidate.loads.of_shards if candidate.loads is not None else ((),) * len(shards)
    fields = {
        shard.name: derived(group, shard, candidate.constraints, zones)
        for shard, zones in zip(shards, pins, strict=True)
    }
    defaulted = _are_defaulted(shards, fields.values(), of.within.policy)
    found = Plan(
        group=group,
        shards=shards,
        constraints=candidate.constraints,
        fields=fields,
        keeping=candidate.keeping,
        verdict=PlacementOutcome.UNKNOWN,
        proof=Proof.NONE if defaulted or _is_unseen(shards) else _proof(group, candidate, capacity),
        loads=candidate.loads,
    )
    if found.proof is not Proof.NONE:
        return replace(found, verdict=PlacementOutcome.FITS)
    return _played(of, found, capacity) if _are_few(of) else found


def _played(of: PlannedFor, plan: Plan, capacity: Capacity) -> Plan:
    """The plan with what its orders come to, as far as they can be followed."""
    if plan.outlook is not None or not of.searches:
        return plan
    seen = outlook_of(of, plan.fields, capacity, plan.keeping)
    verdict = (
        PlacementOutcome.UNKNOWN if seen.outcome is PlacementOutcome.FITS and _is_unseen(plan.shards) else seen.outcome
    )
    proof = Proof.SEARCH if verdict is PlacementOutcome.FITS else Proof.NONE
    return replace(plan, verdict=verdict, proof=proof, outlook=seen)


def outlook_of(of: PlannedFor, fields: Mapping[str, Fields], capacity: Capacity, keys: Iterable[str]) -> Outlook:
    """What becomes of the expected shards with these fields, and how full domains of the keys get."""
    effort = EFFORT if _are_few(of) else replace(EFFORT, states=1)
    return outlook(batches(of, fields, capacity), of.index, keys, effort)


def _are_few(of: PlannedFor) -> bool:
    """Whether all orders of the expected shards can be followed."""
    return len(of.expected) <= _MOST_SEARCHED or not of.group.never_share


def _is_unseen(shards: Iterable[Shard]) -> bool:
    """Whether devices or a PodGroup decide too. They are not evaluated, so nothing is proven."""
    specs = (each.pod.pod_spec for each in shards)
    return any(each.resource_claims or each.scheduling_group for each in specs)


def _proof(group: Group, of: _Candidate, capacity: Capacity) -> Proof:
    """What proves, without a search, that all pods fit in every order."""
    if not capacity.alike or any(each.way is Way.MAX_SKEW for each in of.keeping.values()):
        return Proof.NONE
    if of.loads is not None:
        return Proof.ZONE_BY_ZONE
    behind = _fewest_behind(group, capacity, of.keeping)
    return Proof.ROOM if behind is None or behind >= group.pods else Proof.NONE


def _fewest_behind(group: Group, capacity: Capacity, keeping: Mapping[str, Keeping]) -> int | None:
    """The fewest placed pods in any state in which a pod of some shard finds no node. None if there is no such state.

    A lower bound.
    """
    on_zone = keeping.get(group.zone_key)
    top = on_zone.worst if on_zone is not None and on_zone.way is Way.EXACT else group.pods
    full = sorted(min(room, top) for room in capacity.of_zones.values())
    others = group.pods_per_shard - 1
    if group.keeps_zones_apart:
        # A zone with room for a pod of each shard is never closed to one that has none there.
        closing = [each for each in full if each < group.shards]
        own = others - (len(full) - len(closing))
        return None if own < 0 else sum(closing[: len(closing) - own]) + others
    # Nodes that hold a pod of this shard may hold no other; it leaves fewest behind if all of these are in one zone.
    missing = others * ((capacity.on_node or 1) - 1)
    return sum(full) - max(min(room, top) - min(room - missing, top) for room in capacity.of_zones.values())


def _same_up_to(group: Group, of: _Candidate, capacity: Capacity) -> int:
    """Up to how many shards these fields keep the caps, proven without a search."""
    if of.loads is not None:
        return of.pinned if capacity.alike else group.shards
    last = group.shards
    for many in range(group.shards + 1, group.plan_for + 1):
        grown = replace(group, shards=many)
        kept = all(
            each.way is Way.EXACT
            or (each.way is Way.LABEL and grown.most(key) is None)
            or _kept_by_shards(grown, key, grown.most(key) or 0)
            for key, each in of.keeping.items()
        )
        if not kept or _proof(grown, of, capacity) is Proof.NONE:
            break
        last = many
    return last
