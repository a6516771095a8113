"""Make the decision: the mode of each finding, then the message, the warnings and the audit annotations."""

from collections.abc import Mapping, Sequence

from webhook.core.api.types import ObjectMeta
from webhook.core.api.well_known import KUBE_SYSTEM_ACCOUNTS_GROUP
from webhook.core.context import Context
from webhook.core.policy.policy import Mode, Policy
from webhook.core.review.as_workload import capped_for_scale
from webhook.core.review.decision import AdmissionRequest, Decision
from webhook.core.review.evaluation import Evaluation
from webhook.core.review.judging import JudgedFinding, cap_on_pods, judge, target_of
from webhook.core.review.messages import denial, warnings_of
from webhook.core.rules.frame.rule import NotEvaluated
from webhook.core.rules.placement.pod_fits import Feasibility
from webhook.core.text import object_title, one_line

# Eight messages of 1,024 characters fit into the 10 KiB limit of an audit annotation.
_MAX_AUDITED, _AUDITED_CHARS = 8, 1024
_CLEAN = Decision()


def judge_request(
    request: AdmissionRequest, context: Context, evaluation: Evaluation, meta: ObjectMeta
) -> tuple[JudgedFinding, ...]:
    """Decide the mode of each finding of the request. Pods, scales and kube-system have lower limits."""
    judged = judge_by_policy(request, context, evaluation, meta)
    if request.sub_resource:
        judged = capped_for_scale(judged)
    if request.kind == "Pod" or KUBE_SYSTEM_ACCOUNTS_GROUP in request.groups:
        judged = tuple(map(cap_on_pods, judged))
    return judged


def judge_by_policy(
    request: AdmissionRequest, context: Context, evaluation: Evaluation, meta: ObjectMeta
) -> tuple[JudgedFinding, ...]:
    """Decide the mode of each finding by the policy alone."""
    return judge(
        evaluation, context, target_of(meta, request.kind, request.namespace, request.name, context.index), meta
    )


def decide_clean(evaluation: Evaluation) -> Decision:
    """Return the decision for an object without findings."""
    if not evaluation.not_evaluated and evaluation.feasibility is None:
        return _CLEAN
    return Decision(
        not_evaluated=evaluation.not_evaluated,
        feasibility=evaluation.feasibility,
        audit=_feasibility_note(evaluation.feasibility),
    )


def decide(
    request: AdmissionRequest, policy: Policy, evaluation: Evaluation, judged: Sequence[JudgedFinding], *, warns: bool
) -> Decision:
    """Return the decision for the findings. Without ``warns``, nobody reads warnings, so it has none."""
    denied = [each.finding for each in judged if each.mode is Mode.DENY]
    warned = [each.finding for each in judged if each.mode is Mode.WARN] if warns else []
    own = request.name or (evaluation.workload.meta.generate_name if evaluation.workload else "")
    name = object_title(request.kind, request.namespace, own).removesuffix("/")
    return Decision(
        allowed=not denied,
        message=denial(name, denied, policy.messages) if denied else "",
        findings=tuple(judged),
        not_evaluated=evaluation.not_evaluated,
        warnings=warnings_of(warned),
        feasibility=evaluation.feasibility,
        audit={**_audit(judged), **_feasibility_note(evaluation.feasibility)},
    )


def _audit(judged: Sequence[JudgedFinding]) -> Mapping[str, str]:
    """Return audit annotations for the first findings, and the number of all findings. Reports have all findings.

    Keys are qualified names, because kube-apiserver drops other keys. It adds the webhook's name as a prefix.
    """
    notes = {
        f"finding-{number}": one_line(_note(each), _AUDITED_CHARS)
        for number, each in enumerate(judged[:_MAX_AUDITED], start=1)
    }
    if judged:
        notes["findings"] = str(len(judged))
    return notes


def _note(judged: JudgedFinding) -> str:
    path = f"{judged.finding.path}: "  # kube-apiserver's own words begin with it
    return f"{judged.finding.rule} {judged.mode} {path}{_sentence(judged).removeprefix(path)}"


def _sentence(judged: JudgedFinding) -> str:
    parts = (judged.finding.summary, judged.finding.remedy, judged.waived)
    return "; ".join(part for part in parts if part)


def _feasibility_note(feasibility: Feasibility | None) -> Mapping[str, str]:
    """Return an audit annotation with the reason why a pod's dry run has no result.

    Empty if the dry run has a result. Users do not see the annotation.
    """
    if feasibility is None or not isinstance(feasibility.answer, NotEvaluated):
        return {}
    return {"feasibility": f"{feasibility.verdict}: {one_line(feasibility.answer.missing)}"}
