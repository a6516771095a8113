"""The evaluation of all rules on an object.

Rules with the same function form a family. The function is called once for all rules of its family.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

from webhook.core.budget import Missing, Reason
from webhook.core.rules.cluster import effect
from webhook.core.rules.constraint import label_selector, match_label_keys
from webhook.core.rules.frame.as_written import Written
from webhook.core.rules.frame.rule import Finding, Need, NotEvaluated, Reevaluated, Rule, RuleAnswer, failed, guarded
from webhook.core.rules.frame.subject import Subject
from webhook.core.rules.frame.trials import Tried, tried_in_templates
from webhook.core.rules.placement import affinity_conflicts, pod_fits
from webhook.core.rules.placement.frame.case import PlacementRule, evaluate_templates
from webhook.core.rules.placement.pod_fits import Feasibility
from webhook.core.rules.rule_set import API_RULES, BY_ID, OFFLINE, RULES

# A finding is pointless if any of these other rules has a finding about the same constraint.
_MOOT_BESIDE: Mapping[str, frozenset[str]] = {
    match_label_keys.MIXED.id: frozenset(
        rule.id
        for rule in (
            *(label_selector.NULL, label_selector.EMPTY, label_selector.NOT_SELF),
            *(affinity_conflicts.CONFLICTS, effect.NO_EFFECT),
        )
    )
}
# At admission kube-apiserver has evaluated these itself, or dropped their fields.
_EVALUATED_ELSEWHERE = OFFLINE | API_RULES
_OPERATED = Reason("an operator completes the pods; check the objects it creates")
# kube-apiserver's own errors come first, in its order.
_ORDER: Mapping[str, int] = {rule.id: -1 if rule.of_api else place for place, rule in enumerate(RULES)}


class _Family(NamedTuple):
    """Rules evaluated by the same function.

    Attributes:
        evaluate: The function.
        rules: All rules of the function.
        slow: The rules that take longer in a larger cluster.
        of_any: Whether some rule applies to objects without constraints.
    """

    evaluate: Callable[[Subject], Iterable[RuleAnswer]]
    rules: tuple[Rule, ...]
    slow: tuple[Rule, ...]
    of_any: bool


def _families(rules: Sequence[Rule]) -> tuple[_Family, ...]:
    """Group the rules by their evaluation function.

    Groups that simulate scheduling (`Need.DRY_RUN`) come first, because the time limit may skip the last groups.
    """
    of_places = partial(evaluate_templates, [rule for rule in rules if isinstance(rule, PlacementRule)])
    by_function: dict[Callable[[Subject], Iterable[RuleAnswer]], list[Rule]] = {}
    for rule in rules:
        if isinstance(rule, PlacementRule):
            by_function.setdefault(of_places, []).append(rule)
        if rule.evaluate is not None:
            by_function.setdefault(rule.evaluate, []).append(rule)
    families = [
        _Family(
            function,
            rules=tuple(each),
            slow=tuple(rule for rule in each if rule.slow),
            of_any=function is not of_places and any(rule.without_constraints for rule in each),
        )
        for function, each in by_function.items()
    ]
    return tuple(sorted(families, key=lambda family: not any(Need.DRY_RUN in rule.needs for rule in family.rules)))


_FAMILIES = _families(RULES)


@lru_cache(maxsize=8)
def _families_without(skipped: frozenset[str]) -> tuple[tuple[_Family, ...], tuple[_Family, ...]]:
    """Return two tuples of rule families without the skipped rules.

    The first is for objects with constraints, the second for other objects.
    """
    families = _families([rule for rule in RULES if rule.id not in skipped])
    return families, tuple(each for each in families if each.of_any)


_REEVALUATED: Mapping[Reevaluated, tuple[_Family, ...]] = {
    when: tuple(each for each in _FAMILIES if all(rule.reevaluated is when for rule in each.rules))
    for when in Reevaluated
}
_RECOUNTING = frozenset(rule.id for rule in RULES if rule.recounts)


class _Evaluated(NamedTuple):
    """The results of all rules for an object.

    Findings are in report order. Each rule without an evaluation has one entry in ``missing``.
    """

    findings: tuple[Finding, ...]
    missing: tuple[NotEvaluated, ...]
    pod_fits: Feasibility | None = None


def evaluate(subject: Subject) -> _Evaluated:
    """Evaluate every applicable rule for an object.

    If a rule raises an exception, ``missing`` has a `NotEvaluated` with the exception in ``fault``.
    """
    answers = _answers(subject) if subject.workload.whole else [*_of_a_part(subject)]
    missing = [each for each in answers if isinstance(each, NotEvaluated)]
    findings: tuple[Finding, ...] = ()
    if len(missing) < len(answers):  # of most objects there is nothing to say
        findings = tuple(each for each in answers if isinstance(each, Finding))
        if subject.context.fixes:
            findings, faults = with_tried_fixes(findings, subject)
            missing += faults
    findings = tuple(each for each in findings if not is_moot(each, findings))
    return _Evaluated(in_report_order(findings), noted(missing), subject.computed(pod_fits.feasibility))


def is_moot(finding: Finding, beside: Sequence[Finding]) -> bool:
    """Whether another finding about the same constraint makes this finding pointless."""
    others, constraint = _MOOT_BESIDE.get(finding.rule, frozenset()), finding.path.rpartition(".")[0]
    return any(each.rule in others and f"{each.path}.".startswith(f"{constraint}.") for each in beside)


def not_looked_at(limit: Reason) -> tuple[NotEvaluated, ...]:
    """Return a `NotEvaluated` for each rule, because the object exceeds a limit. ``limit`` names the limit."""
    return tuple(NotEvaluated(rule.id, limit) for rule in RULES if rule.id not in _EVALUATED_ELSEWHERE)


def evaluate_written(written: Written) -> Iterator[RuleAnswer]:
    """Evaluate the rules about the whole object, before decoding drops unknown fields."""
    for rule in RULES:
        if rule.evaluate_written is not None:
            yield from guarded((rule,), rule.evaluate_written, written)


def in_report_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort the findings by rule. Findings of the same rule keep their order."""
    return tuple(sorted(findings, key=lambda finding: _ORDER[finding.rule]))


