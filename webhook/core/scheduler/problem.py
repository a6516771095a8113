"""All facts of kube-scheduler's verdict on a pod, copied at the same moment.

Source: kube-scheduler schedule_one.go, runtime/framework.go.
"""

from collections.abc import Callable, Collection, Mapping

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api import gates
from webhook.core.api.pod_requests import PodRequest, incoming_request
from webhook.core.api.resources import is_extended
from webhook.core.api.types import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY, Pod
from webhook.core.api.version import KubernetesVersion
from webhook.core.index.nodes import NodeView
from webhook.core.index.overlay import with_pods
from webhook.core.index.pod_extras import HostPort, host_ports
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.scheduler.plugins.inter_pod_affinity import INTER_POD_AFFINITY
from webhook.core.scheduler.plugins.neighbours import Neighbours, count_neighbours
from webhook.core.scheduler.plugins.node_affinity import NODE_AFFINITY
from webhook.core.scheduler.plugins.node_name import NODE_NAME
from webhook.core.scheduler.plugins.node_ports import NODE_PORTS
from webhook.core.scheduler.plugins.node_resources_fit import NODE_RESOURCES_FIT, FreeResources, free_resources
from webhook.core.scheduler.plugins.node_unschedulable import NODE_UNSCHEDULABLE
from webhook.core.scheduler.plugins.node_volume_limits import NODE_VOLUME_LIMITS
from webhook.core.scheduler.plugins.pod_topology_spread import POD_TOPOLOGY_SPREAD
from webhook.core.scheduler.plugins.spread_constraints import (
    SYSTEM_DEFAULTS,
    CountedConstraints,
    SpreadDefaults,
    count_constraints,
)
from webhook.core.scheduler.plugins.taint_toleration import TAINT_TOLERATION
from webhook.core.scheduler.plugins.volume_binding import VOLUME_BINDING
from webhook.core.scheduler.plugins.volume_restrictions import VOLUME_RESTRICTIONS
from webhook.core.scheduler.plugins.volume_zone import VOLUME_ZONE
from webhook.core.scheduler.plugins.volumes import Storage, copy_storage
from webhook.core.scheduler.profile import DefaultingType, SchedulerProfile

# The default filters in the scheduler's order since 1.37.
FILTERS = (
    *(NODE_NAME, NODE_UNSCHEDULABLE, TAINT_TOLERATION, NODE_AFFINITY, NODE_PORTS),
    *(NODE_RESOURCES_FIT, VOLUME_RESTRICTIONS, NODE_VOLUME_LIMITS, VOLUME_BINDING, VOLUME_ZONE),
    *(POD_TOPOLOGY_SPREAD, INTER_POD_AFFINITY),
)
# The filters for limited resources. A larger, emptier or new node satisfies them.
CAPACITY_FILTERS = frozenset({NODE_PORTS, NODE_RESOURCES_FIT, NODE_VOLUME_LIMITS})


_PREEMPTS_NEVER = "Never"  # the preemptionPolicy of a pod
_NO_CONSTRAINTS, _NO_RESOURCES = CountedConstraints(), FreeResources({}, {}, {})


class Problem(Struct, frozen=True):
    """All facts the scheduler needs to decide about a pod, at one moment.

    Mappings by node have the node's slot as key.

    Attributes:
        nominated: The nodes with nominated pods of at least this pod's priority. The value is the same problem, with
            the nominated pods placed there.
        filters: The filters to run, in the order of the release.
        profile: None for a scheduler with its default configuration.
    """

    pod: Pod
    version: KubernetesVersion
    nodes: NodeView
    hard: CountedConstraints
    soft: CountedConstraints
    request: PodRequest
    resources: FreeResources
    ports: tuple[HostPort, ...]
    taken_ports: Mapping[int, tuple[HostPort, ...]]
    storage: Storage
    neighbours: Neighbours
    nominated: Mapping[int, "Problem"] = {}
    filters: tuple[str, ...] = FILTERS
    profile: SchedulerProfile | None = None


def take(
    index: ReadOnlyIndex, pod: Pod, defaults: SpreadDefaults = SYSTEM_DEFAULTS, profile: SchedulerProfile | None = None
) -> Problem:
    """Copy all facts from the index that the scheduler needs to decide about the pod.

    The pod must be the result of `admission_plugins.as_created`. With a ``profile``, the profile's default constraints
    replace ``defaults``.

    Source: schedule_one.go ``findNodesThatFitPod``, which reads a snapshot of the cache.
    """
    if profile is not None:
        listed = SpreadDefaults(profile.default_constraints)
        defaults = SYSTEM_DEFAULTS if profile.defaulting_type == DefaultingType.SYSTEM else listed
    problem = _take(index, pod, defaults, profile)
    nominated = _with_nominated(index, problem, defaults)
    return replace(problem, nominated=nominated) if nominated else problem


