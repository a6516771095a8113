"""What kube-scheduler would say of a pod: the filters in order, the first that fails for each node, the sentence.

    index, pod -> take(...) -> Problem      under the lock: every fact that the answer depends on, copied
    Problem    -> decide(...) -> Verdict    outside it

Source: kube-scheduler schedule_one.go ``findNodesThatFitPod``; framework/runtime/framework.go; framework/types.go
``FitError``.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.resources import Request, incoming_request, is_extended
from webhook.core.api.selectors import RequiredNodes, compile_required_nodes
from webhook.core.api.types import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY, Affinity, Pod
from webhook.core.api.version import RECORDED, KubernetesVersion
from webhook.core.index import node_sets
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.node_table import NodeView
from webhook.core.index.pod_table import HostPort, host_ports
from webhook.core.policy.policy import SchedulerProfile
from webhook.core.scheduler.plugins import node_filters, pod_topology_spread
from webhook.core.scheduler.plugins.inter_pod_affinity import NAME as INTER_POD_AFFINITY
from webhook.core.scheduler.plugins.inter_pod_affinity import Neighbours, count_neighbours, run_inter_pod_affinity
from webhook.core.scheduler.plugins.node_selection import tolerated_nodes, usable_nodes
from webhook.core.scheduler.plugins.node_volume_limits import NODE_VOLUME_LIMITS, run_node_volume_limits
from webhook.core.scheduler.plugins.pod_topology_spread import (
    SYSTEM_DEFAULTS,
    Counted,
    Domains,
    Eligible,
    SpreadDefaults,
)
from webhook.core.scheduler.plugins.status import ERROR, OK, SKIP, SUCCESS, Outcome, Ran, Status, failure, unresolvable
from webhook.core.scheduler.plugins.volume_binding import VOLUME_BINDING, run_volume_binding
from webhook.core.scheduler.plugins.volumes import (
    VOLUME_RESTRICTIONS,
    VOLUME_ZONE,
    Storage,
    claim_name,
    gather,
    run_volume_restrictions,
    run_volume_zone,
)

# The default filters in the scheduler's order.
FILTERS = (
    *(
        node_filters.NODE_NAME,
        node_filters.NODE_UNSCHEDULABLE,
        node_filters.TAINT_TOLERATION,
        node_filters.NODE_AFFINITY,
        node_filters.NODE_PORTS,
    ),
    *(node_filters.NODE_RESOURCES_FIT, VOLUME_RESTRICTIONS, NODE_VOLUME_LIMITS, VOLUME_BINDING, VOLUME_ZONE),
    *(pod_topology_spread.NAME, INTER_POD_AFFINITY),
)
# What kube-scheduler looks at and admission cannot know, or the index does not hold.
NOT_EVALUATED: Mapping[str, str] = {
    "SchedulerConfiguration": "disabled plugins, added node affinity, ignored resources, extenders",
    "SchedulingGates": "a pod with scheduling gates is not tried at all",
    "DynamicResources": "resource claims, and device classes that provide extended resources",
    "NodeDeclaredFeatures": "features that a node declares and the pod needs",
    "CSIStorageCapacity": "free capacity that storage drivers publish",
    "VolumeAttachment": "volumes that are attached to a node without a pod on it",
    "CSIDriver": "storage drivers that must be installed on the node",
    "SchedulerExtenders": "extenders, and plugins that do not come with kube-scheduler",
    "AdmissionPlugins": "LimitRange, RuntimeClass, PriorityClass and other webhooks, of a pod yet to be created",
}


def not_evaluated(pod: Pod, profile: SchedulerProfile | None = None) -> tuple[str, ...]:
    """The parts of ``NOT_EVALUATED`` that could change the verdict on this pod, in that order.

    Shape: the pod is one that was created; of others AdmissionPlugins is not evaluated either. ``profile`` is None
    where nobody said how its scheduler is configured.
    """
    spec = pod.pod_spec
    storage = any(claim_name(pod.meta.name, volume) is not None for volume in spec.volumes or ())
    extended = any("/" in name for name, _ in incoming_request(pod, RECORDED).amounts)
    concerns = {
        "SchedulerConfiguration": profile is None,
        "SchedulingGates": bool(spec.scheduling_gates),
        "DynamicResources": bool(spec.resource_claims) or extended,
        "NodeDeclaredFeatures": bool(spec.host_network) and spec.host_users is False,
        "CSIStorageCapacity": storage,
        "VolumeAttachment": storage,
        "CSIDriver": storage,
        "SchedulerExtenders": profile is not None,
    }
    return tuple(name for name, concerned in concerns.items() if concerned)


class Problem(Struct, frozen=True):
    """Everything that a verdict on one pod depends on, at one moment.

    Shape: ``nodes`` and what is copied here never change; per-node values are by slot. ``nominated`` has, for each
    node where preemption made room for a pod of no lower priority, the same problem with such pods on that node.
    ``filters`` are the ones to ask, in the order of ``FILTERS``; ``profile`` is the scheduler's, None as it comes.
    """

    pod: Pod
    version: KubernetesVersion
    nodes: NodeView
    hard: Counted
    soft: Counted
    request: Request
    room: node_filters.Room
    ports: tuple[HostPort, ...]
    taken_ports: Mapping[int, tuple[HostPort, ...]]
    storage: Storage
    neighbours: Neighbours
    nominated: Mapping[int, "Problem"] = {}
    filters: tuple[str, ...] = FILTERS
    profile: SchedulerProfile | None = None


def take(
    index: ClusterIndex, pod: Pod, defaults: SpreadDefaults = SYSTEM_DEFAULTS, profile: SchedulerProfile | None = None
) -> Problem:
    """Copy what the verdict needs; whoever shares the index calls this under its lock.

    Shape: the pod is as the scheduler gets it (``core.apiserver.pod_defaults`` makes it so). A ``profile`` has defaults of its own.
    """
    if profile is not None:
        listed = SpreadDefaults(profile.default_constraints)
        defaults = SYSTEM_DEFAULTS if profile.defaulting_type == "System" else listed
    problem = _take(index, pod, defaults, profile)
    nominated = _with_nominated(index, problem, defaults)
    return replace(problem, nominated=nominated) if nominated else problem


def _take(index: ClusterIndex, pod: Pod, defaults: SpreadDefaults, profile: SchedulerProfile | None) -> Problem:
    version = index.version
    request, ports = incoming_request(pod, version), host_ports(pod)
    filters: tuple[str, ...] = FILTERS
    if profile is not None:
        request = _without_ignored(request, profile)
        filters = tuple(name for name in FILTERS if name not in profile.disabled_filters)
    return Problem(
        pod=pod,
        version=version,
        nodes=index.view(),
        hard=pod_topology_spread.count_constraints(pod, DO_NOT_SCHEDULE, index, defaults, version),
        soft=pod_topology_spread.count_constraints(pod, SCHEDULE_ANYWAY, index, defaults, version),
        request=request,
        room=node_filters.room_for(request, index.node_table),
        ports=ports,
        taken_ports={slot: tuple(used) for slot, used in index.pod_table.ports.items()} if ports else {},
        storage=gather(pod, index),
        neighbours=count_neighbours(pod, index),
        filters=filters,
        profile=profile,
    )


def _without_ignored(request: Request, profile: SchedulerProfile) -> Request:
    """Source: noderesources/fit.go ``fitsRequest``, ignoredResources and ignoredResourceGroups."""
    kept = tuple(
        (name, amount)
        for name, amount in request.amounts
        if not is_extended(name)
        or (name not in profile.ignored_resources and name.partition("/")[0] not in profile.ignored_resource_groups)
    )
    return Request(kept)


def _with_nominated(index: ClusterIndex, problem: Problem, defaults: SpreadDefaults) -> dict[int, Problem]:
    """The problem as it would be on each node with nominated pods, if they ran there already.

    Source: framework.go ``addGENominatedPods``.
    """
    pod, found = problem.pod, {}
    for node, pods in index.nominated_pods().items():
        slot = problem.nodes.slots.get(node)
        added = [each for each in pods if _priority(each) >= _priority(pod) and each.meta.uid != pod.meta.uid]
        if slot is None or not added:
            continue
        keys = [f"{each.meta.name}#nominated" for each in added]
        for each, key in zip(added, keys, strict=True):
            placed = replace(each, spec=replace(each.pod_spec, node_name=node))
            index.pod_table.put(placed, key, index.version)
        with_them = _take(index, pod, defaults, problem.profile)
        for each, key in zip(added, keys, strict=True):
            index.pod_table.remove(each.meta.namespace, key)
        near = sum(each.meta.namespace == pod.meta.namespace for each in added)
        found[slot] = replace(with_them, hard=with_them.hard.with_nominated(slot, near))
    return found


def _priority(pod: Pod) -> int:
    return pod.pod_spec.priority or 0


class Verdict:
    """The scheduler's answer for every node.

    Shape: ``failed`` are disjoint sets of nodes with what rejects them; ``feasible`` are the nodes that pass.
    """

    def __init__(self, nodes: NodeView, before: Status, failed: Sequence[Outcome]) -> None:
        self.nodes = nodes
        self.before = before
        self.failed = tuple(failed)
        rejected = 0
        for _, members in failed:
            rejected |= members
        self.feasible = nodes.live & ~rejected

    @cached_property
    def codes(self) -> bytes:
        """A number per slot: 0 feasible, 1 Unschedulable, 2 UnschedulableAndUnresolvable, 3 an error, 4 no node."""
        size, sets = self.nodes.size, [0, 0, 0]
        for status, members in self.failed:
            sets[_NUMBERS[status.code] - 1] |= members
        sets.append(((1 << size) - 1) & ~self.nodes.live)
        total = 0
        for number, members in enumerate(sets, start=1):
            if members:
                digits = format(members, f"0{size}b").encode().translate(_TABLES[number])
                total |= int.from_bytes(digits, "little")
        return total.to_bytes(size, "little")[::-1]

    def status(self, name: str) -> Status:
        """What the scheduler says of one node.

        Errors: KeyError for a node that does not exist.
        """
        slot = self.nodes.slots[name]
        return next((status for status, members in self.failed if members >> slot & 1), OK)

    @cached_property
    def sentence(self) -> str:
        """The text of the FailedScheduling event, up to what preemption adds; "" while a node is feasible.

        Source: framework/types.go ``FitError.Error``.
        """
        total = len(self.nodes)
        if self.before.code == ERROR or any(status.code == ERROR for status, members in self.failed if members):
            return ""
        if not total:
            return "no nodes available to schedule pods"
        if self.feasible:
            return ""
        if self.before.rejected:
            return f"0/{total} nodes are available: {', '.join(self.before.reasons)}."
        counts: dict[str, int] = {}
        for status, members in self.failed:
            for reason in status.reasons if members else ():
                counts[reason] = counts.get(reason, 0) + members.bit_count()
        return f"0/{total} nodes are available: {', '.join(sorted(f'{n} {reason}' for reason, n in counts.items()))}."


_NUMBERS = {"Unschedulable": 1, "UnschedulableAndUnresolvable": 2, ERROR: 3}
_TABLES = tuple(bytes(number if char == ord("1") else 0 for char in range(256)) for number in range(5))


def eligible_nodes(pod: Pod, nodes: NodeView, required: RequiredNodes) -> Eligible:
    """The nodes that a pod's affinity and tolerations leave."""
    return Eligible(nodes, usable_nodes(nodes, required), tolerated_nodes(nodes, pod.pod_spec.tolerations))


