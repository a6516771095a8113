"""Count how many pods of a group fit in each zone, limited only by the cluster and the group's cap on nodes."""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.node_selectors import compile_required_nodes
from webhook.core.api.selectors import valid_selector
from webhook.core.api.types import Pod, PodAffinityTerm, SpreadConstraint
from webhook.core.api.well_known import HOSTNAME
from webhook.core.groups.affinity import NO_AFFINITY, apart_terms, with_apart_terms
from webhook.core.groups.fields import matches_own_pod
from webhook.core.groups.group import Fields, Group, PlanInput, Shard, with_fields
from webhook.core.groups.group_constraints import exact_cap, is_replaced
from webhook.core.groups.zone_pin import pin_requirement, pinned
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.game_from_cluster import PodBatch, game_of
from webhook.core.placement.simulation import simulate
from webhook.core.policy.lookup import profile_for
from webhook.core.scheduler.ephemeral_claims import with_ephemeral_claims
from webhook.core.scheduler.plugins.node_selection import settled_nodes, tolerated_nodes, usable_nodes
from webhook.core.scheduler.problem import take

_THE_CLUSTER = "the cluster"  # the name of all nodes together


class GroupCapacity(Struct, frozen=True, kw_only=True):
    """How many of a group's pods the nodes can run.

    Only the cluster and the cap on nodes limit these numbers.

    Attributes:
        zones: The number of pods by zone. If some nodes have no zone and the group needs none, all nodes form one zone.
        nodes: The number of nodes that can run a pod.
        on_node: The most pods on a node. None if unlimited.
        alike: Whether the numbers hold for every shard, because nodes and other pods treat all shards the same.
        unlabelled: The topology keys missing on a usable node. A cap over such a key does not count the pods on that
            node.
    """

    zones: Mapping[str, int]
    nodes: int
    on_node: int | None
    alike: bool
    unlabelled: frozenset[str] = frozenset()

    def domains(self, key: str) -> int:
        """Return the number of nodes or zones with room for a pod."""
        return self.nodes if key == HOSTNAME else len(self.zones)


def group_capacity(inputs: PlanInput) -> GroupCapacity:
    """Count how many of the group's pods each zone can run, and how many nodes can run one."""
    group, shards, index = inputs.group, inputs.shards, inputs.index
    pods, nodes = len(shards) * group.pods_per_shard, index.nodes.view().size
    # The shard rule limits a node to one pod of each shard.
    tops = [top for top in (group.most(HOSTNAME), len(shards) if group.never_share else None) if top is not None]
    most = min(tops, default=None)
    capped = () if most is None else (exact_cap(group, HOSTNAME, max(1, most)),)
    # Enough pods to fill every zone, so no zone's number is too low.
    wanted = max(pods, (most or 0) * nodes)
    zones = _zones(group, index)
    rooms = {name: room for name, members in zones.items() if (room := _room(inputs, capped, wanted, members))}
    # With a cap of one pod per node, the number of placed pods is the number of usable nodes.
    single = (exact_cap(group, HOSTNAME, 1),)
    usable = _room(inputs, single, max(pods, nodes), reduce(or_, zones.values(), 0))
    alike = _are_alike(group, shards, index) and all(_is_measured(group, shard, shards) for shard in shards)
    unlabelled = _unlabelled(group, shards, index)
    return GroupCapacity(zones=rooms, nodes=usable, on_node=most, alike=alike, unlabelled=unlabelled)


def _unlabelled(group: Group, shards: Sequence[Shard], index: ReadOnlyIndex) -> frozenset[str]:
    """Return the topology keys missing on some possible node of a shard: hostname, the zone key, both or none.

    Full, cordoned and unready nodes count: they can take pods later.
    """
    view, open_ = index.nodes.view(), 0
    lacking = {key: view.live & ~view.column(key).present for key in (HOSTNAME, group.zone_key)}
    for shard in shards if any(lacking.values()) else ():
        spec = _without_shard_rule(group, shard.pod, ()).pod_spec
        nodes = usable_nodes(view, compile_required_nodes(spec.node_selector, spec.affinity))
        open_ |= nodes & (tolerated_nodes(view, spec.tolerations) | ~settled_nodes(view))
    return frozenset(key for key, nodes in lacking.items() if nodes & open_)


