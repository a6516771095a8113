"""A pod's requests, in kube-scheduler's units.

Containers and sidecars run together. Init containers run before them, one after the other. So, for each resource,

    request = max(sum of containers + sidecars, each init container + the sidecars declared before it)

A pod-level request replaces this sum for its resource. Overhead is added last. `resources` has the units.

Source: k8s.io/component-helpers resource/helpers.go, scheduler framework/types.go Resource, fit.go.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from msgspec import Struct

from webhook.core.api import gates
from webhook.core.api.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    Amounts,
    ResourceList,
    amounts_of,
    is_scalar,
    pod_level_resource,
    rounded,
    to_nanos,
)
from webhook.core.api.types import Container, ContainerStatus, Pod, PodStatus, WrittenQuantity
from webhook.core.api.version import KubernetesVersion

_SIDECAR = "Always"  # the restartPolicy of a sidecar among the init containers
# Limit of the caches in characters, for all names of a request. A cache counts entries and not their size, and any user
# can write a long one.
_CACHED_NAMES = 256


class PodRequest(Struct, frozen=True, gc=False):
    """A pod's request: resources above 0.

    The order is cpu, memory, ephemeral storage, then extended resources, huge pages and attachable volumes by name.

    Source: framework/types.go ``Resource``.
    """

    amounts: tuple[tuple[str, int], ...] = ()


_NO_REQUEST = PodRequest()
# Scores assume 0.1 CPU and 200 MiB for a container without a request. Same unit as `Amounts`. Source:
# pkg/scheduler/util/pod_resources.go DefaultMilliCPURequest, DefaultMemoryRequest.
_ASSUMED: Mapping[str, int] = {CPU: 100 * 10**6, MEMORY: 200 * 2**20 * 10**9}
_NOTHING: Mapping[str, int] = {}
_FIRST = (CPU, MEMORY, EPHEMERAL_STORAGE)
_NO_STATUS = PodStatus()


def incoming_request(pod: Pod, version: KubernetesVersion) -> PodRequest:
    """Sum up the request of a pod without a node. Source: fit.go ``computePodResourceRequest``."""
    return _to_request(_incoming_amounts(pod, version, _NOTHING))


def _incoming_amounts(pod: Pod, version: KubernetesVersion, assumed: Mapping[str, int]) -> Amounts:
    amounts = container_requests(pod.pod_spec.containers, pod.pod_spec.init_containers, assumed=assumed)
    return _with_pod_level(pod, amounts, {}, version)


def existing_request(pod: Pod, version: KubernetesVersion) -> PodRequest:
    """Sum up a pod's resources on its node.

    During an in-place resize, the largest of spec, allocated and actual resources counts.

    Source: framework/types.go ``CalculateResource``; helpers.go ``AggregateContainerRequests``.
    """
    spec = pod.pod_spec
    if gates.RESIZES_IN_PLACE.holds(version) and _resizing(pod):
        return _to_request(_resized_amounts(pod, version, _NOTHING))
    if spec.init_containers is None and spec.overhead is None and spec.resources is None:
        containers = spec.containers or ()
        if len(containers) == 1:  # the common pod, in every watch event
            return _one_container(containers[0])
    return incoming_request(pod, version)


def _existing_amounts(pod: Pod, version: KubernetesVersion, assumed: Mapping[str, int]) -> Amounts:
    resized = gates.RESIZES_IN_PLACE.holds(version) and _resizing(pod)
    return (_resized_amounts if resized else _incoming_amounts)(pod, version, assumed)


def scored_request(pod: Pod) -> tuple[int, int]:
    """Sum up an incoming pod's milli-CPU and bytes for scores, without pod-level requests.

    Source: noderesources/resource_allocation.go ``calculatePodResourceRequest``; fit.go leaves its gates unset.
    """
    amounts = container_requests(pod.pod_spec.containers, pod.pod_spec.init_containers, assumed=_ASSUMED)
    _add(amounts, amounts_of(pod.pod_spec.overhead))
    return _cpu_and_memory(amounts)


def scored_existing(pod: Pod, version: KubernetesVersion) -> tuple[int, int]:
    """Sum up a running pod's milli-CPU and bytes for scores.

    Source: framework/types.go ``CalculateResource``, ``getNonMissingContainerRequests``.
    """
    assumed = _ASSUMED
    if _pod_level_requests(pod, version):
        # With pod-level requests, defaults apply only to resources without any request.
        requested = _existing_amounts(pod, version, _NOTHING)
        assumed = {name: amount for name, amount in _ASSUMED.items() if name not in requested}
    return _cpu_and_memory(_existing_amounts(pod, version, assumed))


def _cpu_and_memory(amounts: Amounts) -> tuple[int, int]:
    return rounded(CPU, amounts.get(CPU, 0)), rounded(MEMORY, amounts.get(MEMORY, 0))


def _resizing(pod: Pod) -> bool:
    """Whether the pod's status reports resources. Without a report, only the spec's requests count."""
    status = pod.status
    if status is None:
        return False
    if status.allocated_resources is not None or status.resources is not None:
        return True
    for container in status.container_statuses or ():
        if container.allocated_resources is not None or container.resources is not None:
            return True
    for container in status.init_container_statuses or ():
        if container.allocated_resources is not None or container.resources is not None:
            return True
    return status.conditions is not None and _resize_infeasible(pod)


def _resized_amounts(pod: Pod, version: KubernetesVersion, assumed: Mapping[str, int]) -> Amounts:
    """Source: resource/helpers.go ``AggregateContainerRequests``, ``effectivePodLevelResources``."""
    if not gates.RESIZES_AS_A_WHOLE.holds(version):
        return _resized_one_by_one(pod, version, assumed)
    spec, status = pod.pod_spec, pod.status or _NO_STATUS
    infeasible = _resize_infeasible(pod)
    reported = status.resources.requests if status.resources else None
    known_at_pod_level = status.resources is not None
    if known_at_pod_level and status.allocated_resources is not None and reported is not None:
        measured = (amounts_of(status.allocated_resources), amounts_of(reported))
    else:
        measured = _measured(pod, assumed, infeasible=infeasible)
    total = {} if infeasible else container_requests(spec.containers, spec.init_containers, assumed=assumed)
    for other in measured:
        _raise_to(total, other)
    # Without a report from the kubelet, the spec decides the pod level.
    if not known_at_pod_level:
        return _with_pod_level(pod, total, {}, version)
    pod_level = amounts_of(reported)
    _raise_to(pod_level, amounts_of(status.allocated_resources))
    return _with_pod_level(pod, total, pod_level, version, spec_counts=not infeasible)


def _resized_one_by_one(pod: Pod, version: KubernetesVersion, assumed: Mapping[str, int]) -> Amounts:
    """Sum up the largest of spec, allocated and actual amounts of each container with reported resources.

    Source: resource/helpers.go ``AggregateContainerRequests``, ``determineEffectiveRequests`` of 1.36.
    """
    spec, status = pod.pod_spec, pod.status or _NO_STATUS
    infeasible = _resize_infeasible(pod)
    # The last of two statuses with the same name counts.
    statuses = {
        container.name: container
        for container in (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
    }
    initialising = {container.name for container in spec.init_containers or () if container.restart_policy != _SIDECAR}

    def effective(container: Container) -> ResourceList:
        known, written = statuses.get(container.name), _spec_requests(container)
        if known is None or known.resources is None or container.name in initialising:
            return written
        return _largest(None if infeasible else written, known.resources.requests, known.allocated_resources)

    total = container_requests(spec.containers, spec.init_containers, effective, assumed)
    if not gates.RESIZES_POD_LEVEL.holds(version) or status.resources is None:
        return _with_pod_level(pod, total, {}, version)
    written = spec.resources.requests if spec.resources else None
    held = amounts_of(_largest(None if infeasible else written, status.resources.requests, status.allocated_resources))
    # Count only resources named in the spec. Unreported resources count as 0.
    return _with_pod_level(pod, total, {name: held.get(name, 0) for name in written or ()}, version, spec_counts=False)


def _largest(*lists: ResourceList) -> ResourceList:
    largest: dict[str, WrittenQuantity] = {}
    for resources in lists:
        for name, amount in (resources or {}).items():
            if name not in largest or to_nanos(amount) > to_nanos(largest[name]):
                largest[name] = amount
    return largest


def _measured(pod: Pod, assumed: Mapping[str, int], *, infeasible: bool) -> tuple[Amounts, Amounts]:
    """Return the sums of the containers' allocated and of their actual resources.

    If the pod's status lacks a container's actual resources, the allocated resources count. If it lacks the allocated
    resources, the requests in the spec count. With ``infeasible`` (a refused resize), the requests in the spec do not
    count.

    Source: helpers.go ``containerAllocatedRequests``, ``containerActuatedRequests``.
    """
    status = pod.status or _NO_STATUS
    statuses: dict[str, ContainerStatus] = {}
    for container in (*(status.container_statuses or ()), *(status.init_container_statuses or ())):
        statuses.setdefault(container.name, container)

    def allocated(container: Container) -> ResourceList:
        known = statuses.get(container.name)
        if known is not None and known.allocated_resources is not None:
            return known.allocated_resources
        return None if infeasible else _spec_requests(container)

    def actuated(container: Container) -> ResourceList:
        known = statuses.get(container.name)
        requests = known.resources.requests if known is not None and known.resources is not None else None
        return allocated(container) if requests is None else requests

    containers, init_containers = pod.pod_spec.containers, pod.pod_spec.init_containers
    return (
        container_requests(containers, init_containers, allocated, assumed),
        container_requests(containers, init_containers, actuated, assumed),
    )


def container_requests(
    containers: tuple[Container, ...] | None,
    init_containers: tuple[Container, ...] | None,
    resources: Callable[[Container], ResourceList] | None = None,
    assumed: Mapping[str, int] = _NOTHING,
) -> Amounts:
    """Return the sum of the requests of all containers and sidecars.

    If an init container needs more together with the sidecars before it, return the higher amount of each resource.

    Args:
        containers: The containers, without init containers.
        init_containers: The init containers, sidecars included.
        resources: Returns the resources to count for a container. By default its requests.
        assumed: Amounts for a container's resources without a request.

    Source: helpers.go ``aggregateContainerResourcesByFn``.
    """
    resources_of = resources or _spec_requests

    def own_amounts(container: Container) -> Amounts:
        amounts = amounts_of(resources_of(container))
        return {**assumed, **amounts} if assumed else amounts

    total: Amounts = {}
    for container in containers or ():
        _add(total, own_amounts(container))
    # Sidecars keep running next to later containers and init containers.
    sidecars: Amounts = {}
    initialising: Amounts = {}
    for container in init_containers or ():
        own = own_amounts(container)
        if container.restart_policy == _SIDECAR:
            _add(total, own)
            _add(sidecars, own)
            own = sidecars
        else:
            _add(own, sidecars)
        _raise_to(initialising, own)
    _raise_to(total, initialising)
    return total


def _resize_infeasible(pod: Pod) -> bool:
    """Whether the kubelet rejected the resize for good. Source: resource/helpers.go ``IsPodResizeInfeasible``."""
    conditions = pod.status.conditions if pod.status else None
    for condition in conditions or ():
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _pod_level_requests(pod: Pod, version: KubernetesVersion) -> bool:
    """Whether the pod has pod-level requests. Source: resource/helpers.go ``IsPodLevelRequestsSet``."""
    requests = pod.pod_spec.resources.requests if pod.pod_spec.resources else None
    return gates.POD_LEVEL_RESOURCES.holds(version) and any(map(pod_level_resource, requests or ()))


def _with_pod_level(
    pod: Pod, amounts: Amounts, status_level: Amounts, version: KubernetesVersion, *, spec_counts: bool = True
) -> Amounts:
    """Add pod-level requests and overhead. Source: resource/helpers.go ``PodRequests``, ``applyPodLevelResources``."""
    spec = pod.pod_spec
    if _pod_level_requests(pod, version):
        pod_level = amounts_of(spec.resources.requests if spec.resources else None) if spec_counts else {}
        _raise_to(pod_level, status_level)
        # A pod-level request replaces the containers' sum of its resource.
        amounts.update({name: amount for name, amount in pod_level.items() if pod_level_resource(name)})
    _add(amounts, amounts_of(spec.overhead))
    return amounts


def _to_request(amounts: Amounts) -> PodRequest:
    return _remembered_request(tuple(amounts.items())) if _fits_cache(amounts) else _request(tuple(amounts.items()))


def _fits_cache(names: Iterable[str]) -> bool:
    return len("".join(names)) <= _CACHED_NAMES


@lru_cache(maxsize=4096)  # the different requests of a large cluster
def _remembered_request(amounts: tuple[tuple[str, int], ...]) -> PodRequest:
    return _request(amounts)


def _request(amounts: tuple[tuple[str, int], ...]) -> PodRequest:
    by_name = dict(amounts)
    names = (*(name for name in _FIRST if name in by_name), *sorted(name for name in by_name if is_scalar(name)))
    units = ((name, rounded(name, by_name[name])) for name in names)
    return PodRequest(tuple((name, amount) for name, amount in units if amount))


def _one_container(container: Container) -> PodRequest:
    requests = container.resources.requests if container.resources else None
    if not requests:
        return _NO_REQUEST
    written = tuple(requests.items())
    return _written_request(written) if _fits_cache(requests) else _written_request.__wrapped__(written)


@lru_cache(maxsize=4096)  # the different requests of a large cluster
def _written_request(requests: tuple[tuple[str, WrittenQuantity], ...]) -> PodRequest:
    return _request(tuple((name, to_nanos(amount)) for name, amount in requests))


def _spec_requests(container: Container) -> ResourceList:
    return container.resources.requests if container.resources else None


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: Amounts, other: Amounts) -> None:
    for name, amount in other.items():
        if name not in total or amount > total[name]:
            total[name] = amount
