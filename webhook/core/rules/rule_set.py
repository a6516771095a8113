"""What kube-apiserver does not say of a constraint, and what it does: the tuple of all rules, and how they are asked.

A rule registers here, by one line in `RULES`; what else is to be known of it, it carries itself (`Rule`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from webhook.core.rules.cluster import (
    all_in_one_domain,
    autoscalers,
    differing_constraints,
    effect,
    nodes,
    shared_selectors,
)
from webhook.core.rules.constraint import (
    api,
    label_selector,
    match_label_keys,
    pods_refused,
    topology_key,
    unknown_fields,
    unread_constraints,
)
from webhook.core.rules.frame.rule import Answer, AskedAgain, Finding, Need, NotEvaluated, Rule, failed, guarded
from webhook.core.rules.frame.subject import NO_TIME, Subject
from webhook.core.rules.frame.trials import Tried, tried_in_templates
from webhook.core.rules.frame.written import Written
from webhook.core.rules.placement import (
    affinity_conflicts,
    each_template,
    min_domains,
    not_yet,
    pod_fits,
    tainted_nodes,
    zone_host_ceiling,
    zone_loss,
)
from webhook.core.rules.placement.each_template import PlacementRule
from webhook.core.rules.placement.pod_fits import Feasibility

# In the order in which findings are reported.
RULES: tuple[Rule, ...] = (
    *api.RULES,
    pods_refused.REFUSED,
    unknown_fields.UNKNOWN_FIELD,
    unread_constraints.UNREAD,
    label_selector.NULL,
    label_selector.EMPTY,
    label_selector.NOT_SELF,
    shared_selectors.TOO_WIDE,
    match_label_keys.MIXED,
    match_label_keys.ABSENT,
    match_label_keys.WRONG_KIND,
    nodes.KEY_UNKNOWN,
    nodes.KEY_PARTIAL,
    topology_key.TYPO,
    topology_key.DEPRECATED,
    tainted_nodes.TAINTED,
    min_domains.MIN_DOMAINS,
    zone_host_ceiling.CEILING,
    affinity_conflicts.CONFLICTS,
    zone_loss.ZONE_LOSS,
    all_in_one_domain.ALL_IN_ONE,
    effect.DEFAULTS_LOST,
    effect.NO_EFFECT,
    differing_constraints.DIFFER,
    autoscalers.AUTOSCALER,
    effect.REQUIRED,
    pod_fits.DO_NOT_FIT,
    not_yet.STUCK,
    not_yet.ROLLOUT_STUCK,
    not_yet.GROUP_CAP,
)

BY_ID: Mapping[str, Rule] = {rule.id: rule for rule in RULES}
API_RULES = frozenset(rule.id for rule in RULES if rule.of_api)
# They have nothing to say where no cluster is known; some say a part of it.
NEED_CLUSTER = frozenset(rule.id for rule in RULES if rule.needs)
# The webhook never asks them: what they look at is gone from an object before it is called.
OFFLINE = frozenset(rule.id for rule in RULES if rule.ask_written is not None)

_OPERATED = "an operator adds to the pods; look at what it makes"
# What kube-apiserver says comes first, and in its own order.
_ORDER: Mapping[str, int] = {rule.id: -1 if rule.of_api else place for place, rule in enumerate(RULES)}


class Family(NamedTuple):
    """Rules that one function answers for.

    Shape: ``slow`` are those of the rules that take more time the more there is in the cluster.
    """

    ask: Callable[[Subject], Iterable[Answer]]
    rules: tuple[Rule, ...]
    slow: tuple[Rule, ...]


def families(rules: Sequence[Rule]) -> tuple[Family, ...]:
    """The rules by the functions that answer for them, dry runs first: somebody waits for these."""
    of_places = partial(each_template.evaluate, [rule for rule in rules if isinstance(rule, PlacementRule)])
    asked: dict[Callable[[Subject], Iterable[Answer]], list[Rule]] = {}
    for rule in rules:
        if isinstance(rule, PlacementRule):
            asked.setdefault(of_places, []).append(rule)
        if rule.ask is not None:
            asked.setdefault(rule.ask, []).append(rule)
    found = [Family(ask, tuple(each), tuple(rule for rule in each if rule.slow)) for ask, each in asked.items()]
    return tuple(sorted(found, key=lambda family: not any(Need.DRY_RUN in rule.needs for rule in family.rules)))


FAMILIES = families(RULES)
_ASKED_AGAIN: Mapping[AskedAgain, tuple[Family, ...]] = {
    when: tuple(each for each in FAMILIES if all(rule.asked_again is when for rule in each.rules))
    for when in AskedAgain
}
_RECOUNTING = frozenset(rule.id for rule in RULES if rule.recounts)


class Evaluated(NamedTuple):
    """What all rules say of one object.

    Shape: ``findings`` in rule order; ``missing`` are the rules that could not look, once each; ``pod_fits`` is the
    dry run, where there was one.
    """

    findings: tuple[Finding, ...]
    missing: tuple[NotEvaluated, ...]
    pod_fits: Feasibility | None = None


def evaluate(subject: Subject) -> Evaluated:
    """Ask every rule that the object is for. One that raises is not evaluated; see `NotEvaluated.fault`."""
    answers = _answers(subject, FAMILIES) if subject.workload.whole else [*_of_a_part(subject)]
    found: list[Finding] = []
    missing: list[NotEvaluated] = []
    for each in answers:
        if isinstance(each, Finding):
            found.append(each)
        else:
            missing.append(each)
    findings, faults = _with_fixes(found, subject)
    return Evaluated(in_order(findings), noted((*missing, *faults)), subject.computed(pod_fits.judge))


def evaluate_written(written: Written) -> Iterator[Answer]:
    """Ask the rules about an object as somebody wrote it."""
    for rule in RULES:
        if rule.ask_written is not None:
            yield from guarded((rule,), rule.ask_written, written)


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """As they are reported: by rule, and as they came within one."""
    return tuple(sorted(findings, key=lambda finding: _ORDER[finding.rule]))


def _of_a_part(subject: Subject) -> Iterator[Answer]:
    """What the rules say that need no more than the constraints; those that need a cluster are not evaluated."""
    yield from (each for each in _answers(subject, FAMILIES) if BY_ID[each.rule].of_a_part)
    if subject.placed:
        yield from (
            NotEvaluated(rule.id, _OPERATED) for rule in RULES if rule.needs and rule.slow and not rule.of_a_part
        )


def noted(missing: Iterable[NotEvaluated]) -> tuple[NotEvaluated, ...]:
    """Each rule once: what it raised, else what it lacked first."""
    found: dict[str, NotEvaluated] = {}
    for each in missing:
        if each.rule not in found or (each.fault is not None and found[each.rule].fault is None):
            found[each.rule] = each
    return tuple(found.values())


def _with_fixes(findings: Sequence[Finding], subject: Subject) -> Tried:
    """The findings with fixes that were tried, where anybody hears of them.

    A constraint that counts other pods than before may hold its own back: where nobody waits for the answer, the rules
    about places and other workloads must not warn either. At admission nobody applies a fix.
    """
    if not subject.circumstances.fixes:
        return Tried(tuple(findings))
    found, faults = tried_in_templates(findings, subject, _of_the_object)
    if not (subject.offline and subject.workload.whole):
        return Tried(found, faults)
    found, more = tried_in_templates(found, subject, _of_places, rules=_RECOUNTING, joins=False)
    return Tried(found, faults + more)


def _of_places(subject: Subject) -> Iterator[Answer]:
    """What is said of the object, and the warnings about its pods' places and about other workloads."""
    yield from _of_the_object(subject)
    for family in _ASKED_AGAIN[AskedAgain.AFTER_RECOUNTS]:
        for each in guarded(family.rules, family.ask, subject):
            if isinstance(each, Finding) and each.warns:
                yield each


def _of_the_object(subject: Subject) -> Iterator[Answer]:
    """What the rules say that look at the object alone, cluster or not."""
    for family in _ASKED_AGAIN[AskedAgain.AFTER_FIXES]:
        for each in guarded(family.rules, family.ask, subject):
            if subject.workload.whole or BY_ID[each.rule].of_a_part:
                yield each


def _answers(subject: Subject, asked: Iterable[Family]) -> list[Answer]:
    """What the families answer, and which of their rules time was too short for."""
    answers: list[Answer] = []
    looks = subject.index is not None and bool(subject.placed)
    for family in asked:
        timely = looks and bool(family.slow) and not subject.late
        try:
            answers.extend(family.ask(subject))
        except Exception as error:  # noqa: BLE001 as `guarded`, which would cost each review a call for each family
            answers.extend(failed(family.rules, error))
        if timely and subject.late:
            answers += [NotEvaluated(rule.id, NO_TIME) for rule in family.slow]
    return answers
