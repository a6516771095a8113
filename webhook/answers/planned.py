"""The result of ``evenspread plan``, and its JSON document."""

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import UNSET, Struct, UnsetType

from webhook.answers.document import Document, with_fields_of
from webhook.core.api.types import LabelSelector, SpreadConstraint
from webhook.core.groups.caps import Cap
from webhook.core.groups.derive import PlanResult, fresh_plan, kept_plan
from webhook.core.groups.fields import has_fields, naive_fields
from webhook.core.groups.group import Fields, Group, PlanInput, StoredPlan
from webhook.core.groups.outlook import Outlook
from webhook.core.groups.plan import CapMethod, GroupPlan, Proof, simulate_plan
from webhook.core.placement.placement_verdict import PlacementVerdict, Step
from webhook.core.what_if.ending import PodMove


class _CapOfKey(Document, frozen=True, kw_only=True):
    """A user's cap on the pods per domain, as written: ``lessThan`` or ``atMost``.

    ``most`` is the number of pods that the cap allows in a domain.
    """

    topology_key: str
    less_than: int | str | UnsetType = UNSET
    at_most: int | str | UnsetType = UNSET
    most: int
    enforced: bool
    selector: LabelSelector | UnsetType = UNSET


class _FullestOfOrders(Document, frozen=True):
    """The highest pod count of a domain in any order of placing the pods.

    ``most`` is the cap in pods. ``sequence`` is an order that reaches ``pods``.
    """

    topology_key: str
    domain: str
    pods: int
    most: int | None
    sequence: tuple[PodMove, ...]


class _NaivePlan(Document, frozen=True):
    """Constraints without a plan, and the result of placing the pods under them.

    If the workloads have no constraints, ``constraints`` has a constraint for each cap, with the cap as maxSkew.
    """

    constraints: tuple[SpreadConstraint, ...]
    verdict: PlacementVerdict | None
    worst: tuple[_FullestOfOrders, ...]
    witness: tuple[PodMove, ...]
    stuck_probability: float | None
    every_order: bool


class _KeptCap(Document, frozen=True):
    """The fullest domain under the plan, the cap in pods, and the field that enforces it."""

    topology_key: str
    pods: int
    most: int | None
    way: CapMethod


class _DerivedPlan(Document, frozen=True):
    """The plan: fields and zones of each shard. Without a plan, the reasons and the nearest plans that fit."""

    workloads: Mapping[str, Fields]
    verdict: PlacementVerdict
    worst: tuple[_KeptCap, ...]
    proof: Proof | None
    zones: Mapping[str, tuple[str, ...]]
    same_up_to: int | None
    reasons: tuple[str, ...]
    nearest: tuple[str, ...]


class PlanDocument(Document, frozen=True):
    """The plan for one group."""

    group: str
    namespace: str
    pods: int
    shards: int
    pods_per_shard: int
    caps: tuple[_CapOfKey, ...]
    naive: _NaivePlan
    derived: _DerivedPlan


class PlanAnswer(Struct, frozen=True, kw_only=True):
    """The plan for a group, and whether all pods fit without the plan.

    Attributes:
        known: The group and its shards.
        derived: The plan.
        stands: Whether the plan is the stored plan.
        naive: The first shard's fields without the plan.
        own: Whether ``naive`` is from the shard's template. Otherwise, ``naive`` has each cap as a maxSkew.
        seen: The result of the simulation with ``naive``. None if the group has no enforced cap.
    """

    known: PlanInput
    derived: PlanResult
    stands: bool
    naive: Fields
    own: bool
    seen: Outlook | None

    @property
    def group(self) -> Group:
        """The group."""
        return self.known.group

    @property
    def broken(self) -> Mapping[str, int]:
        """Return the pods in the fullest domain, by topology key, for each cap exceeded without the plan."""
        worst = self.seen.worst if self.seen is not None else {}
        return {key: each.pods for key, each in worst.items() if each.pods > (self.group.most(key) or 0)}

    def restarts(self, plan: GroupPlan) -> int:
        """Count the existing workloads whose template changes, so that their pods restart."""
        shards = {shard.name: shard for shard in self.known.shards}
        existing = [(shard.name, zones) for shard, zones in plan.pins if shard.exists]
        return sum(not has_fields(self.group, shards[name], plan.constraints, zones) for name, zones in existing)

    def named(self, steps: Sequence[Step]) -> tuple[PodMove, ...]:
        """Return each step with the names of its pod and node."""
        made, shards, size = Counter[int](), self.known.shards, self.group.pods_per_shard
        moves = list[PodMove]()
        for step in steps:
            number = made[step.batch]
            made[step.batch] += 1
            pod = f"{shards[step.batch + number // size].name}-{number % size}"
            moves.append(PodMove(pod=pod, node=step.node))
        return tuple(moves)