def _of_a_part(subject: Subject) -> Iterator[RuleAnswer]:
    """Yield answers about an operator's object. It has constraints but no complete pod template.

    Only rules for such objects are evaluated.
    """
    yield from (each for each in _answers(subject) if BY_ID[each.rule].of_a_part)
    if subject.placed:
        yield from (
            NotEvaluated(rule.id, _OPERATED)
            for rule in RULES
            if (rule.slow or isinstance(rule, PlacementRule)) and not rule.of_a_part
        )


def noted(missing: Sequence[NotEvaluated]) -> tuple[NotEvaluated, ...]:
    """Keep an entry for each rule: the first with an exception, else the first one."""
    if len({each.rule for each in missing}) == len(missing):
        return tuple(missing)
    by_rule: dict[str, NotEvaluated] = {}
    for each in missing:
        if each.rule not in by_rule or (each.fault is not None and by_rule[each.rule].fault is None):
            by_rule[each.rule] = each
    return tuple(by_rule.values())


def with_tried_fixes(findings: Sequence[Finding], subject: Subject) -> Tried:
    """Test the fixes and return the findings.

    A fix that changes the counted pods can prevent the workload's own pods from scheduling. So an offline check also
    rejects a fix if placement rules or rules about other workloads warn after it. Admission has no time for these
    rules.
    """
    tried, faults = tried_in_templates(findings, subject, _of_the_object)
    if not (subject.offline and subject.workload.whole):
        return Tried(tried, faults)
    tried, more = tried_in_templates(tried, subject, _of_places, rules=_RECOUNTING, joins=False)
    return Tried(tried, faults + more)


def _of_places(subject: Subject) -> Iterator[RuleAnswer]:
    yield from _of_the_object(subject)
    for family in _REEVALUATED[Reevaluated.AFTER_RECOUNTS]:
        for each in guarded(family.rules, family.evaluate, subject):
            if isinstance(each, Finding) and each.warns:
                yield each


def _of_the_object(subject: Subject) -> Iterator[RuleAnswer]:
    for family in _REEVALUATED[Reevaluated.AFTER_FIXES]:
        yield from guarded(family.rules, family.evaluate, subject)


def _answers(subject: Subject) -> list[RuleAnswer]:
    """Evaluate all rules on the subject. Slow rules without enough time are not evaluated."""
    answers: list[RuleAnswer] = []
    had_time = bool(subject.placed) and subject.index is not None and not subject.out_of_time
    of_constraints, of_any = _families_without(subject.context.skipped_rules)
    for family in of_constraints if subject.placed else of_any:
        try:
            answers.extend(family.evaluate(subject))
        except Exception as error:  # noqa: BLE001 as `guarded`, which would cost each review a call for each family
            answers.extend(failed(family.rules, error))
        if had_time and family.slow and subject.out_of_time:
            had_time = False
            answers += [NotEvaluated(rule.id, Missing.NO_TIME.reason) for rule in family.slow]
    return answers
