"""The mutating route for workloads: their pod template gets the plan that is stored for the SpreadGroup of its pods.

    template -> groups that select it -> the stored plan's fields -> patch of the template, and a record in it

A changed template restarts the pods, so it is only touched in a request that makes the object, or changes the template
itself. Pods are what their template says; none is patched by itself.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from webhook.core.api.types import Affinity, PodTemplate, SpreadConstraint
from webhook.core.api.well_known import INJECTED_ANNOTATION
from webhook.core.apiserver.decoding import DecodeError
from webhook.core.budget import Reason
from webhook.core.context import Context
from webhook.core.defaulting.injection import InjectionRecord, Operation, annotation_patch, injection_record, opted_out
from webhook.core.groups.delivery import NO_PLAN, stored_plan, with_shard_plan
from webhook.core.groups.group import Fields, ShardPlan
from webhook.core.groups.reading import Membership, memberships
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.review.decision import AdmissionRequest, Decision
from webhook.core.rules.limits import exceeded_constraint_limit, exceeded_template_limit
from webhook.core.text import one_line
from webhook.core.workloads.kinds import DEPLOYMENT, STATEFUL_SET, group_kind
from webhook.core.workloads.reading import parsed, read_workload
from webhook.core.workloads.workload import Template, Workload
from webhook.core.yaml_text import plain

_DELIVERED = frozenset({STATEFUL_SET, DEPLOYMENT})
_WRITES = frozenset({"CREATE", "UPDATE"})
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_NO_AFFINITY = Affinity()
# A record of ours has three constraints at most, two terms, and zones of a group; anybody may write a longer one.
_MOST_RECORDED, _MOST_PINNED = 16, 64
Json = Any


def takes_plans(request: AdmissionRequest) -> bool:
    """Whether the request writes a workload of a kind that plans are delivered to."""
    written = request.operation in _WRITES and not request.sub_resource and request.object is not None
    return written and group_kind(request.api_version, request.kind) in _DELIVERED


def deliver_plan(request: AdmissionRequest, context: Context) -> Decision:
    """Answer such a request; it is never denied."""
    workload, index = _read(request.object, request), context.index
    if workload is None or index is None:
        return Decision(reason="unreadable" if workload is None else "cluster-unknown")
    template = workload.templates[0]
    if request.operation == "UPDATE" and _sent_template(request.old_object) == _sent_template(request.object):
        return Decision(reason="template-unchanged")
    if opted_out(workload.meta) or opted_out(template.template.meta):
        return Decision(reason="opted-out")
    group = _group(template, request.namespace, index)
    return Decision(reason="no-group") if group is None else _of_one(group, workload, request, context)


def _of_one(of: Membership, workload: Workload, request: AdmissionRequest, context: Context) -> Decision:
    template, name = workload.templates[0].template, of.group.name
    # What there is is compared with what there is to be, each with each, while others wait.
    if too_large := exceeded_template_limit(workload) or exceeded_constraint_limit(template.pod_spec.constraints):
        return _nothing(f"SpreadGroup {name}: the template has {too_large.text}")
    old = _read(request.old_object, request)
    there = _record(template)
    before = NO_PLAN if there is None else _plan(there)
    records = (None if old is None else _record(old.templates[0].template), there)
    # The group may have another name by now: its earlier fields give way, but what it was is no plan of this one.
    standing = next((each for each in records if each is not None and each.group == name), None)
    if standing is not None:
        # Whoever writes the object again without what was delivered has changed nothing, and restarts nothing.
        kept = _patch(of, template, before, standing, request)
        if isinstance(kept, _Patched) and kept.template == _sent_template(request.old_object):
            return Decision(reason="already-there", patch=kept.operations)
    title = workload.kind, workload.meta.name or request.name
    plan = stored_plan(of, template, before, title, context.version)
    if isinstance(plan, Reason):
        if standing is None:
            return _nothing(f"SpreadGroup {name}: {plan.text}")
        noted = standing  # what was delivered stays until another plan holds
    else:
        status = of.written.status
        revision = "" if status is None else status.revision
        noted = InjectionRecord(
            revision=revision, constraints=plan.constraints, group=name, pin=plan.pin, apart=plan.apart
        )
        if standing is not None and replace(standing, revision=revision) == noted:
            noted = standing
    made = _patch(of, template, before, noted, request)
    if isinstance(made, Reason):
        return _nothing(f"SpreadGroup {name}: {made.text}")
    return Decision(
        reason="" if made.operations else "already-there",
        patch=made.operations,
        audit={"delivered": one_line(f"{name} revision {noted.revision}")} if made.operations else {},
    )


def _record(template: PodTemplate) -> InjectionRecord | None:
    """What was delivered to the template, by whichever group; None too for what is longer than any plan."""
    found = injection_record(template)
    if found is None or found.group is None:
        return None
    pinned = () if found.pin is None else found.pin.values or ()
    long = len(found.constraints) + len(found.apart) > _MOST_RECORDED or len(pinned) > _MOST_PINNED
    return None if long or exceeded_constraint_limit(found.constraints) else found


def _plan(record: InjectionRecord) -> ShardPlan:
    return ShardPlan(record.constraints, record.pin, record.apart)


def _nothing(why: str) -> Decision:
    """Nothing is delivered, and whoever writes the object is told."""
    return Decision(reason="not-delivered", warnings=(f"evenspread: {one_line(why)}; its plan is not delivered",))


def _read(raw: bytes | msgspec.Raw | None, request: AdmissionRequest) -> Workload | None:
    try:
        found = None if raw is None else read_workload(raw, api_version=request.api_version, kind=request.kind)
    except DecodeError:
        return None  # the API server refuses it afterwards, with a better message
    return found if found is not None and found.templates and found.templates[0].template.spec is not None else None


def _group(template: Template, namespace: str, index: ReadOnlyIndex) -> Membership | None:
    """The oldest of the groups that select the template and ask for injection; the others have no plan."""
    found = memberships(namespace, template.template.labels, index)
    return next((each for each in found if each.group.inject), None)


class _Patched(NamedTuple):
    """A template after a patch, and the patch."""

    template: Mapping[str, Json]
    operations: tuple[Operation, ...]


def _patch(
    of: Membership, template: PodTemplate, before: ShardPlan, record: InjectionRecord, request: AdmissionRequest
) -> _Patched | Reason:
    """What gives the template the plan that is recorded; a reason if it cannot have it.

    Shape: everything else in the template stays as it was sent.
    """
    fields = with_shard_plan(of.group, template, _plan(record), before)
    if isinstance(fields, Reason):
        return fields
    text = msgspec.json.encode(record).decode()
    noted = annotation_patch(template.meta.annotations, INJECTED_ANNOTATION, text)
    if noted is None:
        return Reason("the template's annotations leave no room for a record")
    sent = _sent_template(request.object)
    changed = _changed_fields(template, fields, sent["spec"])
    operations = [{"op": "add", "path": f"/spec/template/spec/{name}", "value": each} for name, each in changed.items()]
    annotations = {**(template.meta.annotations or {}), INJECTED_ANNOTATION: text}
    if annotations != template.meta.annotations:
        operations.append({**noted, "path": f"/spec/template{noted['path']}"})
    meta = {**sent["metadata"], "annotations": annotations}
    return _Patched({**sent, "metadata": meta, "spec": {**sent["spec"], **changed}}, tuple(operations))


def _changed_fields(template: PodTemplate, fields: Fields, spec: Mapping[str, Json]) -> Mapping[str, object]:
    before, after, found = template.pod_spec.constraints, fields.constraints, dict[str, object]()
    if any(each not in after for each in before) or any(each not in before for each in after):
        found["topologySpreadConstraints"] = _constraints(before, after, spec)
    if (fields.affinity or _NO_AFFINITY) != (template.pod_spec.affinity or _NO_AFFINITY):
        found["affinity"] = _affinity(fields.affinity, spec)
    return found


def _sent_template(raw: bytes | msgspec.Raw | None) -> Mapping[str, Json]:
    """The pod template as it was sent; empty where there is none."""
    try:
        found: Json = parsed(raw or b"{}")
    except DecodeError:
        found = {}
    for step in ("spec", "template"):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _constraints(
    before: Sequence[SpreadConstraint], after: Sequence[SpreadConstraint], spec: Mapping[str, Json]
) -> list[object]:
    """Those that stay, as they were sent, and then the new ones."""
    sent = zip(spec.get("topologySpreadConstraints") or (), before, strict=True)
    return [*(value for value, read in sent if read in after), *(plain(each) for each in after if each not in before)]


def _affinity(after: Affinity | None, spec: Mapping[str, Json]) -> Mapping[str, object]:
    """The affinity as it was sent, but for what is required of nodes, and of pods to be apart."""
    merged = dict(spec.get("affinity") or {})
    wanted: Json = plain(after or _NO_AFFINITY)
    for part in ("nodeAffinity", "podAntiAffinity"):
        kept = {name: value for name, value in (merged.pop(part, None) or {}).items() if name != _REQUIRED}
        required = {name: value for name, value in wanted.get(part, {}).items() if name == _REQUIRED}
        if kept or required:
            merged[part] = kept | required
    return merged
