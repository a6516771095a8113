"""The validating webhook: review a request against the policy and the cluster.

    read the object -> evaluate every rule -> set each finding's mode -> lower some denials -> messages

In an update, a denial becomes a warning if the old object had the same finding. `review` never raises. An object that
cannot be decoded results in a finding, not an error.
"""

from collections.abc import Sequence
from contextlib import suppress

from msgspec.structs import replace

from webhook.core.api.types import ObjectMeta
from webhook.core.api.well_known import OUR_PREFIX
from webhook.core.budget import Missing, OutOfTimeError
from webhook.core.context import Context
from webhook.core.index.owners import Awaited
from webhook.core.policy.options import TooLarge
from webhook.core.policy.policy import Mode
from webhook.core.review.as_workload import as_stateful_set, as_update, is_revision
from webhook.core.review.decision import AdmissionRequest, Decision
from webhook.core.review.evaluation import (
    Evaluation,
    cost_and_limit,
    evaluate_object,
    with_unanswered_rules,
)
from webhook.core.review.judging import (
    JudgedFinding,
    drop_undenied_unanswered,
    drop_warned_by_policies,
    excuse_old_findings,
)
from webhook.core.review.messages import not_read
from webhook.core.review.outcome import decide, decide_clean, judge_by_policy, judge_request
from webhook.core.review.read_object import ReadObject, read_within_limit
from webhook.core.review.skip_reasons import why_unexamined
from webhook.core.review.unread import decide_failed
from webhook.core.rules.frame.subject import Subject, placed_constraints
from webhook.core.rules.rule_evaluation import noted, with_tried_fixes
from webhook.core.workloads.kinds import BUILT_IN_KINDS
from webhook.core.workloads.workload import Workload

# Other requests wait for the index meanwhile. With 5,000 nodes, ordinary objects take under a hundredth of this time.
_MAX_JUDGING_SECONDS = 0.5
_COSTLY = Decision(costly=True)


def review(request: AdmissionRequest, context: Context, *, waited: bool = True) -> Decision:
    """Judge a request of the validating route.

    If not ``waited``, the decision may ask to wait (`awaits`) for a namespace the watch has not delivered yet. The
    namespace's labels can change the outcome.
    """
    try:
        write = as_update(request, context.index) if request.sub_resource else request
        if write is None or write.object is None or not write.is_write:
            return Decision(reason="nothing to review")
        if not is_revision(write):
            given = read_within_limit(write.object, write.stated, context.policy)
        elif revised := as_stateful_set(write, context.policy, context.index):
            write, given = revised
        else:
            return Decision(reason="its owner is reviewed")
        if reason := why_unexamined(write, given, context):
            return Decision(reason=reason)
        narrowed = replace(
            context,
            budget=context.budget.at_most(_MAX_JUDGING_SECONDS),
            namespace=write.namespace,
            creating=write.operation == "CREATE",
            fixes=False,
            warned_by_policies=_warned_by_policies(request, context),
        )
        return _with_load_warning(_reviewed(write, given, narrowed, waited=waited), narrowed)
    except Exception as error:  # noqa: BLE001 an exception that the author can cause must not let the object pass
        return decide_failed(request, context, error)


def _warned_by_policies(request: AdmissionRequest, context: Context) -> frozenset[str]:
    """Return the rules of the API server's own policies. Policies match only built-in kinds: no scales or revisions."""
    return context.warned_by_policies if request.group_kind in BUILT_IN_KINDS else frozenset()


def _with_load_warning(decision: Decision, context: Context) -> Decision:
    """Add a warning if rules skipped a search because of too many other requests."""
    if context.budget.unjudged is not Missing.CROWDED or not decision.allowed:
        return decision
    if not any(each.needs_search for each in decision.not_evaluated):
        return decision
    return replace(decision, warnings=(*decision.warnings, *not_read(Missing.CROWDED.value)))


def _reviewed(request: AdmissionRequest, given: ReadObject, context: Context, *, waited: bool) -> Decision:
    new = _evaluated(given, context)
    if new is None:
        return _COSTLY
    if not new.findings:
        return decide_clean(new)
    if not waited and _lacks_only_the_namespace(request.namespace, context):
        awaits = Awaited(api_version="v1", kind="Namespace", namespace="", name=request.namespace)
        return Decision(reason="too-early", awaits=awaits)
    before = _old_object(request, context)
    # If rules see no difference, evaluate once.
    old = None if before is None else new if _are_alike(before, given) else _evaluated(before, context)
    if before is not None and old is None:
        return _COSTLY
    judged = judge_request(request, context, new, _meta_of(new))
    if before is not None and old is not None:
        unchanged = (
            new.workload is not None
            and old.workload is not None
            and _parts_but_replicas(new.workload) == _parts_but_replicas(old.workload)
        )
        excuse = unchanged or _had_time(before, old, given, context)
        had = judged if old is new else judge_by_policy(request, context, old, _meta_of(old))
        judged = excuse_old_findings(judged, old, had, excuse_unjudged=excuse, unchanged=unchanged)
    judged = drop_warned_by_policies(judged, context)
    new, judged = _with_fixes(new, drop_undenied_unanswered(judged), context)
    return decide(request, context.policy, new, judged, warns=_has_reader(new, old))


