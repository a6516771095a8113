"""Evaluate recorded admission cases.

The input is a submitted pod with LimitRanges, PriorityClasses and RuntimeClasses. The result is the stored pod.
"""

from collections.abc import Mapping

import msgspec

from webhook.conformance.validate_cases import text_of
from webhook.core.api.quantity import parse_quantity
from webhook.core.api.types import Pod, PodSpec, TypeMeta, WrittenQuantity
from webhook.core.api.version import RECORDED, KubernetesVersion
from webhook.core.decoders import decoder_of
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.pod_admission import as_admitted, refused_by_admission
from webhook.core.index.readers import decode_object

_LISTS = {
    "limitRanges": TypeMeta(api_version="v1", kind="LimitRange"),
    "priorityClasses": TypeMeta(api_version="scheduling.k8s.io/v1", kind="PriorityClass"),
    "runtimeClasses": TypeMeta(api_version="node.k8s.io/v1", kind="RuntimeClass"),
}
_POD = decoder_of(Pod)
_RAWS = decoder_of(list[msgspec.Raw])


def decide_admit(case: Mapping[str, bytes], version: KubernetesVersion = RECORDED) -> Mapping[str, object]:
    """Apply kube-apiserver's admission plugins to the pod, or report their refusal. Amounts are in thousandths.

    Raises:
        msgspec.ValidationError: An object does not fit the API's types.
    """
    index = ClusterIndex(version)
    for field, kind in _LISTS.items():
        for raw in _RAWS.decode(case.get(field, b"[]")):
            value = decode_object(raw, kind)
            if value is not None:
                index.apply("ADDED", value)
    pod = _POD.decode(case["create"])
    id_, refused = text_of(case.get("id")), refused_by_admission(pod, index, version)
    if refused:
        return {"id": id_, "refused": True, "text": f'pods "{pod.meta.name}" is forbidden: {refused[0]}'}
    return {"id": id_, "refused": False, **as_recorded(as_admitted(pod, index, version).pod_spec)}


def as_recorded(spec: PodSpec) -> dict[str, object]:
    """Return the pod fields that admission plugins can set, as JSON.

    The form is that of the recorded test cases. Resource amounts are in thousandths, for example milli-CPU.
    """
    every = (*(spec.init_containers or ()), *(spec.containers or ()))
    return {
        "requests": {one.name: _amounts(one.resources.requests if one.resources else None) for one in every},
        "limits": {one.name: _amounts(one.resources.limits if one.resources else None) for one in every},
        "podRequests": _amounts(spec.resources.requests if spec.resources else None) or None,
        "overhead": _amounts(spec.overhead) or None,
        "nodeSelector": spec.node_selector,
        "tolerations": [
            {name: value for name, value in msgspec.to_builtins(toleration).items() if value not in (None, "")}
            for toleration in spec.tolerations or ()
        ],
        "priority": spec.priority,
        "priorityClassName": spec.priority_class_name,
        "preemptionPolicy": spec.preemption_policy,
    }


def _amounts(written: Mapping[str, WrittenQuantity] | None) -> dict[str, int]:
    return {name: parse_quantity(amount).milli for name, amount in (written or {}).items()}
