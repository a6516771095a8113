"""SpreadGroups as the API has them: caps over the pods of several workloads, and the plan that the controller stored.

Whoever may create objects in a namespace writes them, so the lists of a spec are as short as the definition of the
kind has them; a longer one is not read at all.
"""

from typing import Annotated

from msgspec import Meta, Struct

from webhook.core.api.types import Affinity, Int32, LabelSelector, Named, ObjectMeta, SpreadConstraint

API_VERSION, KIND, RESOURCE = "evenspread.io/v1alpha1", "SpreadGroup", "spreadgroups"
INJECT = "inject"
# What the controller says of a group, each by a condition of the status.
PLANNED, FITS, CANNOT_GET_STUCK, CAPS_HELD, DELIVERED = "Planned", "Fits", "CannotGetStuck", "CapsHeld", "Delivered"
CONDITIONS = frozenset({PLANNED, FITS, CANNOT_GET_STUCK, CAPS_HELD, DELIVERED})
# Of more groups in a namespace the oldest count.
MOST_GROUPS = 32


class _Written(Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of what a SpreadGroup holds."""


class ShardRule(_Written, frozen=True, gc=False):
    """The label that tells the shards apart, and what their pods do not share: a topology key, or ``both``."""

    label: str
    never_share: str | None = None


class Expected(_Written, frozen=True, gc=False):
    """How many pods there are to be."""

    shards: Int32
    pods_per_shard: Int32


class PlanFor(_Written, frozen=True, gc=False):
    """Up to how many shards derived fields stay the same."""

    shards: Int32


class RequiredDomains(_Written, frozen=True):
    """The only domains that pods may use."""

    topology_key: str
    values: Annotated[tuple[str, ...], Meta(max_length=64)]


class WrittenCap(_Written, frozen=True):
    """The most pods in one domain: a number, or a share of those expected such as ``1/2``."""

    topology_key: str
    less_than: Int32 | str | None = None
    at_most: Int32 | str | None = None
    selector: LabelSelector | None = None
    enforce: str | None = None


class GroupSpec(_Written, frozen=True):
    """What its author wrote."""

    selector: LabelSelector
    shard: ShardRule
    expected: Expected
    plan_for: PlanFor | None = None
    required_domains: RequiredDomains | None = None
    caps: Annotated[tuple[WrittenCap, ...], Meta(max_length=8)] = ()
    delivery: str | None = None


class Condition(_Written, frozen=True, gc=False):
    """Source: k8s.io/apimachinery meta/v1/types.go ``Condition``."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0


class PlannedWorkload(_Written, frozen=True):
    """The fields of one shard's pod template.

    Shape: ``shard`` is the value of the shard label, ``zones`` those that its pods are pinned to.
    """

    kind: str = ""
    name: str = ""
    shard: str = ""
    zones: tuple[str, ...] = ()
    topology_spread_constraints: tuple[SpreadConstraint, ...] = ()
    affinity: Affinity | None = None


class GroupStatus(_Written, frozen=True):
    """What the controller stored of a group, as far as an answer depends on it."""

    observed_generation: int = 0
    revision: str = ""
    conditions: tuple[Condition, ...] = ()
    workloads: tuple[PlannedWorkload, ...] = ()

    def holds(self, *types: str) -> bool:
        """Whether all of these conditions are true."""
        true = {each.type for each in self.conditions if each.status == "True"}
        return true.issuperset(types)

    def reason(self, of: str) -> str:
        """The reason of the condition of that type. Empty if unknown."""
        return next((each.reason for each in self.conditions if each.type == of), "")


class GroupMeta(ObjectMeta, frozen=True, gc=False):
    """Metadata with the number of the spec, which grows with every change of it."""

    generation: int = 0


class SpreadGroup(Named, frozen=True):
    """A group. Only deletion events have no spec."""

    metadata: GroupMeta | None = None
    spec: GroupSpec | None = None
    status: GroupStatus | None = None

    @property
    def generation(self) -> int:
        """The number of the spec."""
        return 0 if self.metadata is None else self.metadata.generation
