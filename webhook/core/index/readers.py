"""Decode the JSON of API objects into the values that the index keeps.

The index keeps only fields with an effect on answers: few annotations, and no environment variables of containers.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from webhook.core.api.admission_objects import LimitRange, PriorityClass, RuntimeClass
from webhook.core.api.spread_group import API_VERSION as GROUPS
from webhook.core.api.spread_group import GroupMeta, IndexedGroupStatus, SpreadGroup
from webhook.core.api.storage import (
    KEPT_ANNOTATIONS,
    Claim,
    CsiDriver,
    CsiNode,
    PersistentVolume,
    StorageCapacity,
    StorageClass,
    VolumeAttachment,
)
from webhook.core.api.types import (
    Int32,
    LabelSelector,
    ListMeta,
    Named,
    Node,
    ObjectMeta,
    OwnerReference,
    Pod,
    Service,
    SpreadConstraint,
    TypeMeta,
    controller_of,
)
from webhook.core.api.well_known import (
    DESIRED_REPLICAS_ANNOTATIONS,
    EXEMPT_ANNOTATION,
    FALLBACK_ANNOTATION,
    INJECTED_ANNOTATION,
    MIRROR_ANNOTATION,
    SCALE_IN_ANNOTATION,
    SKIP_ANNOTATION,
)
from webhook.core.apiserver.decoding import DecodeError
from webhook.core.decoders import decoder_of
from webhook.core.index.immense_pods import without_excess
from webhook.core.index.objects import ApiObject, Autoscaler, DeclaredTemplate, Namespace, Owner
from webhook.core.index.tables.shrinking import shared
from webhook.core.workloads.custom_kinds import EmbeddedKind
from webhook.core.workloads.kind_fields import has_template
from webhook.core.workloads.reading import read_workload, reduce_spec

READ_ANNOTATIONS = frozenset(
    {
        SKIP_ANNOTATION,
        INJECTED_ANNOTATION,
        MIRROR_ANNOTATION,
        EXEMPT_ANNOTATION,
        FALLBACK_ANNOTATION,
        SCALE_IN_ANNOTATION,
    }
).union(DESIRED_REPLICAS_ANNOTATIONS, KEPT_ANNOTATIONS)

RawJson = bytes | msgspec.Raw
_Wire = TypeVar("_Wire")  # the type that the JSON of a kind is decoded into


_Plain = TypeVar("_Plain", bound=ApiObject)


class _TemplateMeta(Struct, frozen=True):
    labels: Mapping[str, str] | None = None


class _TemplateSpec(Struct, frozen=True, rename="camel"):
    topology_spread_constraints: tuple[SpreadConstraint, ...] | None = None


class _Template(Struct, frozen=True):
    metadata: _TemplateMeta | None = None
    spec: _TemplateSpec | None = None


_TEMPLATE = decoder_of(_Template)


_ABSENT = msgspec.Raw()


class _ScaledSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    replicas: Int32 | None = None
    selector: LabelSelector | None = None
    template: msgspec.Raw = _ABSENT
    strategy: msgspec.Raw = _ABSENT
    update_strategy: msgspec.Raw = _ABSENT
    volume_claim_templates: msgspec.Raw = _ABSENT
    ordinals: msgspec.Raw = _ABSENT
    pod_management_policy: msgspec.Raw = _ABSENT


# In bytes. About 600 bytes of a usual spec are read.
_LONGEST_SPEC = 8192


class _OwnerMeta(Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The metadata of an owner, such as a ReplicaSet.

    Other metadata fields are dropped to save memory. After pods, ReplicaSets are the most common objects of a cluster.
    """

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    annotations: Mapping[str, str] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None


class _Owned(Struct, frozen=True):
    metadata: _OwnerMeta | None = None


class _Scaled(_Owned, frozen=True):
    spec: _ScaledSpec = _ScaledSpec()


class _ReplicationControllerSpec(Struct, frozen=True, kw_only=True):
    replicas: Int32 | None = None
    selector: Mapping[str, str] | None = None
    template: msgspec.Raw = msgspec.Raw()


class _ReplicationController(_Owned, frozen=True):
    spec: _ReplicationControllerSpec = _ReplicationControllerSpec()


class _JobSpec(Struct, frozen=True, kw_only=True):
    parallelism: Int32 | None = None
    completions: Int32 | None = None
    selector: LabelSelector | None = None


class _Job(_Owned, frozen=True):
    spec: _JobSpec = _JobSpec()


