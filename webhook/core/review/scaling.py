"""A write of a workload's scale, as an update of the workload: the request has the replicas, the cluster all the rest.

Such a request comes from people (``kubectl scale``) and from autoscalers, which read no warnings. It is warned of at
most, and only by rules whose answer depends on how many pods there are.

Source: k8s.io/api autoscaling/v1/types.go ``Scale``; pkg/registry/apps/deployment/storage/storage.go ``ScaleREST``.
"""

from collections.abc import Iterable

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from webhook.core.api.types import Int32
from webhook.core.api.well_known import CONTROLLER_MANAGER, KUBE_SYSTEM_ACCOUNT
from webhook.core.decoders import decoder_of
from webhook.core.index.owners import as_json
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.policy.policy import Mode
from webhook.core.review.decision import AdmissionRequest
from webhook.core.review.judging import Judged
from webhook.core.rules.rule_set import OF_REPLICAS
from webhook.core.workloads.kinds import native_version, scaled_kind


class _ScaleSpec(Struct, frozen=True):
    replicas: Int32 = 0


class _Scale(Struct, frozen=True):
    spec: _ScaleSpec = _ScaleSpec()


_DECODER = decoder_of(_Scale)


def as_update(request: AdmissionRequest, index: ReadOnlyIndex | None) -> AdmissionRequest | None:
    """The request as an update of the workload; None where nobody reads warnings, asks for more pods, or knows it.

    Shape: the object is as the cluster had it, but for the replicas; there is no old one.
    """
    kind = scaled_kind(request.resource_group, request.resource) if request.sub_resource == "scale" else None
    before, after = _replicas(request.old_object), _replicas(request.object)
    by_autoscaler = request.user == CONTROLLER_MANAGER or request.user.startswith(KUBE_SYSTEM_ACCOUNT)
    if index is None or kind is None or by_autoscaler or before is None or after is None or after <= before:
        return None
    owner = index.owners.get(native_version(kind), kind[1], request.namespace, request.name)
    written = None if owner is None else as_json(owner, after)
    if written is None:
        return None
    group, version = kind[0], native_version(kind).rpartition("/")[2]
    return replace(request, group=group, version=version, kind=kind[1], object=written, old_object=None)


def _replicas(raw: bytes | Raw | None) -> int | None:
    try:
        return None if raw is None else _DECODER.decode(raw).spec.replicas
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def warned(judged: Iterable[Judged]) -> tuple[Judged, ...]:
    """What may be said of a scale: nothing of the rest of the workload, and no denial."""
    return tuple(replace(each, mode=each.mode.capped(Mode.WARN)) for each in judged if each.finding.rule in OF_REPLICAS)