def plan_answer(known: PlanInput, freed: PlanInput, before: StoredPlan) -> PlanAnswer:
    """Derive the plan, and simulate the naive fields of the shards for comparison.

    The naive fields are the template's own fields. If they lack hard constraints over the group's keys, each enforced
    cap adds one. ``freed`` is the group without the zones of the stored plan ``before``.
    """
    group = known.group
    stands = kept_plan(known, before) if before.zones else None
    derived = stands if stands is not None and stands.fits else fresh_plan(known, freed)
    fields = {shard.name: naive_fields(group, shard) for shard in known.expected}
    keys = dict.fromkeys(cap.topology_key for cap in group.caps if cap.enforced)
    first, own = fields[known.shards[0].name], known.shards[0].pod.pod_spec.constraints
    return PlanAnswer(
        known=known,
        derived=derived,
        stands=derived is stands,
        naive=first,
        own=bool(own) and first.constraints == own,
        seen=simulate_plan(known, fields, derived.capacity, keys) if keys else None,
    )


def planned(answer: PlanAnswer) -> PlanDocument:
    """Convert the placement plan of a SpreadGroup to its output document."""
    group = answer.group
    caps = tuple(_cap(cap, group.pods) for cap in group.caps)
    return with_fields_of(
        group, PlanDocument, group=group.name, caps=caps, naive=_naive(answer), derived=_derived(answer)
    )


def _cap(cap: Cap, pods: int) -> _CapOfKey:
    amount = str(cap.amount) if cap.of_pods else cap.amount.numerator
    return _CapOfKey(
        topology_key=cap.topology_key,
        less_than=amount if cap.strict else UNSET,
        at_most=UNSET if cap.strict else amount,
        most=cap.most(pods),
        enforced=cap.enforced,
        selector=cap.selector or UNSET,
    )


def _naive(answer: PlanAnswer) -> _NaivePlan:
    seen = answer.seen
    return _NaivePlan(
        constraints=answer.naive.constraints,
        verdict=seen.verdict if seen else None,
        worst=tuple(
            with_fields_of(
                worst,
                _FullestOfOrders,
                topology_key=key,
                most=answer.group.most(key),
                sequence=answer.named(worst.steps),
            )
            for key, worst in (seen.worst.items() if seen else ())
        ),
        witness=answer.named(seen.witness) if seen else (),
        stuck_probability=seen.stuck if seen else None,
        every_order=bool(seen and seen.exact),
    )


def _derived(answer: PlanAnswer) -> _DerivedPlan:
    plan = answer.derived.plan
    return _DerivedPlan(
        workloads=plan.fields if plan else {},
        verdict=plan.verdict if plan else PlacementVerdict.NO_FIT,
        worst=tuple(
            _KeptCap(topology_key=key, pods=each.worst, most=answer.group.most(key), way=each.way)
            for key, each in (plan.keeping.items() if plan else ())
        ),
        proof=plan.proof if plan else None,
        zones={shard.name: zones for shard, zones in plan.pins} if plan and plan.zone_pins else {},
        same_up_to=plan.same_up_to or None if plan else None,
        reasons=answer.derived.reasons,
        nearest=answer.derived.nearest,
    )
