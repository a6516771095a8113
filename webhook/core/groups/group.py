"""A group: several workloads, each one shard, with caps over all their pods together."""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import (
    Affinity,
    LabelSelector,
    NodeSelectorRequirement,
    Pod,
    PodAffinityTerm,
    SpreadConstraint,
)
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.context import Context
from webhook.core.groups.caps import Cap
from webhook.core.index.read_only import ReadOnlyIndex


class Group(Struct, frozen=True, kw_only=True):
    """The specification of a SpreadGroup.

    Attributes:
        name: The name of the SpreadGroup or ConfigMap.
        namespace: The namespace of the SpreadGroup or ConfigMap.
        selector: Selects the pods of all shards.
        shard_label: The label whose value names the shard.
        never_share: Topology keys. Pods of one shard never share a domain of these.
        shards: The expected number of shards. Caps as fractions refer to the expected pods, running or not.
        pods_per_shard: The expected number of pods of each shard.
        plan_for: The number of shards up to which the plan should stay the same.
        caps: The limits on pods per domain.
        domains_key: The topology key of ``domains``.
        domains: The only domains for the pods. None for all.
        inject: Whether the webhook delivers the plan.
        even: Whether to also spread the pods over nodes and zones, as far as caps and nodes allow.
    """

    name: str
    namespace: str
    selector: LabelSelector
    shard_label: str
    never_share: tuple[str, ...]
    shards: int
    pods_per_shard: int
    plan_for: int
    caps: tuple[Cap, ...]
    domains_key: str = ZONE
    domains: tuple[str, ...] | None = None
    inject: bool = False
    even: bool = False

    @property
    def pods(self) -> int:
        return self.shards * self.pods_per_shard

    @property
    def zone_key(self) -> str:
        """The group's topology key other than hostname. If it only uses hostname, ``topology.kubernetes.io/zone``."""
        keys = (*self.never_share, *(cap.topology_key for cap in self.caps), self.domains_key)
        return next((key for key in keys if key != HOSTNAME), ZONE)

    @property
    def names_zones(self) -> bool:
        """Whether nodes need zone labels.

        They do if ``never_share`` or an enforced cap has another key than hostname, or if ``domains`` is set.
        """
        enforced = (cap.topology_key for cap in self.caps if cap.enforced)
        return self.domains is not None or any(key != HOSTNAME for key in (*self.never_share, *enforced))

    @property
    def keeps_zones_apart(self) -> bool:
        """Whether pods of one shard never share a zone."""
        return self.zone_key in self.never_share

    def shared_by(self, cap: Cap, selected: int) -> int:
        """The number of pods that a cap's fraction refers to.

        With a selector, this is the number of selected pods, but at least the number of shards. Each shard gets a pod
        of the selected role, even if the pod does not run yet.

        Args:
            cap: The cap.
            selected: The number of pods matching the cap's selector.
        """
        return self.pods if cap.selector is None else max(selected, self.shards)

    def most(self, key: str) -> int | None:
        """The lowest enforced cap on a domain of the key, in pods. None without a cap."""
        limits = [cap.most(self.pods) for cap in self.caps if cap.enforced and cap.topology_key == key]
        return min(limits, default=None)


class Shard(Struct, frozen=True, kw_only=True):
    """One workload of a group.

    Attributes:
        value: The value of the workload's shard label.
        pod: The workload's next pod, as the scheduler receives it, with the template's own constraints and affinity.
        in_turn: Whether the controller creates a pod only after the pod before it is ready.
        zones: The zones required by existing volumes or by an earlier plan.
        running: The zones of the running pods, the zone with most pods first.
        exists: False for an expected shard without a workload.
    """

    name: str
    value: str
    pod: Pod
    in_turn: bool = True
    zones: tuple[str, ...] = ()
    running: tuple[str, ...] = ()
    exists: bool = True


class Fields(Struct, frozen=True):
    """The spread constraints and the affinity of a shard's pod template."""

    constraints: tuple[SpreadConstraint, ...]
    affinity: Affinity | None = None


def with_fields(pod: Pod, fields: Fields) -> Pod:
    """Replace the pod's spread constraints and affinity."""
    spec = replace(pod.pod_spec, topology_spread_constraints=fields.constraints or None, affinity=fields.affinity)
    return replace(pod, spec=spec)


class ShardPlan(Struct, frozen=True):
    """The fields added by a plan to the pods of a shard.

    Attributes:
        constraints: Hard spread constraints.
        pin: The required zones or domains. None for any.
        apart: Required anti-affinity terms between pods of the shard.
    """

    constraints: tuple[SpreadConstraint, ...] = ()
    pin: NodeSelectorRequirement | None = None
    apart: tuple[PodAffinityTerm, ...] = ()


class StoredPlan(Struct, frozen=True):
    """The fields of an earlier plan, from the status of the SpreadGroup.

    Attributes:
        constraints: The hard constraints of all shards.
        zones: The zones of each shard, by the value of its shard label.
        apart: Topology keys. Two pods of one shard never share a domain of such a key.
    """

    constraints: tuple[SpreadConstraint, ...] = ()
    zones: Mapping[str, tuple[str, ...]] = {}
    apart: frozenset[str] = frozenset()


class ZonePins(Struct, frozen=True):
    """The pinned zones of each shard, and the resulting number of pods in each zone."""

    of_shards: tuple[tuple[str, ...], ...]
    of_zones: Mapping[str, int]


class PlanInput(Struct, frozen=True, kw_only=True):
    """The input of a plan: a group, its shards and the cluster without its pods.

    Attributes:
        shards: All planned shards, at least one. The expected shards come first.
        context: The policy, and the cluster without the group's pods.
        running: The number of the group's pods with a node.
        searches: Whether to search all orders of small groups without another proof. This can take minutes.
    """

    group: Group
    shards: tuple[Shard, ...]
    context: Context
    running: int = 0
    searches: bool = True

    @property
    def index(self) -> ReadOnlyIndex:
        """The cluster without the group's pods."""
        return self.context.cluster

    @property
    def expected(self) -> tuple[Shard, ...]:
        """The currently expected shards."""
        return self.shards[: self.group.shards]
