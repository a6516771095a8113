"""The SpreadGroup resource: caps on the pods of several workloads, and the controller's plan for them.

Any author of objects in a namespace can write SpreadGroups. So the lists of a spec have the CRD's length limits. A
longer list is a decoding error.
"""

from typing import Annotated

from msgspec import Meta, Struct

from webhook.core.api.types import Affinity, Int32, LabelSelector, Named, ObjectMeta, SpreadConstraint

API_VERSION, KIND, RESOURCE = "evenspread.io/v1alpha1", "SpreadGroup", "spreadgroups"
INJECT = "inject"
# The controller's condition types in the status.
PLANNED, FITS, CANNOT_GET_STUCK, CAPS_HELD, DELIVERED = "Planned", "Fits", "CannotGetStuck", "CapsHeld", "Delivered"
CONDITIONS = frozenset({PLANNED, FITS, CANNOT_GET_STUCK, CAPS_HELD, DELIVERED})
# The most groups of a namespace. Only the oldest count.
MOST_GROUPS = 32


class _GroupPart(Struct, frozen=True, kw_only=True, rename="camel"):
    """Base class of a SpreadGroup's parts."""


class _ShardRule(_GroupPart, frozen=True, gc=False):
    """The label that names the shard of a pod.

    No two pods of a shard share a domain of ``never_share``: a topology key, or ``both`` for zones and hosts.
    """

    label: str
    never_share: str | None = None


class _Expected(_GroupPart, frozen=True, gc=False):
    """The expected number of pods."""

    shards: Int32
    pods_per_shard: Int32


class _PlanFor(_GroupPart, frozen=True, gc=False):
    """The number of shards to plan for. Up to this number, a new shard changes no planned field."""

    shards: Int32


class _RequiredDomains(_GroupPart, frozen=True):
    """The only domains in which the group's pods may run."""

    topology_key: str
    values: Annotated[tuple[str, ...], Meta(max_length=64)]


class WrittenCap(_GroupPart, frozen=True):
    """A cap as written in a SpreadGroup: the limit on the pods in each domain.

    The limit is a number or a fraction of the expected pods.
    """

    topology_key: str
    less_than: Int32 | str | None = None
    at_most: Int32 | str | None = None
    selector: LabelSelector | None = None
    enforce: str | None = None


class GroupSpec(_GroupPart, frozen=True):
    """The group's spec."""

    selector: LabelSelector
    shard: _ShardRule
    expected: _Expected
    plan_for: _PlanFor | None = None
    required_domains: _RequiredDomains | None = None
    caps: Annotated[tuple[WrittenCap, ...], Meta(max_length=8)] = ()
    delivery: str | None = None


class Condition(_GroupPart, frozen=True, gc=False):
    """Source: k8s.io/apimachinery meta/v1/types.go ``Condition``."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0


class PlannedWorkload(_GroupPart, frozen=True):
    """The planned fields of a shard's pod template.

    Attributes:
        shard: The value of the shard label.
        zones: The zones allowed for its pods.
    """

    kind: str = ""
    name: str = ""
    shard: str = ""
    zones: tuple[str, ...] = ()
    topology_spread_constraints: tuple[SpreadConstraint, ...] = ()
    affinity: Affinity | None = None


class IndexedGroupStatus(_GroupPart, frozen=True):
    """The part of the group's status that the index keeps. The controller writes a `SpreadGroupStatus`."""

    observed_generation: int = 0
    revision: str = ""
    conditions: tuple[Condition, ...] = ()
    workloads: tuple[PlannedWorkload, ...] = ()

    def holds(self, *types: str) -> bool:
        """Whether all of these conditions are true."""
        true = {condition.type for condition in self.conditions if condition.status == "True"}
        return true.issuperset(types)

    def reason(self, condition_type: str) -> str:
        """Return the reason of a condition, or "" if unknown."""
        return next((condition.reason for condition in self.conditions if condition.type == condition_type), "")


class GroupMeta(ObjectMeta, frozen=True, gc=False):
    """Metadata with the generation, a counter of spec changes."""

    generation: int = 0


class SpreadGroup(Named, frozen=True):
    """A SpreadGroup. Only deletion events have no spec."""

    metadata: GroupMeta | None = None
    spec: GroupSpec | None = None
    status: IndexedGroupStatus | None = None

    @property
    def age_order(self) -> tuple[str, str]:
        """The sort key of groups by age: the creation time, then the name. A group without a time comes first."""
        return ("" if self.metadata is None else self.metadata.creation_timestamp or "", self.meta.name)

    @property
    def generation(self) -> int:
        """The generation of the spec, 0 without metadata."""
        return 0 if self.metadata is None else self.metadata.generation
