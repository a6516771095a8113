"""kube-apiserver's changes to a new pod, as far as they affect the scheduler's verdict.

kube-apiserver copies limits to missing requests, turns ports into host ports in the host network, fills in pod-level
resources, and merges matchLabelKeys into selectors. Admission plugins run in between (`admission_plugins`).

Source: k8s.io/kubernetes pkg/apis/core/v1 defaults.go; pkg/registry/core/pod strategy.go ``PrepareForCreate``;
pkg/api/pod util.go ``DefaultPodLevelResources``.
"""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from webhook.core.api import gates
from webhook.core.api.pod_requests import container_requests
from webhook.core.api.resources import (
    HUGE_PAGES_PREFIX,
    ResourceList,
    compare_amounts,
    pod_level_resource,
    to_milli,
)
from webhook.core.api.types import (
    IN,
    NOT_IN,
    Affinity,
    Container,
    LabelSelector,
    LabelSelectorRequirement,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    ResourceRequirements,
    Volume,
    WrittenQuantity,
)
from webhook.core.api.version import KubernetesVersion
from webhook.core.api.well_known import DEFAULT_NAMESPACE
from webhook.core.apiserver.validation import merge_match_label_keys


def with_decoding_defaults(pod: Pod, version: KubernetesVersion) -> Pod:
    """Return the pod as the first admission plugin gets it.

    Source: core/v1/defaults.go ``SetDefaults_Pod``; up to 1.36 it fills in pod-level resources too.
    """
    spec, meta = pod.pod_spec, pod.meta
    host_network = bool(spec.host_network)
    spec = replace(
        spec,
        containers=_all_defaulted(spec.containers, host_network=host_network),
        init_containers=_all_defaulted(spec.init_containers, host_network=host_network),
        overhead=_rounded(spec.overhead),
        volumes=None if spec.volumes is None else tuple(_defaulted_volume(volume) for volume in spec.volumes),
    )
    if not gates.FILLS_POD_LEVEL_REQUESTS.holds(version):
        spec = _with_pod_level(spec, version)
    return replace(pod, metadata=replace(meta, namespace=meta.namespace or DEFAULT_NAMESPACE), spec=spec)


def prepare_for_create(pod: Pod, version: KubernetesVersion) -> Pod:
    """Return the pod as the validating admission plugins get it. Source: core/pod/strategy.go ``PrepareForCreate``."""
    spec = pod.pod_spec
    if gates.FILLS_POD_LEVEL_REQUESTS.holds(version):
        spec = _with_pod_level(spec, version)
    constraints = merge_match_label_keys(spec.constraints, pod.labels, version)
    affinity = _merged_affinity(spec.affinity, pod.labels)
    return replace(pod, spec=replace(spec, topology_spread_constraints=tuple(constraints) or None, affinity=affinity))


def _with_pod_level(spec: PodSpec, version: KubernetesVersion) -> PodSpec:
    if spec.resources is None:
        return spec
    if not gates.POD_LEVEL_RESOURCES.holds(version):  # kube-apiserver drops the unread field
        return replace(spec, resources=None)
    resources = _pod_level(spec.resources, spec.containers or (), spec.init_containers or (), version)
    return replace(spec, resources=resources)


def _all_defaulted(containers: tuple[Container, ...] | None, *, host_network: bool) -> tuple[Container, ...] | None:
    return tuple([_defaulted(container, host_network=host_network) for container in containers]) if containers else None


def _defaulted(container: Container, *, host_network: bool) -> Container:
    """Copy limits to missing requests. In the host network, ports become host ports.

    Source: core/v1/defaults.go ``SetDefaults_Pod``, ``defaultHostNetworkPorts``.
    """
    resources = container.resources
    if resources is not None:
        limits, requests = _rounded(resources.limits), _rounded(resources.requests)
        if limits is not None:
            # Each limit without a request becomes the request of its resource.
            requests = {**limits, **(requests or {})}
        resources = ResourceRequirements(requests=requests, limits=limits)
    ports = container.ports
    if host_network and ports:
        ports = tuple(port if port.host_port else replace(port, host_port=port.container_port) for port in ports)
    return replace(container, resources=resources, ports=ports)


def _defaulted_volume(volume: Volume) -> Volume:
    """Source: core/v1/zz_generated.defaults.go ``SetObjectDefaults_Pod``."""
    disk = volume.azure_disk
    if disk is None or disk.kind is not None:
        return volume
    return replace(volume, azure_disk=replace(disk, kind="Shared"))


