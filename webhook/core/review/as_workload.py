"""Review writes of ControllerRevisions and scales as writes of their workload.

A ControllerRevision from a user is reviewed as the StatefulSet with its template. The StatefulSet controller makes
pods below the partition, and during a rollout, from the current ControllerRevision. It applies ``data`` to the set as
a strategic merge patch. Without a review, a user with write access to the revision gets pods with any constraints. The
pods themselves are not reviewed, so that pods of an older revision stay replaceable under a new rule on deny. The
DaemonSet controller makes pods from the template alone.

Source: statefulset/stateful_set_utils.go ``getPatch``, ``ApplyRevision``; history/controller_history.go
``ListControllerRevisions``; daemon/daemon_controller.go ``syncNodes``; apps/validation/validation.go
``ValidateControllerRevisionUpdate`` (data cannot change).

A write of a scale is reviewed as an update of its workload. The request has the replicas, and the index has the rest.
Only rules about the number of pods apply, and they warn at most. Autoscalers read no warnings, so their requests are
not reviewed.

Source: k8s.io/api autoscaling/v1/types.go ``Scale``; pkg/registry/apps/deployment/storage/storage.go ``ScaleREST``.
"""

from collections.abc import Iterable

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from webhook.core.api.selectors import valid_selector
from webhook.core.api.types import Int32, ObjectMeta, OwnerReference, PodTemplate, TypeMeta
from webhook.core.api.well_known import CONTROLLER_MANAGER, KUBE_SYSTEM_ACCOUNT, SERVICE_ACCOUNT
from webhook.core.apiserver.decoding import DecodeError, decode_strictly
from webhook.core.decoders import decoder_of, has_more_values
from webhook.core.index.objects import Owner
from webhook.core.index.owners import owner_json
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.policy.policy import Mode, Policy
from webhook.core.review.decision import AdmissionRequest
from webhook.core.review.judging import JudgedFinding
from webhook.core.review.read_object import UNREAD, ReadObject, read_object
from webhook.core.review.skip_reasons import is_controller
from webhook.core.rules.object_cost import MAX_VALUES
from webhook.core.rules.rule_set import OF_REPLICAS
from webhook.core.workloads.kinds import STATEFUL_SET, group_kind, native_version, scaled_kind
from webhook.core.workloads.reading import parse_object, read_meta

_REVISION = ("apps", "ControllerRevision")
_TEMPLATE = decoder_of(PodTemplate)
_PATH = ("data", "spec", "template")
_NO_META = ObjectMeta()
_NOT_A_CONTROLLERS = "must be what a controller writes: a whole pod template with $patch: replace, and nothing else"


def is_revision(request: AdmissionRequest) -> bool:
    return request.group_kind == _REVISION


def as_stateful_set(
    request: AdmissionRequest, policy: Policy, index: ReadOnlyIndex | None
) -> tuple[AdmissionRequest, ReadObject] | None:
    """Turn the write of a ControllerRevision into the creation of its StatefulSet.

    Returns None if no review is needed:

    - A write by a controller or a kube-system account.
    - An update with the same controller and labels.
    - A write by an operator, if a custom resource is the revision's controller and no StatefulSet is known.
    - A write with data that cannot change a StatefulSet's template.

    The first case does not cover an update that removes a custom resource as the revision's controller.
    """
    raw = request.object
    # The values are counted before the metadata are decoded.
    many = any(has_more_values(each, MAX_VALUES) for each in (raw, request.old_object) if each is not None)
    meta = _NO_META if raw is None or many else read_meta(raw)
    if raw is None or (_is_trusted(request, policy) if many else _needs_no_review(request, meta, policy)):
        return None
    if many:
        return replace(request, user=""), UNREAD
    owner = _set_of(meta, request.namespace, index)
    if owner is None and _is_an_operators(meta, request):
        return None
    stated = TypeMeta(api_version=native_version(STATEFUL_SET), kind=STATEFUL_SET[1])
    name = owner.meta.name if owner is not None else request.name or meta.name
    creation = replace(
        request,
        operation="CREATE",
        version="v1",
        kind=STATEFUL_SET[1],
        resource=f"{STATEFUL_SET[1].lower()}s",
        name=name,
        user="",  # or it would count as a controller's request
        old_object=None,
    )
    try:
        value = parse_object(raw)
        if not _changes_template(value):
            return None
        return creation, read_object(_written(value, name, owner), stated, policy)
    except DecodeError as error:
        return creation, ReadObject(raw, None, replace(meta, owner_references=None, deletion_timestamp=None), error)


def _needs_no_review(request: AdmissionRequest, meta: ObjectMeta, policy: Policy) -> bool:
    """Whether the write of a ControllerRevision needs no review.

    - An update with the same controller and labels needs none, because the data cannot change.
    - An update that changes the controller always needs a review if the old controller is a custom resource.
    - Any other write of a trusted user needs none, because the owner's template was reviewed.
    """
    old = None if request.old_object is None else read_meta(request.old_object)
    if old is not None and (old.controller, old.labels) == (meta.controller, meta.labels):
        return True
    freed = old is not None and _is_operator_owned(old.controller) and old.controller != meta.controller
    return not freed and _is_trusted(request, policy)


