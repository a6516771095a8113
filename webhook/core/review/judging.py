"""Decide the mode of each finding: audit, warn or deny.

The mode depends on the policy. In an update, it also depends on the findings of the old object.
"""

from collections.abc import Collection, Iterable

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import ObjectMeta
from webhook.core.api.well_known import EXEMPT_ANNOTATION
from webhook.core.budget import OVERLOADED, Missing
from webhook.core.context import Context
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.policy.lookup import ceiling_for, exemption_for, mode_for
from webhook.core.policy.matching import MatchedObject
from webhook.core.policy.options import Exempts
from webhook.core.policy.policy import Mode
from webhook.core.review.evaluation import FAULT_KEY, SIZE_KEY, Evaluation
from webhook.core.rules.frame.rule import Finding, Severity
from webhook.core.rules.rule_set import BY_ID, denied_from
from webhook.core.workloads.workload import Workload

_UNJUDGED = OVERLOADED | {Missing.NO_TIME}


class JudgedFinding(Struct, frozen=True, kw_only=True):
    """A finding with its mode for this request.

    Attributes:
        configured: The mode without a ceiling.
        waived: Why the mode is below the ceiling, for example an exemption. Empty otherwise.
    """

    finding: Finding
    severity: Severity
    mode: Mode
    configured: Mode
    waived: str = ""


def target_of(meta: ObjectMeta, kind: str, namespace: str, name: str, index: ReadOnlyIndex | None) -> MatchedObject:
    """Return the object's namespace, kind, name and labels, to match exemptions and ceilings."""
    return MatchedObject(
        namespace=namespace,
        namespace_labels=(index.namespaces.labels(namespace) if index is not None else None) or {},
        kind=kind,
        name=name,
        labels=meta.labels or {},
    )


def judge(
    evaluation: Evaluation, context: Context, target: MatchedObject, meta: ObjectMeta
) -> tuple[JudgedFinding, ...]:
    """Decide the mode of each finding, and drop findings with mode off."""
    policy = context.policy
    ceiling = ceiling_for(policy, target.namespace, target.namespace_labels)
    annotated = _annotated(evaluation.workload, meta) if policy.annotations.exempt != Exempts.NONE else frozenset()
    judged = []
    for finding in evaluation.findings:
        rule = BY_ID[finding.rule]
        # The configured mode, then the ceiling of the namespace, then exemptions. Each step can only lower the mode.
        configured = mode_for(policy, rule.id, _default(finding), rule.since)
        if configured is Mode.WARN and denied_from(policy, rule):
            configured = Mode.DENY
        configured = configured.capped(finding.at_most)
        mode, waived = configured.capped(ceiling), ""
        exemption = exemption_for(policy, rule.id, target, context.today) if policy.exemptions else None
        if exemption is not None:
            mode, waived = mode.capped(Mode.AUDIT), f"exempted: {exemption.reason}"
        # The author may silence a warning, and a denial only if the policy allows it.
        elif rule.id in annotated and (mode is not Mode.DENY or policy.annotations.exempt == Exempts.DENIALS):
            mode, waived = mode.capped(Mode.AUDIT), f"exempted by {EXEMPT_ANNOTATION}"
        if mode is not Mode.OFF:
            severity = finding.severity or rule.severity
            judged.append(
                JudgedFinding(finding=finding, severity=severity, mode=mode, configured=configured, waived=waived)
            )
    return tuple(judged)


def _default(finding: Finding) -> Mode:
    rule = BY_ID[finding.rule]
    if finding.warns is None or rule.only_audits:
        return rule.mode
    return Mode.WARN if finding.warns else Mode.AUDIT


def warns_by_default(finding: Finding) -> bool:
    """Whether the finding's default mode is warn or deny."""
    return _default(finding).capped(finding.at_most) in {Mode.WARN, Mode.DENY}


def _annotated(workload: Workload | None, meta: ObjectMeta) -> frozenset[str]:
    templates = workload.templates if workload else ()
    metas = (meta, *(template.pod.meta for template in templates))
    texts = [
        meta.annotations[EXEMPT_ANNOTATION]
        for meta in metas
        if meta.annotations and EXEMPT_ANNOTATION in meta.annotations
    ]
    return frozenset(rule.strip() for text in texts for rule in text.split(","))


def drop_undenied_unanswered(judged: Iterable[JudgedFinding]) -> tuple[JudgedFinding, ...]:
    """Drop each finding added by `with_unanswered_rules`, unless it is a denial.

    Users see only denials of this kind.
    """
    return tuple(each for each in judged if each.mode is Mode.DENY or each.finding.key not in {SIZE_KEY, FAULT_KEY})


def drop_warned_by_policies(judged: Iterable[JudgedFinding], context: Context) -> tuple[JudgedFinding, ...]:
    """Drop each finding below deny whose rule the API server's own policies evaluate.

    Denials stay: they hold while the policies are missing.
    """
    return tuple(
        each for each in judged if each.mode is Mode.DENY or each.finding.rule not in context.warned_by_policies
    )


def cap_on_pods(judged: JudgedFinding) -> JudgedFinding:
    """Limit a finding's mode to the rule's highest mode for pods.

    Use for findings on pods and on objects from kube-system. A pod's author cannot add capacity, and kube-system's
    controllers must keep working.
    """
    mode = judged.mode.capped(BY_ID[judged.finding.rule].highest_on_pods)
    return judged if mode is judged.mode else replace(judged, mode=mode, waived="never denies pods or kube-system")


def excuse_old_findings(
    judged: Iterable[JudgedFinding],
    old: Evaluation,
    before: Iterable[JudgedFinding],
    *,
    excuse_unjudged: bool,
    unchanged: bool,
) -> tuple[JudgedFinding, ...]:
    """Lower a denial to a warning if the same finding would deny the old object.

    Args:
        judged: The findings of the new object.
        old: The evaluation of the old object.
        before: The findings of the old object.
        excuse_unjudged: Whether to also lower denials of rules without time for the old object.
        unchanged: Whether rules see no difference between the objects. Then a rule that raises an exception for both
            objects does not deny. After a change, the author may have caused the exception.
    """
    unjudged = {each.rule for each in old.not_evaluated if each.reason.kind in _UNJUDGED}
    had = {(each.finding.rule, each.finding.key) for each in before if each.mode is Mode.DENY}
    had -= set() if excuse_unjudged else {(rule, SIZE_KEY) for rule in unjudged}
    if not unchanged:
        had -= {each for each in had if each[1] == FAULT_KEY}
    excused = unjudged if excuse_unjudged else set[str]()
    return tuple(_subtracted(each, had, excused) if each.mode is Mode.DENY else each for each in judged)


def _subtracted(judged: JudgedFinding, had: Collection[tuple[str, str]], excused: Collection[str]) -> JudgedFinding:
    if (judged.finding.rule, judged.finding.key) in had:
        return replace(judged, mode=Mode.WARN, waived="the object had this finding before the update")
    if judged.finding.rule in excused:
        return replace(judged, mode=Mode.WARN, waived="the object before the update could not be checked")
    return judged