def _rounded(amounts: Mapping[str, WrittenQuantity] | None) -> dict[str, WrittenQuantity] | None:
    """Round each amount up to thousandths. Source: defaults.go ``SetDefaults_ResourceList``."""
    return None if amounts is None else {name: to_milli(amount) for name, amount in amounts.items()}


def _pod_level(
    written: ResourceRequirements,
    containers: tuple[Container, ...],
    init_containers: tuple[Container, ...],
    version: KubernetesVersion,
) -> ResourceRequirements:
    """Fill in pod-level requests from the containers, then from pod-level limits.

    The huge pages of containers first become a pod-level limit. The pod-level request follows from this limit.

    Source: pkg/api/pod/util.go ``DefaultPodLevelResources``; core/v1/defaults.go ``defaultHugePagePodLimits``.
    """
    limits, requests = _rounded(written.limits), _rounded(written.requests)
    if not limits and not requests:
        return ResourceRequirements(requests=requests, limits=limits)
    limits, requests = dict(limits or {}), dict(requests or {})
    total_limits = container_requests(containers, init_containers, _limits)
    for name, nanos in total_limits.items():
        if name.startswith(HUGE_PAGES_PREFIX) and name not in requests:
            limits.setdefault(name, f"{nanos}n")
    if not limits and not gates.FILLS_POD_LEVEL_REQUESTS.holds(version):
        return ResourceRequirements(requests=requests)
    for name, nanos in container_requests(containers, init_containers).items():
        if pod_level_resource(name) and not name.startswith(HUGE_PAGES_PREFIX):
            requests.setdefault(name, f"{nanos}n")
    for name, limit in limits.items():
        if pod_level_resource(name):
            requests.setdefault(name, limit)
    if gates.FILLS_POD_LEVEL_REQUESTS.holds(version):
        limits = _limits_of_all((*containers, *init_containers), total_limits, requests) | limits
    return ResourceRequirements(requests=requests or None, limits=limits or None)


def _limits_of_all(
    containers: Sequence[Container], total: Mapping[str, int], requests: Mapping[str, WrittenQuantity]
) -> dict[str, WrittenQuantity]:
    """Return the default pod-level limit of each resource limited by all containers.

    A limit is the total of the containers' limits, or the pod-level request if the request is higher. Resources without
    a pod-level request are left out.

    Source: pkg/api/pod/util.go ``defaultPodLevelLimits``.

    Args:
        containers: All containers of the pod, with init containers.
        total: The total of the containers' limits, in billionths of the unit.
        requests: The pod-level requests.
    """
    sums = {
        name: f"{nanos}n"
        for name, nanos in total.items()
        if name in requests
        and pod_level_resource(name)
        and all(name in (_limits(container) or ()) for container in containers)
    }
    return {name: requests[name] if compare_amounts(requests, sums, name) > 0 else sums[name] for name in sums}


def _limits(container: Container) -> ResourceList:
    return container.resources.limits if container.resources else None


def _merged_affinity(affinity: Affinity | None, labels: Mapping[str, str]) -> Affinity | None:
    """Source: core/pod/strategy.go ``mutatePodAffinity``."""
    if affinity is None:
        return None
    return replace(
        affinity,
        pod_affinity=_merged_terms(affinity.pod_affinity, labels),
        pod_anti_affinity=_merged_terms(affinity.pod_anti_affinity, labels),
    )


def _merged_terms(affinity: PodAffinity | None, labels: Mapping[str, str]) -> PodAffinity | None:
    """Source: core/pod/strategy.go ``mutatePodAffinity``."""
    if affinity is None or not (affinity.required or affinity.preferred):
        return affinity
    required = tuple(merged_term(term, labels) for term in affinity.required or ())
    preferred = tuple(
        replace(term, pod_affinity_term=merged_term(term.pod_affinity_term, labels)) if term.pod_affinity_term else term
        for term in affinity.preferred or ()
    )
    return PodAffinity(required=required or None, preferred=preferred or None)


def merged_term(term: PodAffinityTerm, labels: Mapping[str, str]) -> PodAffinityTerm:
    """Merge label keys into the term's selector. Source: strategy.go ``applyMatchLabelKeysAndMismatchLabelKeys``."""
    selector = term.label_selector
    if selector is None:
        return term
    merged = [
        LabelSelectorRequirement(key=key, operator=operator, values=(labels[key],))
        for operator, keys in ((IN, term.match_label_keys), (NOT_IN, term.mismatch_label_keys))
        for key in keys or ()
        if key in labels
    ]
    if not merged:
        return term
    return replace(
        term,
        label_selector=LabelSelector(
            match_labels=selector.match_labels, match_expressions=(*(selector.match_expressions or ()), *merged)
        ),
    )