def verdict_alone(ran: Ran, nodes: NodeView) -> Verdict:
    """What one plugin says when it is asked alone."""
    if ran.before.code not in (SUCCESS, SKIP):
        return Verdict(nodes, ran.before, [(ran.before, nodes.live)])
    failed = [] if ran.decide is None else [each for each in ran.decide(nodes.live) if each[1]]
    return Verdict(nodes, ran.before, failed)


class Cycle:
    """One scheduling attempt: the plugins on a problem, each computed when it is first asked for."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._ran: dict[str, Ran] = {}

    @cached_property
    def required(self) -> RequiredNodes:
        """The pod's nodeSelector and required node affinity."""
        spec = self.problem.pod.pod_spec
        return compile_required_nodes(spec.node_selector, spec.affinity)

    @cached_property
    def enforced(self) -> int | None:
        """The nodes that the scheduler's own added affinity leaves; None where it has none.

        Source: node_affinity.go ``addedNodeSelector``; spread constraints do not look at it.
        """
        added = self.problem.profile.added_affinity if self.problem.profile is not None else None
        if added is None or added.required is None:
            return None
        return usable_nodes(self.problem.nodes, compile_required_nodes(None, Affinity(node_affinity=added)))

    @cached_property
    def eligible(self) -> Eligible:
        """The nodes that affinity and tolerations leave."""
        return eligible_nodes(self.problem.pod, self.problem.nodes, self.required)

    @cached_property
    def spread(self) -> tuple[Ran, tuple[Domains, ...]]:
        """PodTopologySpread after its PreFilter, and what it counted."""
        return pod_topology_spread.run_filter(self.problem.hard, self.problem.pod.labels, self.eligible)

    @property
    def domains(self) -> tuple[Domains, ...]:
        """What PodTopologySpread counted for each hard constraint."""
        return self.spread[1]

    def ran(self, plugin: str) -> Ran:
        """One plugin after its PreFilter.

        Errors: KeyError for a name that is not in ``FILTERS``.
        """
        ran = self._ran.get(plugin)
        if ran is None:
            ran = self._ran[plugin] = _PLUGINS[plugin](self)
        return ran

    def alone(self, plugin: str) -> Verdict:
        """One plugin without the others: its PreFilter, then its Filter on every node."""
        return verdict_alone(self.ran(plugin), self.problem.nodes)

    def verdict(self) -> Verdict:
        """All filters."""
        nodes = self.problem.nodes
        before, allowed, restricting = self._before()
        if before.code != SUCCESS:
            return Verdict(nodes, before, [(before, nodes.live)])
        asked, failed = nodes.live, []
        if allowed is not None:
            slots = nodes.slots
            inside = node_sets.from_slots([slots[name] for name in allowed if name in slots], nodes.size)
            plugin = restricting[0] if len(restricting) == 1 else ""
            reason = f"node(s) didn't satisfy plugin(s) [{' '.join(restricting)}]"
            failed.append((node_filters.named(unresolvable(reason), plugin), asked & ~inside))
            asked &= inside
        plugins = [plugin for plugin in self.problem.filters if self.ran(plugin).decide is not None]
        yielding = node_sets.from_slots(tuple(self.problem.nominated), nodes.size) & asked
        for slot in node_sets.to_slots(yielding):
            first = Cycle(self.problem.nominated[slot]).filtered(1 << slot, plugins)
            failed += first
            asked &= ~sum(members for _, members in first)
        return Verdict(nodes, OK, [*failed, *self.filtered(asked, plugins)])

    def filtered(self, asked: int, plugins: Sequence[str]) -> list[Outcome]:
        """The nodes that a plugin rejects, each with the first that does."""
        failed: list[Outcome] = []
        for plugin in plugins:
            decide_nodes = self.ran(plugin).decide
            if decide_nodes is None or not asked:
                continue
            for status, members in decide_nodes(asked):
                if members:
                    failed.append((_of_plugin(status, plugin), members))
                    asked &= ~members
        return failed

    def _before(self) -> tuple[Status, frozenset[str] | None, list[str]]:
        """PreFilter of all plugins: the first rejection, else the nodes left and the plugins that left them.

        Source: framework.go ``RunPreFilterPlugins``.
        """
        allowed: frozenset[str] | None = None
        restricting: list[str] = []
        for plugin in self.problem.filters:
            ran = self.ran(plugin)
            status = ran.before
            if status.code == SKIP:
                continue
            if status.code == ERROR:
                text = f'running PreFilter plugin "{plugin}": {status.reasons[0]}'
                return node_filters.named(failure(text), plugin), None, []
            if status.rejected:
                return node_filters.named(status, plugin), None, []
            if ran.allowed is not None:
                restricting = sorted({*restricting, plugin})
                allowed = ran.allowed if allowed is None else allowed & ran.allowed
            if allowed is not None and not allowed:
                names = f"s) [{' '.join(restricting)}] simultaneously"
                reason = (
                    f"node(s) didn't satisfy plugin({names}"
                    if len(restricting) > 1
                    else (f"node(s) didn't satisfy plugin {restricting[0]}")
                )
                return unresolvable(reason), None, []
        return OK, allowed, restricting

    def scores(self, feasible: int) -> dict[str, int] | None:
        """PodTopologySpread's normalised score of each feasible node; None where no soft constraint applies."""
        found = pod_topology_spread.scores(self.problem.soft, self.eligible, feasible)
        return None if found is None else {self.problem.nodes.names[slot]: score for slot, score in found.items()}