def take_lasting(index: ReadOnlyIndex, pod: Pod) -> Problem:
    """Copy the scheduling facts of a pod, but only those that rarely change.

    Soft constraints, free resources and nominated pods are left out because they change with every pod. `take` copies
    all facts.
    """
    return _take(index, pod, SYSTEM_DEFAULTS, None, lasting=True)


def _filters_of(version: KubernetesVersion) -> tuple[str, ...]:
    """Return the default filters in the order of the release. Source: v1/default_plugins.go ``getDefaultPlugins``."""
    if gates.NODE_NAME_BEFORE_FILTERS.holds(version):
        return FILTERS
    return (NODE_UNSCHEDULABLE, NODE_NAME, *FILTERS[2:])


def _take(
    index: ReadOnlyIndex,
    pod: Pod,
    defaults: SpreadDefaults,
    profile: SchedulerProfile | None,
    *,
    lasting: bool = False,
) -> Problem:
    version = index.version
    request, ports = incoming_request(pod, version), host_ports(pod.pod_spec, version)
    filters = _filters_of(version)
    if profile is not None:
        request = _without_ignored(request, profile)
        filters = tuple(name for name in filters if name not in profile.disabled_filters)
    return Problem(
        pod=pod,
        version=version,
        nodes=index.nodes.view(),
        hard=count_constraints(pod, DO_NOT_SCHEDULE, index, defaults, version),
        soft=_NO_CONSTRAINTS if lasting else count_constraints(pod, SCHEDULE_ANYWAY, index, defaults, version),
        request=request,
        resources=_NO_RESOURCES if lasting else free_resources(request, index),
        ports=ports,
        taken_ports=index.pods.host_ports() if ports else {},
        storage=copy_storage(pod, index),
        neighbours=count_neighbours(pod, index),
        filters=filters,
        profile=profile,
    )


def _without_ignored(request: PodRequest, profile: SchedulerProfile) -> PodRequest:
    """Drop the resources ignored by the profile. Source: noderesources/fit.go ``fitsRequest``."""
    kept = tuple(
        (name, amount)
        for name, amount in request.amounts
        if not is_extended(name)
        or (name not in profile.ignored_resources and name.partition("/")[0] not in profile.ignored_resource_groups)
    )
    return PodRequest(kept)


def _with_nominated(index: ReadOnlyIndex, problem: Problem, defaults: SpreadDefaults) -> dict[int, Problem]:
    """Return a problem for each node with nominated pods, as if these pods ran there.

    Source: framework.go ``addGENominatedPods``.
    """
    pod, by_slot = problem.pod, {}
    for node, pods in index.pods.nominated().items():
        slot = problem.nodes.slots.get(node)
        # A pod of higher priority overrides a nomination, and a pod does not compete with itself.
        added = [one for one in pods if _priority(one) >= _priority(pod) and one.meta.uid != pod.meta.uid]
        if slot is None or not added:
            continue
        with_them = _take(with_pods(index, node, added), pod, defaults, problem.profile)
        near = sum(other.meta.namespace == pod.meta.namespace for other in added)
        by_slot[slot] = replace(with_them, hard=with_them.hard.with_nominated(slot, near))
    return by_slot


def change_problem(problem: Problem, change: Callable[[Problem], Problem]) -> Problem:
    """Apply a change to a pod's scheduling problem.

    The change is also applied to ``nominated``, the problem as it is on each node with nominated pods.
    """
    nominated = {slot: change(variant) for slot, variant in problem.nominated.items()}
    return replace(change(problem), nominated=nominated)


def without_filters(problem: Problem, plugins: Collection[str]) -> Problem:
    """Return the problem without some filters."""
    kept = tuple(plugin for plugin in problem.filters if plugin not in plugins)
    return change_problem(problem, lambda each: replace(each, filters=kept))


def without_limits(problem: Problem) -> Problem:
    """Return the problem without the filters for limited resources (`CAPACITY_FILTERS`)."""
    return without_filters(problem, CAPACITY_FILTERS)


def without_spread(problem: Problem) -> Problem:
    """Return the problem without hard constraints. Soft constraints never reject a node."""
    return change_problem(problem, lambda each: replace(each, hard=_NO_CONSTRAINTS))


def may_preempt(pod: Pod) -> bool:
    """Whether the scheduler may evict other pods for this pod. A pod of priority 0 may evict none.

    Source: defaultpreemption/default_preemption.go ``PodEligibleToPreemptOthers``.
    """
    return _priority(pod) > 0 and pod.pod_spec.preemption_policy != _PREEMPTS_NEVER


def _priority(pod: Pod) -> int:
    """Source: corev1/helpers.go ``PodPriority``."""
    return pod.pod_spec.priority or 0
