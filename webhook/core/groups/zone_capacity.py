"""How many pods of a group each zone takes, while a node takes no more than its cap."""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.selectors import compile_required_nodes, valid_selector
from webhook.core.api.types import PodAffinityTerm, SpreadConstraint
from webhook.core.api.well_known import HOSTNAME
from webhook.core.groups.fields import alone, exact_cap, is_ours
from webhook.core.groups.group import Group, PlannedFor, Shard
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.game_from_cluster import PodBatch, game_of
from webhook.core.placement.simulation import simulate
from webhook.core.policy.lookup import profile_for
from webhook.core.scheduler.plugins.node_selection import settled_nodes, tolerated_nodes, usable_nodes
from webhook.core.scheduler.problem import take

THE_CLUSTER = "the cluster"  # the name of all nodes together


class Capacity(Struct, frozen=True, kw_only=True):
    """What the nodes take of one pod after the other, limited by their cap and the cluster only.

    Attributes:
        of_zones: The zones that take pods. All nodes are one zone if some have none and the group does not need zones.
        nodes: How many nodes take pods.
        on_node: The most that a node takes. None if unlimited.
        alike: Whether the numbers hold for each shard: only a plan and the shard rule tell their pods apart.
        unlabelled: The topology keys that a usable node lacks. No cap over such a key counts the pods on that node.
    """

    of_zones: Mapping[str, int]
    nodes: int
    on_node: int | None
    alike: bool
    unlabelled: frozenset[str] = frozenset()

    def domains(self, key: str) -> int:
        """How many nodes or zones take pods."""
        return self.nodes if key == HOSTNAME else len(self.of_zones)


def capacity_of(of: PlannedFor) -> Capacity:
    """The room for the pods of all shards."""
    group, shards, index, pods = of.group, of.shards, of.index, len(of.shards) * of.group.pods_per_shard
    # Without a cap, pods of one shard that share no node.
    tops = [each for each in (group.most(HOSTNAME), len(shards) if group.never_share else None) if each is not None]
    most = min(tops, default=None)
    capped = () if most is None else (exact_cap(group, HOSTNAME, max(1, most)),)
    # So many that no zone is said to take fewer than it does.
    asked = max(pods, (most or 0) * index.nodes.view().size)
    zones = _zones(group, index)
    found = {name: room for name, nodes in zones.items() if (room := _room(of, capped, asked, nodes))}
    # Of a cap of one pod a node, as many as there are nodes.
    single = (exact_cap(group, HOSTNAME, 1),)
    every = reduce(or_, zones.values(), 0)
    nodes = _room(of, single, max(pods, index.nodes.view().size), every)
    alike = _are_alike(group, shards, index) and all(_is_measured(group, each, shards) for each in shards)
    unlabelled = _unlabelled(group, shards, index)
    return Capacity(of_zones=found, nodes=nodes, on_node=most, alike=alike, unlabelled=unlabelled)


def _unlabelled(group: Group, shards: Sequence[Shard], index: ReadOnlyIndex) -> frozenset[str]:
    """The keys that a node lacks on which pods of some shard can run.

    A full, cordoned or unready node can take pods later, so it counts.
    """
    view, open_ = index.nodes.view(), 0
    lacking = {key: view.live & ~view.column(key).present for key in (HOSTNAME, group.zone_key)}
    for each in shards if any(lacking.values()) else ():
        spec = alone(group, each.pod, ()).pod_spec
        nodes = usable_nodes(view, compile_required_nodes(spec.node_selector, spec.affinity))
        open_ |= nodes & (tolerated_nodes(view, spec.tolerations) | ~settled_nodes(view))
    return frozenset(key for key, nodes in lacking.items() if nodes & open_)


def _zones(group: Group, index: ReadOnlyIndex) -> Mapping[str, int]:
    view = index.nodes.view()
    column = view.column(group.zone_key)
    if not group.names_zones and column.present != view.live:
        return {THE_CLUSTER: view.live}
    return {value: column.with_value(value) for value in sorted(column.values)}


def _room(of: PlannedFor, constraints: Sequence[SpreadConstraint], pods: int, nodes: int) -> int:
    """How many of these pods of the first shard the nodes take, in every order."""
    pod = of.shards[0].pod
    given, profile = alone(of.group, pod, constraints), profile_for(of.within.policy, pod.pod_spec.scheduler_name)
    if profile is not None:
        # Defaults are for pods without constraints, and a plan has one wherever they would be in the way.
        profile = replace(profile, defaulting_type="List", default_constraints=())
    problem = take(of.index, given, profile=profile)
    found = simulate(game_of([PodBatch(problem=problem, pods=pods, nodes=nodes)], of.index))
    return found.fewest or 0


def _are_alike(group: Group, shards: Sequence[Shard], index: ReadOnlyIndex) -> bool:
    """Whether only the shard's label tells the pods apart, for nodes and other pods."""
    bare = [replace(alone(group, each.pod, ()), metadata=None) for each in shards]
    objections = [index.pods.terms_matching(group.namespace, each.pod.labels) for each in shards]
    return all(each == bare[0] for each in bare) and all(each == objections[0] for each in objections)


def _is_measured(group: Group, shard: Shard, shards: Sequence[Shard]) -> bool:
    """Whether a template keeps nothing that room is counted without, and that a plan leaves in it.

    Anti-affinity within the shard is the group's own rule: over its keys, and over nodes where they lie in zones that
    the shard's pods do not share.
    """
    spec = shard.pod.pod_spec
    near, apart = (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity) if spec.affinity else (None, None)
    ruled = {*group.never_share, HOSTNAME} if group.keeps_zones_apart else {*group.never_share}
    return not (
        any(each.hard and not is_ours(group, each) for each in spec.constraints)
        or any(_met(each, shards) for each in (near.required if near else None) or ())
        or any(
            met != {shard.value} or each.topology_key not in ruled
            for each in (apart.required if apart else None) or ()
            if (met := _met(each, shards))
        )
    )


def _met(term: PodAffinityTerm, shards: Iterable[Shard]) -> set[str]:
    """The shards whose pods a term can match."""
    selector = valid_selector(term.label_selector)
    names = term.namespaces if term.namespace_selector is None else None
    return {
        each.value
        for each in shards
        if (not names or each.pod.meta.namespace in names) and (selector is None or selector.matches(each.pod.labels))
    }