def _is_trusted(request: AdmissionRequest, policy: Policy) -> bool:
    return request.user.startswith(KUBE_SYSTEM_ACCOUNT) or is_controller(request.user, policy)


def _set_of(meta: ObjectMeta, namespace: str, index: ReadOnlyIndex | None) -> Owner | None:
    """Return the StatefulSet of a ControllerRevision. None if unknown.

    It is the revision's controller, by uid. For a revision without a controller, it is a StatefulSet with a matching
    selector.
    """
    reference = meta.controller
    for owner in () if index is None else index.owners.of_namespace(namespace):
        if group_kind(owner.api_version, owner.kind) != STATEFUL_SET:
            continue
        selector = None if reference is not None else valid_selector(owner.selector)
        if selector.matches(meta.labels or {}) if selector else reference and owner.meta.uid == reference.uid:
            return owner
    return None


def _is_an_operators(meta: ObjectMeta, request: AdmissionRequest) -> bool:
    """Whether an operator writes a ControllerRevision owned by a custom resource.

    Such revisions have data of unknown meaning.
    """
    own = f"{SERVICE_ACCOUNT}{request.namespace}:"
    return (
        _is_operator_owned(meta.controller)
        and request.user.startswith(SERVICE_ACCOUNT)
        and not request.user.startswith((own, KUBE_SYSTEM_ACCOUNT))
    )


def _is_operator_owned(owner: OwnerReference | None) -> bool:
    return owner is not None and not owner.api_version.startswith("apps/")


def _changes_template(value: object) -> bool:
    """Whether the ControllerRevision's data can change a StatefulSet's template.

    Revisions of operators have other data.
    """
    part = value.get("data") if isinstance(value, dict) else None
    for name in ("spec", "template"):
        if not isinstance(part, dict) or any(key.startswith("$") for key in part):
            return True
        if all(key.casefold() != name for key in part):
            return False
        part = part.get(name)
    return True


def _written(value: object, name: str, owner: Owner | None) -> bytes:
    """Return the StatefulSet with the template of a ControllerRevision, as JSON.

    Raises:
        DecodeError: The data differs from all data written by controllers. Merging it could have unknown effects,
            because Go's decoder accepts field names in another case, and templates can contain directives.
    """
    match value:
        case {"data": {"spec": {"template": {"$patch": "replace", **template}, **beside}, **above}} if not (
            beside or above
        ):
            pass
        case _:
            raise DecodeError(path="data", text=_NOT_A_CONTROLLERS, message=f"data: {_NOT_A_CONTROLLERS}")
    read, unknown = decode_strictly(msgspec.json.encode(template), _TEMPLATE, "v1.PodTemplateSpec", _PATH)
    if unknown:
        raise DecodeError(path=".".join(_PATH), text=unknown[0], message=f"data: {unknown[0]}")
    known = None if owner is None else owner_json(owner)
    whole = msgspec.json.decode(known) if known else {"metadata": {"name": name}, "spec": {}}
    spec = {"selector": {"matchLabels": read.labels}, **whole["spec"], "template": template}
    meta = {**whole["metadata"], "ownerReferences": None, "deletionTimestamp": None, "annotations": None}
    return msgspec.json.encode({"metadata": meta, "spec": spec})


class _ScaleSpec(Struct, frozen=True):
    replicas: Int32 = 0


class _Scale(Struct, frozen=True):
    spec: _ScaleSpec = _ScaleSpec()


_SCALE = decoder_of(_Scale)


def as_update(request: AdmissionRequest, index: ReadOnlyIndex | None) -> AdmissionRequest | None:
    """Turn a scale request into an update of its workload, without an old object.

    None if the workload is unknown, if the replicas do not increase, or if an autoscaler sends the request.
    """
    kind = scaled_kind(request.resource_group, request.resource) if request.sub_resource == "scale" else None
    before, after = _replicas(request.old_object), _replicas(request.object)
    by_autoscaler = request.user == CONTROLLER_MANAGER or request.user.startswith(KUBE_SYSTEM_ACCOUNT)
    if index is None or kind is None or by_autoscaler or before is None or after is None or after <= before:
        return None
    owner = index.owners.get(native_version(kind), kind[1], request.namespace, request.name)
    written = None if owner is None else owner_json(owner, after)
    if written is None:
        return None
    group, version = kind[0], native_version(kind).rpartition("/")[2]
    return replace(request, group=group, version=version, kind=kind[1], object=written, old_object=None)


def _replicas(raw: bytes | Raw | None) -> int | None:
    try:
        return None if raw is None else _SCALE.decode(raw).spec.replicas
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def capped_for_scale(judged: Iterable[JudgedFinding]) -> tuple[JudgedFinding, ...]:
    """Return only the findings of rules about the number of pods, each with mode warn at most."""
    return tuple(replace(each, mode=each.mode.capped(Mode.WARN)) for each in judged if each.finding.rule in OF_REPLICAS)
