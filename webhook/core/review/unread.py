"""Decide a request without a review: its object could not be read, or the review raised an exception.

Both decide as if no rule had an answer: a rule in mode deny denies.
"""

from msgspec.structs import replace

from webhook.core.api.types import ObjectMeta
from webhook.core.apiserver.decoding import DecodeError
from webhook.core.budget import Missing, Reason
from webhook.core.context import Context
from webhook.core.decoders import has_more_values
from webhook.core.policy.options import TooLarge
from webhook.core.review.as_workload import is_revision
from webhook.core.review.decision import AdmissionRequest, Decision
from webhook.core.review.evaluation import Evaluation, evaluation_without_answers
from webhook.core.review.judging import drop_undenied_unanswered
from webhook.core.review.messages import not_read
from webhook.core.review.outcome import decide, judge_request
from webhook.core.review.skip_reasons import is_controller
from webhook.core.rules.object_cost import MAX_VALUES
from webhook.core.workloads.kind_fields import constraint_paths
from webhook.core.workloads.reading import parse_object, read_meta

_NO_META = ObjectMeta()


def decide_unread(request: AdmissionRequest, context: Context, why: Reason, *, may_deny: bool) -> Decision:
    """Decide a request with an object that could not be read.

    Deny the request if a rule in mode deny applies. With ``tooLarge: allow`` in the policy, or without ``may_deny``
    (the mutating route), admit it with a warning.
    """
    decision, policy, kind = Decision(), context.policy, request.group_kind
    if may_deny:
        if request.sub_resource or not request.is_write:
            return Decision(reason="nothing to review")
        if is_controller(request.user, policy):
            return Decision(reason="its owner is reviewed")
        if not is_revision(request) and not constraint_paths(request.api_version, request.kind, policy.workloads):
            return Decision(reason="no pod template")
        if policy.too_large != TooLarge.ALLOW:
            decision = _denied_unanswered(request, context, evaluation_without_answers(kind, why), _NO_META)
    return replace(decision, reason=why.text, warnings=not_read(why.text) if decision.allowed else ())


def decide_failed(request: AdmissionRequest, context: Context, error: Exception) -> Decision:
    """Decide a request whose review raised an exception, as if every rule had raised.

    Updates of only metadata or status are allowed, and so are objects made by a controller from a reviewed object.
    """
    policy, controlled = context.policy, is_controller(request.user, context.policy)
    if policy.too_large == TooLarge.ALLOW or controlled or request.object is None or _changes_metadata_only(request):
        return Decision(reason="internal error", audit={"error": "internal"}, fault=error)
    evaluation = evaluation_without_answers(request.group_kind, Missing.RULE_FAILED.reason, error)
    decision = _denied_unanswered(request, context, evaluation, read_meta(request.object))
    return replace(decision, audit={**decision.audit, "error": "internal"}, fault=error)


def _changes_metadata_only(request: AdmissionRequest) -> bool:
    if request.operation != "UPDATE" or request.object is None or request.old_object is None:
        return False
    if has_more_values(request.object, MAX_VALUES) or has_more_values(request.old_object, MAX_VALUES):
        return False
    try:
        kept = [parse_object(each) for each in (request.object, request.old_object)]
    except DecodeError:
        return False
    new, old = ({**each, "metadata": 0, "status": 0} for each in kept if isinstance(each, dict))
    return new == old


def _denied_unanswered(
    request: AdmissionRequest, context: Context, evaluation: Evaluation, meta: ObjectMeta
) -> Decision:
    judged = drop_undenied_unanswered(judge_request(request, context, evaluation, meta))
    return decide(request, context.policy, evaluation, judged[:1], warns=False)
