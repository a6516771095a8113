"""The validating route: a request, the policy and the cluster -> a decision.

    read the object -> evaluate every rule -> judge each finding -> subtract those of the old object -> messages

`review` never raises, whatever the request holds: an object that cannot be read is a value too.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from msgspec.structs import replace

from webhook.core.api.types import ObjectMeta
from webhook.core.api.well_known import OUR_PREFIX
from webhook.core.apiserver.decoding import DecodeError
from webhook.core.budget import Missing, OutOfTimeError, Reason
from webhook.core.context import Context
from webhook.core.decoders import has_more_values
from webhook.core.index.owners import Awaited
from webhook.core.policy.policy import Mode, Policy, TooLarge
from webhook.core.review.as_workload import as_stateful_set, as_update, is_revision, warned
from webhook.core.review.decision import AdmissionRequest, Decision
from webhook.core.review.judging import (
    Evaluation,
    Judged,
    ReadObject,
    evaluated,
    failing,
    judge,
    never_denied_for_places,
    only_denied_unanswered,
    read_in_time,
    subtract,
    target_of,
    weighed,
    with_unanswered,
)
from webhook.core.review.messages import denial, not_read, warnings_of
from webhook.core.review.skip_reasons import is_controller, why_unexamined
from webhook.core.rules.frame.rule import NotEvaluated
from webhook.core.rules.frame.subject import Subject, place
from webhook.core.rules.limits import MAX_VALUES
from webhook.core.rules.placement.pod_fits import Feasibility
from webhook.core.rules.rule_set import (
    noted,
    with_tried_fixes,
)
from webhook.core.text import one_line
from webhook.core.workloads.kinds import group_kind
from webhook.core.workloads.reading import (
    constraint_paths,
    parsed,
    read_meta,
)
from webhook.core.workloads.workload import Workload

# Eight messages of 1,024 characters fit into the 10 KiB limit of an audit annotation.
_MAX_AUDITED = 8
# The longest time of one request while others wait for the index. Ordinary objects take less than a hundredth of it,
# even beside 5,000 nodes.
_MAX_JUDGING_SECONDS = 0.5
_KUBE_SYSTEM_USERS = "system:serviceaccounts:kube-system"


def review(request: AdmissionRequest, context: Context, *, waited: bool = True) -> Decision:
    """Judge one request of the validating route.

    Args:
        request: The request.
        context: The policy, the cluster and the time limit.
        waited: If false, the decision may ask to wait (`awaits`) for a namespace the watch has not delivered yet. Its
            labels can change the outcome.
    """
    # Short cuts first; every other object is examined by all rules.
    try:
        asked = as_update(request, context.index) if request.sub_resource else request
        if asked is None or asked.object is None or asked.operation not in _REVIEWED:
            return Decision(reason="nothing to review")
        if not is_revision(asked):
            given = read_in_time(asked.object, asked.stated, context.policy)
        elif revised := as_stateful_set(asked, context.policy, context.index):
            asked, given = revised
        else:
            return Decision(reason="its owner is reviewed")
        if reason := why_unexamined(asked, given, context):
            return Decision(reason=reason)
        here = replace(
            context,
            budget=context.budget.at_most(_MAX_JUDGING_SECONDS),
            namespace=asked.namespace,
            creating=asked.operation == "CREATE",
            fixes=False,
        )
        return _with_crowd_warning(_reviewed(asked, given, here, waited=waited), here)
    except Exception as error:  # noqa: BLE001 whatever an author can make it raise counts against the author
        return _failed(request, context, error)


def _with_crowd_warning(decision: Decision, here: Context) -> Decision:
    """The decision, with a warning if the load of others kept rules from a search."""
    if here.budget.unjudged is None or here.budget.unjudged is not Missing.CROWDED or not decision.allowed:
        return decision
    if not any(each.needs_search for each in decision.not_evaluated):
        return decision
    return replace(decision, warnings=(*decision.warnings, *not_read(Missing.CROWDED.value)))


def _failed(request: AdmissionRequest, here: Context, error: Exception) -> Decision:
    """The decision after an exception of the review itself: as if every rule had raised.

    Updates of metadata or status alone are allowed. So are objects that a controller makes from a reviewed one.
    """
    policy, controlled = here.policy, is_controller(request.user, here.policy)
    if policy.too_large == TooLarge.ALLOW or controlled or request.object is None or _changes_metadata_only(request):
        return Decision(reason="internal error", audit={"error": "internal"}, fault=error)
    found = failing(group_kind(request.api_version, request.kind), Missing.RULE_FAILED.reason, error)
    decision = _denied_unanswered(request, here, found, read_meta(request.object))
    return replace(decision, audit={**decision.audit, "error": "internal"}, fault=error)


def unread(request: AdmissionRequest, context: Context, why: Reason, *, may_deny: bool) -> Decision:
    """Answer a request whose object was not read: deny it where a rule on ``deny`` applies.

    The policy's ``tooLarge: allow`` admits the object with a warning. So does the mutating route, without a patch.
    """
    decision, policy, kind = Decision(), context.policy, group_kind(request.api_version, request.kind)
    if may_deny:
        if request.sub_resource or request.operation not in _REVIEWED:
            return Decision(reason="nothing to review")
        if is_controller(request.user, policy):
            return Decision(reason="its owner is reviewed")
        if not is_revision(request) and not constraint_paths(request.api_version, request.kind, policy.workloads):
            return Decision(reason="no pod template")
        if policy.too_large != TooLarge.ALLOW:
            decision = _denied_unanswered(request, context, failing(kind, why), _NO_META)
    return replace(decision, reason=why.text, warnings=not_read(why.text) if decision.allowed else ())


def _denied_unanswered(request: AdmissionRequest, here: Context, found: Evaluation, meta: ObjectMeta) -> Decision:
    judged = only_denied_unanswered(_judged(request, here, found, meta))
    return _decide(request, here.policy, found, judged[:1], told=False)


def _judged(request: AdmissionRequest, here: Context, found: Evaluation, meta: ObjectMeta) -> tuple[Judged, ...]:
    """Each finding with the mode that the policy, and the kind of request, allow."""
    judged = _by_policy(request, here, found, meta)
    if request.sub_resource:
        judged = warned(judged)
    if request.kind == "Pod" or _KUBE_SYSTEM_USERS in request.groups:
        judged = tuple(map(never_denied_for_places, judged))
    return judged


def _changes_metadata_only(request: AdmissionRequest) -> bool:
    if request.operation != "UPDATE" or request.object is None or request.old_object is None:
        return False
    if has_more_values(request.object, MAX_VALUES) or has_more_values(request.old_object, MAX_VALUES):
        return False
    try:
        kept = [parsed(each) for each in (request.object, request.old_object)]
    except DecodeError:
        return False
    new, old = ({**each, "metadata": 0, "status": 0} for each in kept if isinstance(each, dict))
    return new == old


def _reviewed(request: AdmissionRequest, given: ReadObject, here: Context, *, waited: bool) -> Decision:
    new = _evaluated(given, here)
    if new is None:
        return _COSTLY
    if not new.findings:
        return _clean(new)
    if not waited and _lacks_only_the_namespace(request.namespace, here):
        awaits = Awaited(api_version="v1", kind="Namespace", namespace="", name=request.namespace)
        return Decision(reason="too-early", awaits=awaits)
    before = _old_object(request, here)
    # If rules see no difference, evaluate once.
    old = None if before is None else new if _are_alike(before, given) else _evaluated(before, here)
    if before is not None and old is None:
        return _COSTLY
    judged = _judged(request, here, new, _meta_of(new))
    if before is not None and old is not None:
        unchanged = (
            new.workload is not None
            and old.workload is not None
            and _parts_but_replicas(new.workload) == _parts_but_replicas(old.workload)
        )
        excuse = unchanged or _had_time(before, old, given, here)
        had = judged if old is new else _by_policy(request, here, old, _meta_of(old))
        judged = subtract(judged, old, had, excuse_unjudged=excuse, unchanged=unchanged)
    new, judged = _with_fixes(new, only_denied_unanswered(judged), here)
    return _decide(request, here.policy, new, judged, told=_is_read(new, old))


def _by_policy(request: AdmissionRequest, here: Context, found: Evaluation, meta: ObjectMeta) -> tuple[Judged, ...]:
    return judge(found, here, target_of(meta, request.kind, request.namespace, request.name, here.index), meta)


def _meta_of(found: Evaluation) -> ObjectMeta:
    return found.workload.meta if found.workload else _NO_META


def _evaluated(given: ReadObject, context: Context) -> Evaluation | None:
    """Evaluate all rules within the limits of size and cost. None if another process should judge the object."""
    costly, limit = weighed(given, context)
    budget = context.budget
    if costly and not budget.may_search:
        return None
    # Objects that only lack a search are judged without one. So is every object if others used up the time.
    if budget.unjudged is not None and (not costly or budget.unjudged is Missing.CROWDED):
        without_search = replace(context, budget=replace(budget, unjudged=None, may_search=False))
        with suppress(OutOfTimeError), budget.limit_in_a_thread():
            return with_unanswered(evaluated(given, without_search, limit), context.policy, costly=costly)
        out_of_time = replace(context, budget=replace(budget, unjudged=Missing.TOO_COSTLY))
        return with_unanswered(evaluated(given, out_of_time, limit), context.policy)
    found = evaluated(given, context, limit)
    if not budget.may_search and any(each.needs_search for each in found.not_evaluated):
        return None
    return with_unanswered(found, context.policy, costly=costly)


def _had_time(before: ReadObject, old: Evaluation, given: ReadObject, here: Context) -> bool:
    """Whether the author could not exhaust the time of the old object: neither object is costly.

    An author could change a costly object while other objects of theirs take all of the time.
    """
    ended = any(each.reason.kind is Missing.TOO_COSTLY for each in old.not_evaluated)
    costly = ended or weighed(before, here)[0] or weighed(given, here)[0]
    return here.policy.too_large == TooLarge.ALLOW or not costly


def _lacks_only_the_namespace(namespace: str, context: Context) -> bool:
    """Whether a known cluster lacks only this namespace."""
    index = context.index
    if index is None or not namespace or context.policy.ceiling is Mode.OFF:
        return False
    return index.namespaces.labels(namespace) is None and not index.lacks("namespaces")


def _with_fixes(found: Evaluation, judged: Sequence[Judged], context: Context) -> tuple[Evaluation, tuple[Judged, ...]]:
    """Both, with tried fixes of denials. Fixes of other findings are not shown at admission."""
    denied = [each.finding for each in judged if each.mode is Mode.DENY and each.finding.edits]
    if found.workload is None or not denied:
        return found, tuple(judged)
    subject = Subject(workload=found.workload, placed=place(found.workload), context=context)
    tried = with_tried_fixes(denied, subject)
    better = dict(zip(map(id, denied), tried.findings, strict=True))
    told = tuple(replace(each, finding=better.get(id(each.finding), each.finding)) for each in judged)
    return replace(found, not_evaluated=noted((*found.not_evaluated, *tried.faults))), told


def _clean(found: Evaluation) -> Decision:
    if not found.not_evaluated and found.feasibility is None:
        return _CLEAN
    return Decision(
        not_evaluated=found.not_evaluated, feasibility=found.feasibility, audit=_feasibility_note(found.feasibility)
    )


def _feasibility_note(feasibility: Feasibility | None) -> Mapping[str, str]:
    """The audit annotation with the reason for an unknown dry run. Users do not see it."""
    if feasibility is None or not isinstance(feasibility.answer, NotEvaluated):
        return {}
    return {"feasibility": f"{feasibility.verdict}: {one_line(feasibility.answer.missing)}"}


def _old_object(request: AdmissionRequest, context: Context) -> ReadObject | None:
    if request.operation != "UPDATE" or request.old_object is None:
        return None
    # The old object is evaluated even if it had a reviewed owner: garbage collection may orphan it in this request.
    return read_in_time(request.old_object, request.stated, context.policy)


def _are_alike(one: ReadObject, other: ReadObject) -> bool:
    """Whether both are equal to rules. Versions and foreign annotations may differ."""
    if one.workload is None or other.workload is None:
        return False
    return _without_annotations(one.workload) == _without_annotations(other.workload)


def _without_annotations(workload: Workload) -> Workload:
    meta = workload.meta
    ours = {key: text for key, text in (meta.annotations or {}).items() if key.startswith(OUR_PREFIX)}
    return replace(workload, meta=replace(meta, resource_version="", annotations=ours))


def _is_read(new: Evaluation, old: Evaluation | None) -> bool:
    """Whether a person reads the warning, and has just changed a field it is about."""
    if new.workload is None:
        return old is None or new.findings != old.findings
    # A controller reads no warnings.
    if new.workload.meta.controller is not None:
        return False
    return (
        old is None or old.workload is None or _parts_with_findings(new.workload) != _parts_with_findings(old.workload)
    )


def _parts_with_findings(workload: Workload) -> tuple[object, ...]:
    return (
        workload.replicas,
        workload.suspended,
        [each.replicas for each in workload.templates],
        _parts_but_replicas(workload),
    )


def _parts_but_replicas(workload: Workload) -> tuple[object, ...]:
    templates = [(each.path, each.template.labels, each.template.spec) for each in workload.templates]
    return (workload.selector, workload.strategy, templates)


def _decide(
    request: AdmissionRequest, policy: Policy, found: Evaluation, judged: Sequence[Judged], *, told: bool
) -> Decision:
    denied = [each.finding for each in judged if each.mode is Mode.DENY]
    warned = [each.finding for each in judged if each.mode is Mode.WARN] if told else []
    own = request.name or (found.workload.meta.generate_name if found.workload else "")
    name = f"{request.kind} {request.namespace}/{own}".removesuffix("/")
    return Decision(
        allowed=not denied,
        message=denial(name, denied, policy.messages) if denied else "",
        findings=tuple(judged),
        not_evaluated=found.not_evaluated,
        warnings=warnings_of(warned),
        feasibility=found.feasibility,
        audit={**_audit(judged), **_feasibility_note(found.feasibility)},
    )


def _audit(judged: Sequence[Judged]) -> Mapping[str, str]:
    """Audit annotations for findings, bounded in number and length. Reports have all findings.

    Keys are qualified names, because kube-apiserver drops others. It adds the webhook's name as a prefix.
    """
    notes = {
        f"finding-{number}": one_line(_note(each), 1024) for number, each in enumerate(judged[:_MAX_AUDITED], start=1)
    }
    if judged:
        notes["findings"] = str(len(judged))
    return notes


def _note(judged: Judged) -> str:
    path = f"{judged.finding.path}: "  # kube-apiserver's own words begin with it
    return f"{judged.finding.rule} {judged.mode} {path}{_sentence(judged).removeprefix(path)}"


def _sentence(judged: Judged) -> str:
    parts = (judged.finding.summary, judged.finding.remedy, judged.waived)
    return "; ".join(part for part in parts if part)


_NO_META = ObjectMeta()
_REVIEWED = frozenset({"CREATE", "UPDATE"})
_CLEAN = Decision()
_COSTLY = Decision(costly=True)
