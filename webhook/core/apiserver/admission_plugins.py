"""kube-apiserver's admission plugins: changes and refusals of new pods.

    LimitRanger -> Priority -> DefaultTolerationSeconds -> RuntimeClass     upstream's order

Webhooks run after these plugins, then quota. Plugins that are off by default are left out. Unknown LimitRanges or
classes cause no refusal.

Source: k8s.io/kubernetes pkg/kubeapiserver/options/plugins.go ``AllOrderedPlugins``, and plugin/pkg/admission.
"""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.admission_objects import (
    OF_CONTAINERS,
    OF_PODS,
    PREEMPTS,
    Amounts,
    LimitRange,
    LimitRangeItem,
    PriorityClass,
    RuntimeClass,
)
from webhook.core.api.pod_requests import container_requests
from webhook.core.api.resources import compare_amounts, pod_level_resource
from webhook.core.api.types import EXISTS, Container, Pod, ResourceRequirements, Toleration, WrittenQuantity
from webhook.core.api.version import KubernetesVersion
from webhook.core.api.well_known import NO_EXECUTE, TAINT_NOT_READY, TAINT_UNREACHABLE
from webhook.core.apiserver.pod_defaults import prepare_for_create, with_decoding_defaults
from webhook.core.budget import check_time

LIMIT_RANGE = "LimitRange"
PRIORITY_CLASS = "PriorityClass"
RUNTIME_CLASS = "RuntimeClass"

_TOLERATION_SECONDS = 300  # --default-not-ready-toleration-seconds
_LOST_NODE_TOLERATIONS = tuple(
    Toleration(key=key, operator=EXISTS, effect=NO_EXECUTE, toleration_seconds=_TOLERATION_SECONDS)
    for key in (TAINT_NOT_READY, TAINT_UNREACHABLE)
)


class AdmissionFacts(Struct, frozen=True):
    """The objects read by the plugins for a pod.

    Attributes:
        limit_ranges: The LimitRanges of the pod's namespace.
        priority_class: The pod's PriorityClass, or the default PriorityClass.
        runtime_class: The pod's RuntimeClass. None if the pod names none.
        unknown: The kinds of objects that the pod needs and the index lacks. The plugins ignore them.
        missing: The kinds of objects named by the pod that do not exist in the cluster.
    """

    limit_ranges: tuple[LimitRange, ...] = ()
    priority_class: PriorityClass | None = None
    runtime_class: RuntimeClass | None = None
    unknown: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def as_created(pod: Pod, version: KubernetesVersion, facts: AdmissionFacts | None = None) -> Pod:
    """Return the pod as the scheduler gets it after a create request.

    Invalid fields stay unchanged. Without ``facts`` no admission plugin runs.

    Source: core/v1/defaults.go ``SetDefaults_Pod``; core/pod/strategy.go ``PrepareForCreate``.
    """
    pod = with_decoding_defaults(pod, version)
    return prepare_for_create(pod if facts is None else apply_plugins(pod, facts), version)


def apply_plugins(pod: Pod, facts: AdmissionFacts) -> Pod:
    """Apply the mutating admission plugins to a pod.

    The pod must have kube-apiserver's defaults. Nothing is refused here, see `plugin_refusals`. In a conflict, the
    class sets priority, preemption policy and overhead, but the pod's own nodeSelector wins.

    Source: plugin/pkg/admission limitranger/admission.go ``Admit``, and ``Admit`` of priority, defaulttolerationseconds
        and runtimeclass.
    """
    spec = pod.pod_spec
    limits, requests = _default_resources(facts.limit_ranges)
    if limits or requests:
        spec = replace(
            spec,
            containers=_with_resources(spec.containers, limits, requests),
            init_containers=_with_resources(spec.init_containers, limits, requests),
        )
    if PRIORITY_CLASS not in facts.unknown:
        known = facts.priority_class
        spec = replace(
            spec,
            priority_class_name=spec.priority_class_name or (known.meta.name if known else None),
            priority=known.value if known else 0,
            preemption_policy=known.preemption_policy if known else PREEMPTS,
        )
    spec = replace(spec, tolerations=_with_default_tolerations(spec.tolerations or ()))
    runtime = facts.runtime_class
    if runtime is not None and runtime.overhead is not None:
        spec = replace(spec, overhead=runtime.overhead.pod_fixed)
    if runtime is not None and runtime.scheduling is not None:
        scheduling = runtime.scheduling
        spec = replace(
            spec,
            node_selector={**(scheduling.node_selector or {}), **(spec.node_selector or {})} or None,
            tolerations=_merged((*(spec.tolerations or ()), *(scheduling.tolerations or ()))),
        )
    return replace(pod, spec=spec)