def _zones(group: Group, index: ReadOnlyIndex) -> Mapping[str, int]:
    view = index.nodes.view()
    column = view.column(group.zone_key)
    if not group.names_zones and column.present != view.live:
        return {_THE_CLUSTER: view.live}
    return {value: column.with_value(value) for value in sorted(column.values)}


def _room(inputs: PlanInput, constraints: Sequence[SpreadConstraint], pods: int, nodes: int) -> int:
    """Return how many of ``pods`` equal pods of the first shard find a place on ``nodes``, in every order."""
    pod = inputs.shards[0].pod
    profile = profile_for(inputs.context.policy, pod.pod_spec.scheduler_name)
    if profile is not None:
        # Defaults only apply to pods without constraints. Where they would reject nodes, a plan has a constraint.
        profile = replace(profile, defaulting_type="List", default_constraints=())
    index = with_ephemeral_claims(inputs.index, pod)
    problem = take(index, _without_shard_rule(inputs.group, pod, constraints), profile=profile)
    simulation = simulate(game_of([PodBatch(problem=problem, pods=pods, nodes=nodes)], inputs.index))
    return simulation.fewest or 0


def _without_shard_rule(group: Group, pod: Pod, constraints: Iterable[SpreadConstraint]) -> Pod:
    """Return the pod without the group's shard rule, to compute capacity.

    The pod keeps only these constraints, is pinned to the group's allowed domains (if any), and has no anti-affinity to
    its own shard.
    """
    own = pod.pod_spec.affinity or NO_AFFINITY
    affinity = with_apart_terms(own, (term for term in apart_terms(own) if not matches_own_pod(term, pod)))
    if (pin := pin_requirement(group, ())) is not None:
        affinity = pinned(affinity, pin, instead=True)
    return with_fields(pod, Fields(tuple(constraints), affinity))


def _are_alike(group: Group, shards: Sequence[Shard], index: ReadOnlyIndex) -> bool:
    """Whether the pods of all shards are interchangeable for nodes and other pods."""
    bare = [replace(_without_shard_rule(group, shard.pod, ()), metadata=None) for shard in shards]
    objections = [index.pods.terms_matching(group.namespace, shard.pod.labels) for shard in shards]
    return all(pod == bare[0] for pod in bare) and all(terms == objections[0] for terms in objections)


def _is_measured(group: Group, shard: Shard, shards: Sequence[Shard]) -> bool:
    """Whether the zone capacity covers the shard's template under a plan.

    Terms and constraints removed by the plan do not matter. The capacity does not cover:

    - another hard constraint,
    - required pod affinity to pods of the group,
    - required anti-affinity to pods of other shards,
    - required anti-affinity between pods of this shard, over a key outside ``never_share``.

    Anti-affinity between pods of this shard over the hostname is also covered if the shard's pods share no zone.
    """
    spec = shard.pod.pod_spec
    ruled = {*group.never_share, HOSTNAME} if group.keeps_zones_apart else {*group.never_share}
    return not (
        any(constraint.hard and not is_replaced(group, constraint) for constraint in spec.constraints)
        or any(_met(term, shards) for term in spec.pod_affinity.required or ())
        or any(
            met != {shard.value} or term.topology_key not in ruled
            for term in spec.pod_anti_affinity.required or ()
            if (met := _met(term, shards))
        )
    )


def _met(term: PodAffinityTerm, shards: Iterable[Shard]) -> set[str]:
    """Return the names of the shards with pods matched by the affinity term."""
    selector = valid_selector(term.label_selector)
    names = term.namespaces if term.namespace_selector is None else None
    return {
        shard.value
        for shard in shards
        if (not names or shard.pod.meta.namespace in names) and (selector is None or selector.matches(shard.pod.labels))
    }