def _as_it_is(read: _Plain, _: TypeMeta) -> _Plain:
    return read


def _pod(pod: Pod, _: TypeMeta) -> Pod:
    projected = _projected(pod.meta)
    return without_excess(pod if projected is pod.metadata else msgspec.structs.replace(pod, metadata=projected))


def _scaled(read: _Scaled, type_meta: TypeMeta) -> Owner:
    spec = read.spec
    owner = _owner(type_meta, read.metadata, spec.replicas, spec.selector, _declared(spec.template))
    return msgspec.structs.replace(owner, spec=_kept_spec(spec))


def _replica_set(read: _Scaled, type_meta: TypeMeta) -> Owner:
    # A Deployment keeps ten old ReplicaSets. Only its own template counts.
    if read.metadata is None or controller_of(read.metadata.owner_references) is None:
        return _scaled(read, type_meta)
    return _owner(type_meta, read.metadata, read.spec.replicas, read.spec.selector)


# Listing them takes longer than encoding a spec.
_SPEC_FIELDS = tuple((field.name, field.encode_name) for field in msgspec.structs.fields(_ScaledSpec))


def _kept_spec(written: _ScaledSpec) -> bytes:
    """Encode `Owner.spec`, without the replicas. Empty for an invalid or oversized spec."""
    said = {
        encoded: value
        for name, encoded in _SPEC_FIELDS
        if name != "replicas" and (value := getattr(written, name)) not in (None, _ABSENT)
    }
    text = reduce_spec(msgspec.json.encode(said), READ_ANNOTATIONS)
    return text if len(text) <= _LONGEST_SPEC else b""


def _replication_controller(read: _ReplicationController, type_meta: TypeMeta) -> Owner:
    selector = None if read.spec.selector is None else LabelSelector(match_labels=read.spec.selector)
    return _owner(type_meta, read.metadata, read.spec.replicas, selector, _declared(read.spec.template))


def _job(read: _Job, type_meta: TypeMeta) -> Owner:
    # A Job runs no more pods at a time than its completions.
    at_once = 1 if read.spec.parallelism is None else read.spec.parallelism
    if read.spec.completions is not None:
        at_once = min(at_once, read.spec.completions)
    return _owner(type_meta, read.metadata, at_once, read.spec.selector)


def _spread_group(read: SpreadGroup, _: TypeMeta) -> SpreadGroup:
    meta = read.metadata or GroupMeta()
    kept = GroupMeta(
        name=meta.name,
        namespace=shared(meta.namespace),
        uid=meta.uid,
        resource_version=meta.resource_version,
        creation_timestamp=meta.creation_timestamp,
        generation=meta.generation,
    )
    status = None if read.status is None else _with_shared_constraints(read.status)
    return msgspec.structs.replace(read, metadata=kept, status=status)


def _with_shared_constraints(status: IndexedGroupStatus) -> IndexedGroupStatus:
    """Store equal constraints of several workloads once, to save memory.

    All shards of a plan have the same constraints.
    """
    known = dict[bytes, tuple[SpreadConstraint, ...]]()
    workloads = tuple(
        msgspec.structs.replace(
            workload,
            topology_spread_constraints=known.setdefault(
                msgspec.json.encode(workload.topology_spread_constraints), workload.topology_spread_constraints
            ),
        )
        for workload in status.workloads
    )
    return msgspec.structs.replace(status, workloads=workloads)


def _declared(template: msgspec.Raw) -> tuple[DeclaredTemplate, ...] | None:
    """The template of a built-in kind. None if it is broken, as in files that no API server has accepted."""
    try:
        read = _TEMPLATE.decode(template)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    labels = read.metadata.labels if read.metadata else None
    constraints = read.spec.topology_spread_constraints if read.spec else None
    return (DeclaredTemplate(labels or {}, constraints or ()),)


def _owner(
    type_meta: TypeMeta,
    meta: _OwnerMeta | ObjectMeta | None,
    replicas: int | None,
    selector: LabelSelector | None,
    templates: tuple[DeclaredTemplate, ...] | None = None,
) -> Owner:
    return Owner(
        api_version=type_meta.api_version or "",
        kind=type_meta.kind or "",
        meta=_owner_meta(meta or ObjectMeta()),
        replicas=replicas,
        selector=_shared_texts(selector),
        templates=templates,
    )


