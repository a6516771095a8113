"""From the JSON of one API object to the value that the index keeps of it.

Only what a verdict depends on survives: containers lose their environment, annotations all but a few keys.
"""

from collections.abc import Callable, Mapping

import msgspec
from msgspec import Struct

from webhook.core.decoding import DecodeError
from webhook.core.kinds import has_template, read_workload
from webhook.core.model import Int32, LabelSelector, Named, Node, ObjectMeta, Pod, Service, TypeMeta
from webhook.core.policy import EmbeddedKind

SKIP_ANNOTATION = "evenspread.io/skip"
INJECTED_ANNOTATION = "evenspread.io/injected"
MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
# The controllers above a ReplicaSet write here how many replicas they want over all their ReplicaSets.
DESIRED_REPLICAS_ANNOTATIONS = ("deployment.kubernetes.io/desired-replicas", "rollout.argoproj.io/desired-replicas")
_KEPT_ANNOTATIONS = frozenset(
    {SKIP_ANNOTATION, INJECTED_ANNOTATION, MIRROR_ANNOTATION, "evenspread.io/exempt", "evenspread.io/fallback"}
).union(DESIRED_REPLICAS_ANNOTATIONS)

Raw = bytes | msgspec.Raw


class Namespace(Named, frozen=True):
    """A namespace: its labels choose overrides and ceilings."""


class Owner(Struct, frozen=True, kw_only=True):
    """A controller of pods, or of the controllers of pods.

    Shape: ``replicas`` is None where the kind has none or does not say; of a Job, the pods that it runs at once.
    """

    api_version: str
    kind: str
    meta: ObjectMeta
    replicas: int | None = None
    selector: LabelSelector | None = None


class ScaleTarget(Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    api_version: str = ""
    kind: str = ""
    name: str = ""


class AutoscalerSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    scale_target_ref: ScaleTarget = ScaleTarget()
    max_replicas: Int32 = 0


class Autoscaler(Named, frozen=True):
    """A HorizontalPodAutoscaler, of either version."""

    spec: AutoscalerSpec = AutoscalerSpec()


ApiObject = Node | Pod | Namespace | Service | Owner | Autoscaler


class _ScaledSpec(Struct, frozen=True, kw_only=True):
    replicas: Int32 | None = None
    selector: LabelSelector | None = None


class _Scaled(Named, frozen=True):
    spec: _ScaledSpec = _ScaledSpec()


class _ReplicationControllerSpec(Struct, frozen=True, kw_only=True):
    replicas: Int32 | None = None
    selector: Mapping[str, str] | None = None


class _ReplicationController(Named, frozen=True):
    spec: _ReplicationControllerSpec = _ReplicationControllerSpec()


class _JobSpec(Struct, frozen=True, kw_only=True):
    parallelism: Int32 | None = None
    completions: Int32 | None = None
    selector: LabelSelector | None = None


class _Job(Named, frozen=True):
    spec: _JobSpec = _JobSpec()


_NODE = msgspec.json.Decoder(Node)
_POD = msgspec.json.Decoder(Pod)
_NAMESPACE = msgspec.json.Decoder(Namespace)
_SERVICE = msgspec.json.Decoder(Service)
_AUTOSCALER = msgspec.json.Decoder(Autoscaler)
_SCALED = msgspec.json.Decoder(_Scaled)
_REPLICATION_CONTROLLER = msgspec.json.Decoder(_ReplicationController)
_JOB = msgspec.json.Decoder(_Job)
_NAMED = msgspec.json.Decoder(Named)


def _pod(raw: Raw, _: TypeMeta) -> Pod:
    pod = _POD.decode(raw)
    return msgspec.structs.replace(pod, metadata=_projected(pod.meta))


def _scaled(raw: Raw, of: TypeMeta) -> Owner:
    read = _SCALED.decode(raw)
    return _owner(of, read.meta, read.spec.replicas, read.spec.selector)


def _replication_controller(raw: Raw, of: TypeMeta) -> Owner:
    read = _REPLICATION_CONTROLLER.decode(raw)
    selector = None if read.spec.selector is None else LabelSelector(match_labels=read.spec.selector)
    return _owner(of, read.meta, read.spec.replicas, selector)


def _job(raw: Raw, of: TypeMeta) -> Owner:
    read = _JOB.decode(raw)
    at_once = 1 if read.spec.parallelism is None else read.spec.parallelism
    if read.spec.completions is not None:
        at_once = min(at_once, read.spec.completions)
    return _owner(of, read.meta, at_once, read.spec.selector)


def _owner(of: TypeMeta, meta: ObjectMeta, replicas: int | None, selector: LabelSelector | None) -> Owner:
    return Owner(
        api_version=of.api_version or "",
        kind=of.kind or "",
        meta=_projected(meta),
        replicas=replicas,
        selector=selector,
    )


def _projected(meta: ObjectMeta) -> ObjectMeta:
    if not meta.annotations:
        return meta
    kept = {key: value for key, value in meta.annotations.items() if key in _KEPT_ANNOTATIONS}
    return msgspec.structs.replace(meta, annotations=kept or None)


_KINDS: Mapping[tuple[str, str], Callable[[Raw, TypeMeta], ApiObject]] = {
    ("v1", "Node"): lambda raw, _: _NODE.decode(raw),
    ("v1", "Pod"): _pod,
    ("v1", "Namespace"): lambda raw, _: _NAMESPACE.decode(raw),
    ("v1", "Service"): lambda raw, _: _SERVICE.decode(raw),
    ("v1", "ReplicationController"): _replication_controller,
    ("apps/v1", "Deployment"): _scaled,
    ("apps/v1", "ReplicaSet"): _scaled,
    ("apps/v1", "StatefulSet"): _scaled,
    ("batch/v1", "Job"): _job,
    ("autoscaling/v1", "HorizontalPodAutoscaler"): lambda raw, _: _AUTOSCALER.decode(raw),
    ("autoscaling/v2", "HorizontalPodAutoscaler"): lambda raw, _: _AUTOSCALER.decode(raw),
}


def decode_object(raw: Raw, of: TypeMeta, embedded: tuple[EmbeddedKind, ...] = ()) -> ApiObject | None:
    """The value of one API object; None for a kind that no answer depends on.

    Errors: msgspec.DecodeError where the JSON is broken or does not have the kind's types.
    """
    api_version, kind = of.api_version or "", of.kind or ""
    decode = _KINDS.get((api_version, kind))
    if decode is not None:
        return decode(raw, of)
    return _custom(raw, of, embedded) if has_template(api_version, kind, embedded) else None


def _custom(raw: Raw, of: TypeMeta, embedded: tuple[EmbeddedKind, ...]) -> Owner:
    """Any other kind that makes pods. The API server never checked its template, so that may be broken."""
    try:
        workload = read_workload(raw, embedded, api_version=of.api_version, kind=of.kind)
    except DecodeError:
        workload = None
    if workload is None:
        return _owner(of, _NAMED.decode(raw).meta, None, None)
    return _owner(of, workload.meta, workload.replicas, workload.selector)