def _meta_of(evaluation: Evaluation) -> ObjectMeta:
    return evaluation.workload.meta if evaluation.workload else ObjectMeta()


def _evaluated(given: ReadObject, context: Context) -> Evaluation | None:
    """Evaluate all rules within the limits of size and cost. None if another process should evaluate the object."""
    costly, limit = cost_and_limit(given, context)
    budget = context.budget
    if costly and not budget.may_search:
        return None
    # An object that only lacks a search is judged without one. So is every object if other requests used up the time.
    if budget.unjudged is not None and (not costly or budget.unjudged is Missing.CROWDED):
        without_search = replace(context, budget=replace(budget, unjudged=None, may_search=False))
        with suppress(OutOfTimeError), budget.limit_in_a_thread():
            return with_unanswered_rules(evaluate_object(given, without_search, limit), context.policy, costly=costly)
        out_of_time = replace(context, budget=replace(budget, unjudged=Missing.TOO_COSTLY))
        return with_unanswered_rules(evaluate_object(given, out_of_time, limit), context.policy)
    evaluation = evaluate_object(given, context, limit)
    if not budget.may_search and any(each.needs_search for each in evaluation.not_evaluated):
        return None
    return with_unanswered_rules(evaluation, context.policy, costly=costly)


def _had_time(before: ReadObject, old: Evaluation, given: ReadObject, context: Context) -> bool:
    """Whether a finding of an update only warns because its rule was not evaluated for the old object.

    True if neither object is costly, or if the policy admits objects that are too large. False in all other cases: an
    author could use up the time with other requests, and then add a fault to a costly object.
    """
    ended = any(each.reason.kind is Missing.TOO_COSTLY for each in old.not_evaluated)
    costly = ended or cost_and_limit(before, context)[0] or cost_and_limit(given, context)[0]
    return context.policy.too_large == TooLarge.ALLOW or not costly


def _lacks_only_the_namespace(namespace: str, context: Context) -> bool:
    index = context.index
    if index is None or not namespace or context.policy.ceiling is Mode.OFF:
        return False
    return index.namespaces.labels(namespace) is None and not index.lacks("namespaces")


def _with_fixes(
    evaluation: Evaluation, judged: Sequence[JudgedFinding], context: Context
) -> tuple[Evaluation, tuple[JudgedFinding, ...]]:
    """Test the suggested fixes of denied findings, and drop the edits of failed fixes.

    Admission prints no edits for other findings.
    """
    denied = [each.finding for each in judged if each.mode is Mode.DENY and each.finding.edits]
    if evaluation.workload is None or not denied:
        return evaluation, tuple(judged)
    subject = Subject(workload=evaluation.workload, placed=placed_constraints(evaluation.workload), context=context)
    tried = with_tried_fixes(denied, subject)
    tested = dict(zip(map(id, denied), tried.findings, strict=True))
    fixed = tuple(replace(each, finding=tested.get(id(each.finding), each.finding)) for each in judged)
    return replace(evaluation, not_evaluated=noted((*evaluation.not_evaluated, *tried.faults))), fixed


def _old_object(request: AdmissionRequest, context: Context) -> ReadObject | None:
    if request.operation != "UPDATE" or request.old_object is None:
        return None
    # Garbage collection may orphan the object in this request, so a reviewed owner does not excuse the old object.
    return read_within_limit(request.old_object, request.stated, context.policy)


def _are_alike(one: ReadObject, other: ReadObject) -> bool:
    """Whether rules see no difference between both objects. Versions and annotations of other tools may differ."""
    if one.workload is None or other.workload is None:
        return False
    return _without_annotations(one.workload) == _without_annotations(other.workload)


def _without_annotations(workload: Workload) -> Workload:
    meta = workload.meta
    ours = {key: text for key, text in (meta.annotations or {}).items() if key.startswith(OUR_PREFIX)}
    return replace(workload, meta=replace(meta, resource_version="", annotations=ours))


def _has_reader(new: Evaluation, old: Evaluation | None) -> bool:
    """Whether a person reads the warning: no controller owns the object, and a relevant field has changed."""
    if new.workload is None:
        return old is None or new.findings != old.findings
    if new.workload.meta.controller is not None:
        return False  # a controller reads no warnings
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
    templates = [(each.path, each.pod.labels, each.pod.spec) for each in workload.templates]
    return (workload.selector, workload.strategy, templates)