def _default_resources(ranges: Sequence[LimitRange]) -> tuple[Amounts, Amounts]:
    """Return the default limits and requests. The last item of a LimitRange wins.

    Source: limitranger/admission.go ``defaultContainerResourceRequirements``.
    """
    limits, requests = dict[str, WrittenQuantity](), dict[str, WrittenQuantity]()
    for limit_range in reversed(ranges):
        check_time()
        for item in limit_range.items_of_type(OF_CONTAINERS):
            limits |= item.limits
            requests |= item.requests
    return limits, requests


def limit_ranges_disagree(ranges: Sequence[LimitRange]) -> bool:
    """Whether two LimitRanges set different defaults. Upstream applies them in random order."""
    known: dict[tuple[int, str], object] = {}
    return any(
        known.setdefault((kind, name), amount) != amount
        for limit_range in ranges
        for kind, given in enumerate(_default_resources((limit_range,)))
        for name, amount in given.items()
    )


def _with_resources(
    containers: tuple[Container, ...] | None, limits: Amounts, requests: Amounts
) -> tuple[Container, ...] | None:
    """Source: limitranger/admission.go ``mergeContainerResources``."""
    if containers is None:
        return None
    filled = []
    for container in containers:
        own = container.resources or ResourceRequirements()
        resources = ResourceRequirements(
            requests={**requests, **(own.requests or {})}, limits={**limits, **(own.limits or {})}
        )
        filled.append(replace(container, resources=resources))
    return tuple(filled)


def _with_default_tolerations(tolerations: tuple[Toleration, ...]) -> tuple[Toleration, ...]:
    """Source: defaulttolerationseconds/admission.go ``Admit``."""
    if not tolerations:
        return _LOST_NODE_TOLERATIONS
    lacking = (
        default
        for default in _LOST_NODE_TOLERATIONS
        if not any(
            (toleration.key or default.key) == default.key and (toleration.effect or NO_EXECUTE) == NO_EXECUTE
            for toleration in tolerations
        )
    )
    return (*tolerations, *lacking)


def _merged(every: Sequence[Toleration]) -> tuple[Toleration, ...]:
    """Drop each toleration included in another toleration. Source: tolerations.go ``MergeTolerations``."""
    kept: list[Toleration] = []
    for number, one in enumerate(every):
        later = (other for other in every[number + 1 :] if _plain(other) != _plain(one))
        if not any(_includes(other, one) for other in kept) and not any(_includes(other, one) for other in later):
            kept.append(one)
    return tuple(kept)


def _plain(one: Toleration) -> tuple[str, str, str, str, int | None]:
    """Return a toleration's fields as a tuple for comparison. Absent fields become "", as in Go."""
    return one.key or "", one.operator or "", one.value or "", one.effect or "", one.toleration_seconds


def _includes(one: Toleration, other: Toleration) -> bool:
    """Whether ``one`` tolerates every taint tolerated by ``other``. Source: tolerations.go ``isSuperset``."""
    key, operator, value, effect, seconds = _plain(one)
    other_key, other_operator, other_value, other_effect, other_seconds = _plain(other)
    if _plain(one) == _plain(other):
        return True
    if other_key != key and (key or operator != EXISTS):
        return False
    if effect and other_effect != effect:
        return False
    if effect == NO_EXECUTE and seconds is not None and (other_seconds is None or other_seconds > seconds):
        return False
    return operator == EXISTS or (operator in ("", "Equal") and other_operator == "Equal" and other_value == value)


_NANO = 10**9  # in the unit of `_number`


def plugin_refusals(pod: Pod, facts: AdmissionFacts, version: KubernetesVersion) -> tuple[str, ...]:
    """Return the messages of the admission plugins that refuse the pod.

    Empty if no plugin is known to refuse the pod. Messages are upstream's, except that quantities stay as written.

    Args:
        pod: The pod as sent, with kube-apiserver's defaults.
        facts: The cluster's objects for the admission plugins.
        version: The Kubernetes version.

    Source: plugin/pkg/admission limitranger/admission.go ``Validate``, and the same of priority and runtimeclass.
    """
    early = (*_priority_refusals(pod, facts), *_runtime_refusals(pod, facts))
    return early or tuple(_range_refusals(prepare_for_create(apply_plugins(pod, facts), version), facts.limit_ranges))


def _priority_refusals(pod: Pod, facts: AdmissionFacts) -> Iterator[str]:
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


