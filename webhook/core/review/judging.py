"""Evaluate the rules for one object, and decide the mode of each finding.

object -> read_object -> ReadObject       its pod templates, or why they cannot be read
ReadObject -> evaluated -> Evaluation    every rule's answer
Evaluation -> judge -> Judged            each finding after the policy's modes, ceilings and exemptions
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Raw, Struct
from msgspec.structs import replace

from webhook.core.api.types import ObjectMeta, TypeMeta
from webhook.core.api.well_known import EXEMPT_ANNOTATION
from webhook.core.apiserver.decoding import DecodeError
from webhook.core.budget import OF_SIZE, OVERLOADED, Missing, Reason
from webhook.core.context import Context
from webhook.core.decoders import has_more_values
from webhook.core.groups.reading import memberships
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.policy.policy import Exempts, MatchedObject, Mode, Policy, TooLarge, ceiling_for, exempted, mode_for
from webhook.core.rules.constraint.api import wrong_type
from webhook.core.rules.frame.rule import Finding, NotEvaluated, RuleAnswer, Severity
from webhook.core.rules.frame.subject import Subject, place
from webhook.core.rules.frame.trials import Tried
from webhook.core.rules.limits import MAX_TEMPLATES, MAX_VALUES, TOO_MANY_VALUES, weigh
from webhook.core.rules.placement.group_caps import has_many_caps
from webhook.core.rules.placement.pod_fits import Feasibility
from webhook.core.rules.rule_set import (
    API_RULES,
    BY_ID,
    OFFLINE,
    RULES,
    denied_from,
    evaluate,
    in_report_order,
    not_looked_at,
    noted,
)
from webhook.core.workloads.kinds import BUILT_IN_KINDS, GroupKind
from webhook.core.workloads.reading import constraint_paths, parsed, read_meta, read_workload
from webhook.core.workloads.workload import Workload, namespace_of

_NO_META = ObjectMeta()
_UNJUDGED = OVERLOADED | {Missing.NO_TIME}
_OF_SIZE = "the object's size"
_OF_FAULT = "the rule failed"


class Judged(Struct, frozen=True, kw_only=True):
    """A finding with its mode for this request.

    Attributes:
        configured: The mode without a ceiling.
        waived: Why the mode is below the ceiling: an exemption, or the same finding in the old object.
    """

    finding: Finding
    severity: Severity
    mode: Mode
    configured: Mode
    waived: str = ""


class ReadObject(Struct, frozen=True):
    """An object as received, and its decoded workload.

    Attributes:
        workload: None for a kind without a pod template, and with a ``decode_error``.
        meta: The metadata, as far as they can be read.
        limit: The limit that the object exceeds. Then it is not decoded.
    """

    raw: bytes | Raw | Mapping[str, object]
    workload: Workload | None
    meta: ObjectMeta
    decode_error: DecodeError | None = None
    limit: Reason | None = None


UNREAD = ReadObject(b"", None, _NO_META, limit=TOO_MANY_VALUES)


class Evaluation(Struct, frozen=True):
    """The answers of all rules for one object. ``workload`` is None with a ``decode_error``."""

    workload: Workload | None
    findings: tuple[Finding, ...]
    not_evaluated: tuple[NotEvaluated, ...] = ()
    decode_error: DecodeError | None = None
    feasibility: Feasibility | None = None

    @property
    def answers(self) -> tuple[RuleAnswer, ...]:
        """All answers, findings first."""
        return (*self.findings, *self.not_evaluated)

    def and_of(self, answers: Sequence[RuleAnswer]) -> "Evaluation":
        """The evaluation with the answers of further rules."""
        missing = (each for each in answers if isinstance(each, NotEvaluated))
        told = in_report_order((*self.findings, *(each for each in answers if isinstance(each, Finding))))
        return replace(self, findings=told, not_evaluated=(*self.not_evaluated, *missing))

    def with_fixes(self, tried: Tried) -> "Evaluation":
        """The evaluation with tried fixes, and with the exceptions of the trials."""
        return replace(self, findings=tried.findings, not_evaluated=noted((*self.not_evaluated, *tried.faults)))


def read_object(raw: bytes | Raw | Mapping[str, object], of: TypeMeta, policy: Policy) -> ReadObject:
    """Decode an object. ``of`` is its type, from the object itself or from the request."""
    try:
        workload = read_workload(raw, policy.workloads, api_version=of.api_version, kind=of.kind)
    except DecodeError as error:
        return ReadObject(raw, None, read_meta(raw), error)
    return ReadObject(raw, workload, workload.meta if workload else _NO_META)


def read_in_time(raw: bytes | Raw, of: TypeMeta, policy: Policy) -> ReadObject:
    """As `read_object`, at admission, where others wait. More than `MAX_VALUES` values are not decoded."""
    api_version, kind = of.api_version or "", of.kind or ""
    if has_more_values(raw, MAX_VALUES) and constraint_paths(api_version, kind, policy.workloads):
        return UNREAD
    return read_object(raw, of, policy)


def evaluated(given: ReadObject, context: Context, limit: Reason | None = None) -> Evaluation:
    """Evaluate all rules. No rule is evaluated for an object without a pod template or beyond the ``limit``."""
    workload, error, namespace = given.workload, given.decode_error, context.namespace
    if error is not None:
        return Evaluation(None, (wrong_type(error, lambda: parsed(given.raw)),), decode_error=error)
    if given.limit:
        missed = not_looked_at(given.limit)
        allowed = context.policy.too_large == TooLarge.ALLOW
        return Evaluation(None, () if allowed else tuple(_unanswered(each, "spec") for each in missed), missed)
    if workload is None:
        return Evaluation(None, ())
    if namespace and workload.meta.namespace != namespace and not (context.offline and workload.meta.namespace):
        # Where it would be created; rules look there for what else is in the cluster.
        workload = replace(workload, meta=replace(workload.meta, namespace=namespace))
    if limit:
        return Evaluation(workload, (), not_looked_at(limit))
    subject = Subject(workload=workload, placed=place(workload), context=context)
    findings, missing, feasibility = evaluate(subject)
    return Evaluation(workload, findings, missing, feasibility=feasibility)


def weighed(given: ReadObject, context: Context) -> tuple[bool, Reason | None]:
    """Whether the object is costly, and the limit it exceeds, if any. No rule evaluates an object beyond a limit."""
    workload, index = given.workload, context.index
    if workload is None:
        return False, None
    nodes = 0 if index is None else len(index.nodes.view())
    namespace = context.namespace or namespace_of(workload.meta.namespace)
    if index is None or not index.namespaces.groups(namespace):
        return weigh(workload, nodes)
    templates = workload.templates[:MAX_TEMPLATES]  # of more nothing is looked at
    selected = [tuple(memberships(namespace, each.template.labels, index)) for each in templates]
    if has_many_caps(workload, selected, index):
        return True, weigh(workload, nodes)[1]
    return weigh(workload, nodes, grouped=any(selected))


def target_of(meta: ObjectMeta, kind: str, namespace: str, name: str, index: ReadOnlyIndex | None) -> MatchedObject:
    """The facts of the object that exemptions and ceilings match."""
    return MatchedObject(
        namespace=namespace,
        namespace_labels=(index.namespaces.labels(namespace) if index is not None else None) or {},
        kind=kind,
        name=name,
        labels=meta.labels or {},
    )


def judge(found: Evaluation, context: Context, target: MatchedObject, meta: ObjectMeta) -> tuple[Judged, ...]:
    """Decide the mode of each finding; findings that are off are left out."""
    policy = context.policy
    ceiling = ceiling_for(policy, target.namespace, target.namespace_labels)
    annotated = _annotated(found.workload, meta) if policy.annotations.exempt != Exempts.NONE else frozenset()
    told = []
    for finding in found.findings:
        rule = BY_ID[finding.rule]
        # The configured mode, then the ceiling of the namespace, then exemptions. Each step can only lower the mode.
        configured = mode_for(policy, rule.id, _default(finding), rule.since)
        if configured is Mode.WARN and denied_from(policy, rule):
            configured = Mode.DENY
        configured = configured.capped(finding.at_most)
        mode, waived = configured.capped(ceiling), ""
        exemption = exempted(policy, rule.id, target, context.today) if policy.exemptions else None
        if exemption is not None:
            mode, waived = mode.capped(Mode.AUDIT), f"exempted: {exemption.reason}"
        # The author may silence a warning, and a denial only if the policy allows it.
        elif rule.id in annotated and (mode is not Mode.DENY or policy.annotations.exempt == Exempts.DENIALS):
            mode, waived = mode.capped(Mode.AUDIT), f"exempted by {EXEMPT_ANNOTATION}"
        if mode is not Mode.OFF:
            told.append(
                Judged(
                    finding=finding,
                    severity=finding.severity or rule.severity,
                    mode=mode,
                    configured=configured,
                    waived=waived,
                )
            )
    return tuple(told)


def _default(finding: Finding) -> Mode:
    rule = BY_ID[finding.rule]
    if finding.warns is None or rule.only_audits:
        return rule.mode
    return Mode.WARN if finding.warns else Mode.AUDIT


def warns_by_default(finding: Finding) -> bool:
    """Whether the finding warns or denies by default."""
    return _default(finding).capped(finding.at_most) in {Mode.WARN, Mode.DENY}


def _annotated(workload: Workload | None, meta: ObjectMeta) -> frozenset[str]:
    """The rules in exemption annotations of the object and its templates."""
    templates = workload.templates if workload else ()
    metas = (meta, *(template.template.meta for template in templates))
    texts = [
        meta.annotations[EXEMPT_ANNOTATION]
        for meta in metas
        if meta.annotations and EXEMPT_ANNOTATION in meta.annotations
    ]
    return frozenset(rule.strip() for text in texts for rule in text.split(","))


def with_unanswered(found: Evaluation, policy: Policy, *, costly: bool = False) -> Evaluation:
    """Add a finding for each rule that could not look at the object for its size, or that raised.

    Otherwise an author could switch off rules on deny by a large object or one that makes a rule raise. `tooLarge` in
    the policy turns this off. Only denials are reported. A ``costly`` object ran out of time because of its size.
    """
    if costly:
        told = (
            replace(each, reason=Missing.TOO_COSTLY.reason) if each.reason.kind is Missing.NO_TIME else each
            for each in found.not_evaluated
        )
        found = replace(found, not_evaluated=tuple(told))
    if not found.not_evaluated or found.workload is None or policy.too_large == TooLarge.ALLOW:
        return found
    # kube-apiserver itself checks the API rules for built-in kinds.
    sure = API_RULES if found.workload.built_in else frozenset[str]()
    missed = [
        each
        for each in found.not_evaluated
        if each.reason.kind in OF_SIZE or (each.fault is not None and each.rule not in sure)
    ]
    if not missed:
        return found
    path = f"{found.workload.templates[0].path}spec" if found.workload.templates else "spec"
    return replace(found, findings=in_report_order((*found.findings, *(_unanswered(each, path) for each in missed))))


def failing(kind: GroupKind, why: Reason, error: Exception | None = None) -> Evaluation:
    """The evaluation of an unread object, or after an exception of the review: no rule has an answer."""
    unasked = OFFLINE | (API_RULES if kind in BUILT_IN_KINDS else frozenset())
    missed = (NotEvaluated(rule.id, why, error) for rule in RULES if rule.id not in unasked)
    return Evaluation(None, tuple(_unanswered(each, "spec") for each in missed))


def _unanswered(missed: NotEvaluated, path: str) -> Finding:
    """The finding for a rule without an answer, with the reason."""
    why, kind = missed.missing, missed.reason.kind
    if missed.fault is not None:
        summary = f"{missed.rule} failed on this object, which is a fault of evenspread"
        detail, remedy = "the rule is on deny, and its answer is unknown", "report it"
        fix = (
            "let whoever runs evenspread report the fault from the log; until then they can exempt the object, or set "
            "tooLarge: allow"
        )
    elif kind in OVERLOADED:
        summary, remedy = why, "write less, or try again"
        detail = f"{why}: the rule is on deny, and cannot look at an object of this size now"
        fix = "remove constraints, terms or requirements that are not needed; else try again when less is going on"
    else:
        summary, remedy = f"{why}, too large for {missed.rule} to look at", "write less"
        where = "" if kind is Missing.IMMENSE else " beside the cluster"
        detail = f"{why}: the rule is on deny, and cannot look at so many{where}"
        fix = "remove what is not needed; or let whoever runs evenspread exempt the object, or set tooLarge: allow"
    key = _OF_SIZE if missed.fault is None else _OF_FAULT
    return Finding(rule=missed.rule, path=path, summary=summary, remedy=remedy, detail=detail, fix=fix, key=key)


def only_denied_unanswered(judged: Iterable[Judged]) -> tuple[Judged, ...]:
    """Drop findings of `with_unanswered` that do not deny. They only state an unknown answer."""
    return tuple(each for each in judged if each.mode is Mode.DENY or each.finding.key not in {_OF_SIZE, _OF_FAULT})


def never_denied_for_places(judged: Judged) -> Judged:
    """Lower the mode on pods, and on what kube-system creates, to the rule's highest there.

    A pod is not at fault for missing room, and controllers in kube-system must be able to work.
    """
    mode = judged.mode.capped(BY_ID[judged.finding.rule].highest_on_pods)
    return judged if mode is judged.mode else replace(judged, mode=mode, waived="never denied here")


def subtract(
    judged: Iterable[Judged],
    old: Evaluation,
    before: Iterable[Judged],
    *,
    excuse_unjudged: bool,
    unchanged: bool,
) -> tuple[Judged, ...]:
    """Lower denials to warnings if the old object had the same finding, or had no time to be evaluated.

    Only a finding ``before`` on deny excuses one: a former note is new as a fault. A rule that raised on the old object
    excuses no finding of the new one, since the author may have caused it. Only if both are ``unchanged`` to rules, a
    rule that raises on both does not deny. Without ``excuse_unjudged``, an old object that ran out of time excuses
    nothing.
    """
    unjudged = {each.rule for each in old.not_evaluated if each.reason.kind in _UNJUDGED}
    had = {(each.finding.rule, each.finding.key) for each in before if each.mode is Mode.DENY}
    had -= set() if excuse_unjudged else {(rule, _OF_SIZE) for rule in unjudged}
    if not unchanged:
        had -= {each for each in had if each[1] == _OF_FAULT}
    excused = unjudged if excuse_unjudged else set[str]()
    return tuple(_subtracted(each, had, excused) if each.mode is Mode.DENY else each for each in judged)


def _subtracted(judged: Judged, had: Collection[tuple[str, str]], excused: Collection[str]) -> Judged:
    if (judged.finding.rule, judged.finding.key) in had:
        return replace(judged, mode=Mode.WARN, waived="the old object had it")
    if judged.finding.rule in excused:
        return replace(judged, mode=Mode.WARN, waived="the old object could not be looked at")
    return judged
