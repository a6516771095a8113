"""Why kube-apiserver's own admission plugins refuse a pod that is created, as far as what they read is known.

Source: k8s.io/kubernetes plugin/pkg/admission limitranger, priority, runtimeclass admission.go.
"""

from collections.abc import Callable, Iterator, Sequence

from webhook.core.api.admission_objects import (
    OF_CONTAINERS,
    OF_PODS,
    PREEMPTS,
    Amounts,
    LimitRange,
    LimitRangeItem,
    RuntimeClass,
)
from webhook.core.api.resources import compare_amounts, container_requests, pod_level_resource
from webhook.core.api.types import Container, Pod, ResourceRequirements
from webhook.core.api.version import KubernetesVersion
from webhook.core.apiserver.admission_plugins import PRIORITY_CLASS, RUNTIME_CLASS, AdmissionFacts, admitted
from webhook.core.apiserver.pod_defaults import prepared

_ONE = 10**9  # in the unit of `_number`


def refusals(pod: Pod, facts: AdmissionFacts, version: KubernetesVersion) -> tuple[str, ...]:
    """Why the plugins refuse the pod; empty where they do not, as far as is known.

    Shape: ``pod`` is as it is posted, with kube-apiserver's defaults. Each text is one of upstream's; what follows of
    resources is told as written, not in the canonical form of quantities.
    Source: plugin/pkg/admission limitranger/admission.go ``Validate``, and the same of priority and runtimeclass.
    """
    early = (*_of_priority(pod, facts), *_of_runtime(pod, facts))
    return early or tuple(_of_ranges(prepared(admitted(pod, facts), version), facts.limit_ranges))


def _of_priority(pod: Pod, facts: AdmissionFacts) -> Iterator[str]:
    """Source: priority/admission.go ``admitPod``."""
    spec, known = pod.pod_spec, facts.priority_class
    if PRIORITY_CLASS in facts.missing:
        yield f"no PriorityClass with name {spec.priority_class_name} was found"
    if PRIORITY_CLASS in facts.unknown:
        return
    priority, policy = (known.value, known.preemption_policy) if known else (0, PREEMPTS)
    computed = "priority admission controller computed {} from the given PriorityClass name"
    if spec.priority not in (None, priority):
        yield (
            f"the integer value of priority ({spec.priority}) must not be provided in pod spec; "
            + computed.format(priority)
        )
    elif spec.preemption_policy not in (None, policy):
        yield (
            f"the string value of PreemptionPolicy ({spec.preemption_policy}) must not be provided in pod spec; "
            + computed.format(policy)
        )


def _of_runtime(pod: Pod, facts: AdmissionFacts) -> Iterator[str]:
    """Source: runtimeclass/admission.go ``prepareObjects``, ``setOverhead``, ``setScheduling``."""
    if RUNTIME_CLASS in facts.missing:
        yield f'pod rejected: RuntimeClass "{pod.pod_spec.runtime_class_name}" not found'
    runtime = facts.runtime_class or (None if RUNTIME_CLASS in facts.unknown else RuntimeClass())
    if runtime is None:
        return
    has, fixed = pod.pod_spec.overhead, runtime.overhead.pod_fixed if runtime.overhead else None
    if has and runtime.overhead is not None and not _same(has, fixed or {}):
        yield "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
    chosen = pod.pod_spec.node_selector or {}
    for key, value in ((runtime.scheduling and runtime.scheduling.node_selector) or {}).items():
        if chosen.get(key, value) != value:
            yield (
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {chosen[key]}"
            )
    if has and runtime.overhead is None:
        yield "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


def _same(one: Amounts, other: Amounts) -> bool:
    return one.keys() == other.keys() and not any(compare_amounts(one, other, name) for name in one)


def _of_ranges(pod: Pod, ranges: Sequence[LimitRange]) -> Iterator[str]:
    """Source: limitranger/admission.go ``PodValidateLimitFunc``."""
    spec = pod.pod_spec
    every = (*(spec.containers or ()), *(spec.init_containers or ()))
    for item in (item for each in ranges for item in each.items_of(OF_CONTAINERS)):
        for has in (each.resources or ResourceRequirements() for each in every):
            yield from _beyond(item, has.requests or {}, has.limits or {})
    of_pod = [item for each in ranges for item in each.items_of(OF_PODS)]
    if of_pod:
        whole = spec.resources or ResourceRequirements()
        requests = _total(pod, None, whole.requests or {})
        limits = _total(pod, lambda each: each.resources.limits if each.resources else None, whole.limits or {})
        for item in of_pod:
            yield from _beyond(item, requests, limits)


def _total(pod: Pod, of: Callable[[Container], Amounts | None] | None, pod_level: Amounts) -> Amounts:
    """What all containers have, or the pod as a whole. Source: limitranger/admission.go ``podRequests``."""
    spec = pod.pod_spec
    sums = container_requests(spec.containers, spec.init_containers, of)
    whole = {name: amount for name, amount in pod_level.items() if pod_level_resource(name)}
    # As people write it: in thousandths, or in whole units.
    return {
        name: f"{-(-nanos // (_ONE // 1000))}m" if nanos % _ONE else str(nanos // _ONE) for name, nanos in sums.items()
    } | whole


def _beyond(item: LimitRangeItem, requests: Amounts, limits: Amounts) -> Iterator[str]:
    """What exceeds one item of a LimitRange; upstream names the resources in a random order.

    Source: limitranger/admission.go ``minConstraint``, ``maxConstraint``.
    """
    for name, least in sorted((item.min or {}).items()):
        said, bound = f"minimum {name} usage per {item.type} is {least}", _number({name: least}, name)
        if name not in requests:
            yield f"{said}.  No request is specified"
        elif _number(requests, name) < bound:
            yield f"{said}, but request is {requests[name]}"
        elif name in limits and _number(limits, name) < bound:
            yield f"{said}, but limit is {limits[name]}"
    for name, most in sorted((item.max or {}).items()):
        said, bound = f"maximum {name} usage per {item.type} is {most}", _number({name: most}, name)
        if name not in limits:
            yield f"{said}.  No limit is specified"
        elif _number(limits, name) > bound:
            yield f"{said}, but limit is {limits[name]}"
        elif _number(requests, name) > bound:
            yield f"{said}, but request is {requests[name]}"
    for name, ratio in sorted((item.max_limit_request_ratio or {}).items()):
        said = f"{name} max limit to request ratio per {item.type} is {ratio}"
        yield from _wider(said, _number({name: ratio}, name), _number(requests, name), _number(limits, name))


def _wider(said: str, ratio: int, request: int, limit: int) -> Iterator[str]:
    """Source: limitranger/admission.go ``limitRequestRatioConstraint``."""
    if not request:
        yield f"{said}, but no request is specified or request is 0"
    elif not limit:
        yield f"{said}, but no limit is specified or limit is 0"
    elif limit / request > ratio / _ONE:
        yield f"{said}, but provided ratio is {limit / request:f}"


def _number(amounts: Amounts, name: str) -> int:
    """The amount, 0 where it is absent. Unit: 10**-9."""
    return compare_amounts(amounts, {}, name)
