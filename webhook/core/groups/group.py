"""A group: several workloads, one a shard, that caps hold for together."""

from collections.abc import Mapping

from msgspec import Struct

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
    """What its author wrote.

    Attributes:
        shard_label: The label whose value is the shard.
        never_share: The keys of which pods of one shard share no domain.
        shards: How many shards are expected. Shares are of their pods, whether they run or not.
        plan_for: Up to how many shards the plan is to stay the same.
        domains_key: The key of ``domains``.
        domains: The only domains that pods may use. None for all.
        inject: Whether the webhook delivers the plan.
        even: Whether it is also spread over nodes and zones, as far as its caps and nodes allow.
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
        """The pods of all expected shards."""
        return self.shards * self.pods_per_shard

    @property
    def zone_key(self) -> str:
        """The key above nodes that it is about."""
        keys = (*self.never_share, *(each.topology_key for each in self.caps), self.domains_key)
        return next((key for key in keys if key != HOSTNAME), ZONE)

    @property
    def names_zones(self) -> bool:
        """Whether anything that is enforced is about a key above nodes; else nodes need no such label."""
        enforced = (each.topology_key for each in self.caps if each.enforced)
        return self.domains is not None or any(key != HOSTNAME for key in (*self.never_share, *enforced))

    @property
    def keeps_zones_apart(self) -> bool:
        """Whether pods of one shard never share a zone."""
        return self.zone_key in self.never_share

    def shared_by(self, cap: Cap, selected: int) -> int:
        """Of how many pods the cap's share is, if so many match its selector.

        No fewer than there are shards: a role that each shard has once, some of which have none yet.
        """
        return self.pods if cap.selector is None else max(selected, self.shards)

    def most(self, key: str) -> int | None:
        """The most pods in a domain of the key that the enforced caps allow; None without one."""
        found = [each.most(self.pods) for each in self.caps if each.enforced and each.topology_key == key]
        return min(found, default=None)


class Shard(Struct, frozen=True, kw_only=True):
    """One workload of a group.

    Attributes:
        value: Its value of the shard label.
        pod: Its next pod, as the scheduler gets it, with the fields of its template.
        in_turn: Whether its pods are created one after the other.
        zones: The zones that its volumes or an earlier plan have settled.
        running: The zones of its pods, the fullest first.
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
    """What a shard's pod template gets: its hard spread constraints, and its affinity."""

    constraints: tuple[SpreadConstraint, ...]
    affinity: Affinity | None = None


class ShardPlan(Struct, frozen=True):
    """What a plan adds to the pods of one shard: constraints, what it asks of nodes, terms that keep them apart."""

    constraints: tuple[SpreadConstraint, ...] = ()
    pin: NodeSelectorRequirement | None = None
    apart: tuple[PodAffinityTerm, ...] = ()


class Stored(Struct, frozen=True):
    """The fields of an earlier plan.

    Attributes:
        constraints: The hard constraints of all shards.
        zones: The zones of each shard, by its value of the shard label.
        apart: The topology keys of which the pods of a shard share no domain.
    """

    constraints: tuple[SpreadConstraint, ...] = ()
    zones: Mapping[str, tuple[str, ...]] = {}
    apart: frozenset[str] = frozenset()


class Loads(Struct, frozen=True):
    """Which zones each shard is pinned to, and how many pods each zone then holds."""

    of_shards: tuple[tuple[str, ...], ...]
    of_zones: Mapping[str, int]


class PlannedFor(Struct, frozen=True, kw_only=True):
    """A group with its shards, and the cluster to plan for.

    Attributes:
        group: The group.
        shards: A shard for each that is planned for, at least one.
        within: The policy, and the cluster without the group's pods.
        running: How many pods of the group have a node.
        searches: Whether small groups are played out if nothing else proves that they fit. That can take minutes.
    """

    group: Group
    shards: tuple[Shard, ...]
    within: Context
    running: int = 0
    searches: bool = True

    @property
    def index(self) -> ReadOnlyIndex:
        """The cluster without the group's pods."""
        return self.within.cluster

    @property
    def expected(self) -> tuple[Shard, ...]:
        """The shards that the group expects now."""
        return self.shards[: self.group.shards]