_PLUGINS: Mapping[str, Callable[[Cycle], Ran]] = {
    node_filters.NODE_NAME: lambda cycle: node_filters.run_node_name(
        cycle.problem.pod, cycle.problem.nodes, cycle.problem.version
    ),
    node_filters.NODE_UNSCHEDULABLE: lambda cycle: node_filters.run_node_unschedulable(
        cycle.problem.pod, cycle.problem.nodes
    ),
    node_filters.TAINT_TOLERATION: lambda cycle: node_filters.run_taint_toleration(
        cycle.problem.pod, cycle.problem.nodes, cycle.eligible.tolerated, cycle.problem.version
    ),
    node_filters.NODE_AFFINITY: lambda cycle: node_filters.run_node_affinity(
        cycle.problem.pod, cycle.required, cycle.eligible.usable, cycle.enforced
    ),
    node_filters.NODE_PORTS: lambda cycle: node_filters.run_node_ports(cycle.problem.ports, cycle.problem.taken_ports),
    node_filters.NODE_RESOURCES_FIT: lambda cycle: node_filters.run_node_resources_fit(
        cycle.problem.request, cycle.problem.room
    ),
    VOLUME_RESTRICTIONS: lambda cycle: run_volume_restrictions(
        cycle.problem.pod, cycle.problem.storage, cycle.problem.nodes
    ),
    NODE_VOLUME_LIMITS: lambda cycle: run_node_volume_limits(
        cycle.problem.pod, cycle.problem.storage, cycle.problem.nodes
    ),
    VOLUME_BINDING: lambda cycle: run_volume_binding(
        cycle.problem.pod, cycle.problem.storage, cycle.problem.nodes, cycle.problem.version
    ),
    VOLUME_ZONE: lambda cycle: run_volume_zone(cycle.problem.pod, cycle.problem.storage, cycle.problem.nodes),
    pod_topology_spread.NAME: lambda cycle: cycle.spread[0],
    INTER_POD_AFFINITY: lambda cycle: run_inter_pod_affinity(cycle.problem.neighbours, cycle.problem.nodes),
}


def _of_plugin(status: Status, plugin: str) -> Status:
    """As RunFilterPlugins passes it on."""
    if status.code == ERROR:
        return node_filters.named(failure(f'running "{plugin}" filter plugin: {status.reasons[0]}'), plugin)
    return node_filters.named(status, plugin)


def decide(problem: Problem) -> Verdict:
    """The verdict of all default filters."""
    return Cycle(problem).verdict()