def _owner_meta(meta: _OwnerMeta | ObjectMeta) -> ObjectMeta:
    controller = controller_of(meta.owner_references)
    return ObjectMeta(
        name=meta.name,
        namespace=shared(meta.namespace),
        uid=meta.uid,
        resource_version=meta.resource_version,
        annotations=_kept(meta.annotations),
        owner_references=None if controller is None else (_reference(controller),),
    )


def _reference(controller: OwnerReference) -> OwnerReference:
    return OwnerReference(
        api_version=shared(controller.api_version),
        kind=shared(controller.kind),
        name=controller.name,
        uid=controller.uid,
        controller=True,
    )


def _shared_texts(selector: LabelSelector | None) -> LabelSelector | None:
    """Intern the keys and values of matchLabels, to save memory.

    The revisions and pods of a workload repeat the same labels. A selector with expressions is returned unchanged.
    """
    if selector is None or not selector.match_labels or selector.match_expressions:
        return selector
    return LabelSelector(match_labels={shared(key): shared(value) for key, value in selector.match_labels.items()})


def _projected(meta: ObjectMeta) -> ObjectMeta:
    return msgspec.structs.replace(meta, annotations=_kept(meta.annotations)) if meta.annotations else meta


def _kept(annotations: Mapping[str, str] | None) -> Mapping[str, str] | None:
    return {key: annotations[key] for key in READ_ANNOTATIONS & annotations.keys()} or None if annotations else None


class ListPage(Struct, frozen=True, kw_only=True, gc=False):
    """One page of a list.

    Attributes:
        values: The objects.
        version: The list's resourceVersion.
        more: The token of the next page. Empty on the last page.
    """

    values: tuple[ApiObject, ...]
    version: str
    more: str


class WatchEvent(Struct, frozen=True, kw_only=True, gc=False):
    """One event of a watch, with its type from the API."""

    type: str
    value: ApiObject


class _WirePage(Struct, Generic[_Wire], frozen=True):
    metadata: ListMeta = ListMeta()
    items: tuple[_Wire, ...] | None = None


class _WatchLine(Struct, Generic[_Wire], frozen=True):
    type: str
    object: _Wire


class Reader(Struct, frozen=True, kw_only=True):
    """The decoders of a kind. Each makes a single pass over the JSON.

    They raise UnicodeDecodeError, and msgspec.DecodeError for broken JSON or its subclass ValidationError for wrong
    types.

    Attributes:
        value: Decodes an object.
        page: Decodes a page of a list.
        change: Decodes a line of a watch.
    """

    value: Callable[[RawJson], ApiObject]
    page: Callable[[RawJson], ListPage]
    change: Callable[[RawJson], WatchEvent]


def _reader(wire: type[_Wire], value: Callable[[_Wire, TypeMeta], ApiObject], type_meta: TypeMeta) -> Reader:
    one = decoder_of(wire)
    pages = decoder_of(_WirePage[wire])  # type: ignore[valid-type]  # known only when it runs
    lines = decoder_of(_WatchLine[wire])  # type: ignore[valid-type]  # as above

    def page(raw: RawJson) -> ListPage:
        read: _WirePage[_Wire] = pages.decode(raw)
        values = tuple([value(item, type_meta) for item in read.items or ()])
        return ListPage(values=values, version=read.metadata.resource_version, more=read.metadata.continue_)

    def change(raw: RawJson) -> WatchEvent:
        read: _WatchLine[_Wire] = lines.decode(raw)
        return WatchEvent(type=read.type, value=value(read.object, type_meta))

    return Reader(value=lambda raw: value(one.decode(raw), type_meta), page=page, change=change)


def _kind(
    wire: type[_Wire], value: Callable[[_Wire, TypeMeta], ApiObject]
) -> tuple[type, Callable[[TypeMeta], Reader]]:
    return wire, functools.partial(_reader, wire, value)


