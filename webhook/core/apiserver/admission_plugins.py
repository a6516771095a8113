"""What kube-apiserver's own admission plugins make of a pod that is created.

    LimitRanger -> Priority -> DefaultTolerationSeconds -> RuntimeClass     upstream's order

Webhooks come after them, and quota at last; plugins that are off by default are not looked at. Why a pod is refused is
in `admission_refusals`.

Source: k8s.io/kubernetes pkg/kubeapiserver/options/plugins.go ``AllOrderedPlugins``, and plugin/pkg/admission.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.admission_objects import (
    OF_CONTAINERS,
    PREEMPTS,
    Amounts,
    LimitRange,
    PriorityClass,
    RuntimeClass,
)
from webhook.core.api.selectors import EXISTS
from webhook.core.api.types import Container, Pod, ResourceRequirements, Toleration, WrittenQuantity
from webhook.core.api.well_known import NO_EXECUTE, TAINT_NOT_READY, TAINT_UNREACHABLE
from webhook.core.budget import check_time

LIMIT_RANGE = "LimitRange"
PRIORITY_CLASS = "PriorityClass"
RUNTIME_CLASS = "RuntimeClass"

_STAYS_SECONDS = 300  # --default-not-ready-toleration-seconds
_OF_GONE_NODES = tuple(
    Toleration(key=key, operator=EXISTS, effect=NO_EXECUTE, toleration_seconds=_STAYS_SECONDS)
    for key in (TAINT_NOT_READY, TAINT_UNREACHABLE)
)


class AdmissionFacts(Struct, frozen=True):
    """What the plugins read for pods of one namespace, with one RuntimeClass and one PriorityClass.

    Shape: ``priority_class`` is the default one for pods that name none, ``runtime_class`` None for those.
    ``unknown`` has the kinds that the pod depends on, and that are not known: then nothing comes of them. ``missing``
    are those of them of which the pod names an object that does not exist, as far as the cluster is known.
    """

    limit_ranges: tuple[LimitRange, ...] = ()
    priority_class: PriorityClass | None = None
    runtime_class: RuntimeClass | None = None
    unknown: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def admitted(pod: Pod, facts: AdmissionFacts) -> Pod:
    """The pod after the plugins that change it.

    Shape: the pod has kube-apiserver's defaults already. What would be refused stays as it is.
    Source: plugin/pkg/admission limitranger/admission.go ``Admit``, and the same of priority, defaulttolerationseconds
    and runtimeclass.
    """
    spec = pod.pod_spec
    limits, requests = _given(facts.limit_ranges)
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


def _given(ranges: Sequence[LimitRange]) -> tuple[Amounts, Amounts]:
    """Limits and requests for containers that have none: within one LimitRange its last item counts.

    Source: limitranger/admission.go ``defaultContainerResourceRequirements``.
    """
    limits, requests = dict[str, WrittenQuantity](), dict[str, WrittenQuantity]()
    for each in reversed(ranges):
        check_time()
        for item in each.items_of(OF_CONTAINERS):
            limits |= item.limits
            requests |= item.requests
    return limits, requests


def disagree(ranges: Sequence[LimitRange]) -> bool:
    """Whether two LimitRanges give different amounts of a resource: upstream takes them in a random order."""
    known: dict[tuple[int, str], object] = {}
    return any(
        known.setdefault((kind, name), amount) != amount
        for each in ranges
        for kind, given in enumerate(_given((each,)))
        for name, amount in given.items()
    )


def _with_resources(
    containers: tuple[Container, ...] | None, limits: Amounts, requests: Amounts
) -> tuple[Container, ...] | None:
    """Source: limitranger/admission.go ``mergeContainerResources``."""
    return None if containers is None else tuple(_filled(each, limits, requests) for each in containers)


def _filled(container: Container, limits: Amounts, requests: Amounts) -> Container:
    has = container.resources or ResourceRequirements()
    filled = ResourceRequirements(
        requests={**requests, **(has.requests or {})}, limits={**limits, **(has.limits or {})}
    )
    return replace(container, resources=filled)


def _with_default_tolerations(tolerations: tuple[Toleration, ...]) -> tuple[Toleration, ...]:
    """Source: defaulttolerationseconds/admission.go ``Admit``."""
    if not tolerations:
        return _OF_GONE_NODES
    lacking = (
        default
        for default in _OF_GONE_NODES
        if not any(
            (each.key or default.key) == default.key and (each.effect or NO_EXECUTE) == NO_EXECUTE
            for each in tolerations
        )
    )
    return (*tolerations, *lacking)


def _merged(every: Sequence[Toleration]) -> tuple[Toleration, ...]:
    """The tolerations without those that another one includes. Source: tolerations.go ``MergeTolerations``."""
    kept: list[Toleration] = []
    for number, each in enumerate(every):
        later = (other for other in every[number + 1 :] if _plain(other) != _plain(each))
        if not any(_includes(other, each) for other in kept) and not any(_includes(other, each) for other in later):
            kept.append(each)
    return tuple(kept)


def _plain(each: Toleration) -> tuple[str, str, str, str, int | None]:
    """A toleration as Go compares it: absent text is empty text."""
    return each.key or "", each.operator or "", each.value or "", each.effect or "", each.toleration_seconds


def _includes(one: Toleration, other: Toleration) -> bool:
    """Whether one toleration tolerates whatever the other does. Source: tolerations.go ``isSuperset``."""
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
