"""What kube-apiserver does not say of a constraint, and what it does: one family of rules a file.

`RULES` is the whole, in the order in which findings are reported.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from webhook.core.rules.frame.rule import FAILED, Answer, Finding, NotEvaluated, Rule, guarded
from webhook.core.rules.frame.subject import NO_TIME, Subject
from webhook.core.rules.frame.trials import Tried, tried_in_templates
from webhook.core.rules.placement import (
    affinity_conflicts,
    min_domains,
    node_pins,
    not_yet,
    pod_fits,
    zone_host_ceiling,
    zone_loss,
)
from webhook.core.rules.placement.pod_fits import Feasibility

RULES: tuple[Rule, ...] = (
    *(*api.RULES, pods_refused.REFUSED, unknown_fields.UNKNOWN_FIELD, unread_constraints.UNREAD),
    *(label_selector.NULL, label_selector.EMPTY, label_selector.NOT_SELF, shared_selectors.TOO_WIDE),
    *(match_label_keys.MIXED, match_label_keys.ABSENT, match_label_keys.WRONG_KIND),
    *(nodes.KEY_UNKNOWN, nodes.KEY_PARTIAL, topology_key.TYPO, topology_key.DEPRECATED),
    *(
        zone_host_ceiling.TAINTED,
        min_domains.MIN_DOMAINS,
        zone_host_ceiling.CEILING,
        affinity_conflicts.CONFLICTS,
        zone_loss.ZONE_LOSS,
    ),
    *(
        all_in_one_domain.ALL_IN_ONE,
        effect.DEFAULTS_LOST,
        effect.NO_EFFECT,
        differing_constraints.DIFFER,
        autoscalers.AUTOSCALER,
    ),
    effect.REQUIRED,
    *(pod_fits.DO_NOT_FIT, not_yet.STUCK, not_yet.ROLLOUT_STUCK, not_yet.GROUP_CAP),
)

BY_ID: Mapping[str, Rule] = {rule.id: rule for rule in RULES}
API_RULES = frozenset(rule.id for rule in api.RULES)
_DRY_RUNS = (pod_fits.DO_NOT_FIT,)
_OF_OTHERS = (shared_selectors.TOO_WIDE, all_in_one_domain.ALL_IN_ONE, differing_constraints.DIFFER)
# They have nothing to say where no cluster is known.
NEED_CLUSTER = not_yet.NEED_CLUSTER.union(
    rule.id
    for rule in (
        *nodes.RULES,
        min_domains.MIN_DOMAINS,
        *zone_host_ceiling.RULES,
        autoscalers.AUTOSCALER,
        *_OF_OTHERS,
        *_DRY_RUNS,
    )
)
FEASIBILITY = frozenset(
    rule.id for rule in (affinity_conflicts.CONFLICTS, zone_loss.ZONE_LOSS, *not_yet.FEASIBILITY, *_DRY_RUNS)
)

# The webhook never asks them: what they look at is gone from an object before it is called.
OFFLINE = frozenset({unknown_fields.UNKNOWN_FIELD.id, unread_constraints.UNREAD.id})
# Of resources of operators not more than this is known: their constraints, and some labels of their pods.
_OF_CONSTRAINTS = API_RULES.union(
    rule.id
    for rule in (
        *(
            pods_refused.REFUSED,
            label_selector.NULL,
            label_selector.EMPTY,
            label_selector.NOT_SELF,
            match_label_keys.ABSENT,
            match_label_keys.WRONG_KIND,
        ),
        *(nodes.KEY_UNKNOWN, topology_key.TYPO, topology_key.DEPRECATED),
    )
)
_OPERATED = "an operator adds to the pods; look at what it makes"

# What kube-apiserver says comes first, and in its own order.
_ORDER: Mapping[str, int] = {rule.id: place for place, rule in enumerate(RULES)} | dict.fromkeys(API_RULES, -1)


class Family(NamedTuple):
    """Rules that are asked together.

    Shape: ``slow`` are those of the rules that take more time the more there is in the cluster.
    """

    ask: Callable[[Subject], Iterable[Answer]]
    rules: tuple[Rule, ...]
    slow: tuple[Rule, ...] = ()


FAMILIES: tuple[Family, ...] = (
    Family(api.evaluate, api.RULES),
    Family(pods_refused.evaluate, (pods_refused.REFUSED,)),
    Family(label_selector.evaluate, label_selector.RULES),
    Family(shared_selectors.evaluate, (shared_selectors.TOO_WIDE,), (shared_selectors.TOO_WIDE,)),
    Family(match_label_keys.evaluate, (match_label_keys.MIXED, match_label_keys.ABSENT, match_label_keys.WRONG_KIND)),
    Family(topology_key.evaluate, (topology_key.TYPO, topology_key.DEPRECATED)),
    Family(nodes.evaluate, nodes.RULES, nodes.RULES),
    Family(min_domains.evaluate, (min_domains.MIN_DOMAINS,), (min_domains.MIN_DOMAINS,)),
    Family(zone_host_ceiling.evaluate, zone_host_ceiling.RULES, zone_host_ceiling.RULES),
    Family(node_pins.evaluate, (affinity_conflicts.CONFLICTS,)),
    Family(all_in_one_domain.evaluate, (all_in_one_domain.ALL_IN_ONE,), (all_in_one_domain.ALL_IN_ONE,)),
    Family(effect.evaluate, (effect.DEFAULTS_LOST, effect.NO_EFFECT, effect.REQUIRED), (effect.NO_EFFECT,)),
    Family(differing_constraints.evaluate, (differing_constraints.DIFFER,), (differing_constraints.DIFFER,)),
    Family(autoscalers.evaluate, (autoscalers.AUTOSCALER,), (autoscalers.AUTOSCALER,)),
)

# What a constraint counts, and so where the pods may go, is another after a fix of these.
_OF_COUNTING = frozenset(
    rule.id for rule in (label_selector.NULL, label_selector.EMPTY, label_selector.NOT_SELF, shared_selectors.TOO_WIDE)
)
_STATIC = (
    api.evaluate,
    pods_refused.evaluate,
    label_selector.evaluate,
    match_label_keys.evaluate,
    topology_key.evaluate,
)


class Evaluated(NamedTuple):
    """What all rules say of one object.

    Shape: ``findings`` in rule order; ``missing`` are the rules that could not look, once each; ``pod_fits`` is the
    dry run, where there was one.
    """

    findings: tuple[Finding, ...]
    missing: tuple[NotEvaluated, ...]
    pod_fits: Feasibility | None = None


def evaluate(subject: Subject, families: Iterable[Family] = FAMILIES) -> Evaluated:
    """Ask every rule. One that raises is not evaluated; see `NotEvaluated.fault`."""
    if not subject.workload.whole:
        return _of_a_part(subject, families)
    dry_run, last = _dry_run(subject)
    answers = [*_answers(subject, families), *(() if last is None else (last,))]
    findings, faults = _with_fixes([each for each in answers if isinstance(each, Finding)], subject)
    missing = noted((*(each for each in answers if isinstance(each, NotEvaluated)), *faults))
    return Evaluated(in_order(findings), (*missing, *not_yet.evaluate(subject)), dry_run)


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """As they are reported: by rule, and as they came within one."""
    return tuple(sorted(findings, key=lambda finding: _ORDER[finding.rule]))


def _of_a_part(subject: Subject, families: Iterable[Family]) -> Evaluated:
    """What the rules say that need no more than the constraints; no other is asked."""
    answers = [each for each in _answers(subject, families) if each.rule in _OF_CONSTRAINTS]
    findings, faults = _with_fixes([each for each in answers if isinstance(each, Finding)], subject)
    missing = noted((*(each for each in answers if isinstance(each, NotEvaluated)), *faults))
    others = NEED_CLUSTER - not_yet.NEED_CLUSTER - _OF_CONSTRAINTS if subject.placed else frozenset[str]()
    unseen = [NotEvaluated(rule, _OPERATED) for rule in sorted(others - {pod_fits.DO_NOT_FIT.id})]
    last = pod_fits.not_tried(subject)
    return Evaluated(in_order(findings), (*missing, *unseen, *(() if last is None else (last,))))


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
    found, more = tried_in_templates(found, subject, _of_places, rules=_OF_COUNTING, joins=False)
    return Tried(found, faults + more)


def _of_places(subject: Subject) -> Iterator[Answer]:
    """What is said of the object, and the warnings about its pods' places and about other workloads."""
    yield from _of_the_object(subject)
    for rules, ask in (
        (zone_host_ceiling.RULES, zone_host_ceiling.evaluate),
        ((shared_selectors.TOO_WIDE,), shared_selectors.evaluate),
    ):
        yield from (each for each in guarded(rules, ask, subject) if isinstance(each, Finding) and each.warns)


def _of_the_object(subject: Subject) -> Iterator[Answer]:
    """What the rules say that look at the object alone, cluster or not."""
    for family in FAMILIES:
        if family.ask in _STATIC:
            for each in guarded(family.rules, family.ask, subject):
                if subject.workload.whole or each.rule in _OF_CONSTRAINTS:
                    yield each


def _dry_run(subject: Subject) -> tuple[Feasibility | None, Answer | None]:
    """The dry run, and what its rule answers."""
    try:
        tried = pod_fits.judge(subject)
    except Exception as error:  # noqa: BLE001 as `guarded`
        return None, NotEvaluated(pod_fits.DO_NOT_FIT.id, FAILED, error)
    return tried, (tried.answer if tried else pod_fits.not_tried(subject))


def _answers(subject: Subject, families: Iterable[Family]) -> Iterator[Answer]:
    """What the families answer, and which of their rules time was too short for."""
    if subject.index is None or not subject.placed:
        for family in families:
            yield from guarded(family.rules, family.ask, subject)
        return
    for family in families:
        timely = bool(family.slow) and not subject.late
        yield from guarded(family.rules, family.ask, subject)
        if timely and subject.late:
            yield from (NotEvaluated(rule.id, NO_TIME) for rule in family.slow)