# By kind: the type to decode the JSON into, and the reader that builds the kept value from it.
_KINDS: Mapping[tuple[str, str], tuple[type, Callable[[TypeMeta], Reader]]] = {
    ("v1", "Node"): _kind(Node, _as_it_is),
    ("v1", "Pod"): _kind(Pod, _pod),
    ("v1", "Namespace"): _kind(Namespace, _as_it_is),
    ("v1", "Service"): _kind(Service, _as_it_is),
    ("v1", "ReplicationController"): _kind(_ReplicationController, _replication_controller),
    ("v1", "PersistentVolumeClaim"): _kind(Claim, _as_it_is),
    ("v1", "PersistentVolume"): _kind(PersistentVolume, _as_it_is),
    ("storage.k8s.io/v1", "StorageClass"): _kind(StorageClass, _as_it_is),
    ("storage.k8s.io/v1", "CSINode"): _kind(CsiNode, _as_it_is),
    ("storage.k8s.io/v1", "CSIDriver"): _kind(CsiDriver, _as_it_is),
    ("storage.k8s.io/v1", "CSIStorageCapacity"): _kind(StorageCapacity, _as_it_is),
    ("storage.k8s.io/v1", "VolumeAttachment"): _kind(VolumeAttachment, _as_it_is),
    ("apps/v1", "Deployment"): _kind(_Scaled, _scaled),
    ("apps/v1", "ReplicaSet"): _kind(_Scaled, _replica_set),
    ("apps/v1", "StatefulSet"): _kind(_Scaled, _scaled),
    ("batch/v1", "Job"): _kind(_Job, _job),
    ("autoscaling/v1", "HorizontalPodAutoscaler"): _kind(Autoscaler, _as_it_is),
    ("autoscaling/v2", "HorizontalPodAutoscaler"): _kind(Autoscaler, _as_it_is),
    ("v1", "LimitRange"): _kind(LimitRange, _as_it_is),
    ("scheduling.k8s.io/v1", "PriorityClass"): _kind(PriorityClass, _as_it_is),
    ("node.k8s.io/v1", "RuntimeClass"): _kind(RuntimeClass, _as_it_is),
    (GROUPS, "SpreadGroup"): _kind(SpreadGroup, _spread_group),
}


def reader(type_meta: TypeMeta, embedded: tuple[EmbeddedKind, ...] = ()) -> Reader | None:
    """The reader of a kind. None for a kind that evenspread ignores."""
    kind = type_meta.api_version or "", type_meta.kind or ""
    if kind in _KINDS:
        return _built_in_reader(*kind)
    return _custom_reader(type_meta, embedded) if has_template(*kind, embedded) else None


@functools.cache
def _built_in_reader(api_version: str, kind: str) -> Reader:
    return _KINDS[api_version, kind][1](TypeMeta(api_version=api_version, kind=kind))


@functools.lru_cache(maxsize=64)
def _custom_reader(type_meta: TypeMeta, embedded: tuple[EmbeddedKind, ...]) -> Reader:
    return _reader(msgspec.Raw, lambda raw, kind: _custom(raw, kind, embedded), type_meta)


def decoded_type(type_meta: TypeMeta) -> type | None:
    """The type that objects of a built-in kind are decoded into. None for any other kind."""
    return _KINDS.get((type_meta.api_version or "", type_meta.kind or ""), (None,))[0]


def decode_object(raw: RawJson, type_meta: TypeMeta, embedded: tuple[EmbeddedKind, ...] = ()) -> ApiObject | None:
    """Decode an API object into the form kept in the index. None for an ignored kind.

    Args:
        raw: The object's JSON.
        type_meta: Its API version and kind.
        embedded: Configured custom kinds with pod templates.

    Raises:
        msgspec.DecodeError: The JSON is broken, or a field has a wrong type.

    Example:
        ``decode_object(text, TypeMeta(api_version="v1", kind="Node"))`` is a `Node`.
    """
    read = reader(type_meta, embedded)
    return None if read is None else read.value(raw)


def decode_or_none(raw: RawJson, type_meta: TypeMeta, embedded: tuple[EmbeddedKind, ...] = ()) -> ApiObject | None:
    """Decode like `decode_object`, but return None for an unreadable object."""
    try:
        return decode_object(raw, type_meta, embedded)
    except (ValueError, RecursionError):
        return None


def _custom(raw: RawJson, type_meta: TypeMeta, embedded: tuple[EmbeddedKind, ...]) -> Owner:
    """Decode a custom object with a pod template.

    The API server does not validate such templates. For an undecodable object, only the metadata are kept.
    """
    try:
        workload = read_workload(raw, embedded, api_version=type_meta.api_version, kind=type_meta.kind)
    except DecodeError:
        workload = None
    if workload is None:
        return _owner(type_meta, decoder_of(Named).decode(raw).meta, None, None)
    templates = tuple(
        DeclaredTemplate(template.pod.labels, template.pod.pod_spec.constraints) for template in workload.templates
    )
    return _owner(type_meta, workload.meta, workload.replicas, workload.selector, templates)
