"""Evaluate every rule for an object.

A rule on deny without a result becomes a finding.

object -> `read_object` -> ReadObject -> `evaluate_object` -> Evaluation -> `judge` -> JudgedFinding
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.apiserver.decoding import DecodeError
from webhook.core.budget import OF_SIZE, OVERLOADED, Missing, Reason
from webhook.core.context import Context
from webhook.core.groups.reading import memberships
from webhook.core.policy.options import TooLarge
from webhook.core.policy.policy import Policy
from webhook.core.review.read_object import ReadObject
from webhook.core.rules.constraint.api import wrong_type
from webhook.core.rules.frame.rule import Finding, NotEvaluated, RuleAnswer
from webhook.core.rules.frame.subject import Subject, placed_constraints
from webhook.core.rules.frame.trials import Tried
from webhook.core.rules.object_cost import MAX_TEMPLATES, weigh
from webhook.core.rules.placement.group_caps import has_many_caps
from webhook.core.rules.placement.pod_fits import Feasibility
from webhook.core.rules.rule_evaluation import evaluate, in_report_order, not_looked_at, noted
from webhook.core.rules.rule_set import API_RULES, OFFLINE, RULES
from webhook.core.workloads.kinds import BUILT_IN_KINDS, GroupKind
from webhook.core.workloads.reading import parse_object
from webhook.core.workloads.workload import Workload, namespace_of

# The keys of findings about an unknown answer. Findings of the old and the new object are compared by their keys.
SIZE_KEY = "the object's size"
FAULT_KEY = "the rule failed"


class Evaluation(Struct, frozen=True):
    """The findings for an object, and the rules that were not evaluated.

    ``workload`` is None if the object cannot be decoded (``decode_error``).
    """

    workload: Workload | None
    findings: tuple[Finding, ...]
    not_evaluated: tuple[NotEvaluated, ...] = ()
    decode_error: DecodeError | None = None
    feasibility: Feasibility | None = None

    @property
    def answers(self) -> tuple[RuleAnswer, ...]:
        """All answers, findings first."""
        return (*self.findings, *self.not_evaluated)

    def with_answers(self, answers: Sequence[RuleAnswer]) -> "Evaluation":
        """Return the evaluation with the findings and unevaluated rules in ``answers`` added."""
        missing = (answer for answer in answers if isinstance(answer, NotEvaluated))
        findings = in_report_order((*self.findings, *(answer for answer in answers if isinstance(answer, Finding))))
        return replace(self, findings=findings, not_evaluated=(*self.not_evaluated, *missing))

    def with_fixes(self, tried: Tried) -> "Evaluation":
        """Return the evaluation with the findings of ``tried``, whose fixes were tested.

        Rules that failed in these tests are added to the rules not evaluated.
        """
        return replace(self, findings=tried.findings, not_evaluated=noted((*self.not_evaluated, *tried.faults)))


def evaluate_object(given: ReadObject, context: Context, limit: Reason | None = None) -> Evaluation:
    """Evaluate all rules. Without a pod template, or with an exceeded ``limit``, no rule is evaluated."""
    workload, error = given.workload, given.decode_error
    if error is not None:
        return Evaluation(None, (wrong_type(error, lambda: parse_object(given.raw)),), decode_error=error)
    if given.limit:
        missed = not_looked_at(given.limit)
        allowed = context.policy.too_large == TooLarge.ALLOW
        return Evaluation(None, () if allowed else tuple(_unanswered(each, "spec") for each in missed), missed)
    if workload is None:
        return Evaluation(None, ())
    # Rules compare the object with others in the namespace where it would be created.
    namespace = _namespace(workload, context)
    if namespace and workload.meta.namespace != namespace:
        workload = replace(workload, meta=replace(workload.meta, namespace=namespace))
    if limit:
        return Evaluation(workload, (), not_looked_at(limit))
    subject = Subject(workload=workload, placed=placed_constraints(workload), context=context)
    findings, missing, feasibility = evaluate(subject)
    return Evaluation(workload, findings, missing, feasibility=feasibility)


def cost_and_limit(given: ReadObject, context: Context) -> tuple[bool, Reason | None]:
    """Return whether evaluating the object would delay other reviews, and the exceeded size limit or None."""
    workload, index = given.workload, context.index
    if workload is None:
        return False, None
    nodes = 0 if index is None else len(index.nodes.view())
    namespace = _namespace(workload, context)
    if index is None or not index.namespaces.groups(namespace):
        return weigh(workload, nodes)
    templates = workload.templates[:MAX_TEMPLATES]  # an object with more templates exceeds a limit anyway
    selected = [tuple(memberships(namespace, each.pod.labels, index)) for each in templates]
    if has_many_caps(workload, selected, index):
        return True, weigh(workload, nodes)[1]
    return weigh(workload, nodes, grouped=any(selected))


def _namespace(workload: Workload, context: Context) -> str:
    return namespace_of(workload.meta.namespace, context.namespace) if context.offline else context.namespace


def with_unanswered_rules(evaluation: Evaluation, policy: Policy, *, costly: bool = False) -> Evaluation:
    """Add a finding for each rule that raised, or skipped the object for its size.

    Without these findings, a huge object, or an object that makes a rule raise, would escape a rule in deny mode. Users
    only see a finding of a rule in deny mode. `tooLarge: allow` in the policy adds no findings.

    Args:
        evaluation: The evaluation of the object.
        policy: The policy.
        costly: Whether the object is costly to evaluate. If time ran out, the finding then names the object's size as
            the reason.
    """
    if costly:
        missing = (
            replace(gap, reason=Missing.TOO_COSTLY.reason) if gap.reason.kind is Missing.NO_TIME else gap
            for gap in evaluation.not_evaluated
        )
        evaluation = replace(evaluation, not_evaluated=tuple(missing))
    if not evaluation.not_evaluated or evaluation.workload is None or policy.too_large == TooLarge.ALLOW:
        return evaluation
    # kube-apiserver itself checks the API rules for built-in kinds.
    sure = API_RULES if evaluation.workload.built_in else frozenset[str]()
    missed = [
        gap
        for gap in evaluation.not_evaluated
        if gap.reason.kind in OF_SIZE or (gap.fault is not None and gap.rule not in sure)
    ]
    if not missed:
        return evaluation
    path = f"{evaluation.workload.templates[0].path}spec" if evaluation.workload.templates else "spec"
    return replace(
        evaluation, findings=in_report_order((*evaluation.findings, *(_unanswered(gap, path) for gap in missed)))
    )


def evaluation_without_answers(kind: GroupKind, why: Reason, error: Exception | None = None) -> Evaluation:
    """Return an evaluation with a finding for each rule, because no rule was evaluated.

    Use this for an undecoded object, or after an exception. Each finding states the reason ``why``.
    """
    unasked = OFFLINE | (API_RULES if kind in BUILT_IN_KINDS else frozenset())
    missed = (NotEvaluated(rule.id, why, error) for rule in RULES if rule.id not in unasked)
    return Evaluation(None, tuple(_unanswered(each, "spec") for each in missed))


def _unanswered(missed: NotEvaluated, path: str) -> Finding:
    why, kind = missed.missing, missed.reason.kind
    if missed.fault is not None:
        summary, remedy = f"{missed.rule} failed on this object because of a bug in evenspread", "report the bug"
        detail = "the rule is on deny and its answer is unknown, so the object is denied"
        fix = (
            "ask the admins of evenspread to report the error to its project (it is in the webhook's log); until it is "
            "fixed, they can exempt the object or set tooLarge: allow"
        )
    elif kind in OVERLOADED:
        summary, remedy = why, "make the object smaller, or try again"
        detail = f"{why}: the rule is on deny and cannot check an object of this size now, so the object is denied"
        fix = "remove constraints, terms or requirements you do not need, or try again later"
    else:
        summary, remedy = f"{why}: too large for {missed.rule} to check", "make the object smaller"
        where = "" if kind is Missing.IMMENSE else " against the cluster"
        detail = f"{why}: the rule is on deny and cannot check so many{where}, so the object is denied"
        fix = "remove what you do not need, or ask the admins of evenspread to exempt the object or set tooLarge: allow"
    key = SIZE_KEY if missed.fault is None else FAULT_KEY
    return Finding(rule=missed.rule, path=path, summary=summary, remedy=remedy, detail=detail, fix=fix, key=key)
