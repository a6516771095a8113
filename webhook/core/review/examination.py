"""Examine one object with all rules, for the command line, reports and the console."""

from collections.abc import Callable, Collection, Mapping

from msgspec.structs import replace

from webhook.core.api.types import TypeMeta
from webhook.core.apiserver.decoding import DecodeError
from webhook.core.apiserver.validation import constraint_warnings
from webhook.core.context import Context
from webhook.core.review.decision import Examination
from webhook.core.review.evaluation import Evaluation, cost_and_limit, evaluate_object
from webhook.core.review.judging import JudgedFinding, judge, target_of, warns_by_default
from webhook.core.review.read_object import read_object
from webhook.core.rules.constraint.api import wrong_type
from webhook.core.rules.constraint.unknown_fields import UNKNOWN_FIELD, right_paths
from webhook.core.rules.frame.as_written import Written
from webhook.core.rules.frame.rule import Finding, RuleAnswer, Severity
from webhook.core.rules.frame.trials import tried_as_a_whole
from webhook.core.rules.rule_evaluation import evaluate_written, is_moot
from webhook.core.rules.rule_set import API_RULES, BY_ID, OFFLINE
from webhook.core.workloads.reading import parse_object, reaches_template, read_exactly, read_meta, stated_type
from webhook.core.workloads.workload import Workload


def examine(
    raw: bytes | Mapping[str, object],
    context: Context,
    *,
    as_written: Callable[[str], str] = lambda _path: "",
) -> Examination:
    """Examine one object with all rules, regardless of its owner and earlier versions.

    Args:
        raw: The object, as JSON text or as a mapping.
        context: The policy, the cluster and the time limit.
        as_written: Returns the text of a scalar in the file by its path. Empty if unknown.

    Raises:
        DecodeError: The text is not a JSON object, or its apiVersion or kind is not a string.
    """
    stated = stated_type(raw)
    context = replace(context, offline=True)
    try:
        evaluation, strict = _exactly(raw, stated, context)
    except DecodeError as error:
        evaluation, strict = Evaluation(None, (), decode_error=error), ()
    if evaluation.decode_error is not None:
        wrong = wrong_type(evaluation.decode_error, lambda: parse_object(raw), as_written)
        evaluation = replace(
            evaluation, findings=(wrong, *(each for each in evaluation.findings if each.rule != wrong.rule))
        )
    workload = evaluation.workload
    meta = workload.meta if workload else read_meta(raw)
    target = target_of(meta, stated.kind or "", meta.namespace or context.namespace, meta.name, context.index)
    return Examination(
        workload=workload,
        findings=judge(evaluation, context, target, meta),
        not_evaluated=evaluation.not_evaluated,
        decode_error=evaluation.decode_error,
        warnings=strict + (_api_warnings(workload, evaluation) if workload is not None and workload.built_in else ()),
    )


def _exactly(
    raw: bytes | Mapping[str, object], stated: TypeMeta, context: Context
) -> tuple[Evaluation, tuple[str, ...]]:
    """Evaluate the object as stored by kube-apiserver.

    The second result is kube-apiserver's warnings. The findings also cover fields that kube-apiserver drops or does not
    read. A fix is left out if the fixed object has new findings that warn. Without a cluster, only fixes that rename or
    move fields are tested. With a cluster, all fixes are tested except those of API rules.
    """
    kept, strict = read_exactly(raw, stated, context.version)
    given = read_object(kept, stated, context.policy)
    if limit := cost_and_limit(given, context)[1]:
        return evaluate_object(given, context, limit), strict
    evaluation = evaluate_object(given, context)
    written = Written(
        raw=raw, stated=stated, embedded=context.policy.workloads, workload=evaluation.workload, warnings=strict
    )
    evaluation = _without_repeated_unknown_fields(evaluation.with_answers((*evaluate_written(written),)))
    if not context.fixes:
        return evaluation, strict

    def again(changed: Mapping[str, object]) -> tuple[RuleAnswer, ...]:
        return _exactly(changed, stated_type(changed), replace(context, fixes=False))[0].answers

    def speaks_against(finding: Finding) -> bool:
        # A moved field can reveal findings that existed before. Only severe ones count against the edit.
        severity = finding.severity or BY_ID[finding.rule].severity
        hidden = severity is not Severity.HIGH and (context.index is None or is_moot(finding, evaluation.findings))
        return warns_by_default(finding) and not hidden

    rules = OFFLINE if context.index is None else BY_ID.keys() - API_RULES
    return evaluation.with_fixes(tried_as_a_whole(evaluation.answers, rules, raw, again, speaks_against)), strict


def _without_repeated_unknown_fields(evaluation: Evaluation) -> Evaluation:
    """Drop an unknown-field finding if another rule has a finding at its path. That rule knows the intended field."""
    elsewhere = {finding.path for finding in evaluation.findings if finding.rule != UNKNOWN_FIELD.id}
    kept = (each for each in evaluation.findings if each.rule != UNKNOWN_FIELD.id or each.path not in elsewhere)
    return replace(evaluation, findings=tuple(kept))


def without_repeated_mistakes(findings: Collection[JudgedFinding]) -> list[JudgedFinding]:
    """Drop errors about an absent field if another finding of these is about its misspelt or misplaced name."""
    paths = right_paths(each.finding for each in findings if not each.waived)
    return [each for each in findings if each.finding.path not in paths]


def _api_warnings(workload: Workload, evaluation: Evaluation) -> tuple[str, ...]:
    """Return kube-apiserver's warnings. For a rejected object it sends none."""
    if any(finding.rule in API_RULES for finding in evaluation.findings) or not reaches_template(workload):
        return ()
    return tuple(
        warning
        for template in workload.templates
        for warning in constraint_warnings(template.pod.pod_spec.constraints, template.constraints_path)
    )
