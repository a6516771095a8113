"""Write the stored plan of a SpreadGroup into pod templates, on the mutating route.

    template -> its groups -> fields of the stored plan -> patch, with the annotation evenspread.io/injected

A changed template restarts the pods. The plan is therefore only written by requests that create the object or change
its template. Pods get the plan from their template, never by their own patch.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from webhook.core.api.types import Affinity, PodTemplate, SpreadConstraint
from webhook.core.api.well_known import INJECTED_ANNOTATION
from webhook.core.apiserver.decoding import DecodeError
from webhook.core.budget import Reason
from webhook.core.context import Context
from webhook.core.defaulting.injection import opted_out
from webhook.core.defaulting.record import InjectionRecord, Operation, annotation_patch, injection_record
from webhook.core.groups.delivery import NO_PLAN, stored_shard_plan, with_shard_plan
from webhook.core.groups.group import Fields, ShardPlan
from webhook.core.groups.reading import Membership, memberships
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.review.decision import AdmissionRequest, Decision
from webhook.core.rules.object_cost import exceeded_constraint_limit, exceeded_template_limit
from webhook.core.text import one_line
from webhook.core.workloads.kinds import DEPLOYMENT, STATEFUL_SET
from webhook.core.workloads.reading import parse_object, read_workload
from webhook.core.workloads.workload import Template, Workload
from webhook.core.yaml_text import plain

_DELIVERED = frozenset({STATEFUL_SET, DEPLOYMENT})
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_NO_AFFINITY = Affinity()
# evenspread records at most three constraints, two terms and the zones of a group. Users can write a longer record.
_MOST_RECORDED, _MOST_PINNED = 16, 64
_JsonObject = Mapping[str, object]
_EMPTY: _JsonObject = {}


def takes_plans(request: AdmissionRequest) -> bool:
    """Whether the request writes a workload whose kind can get a plan."""
    written = request.is_write and not request.sub_resource and request.object is not None
    return written and request.group_kind in _DELIVERED


def deliver_plan(request: AdmissionRequest, context: Context) -> Decision:
    """Patch the stored plan of a workload's SpreadGroup into its pod template. Never denies.

    ``request`` must pass `takes_plans`. A decision without a patch has a reason.
    """
    workload, index = _read(request.object, request), context.index
    if workload is None or index is None:
        return Decision(reason="unreadable" if workload is None else "cluster-unknown")
    template = workload.templates[0]
    if request.operation == "UPDATE" and _sent_template(request.old_object) == _sent_template(request.object):
        return Decision(reason="template-unchanged")
    if opted_out(workload.meta) or opted_out(template.pod.meta):
        return Decision(reason="opted-out")
    group = _group(template, request.namespace, index)
    return Decision(reason="no-group") if group is None else _deliver(group, workload, request, context)


def _deliver(group: Membership, workload: Workload, request: AdmissionRequest, context: Context) -> Decision:
    template, name = workload.templates[0].pod, group.group.name
    # All old constraints are compared with all new ones, which delays other requests.
    if too_large := exceeded_template_limit(workload) or exceeded_constraint_limit(template.pod_spec.constraints):
        return _not_delivered(f"SpreadGroup {name}: the template has {too_large.text}")
    old = _read(request.old_object, request)
    sent = _record(template)
    before = NO_PLAN if sent is None else _plan(sent)
    records = (None if old is None else _record(old.templates[0].pod), sent)
    # The record may be of another group. Its fields are removed, but it is no earlier plan of this group.
    earlier = next((record for record in records if record is not None and record.group == name), None)
    if earlier is not None:
        # A user who writes the object again without the delivered fields changes nothing, so no pod may restart.
        kept = _patch(group, template, before, earlier, request)
        if isinstance(kept, _Patched) and kept.template == _sent_template(request.old_object):
            return Decision(reason="already-there", patch=kept.operations)
    title = workload.kind, workload.meta.name or request.name
    plan = stored_shard_plan(group, template, before, title, context.version)
    if isinstance(plan, Reason):
        if earlier is None:
            return _not_delivered(f"SpreadGroup {name}: {plan.text}")
        record = earlier  # the delivered plan stays until another plan holds
    else:
        status = group.written.status
        revision = "" if status is None else status.revision
        record = InjectionRecord(
            revision=revision, constraints=plan.constraints, group=name, pin=plan.pin, apart=plan.apart
        )
        if earlier is not None and replace(earlier, revision=revision) == record:
            record = earlier
    patched = _patch(group, template, before, record, request)
    if isinstance(patched, Reason):
        return _not_delivered(f"SpreadGroup {name}: {patched.text}")
    return Decision(
        reason="" if patched.operations else "already-there",
        patch=patched.operations,
        audit={"delivered": one_line(f"{name} revision {record.revision}")} if patched.operations else {},
    )


def _record(template: PodTemplate) -> InjectionRecord | None:
    """Return the template's injection record for a group's plan.

    None without such a record, or if the record is longer than any plan of evenspread.
    """
    record = injection_record(template)
    if record is None or record.group is None:
        return None
    pinned = () if record.pin is None else record.pin.values or ()
    long = len(record.constraints) + len(record.apart) > _MOST_RECORDED or len(pinned) > _MOST_PINNED
    return None if long or exceeded_constraint_limit(record.constraints) else record


def _plan(record: InjectionRecord) -> ShardPlan:
    return ShardPlan(record.constraints, record.pin, record.apart)


def _not_delivered(why: str) -> Decision:
    return Decision(reason="not-delivered", warnings=(f"evenspread: {one_line(why)}; the plan is not delivered",))


def _read(raw: bytes | msgspec.Raw | None, request: AdmissionRequest) -> Workload | None:
    try:
        read = None if raw is None else read_workload(raw, api_version=request.api_version, kind=request.kind)
    except DecodeError:
        return None  # the API server rejects the object later, with a better message
    return read if read is not None and read.templates and read.templates[0].pod.spec is not None else None


def _group(template: Template, namespace: str, index: ReadOnlyIndex) -> Membership | None:
    """Return the oldest group that selects the template and injects its plan. None without one."""
    groups = memberships(namespace, template.pod.labels, index)
    return next((membership for membership in groups if membership.group.inject), None)


class _Patched(NamedTuple):
    template: _JsonObject
    operations: tuple[Operation, ...]


def _patch(
    group: Membership, template: PodTemplate, before: ShardPlan, record: InjectionRecord, request: AdmissionRequest
) -> _Patched | Reason:
    """Return the patch that writes the plan and its record into the template, or why the template cannot have the plan.

    All other fields of the template stay as sent.
    """
    fields = with_shard_plan(group.group, template, _plan(record), before)
    if isinstance(fields, Reason):
        return fields
    text = msgspec.json.encode(record).decode()
    noted = annotation_patch(template.meta.annotations, INJECTED_ANNOTATION, text)
    if noted is None:
        return Reason("the template's annotations and the plan's record exceed 256 KiB")
    sent = _sent_template(request.object)
    spec = _object(sent, "spec")
    changed = _changed_fields(template, fields, spec)
    operations = [{"op": "add", "path": f"/spec/template/spec/{name}", "value": each} for name, each in changed.items()]
    annotations = {**(template.meta.annotations or {}), INJECTED_ANNOTATION: text}
    if annotations != template.meta.annotations:
        operations.append({**noted, "path": f"/spec/template{noted['path']}"})
    meta = {**_object(sent, "metadata"), "annotations": annotations}
    return _Patched({**sent, "metadata": meta, "spec": {**spec, **changed}}, tuple(operations))


def _changed_fields(template: PodTemplate, fields: Fields, spec: _JsonObject) -> _JsonObject:
    before, after, changed = template.pod_spec.constraints, fields.constraints, dict[str, object]()
    if any(each not in after for each in before) or any(each not in before for each in after):
        changed["topologySpreadConstraints"] = _constraints(before, after, spec)
    if (fields.affinity or _NO_AFFINITY) != (template.pod_spec.affinity or _NO_AFFINITY):
        changed["affinity"] = _affinity(fields.affinity, spec)
    return changed


def _object(value: object, field: str) -> _JsonObject:
    inner = value.get(field) if isinstance(value, Mapping) else None
    return inner if isinstance(inner, Mapping) else _EMPTY


def _sent_template(raw: bytes | msgspec.Raw | None) -> _JsonObject:
    try:
        return _object(_object(parse_object(raw or b"{}"), "spec"), "template")
    except DecodeError:
        return _EMPTY


def _constraints(
    before: Sequence[SpreadConstraint], after: Sequence[SpreadConstraint], spec: _JsonObject
) -> list[object]:
    listed = spec.get("topologySpreadConstraints")
    sent = zip(listed if isinstance(listed, list) else (), before, strict=True)
    return [*(value for value, read in sent if read in after), *(plain(each) for each in after if each not in before)]


def _affinity(after: Affinity | None, spec: _JsonObject) -> _JsonObject:
    """Return the affinity of ``spec``, with required node affinity and required pod anti-affinity from ``after``."""
    merged, wanted = dict(_object(spec, "affinity")), plain(after or _NO_AFFINITY)
    for part in ("nodeAffinity", "podAntiAffinity"):
        kept = {name: value for name, value in _object(merged, part).items() if name != _REQUIRED}
        merged.pop(part, None)
        required = {name: value for name, value in _object(wanted, part).items() if name == _REQUIRED}
        if kept or required:
            merged[part] = kept | required
    return merged