def _runtime_refusals(pod: Pod, facts: AdmissionFacts) -> Iterator[str]:
    """Source: runtimeclass/admission.go ``prepareObjects``, ``setOverhead``, ``setScheduling``."""
    if RUNTIME_CLASS in facts.missing:
        yield f'pod rejected: RuntimeClass "{pod.pod_spec.runtime_class_name}" not found'
    runtime = facts.runtime_class or (None if RUNTIME_CLASS in facts.unknown else RuntimeClass())
    if runtime is None:
        return
    overhead, fixed = pod.pod_spec.overhead, runtime.overhead.pod_fixed if runtime.overhead else None
    if overhead and runtime.overhead is not None and not _same(overhead, fixed or {}):
        yield "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
    chosen = pod.pod_spec.node_selector or {}
    for key, value in ((runtime.scheduling and runtime.scheduling.node_selector) or {}).items():
        if chosen.get(key, value) != value:
            yield (
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {chosen[key]}"
            )
    if overhead and runtime.overhead is None:
        yield "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


def _same(one: Amounts, other: Amounts) -> bool:
    return one.keys() == other.keys() and not any(compare_amounts(one, other, name) for name in one)


def _range_refusals(pod: Pod, ranges: Sequence[LimitRange]) -> Iterator[str]:
    """Source: limitranger/admission.go ``PodValidateLimitFunc``."""
    spec = pod.pod_spec
    every = (*(spec.containers or ()), *(spec.init_containers or ()))
    for item in (item for limit_range in ranges for item in limit_range.items_of_type(OF_CONTAINERS)):
        for resources in (container.resources or ResourceRequirements() for container in every):
            yield from _item_refusals(item, resources.requests or {}, resources.limits or {})
    of_pod = [item for limit_range in ranges for item in limit_range.items_of_type(OF_PODS)]
    if of_pod:
        whole = spec.resources or ResourceRequirements()
        requests = _total_resources(pod, None, whole.requests or {})
        limits = _total_resources(pod, lambda one: one.resources.limits if one.resources else None, whole.limits or {})
        for item in of_pod:
            yield from _item_refusals(item, requests, limits)


def _total_resources(pod: Pod, of: Callable[[Container], Amounts | None] | None, pod_level: Amounts) -> Amounts:
    """Return the resources of all containers together, or the pod-level resources.

    Source: limitranger/admission.go ``podRequests``.
    """
    spec = pod.pod_spec
    sums = container_requests(spec.containers, spec.init_containers, of)
    whole = {name: amount for name, amount in pod_level.items() if pod_level_resource(name)}
    # In people's style: thousandths or whole units.
    return {
        name: f"{-(-nanos // (_NANO // 1000))}m" if nanos % _NANO else str(nanos // _NANO)
        for name, nanos in sums.items()
    } | whole


def _item_refusals(item: LimitRangeItem, requests: Amounts, limits: Amounts) -> Iterator[str]:
    """List violations of a LimitRange item, sorted. Upstream's order is random.

    Source: limitranger/admission.go ``minConstraint``, ``maxConstraint``.
    """
    for name, least in sorted((item.min or {}).items()):
        bound_text, bound = f"minimum {name} usage per {item.type} is {least}", _number({name: least}, name)
        if name not in requests:
            yield f"{bound_text}.  No request is specified"
        elif _number(requests, name) < bound:
            yield f"{bound_text}, but request is {requests[name]}"
        elif name in limits and _number(limits, name) < bound:
            yield f"{bound_text}, but limit is {limits[name]}"
    for name, most in sorted((item.max or {}).items()):
        bound_text, bound = f"maximum {name} usage per {item.type} is {most}", _number({name: most}, name)
        if name not in limits:
            yield f"{bound_text}.  No limit is specified"
        elif _number(limits, name) > bound:
            yield f"{bound_text}, but limit is {limits[name]}"
        elif _number(requests, name) > bound:
            yield f"{bound_text}, but request is {requests[name]}"
    for name, ratio in sorted((item.max_limit_request_ratio or {}).items()):
        bound_text = f"{name} max limit to request ratio per {item.type} is {ratio}"
        yield from _ratio_refusals(
            bound_text, _number({name: ratio}, name), _number(requests, name), _number(limits, name)
        )


def _ratio_refusals(bound_text: str, ratio: int, request: int, limit: int) -> Iterator[str]:
    """Source: limitranger/admission.go ``limitRequestRatioConstraint``."""
    if not request:
        yield f"{bound_text}, but no request is specified or request is 0"
    elif not limit:
        yield f"{bound_text}, but no limit is specified or limit is 0"
    elif limit / request > ratio / _NANO:
        yield f"{bound_text}, but provided ratio is {limit / request:f}"


def _number(amounts: Amounts, name: str) -> int:
    """Return a resource's amount in billionths (10**-9). 0 if absent."""
    return compare_amounts(amounts, {}, name)
