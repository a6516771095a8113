"""Rules about labelSelector.

A constraint spreads a workload only if it counts the workload's own pods. The rules compare each requirement with the
labels of the workload's future pods. A requirement on a label added at pod creation is undecided.
"""

from collections.abc import Iterator, Mapping
from functools import partial

from webhook.core.api import gates
from webhook.core.api.label_syntax import key_faults, value_faults
from webhook.core.api.requirements import Requirement
from webhook.core.api.selector_text import pairs_text, short_text
from webhook.core.api.types import LabelSelector
from webhook.core.api.version import KubernetesVersion
from webhook.core.api.written_selector import as_requirement, has_conditions, is_refused, requirements
from webhook.core.budget import Reason
from webhook.core.json_edits import Edit
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.fixes import Fix, changes
from webhook.core.rules.frame.own_pods import LATE_LABELS, own_labels
from webhook.core.rules.frame.rule import (
    Finding,
    NotEvaluated,
    Reevaluated,
    Rule,
    RuleAnswer,
    Severity,
    guarded,
    short_enough,
)
from webhook.core.rules.frame.subject import Placed, Subject
from webhook.core.text import one_line, quoted
from webhook.core.workloads.controller_labels import may_be_added
from webhook.core.workloads.labels_at_creation import known_label_values
from webhook.core.workloads.workload import Workload
from webhook.core.yaml_text import flow

# Also the texts of admission policies, which have no other Python.
EMPTY_SUMMARY = "{name}: labelSelector {{}} counts {counts} (Kubernetes {version})"
NOT_SELF_SAID = "{name} counts {counts} but {pods} {have}"
NOT_SELF_SUMMARY = "{said}, so this constraint does not spread {these}"
NOT_SELF_LINES = ("{said}, so it does not spread {them}; {remedy}", "{said}; {remedy}")
NO_LABEL_TO_SELECT, NO_OWN_LABEL = "a label you add to the pods", "the pods' own labels"
_NO_LABELS = Reason("labels of the pods (a patch or an excerpt omits them)")


def evaluate(subject: Subject) -> Iterator[RuleAnswer]:
    """Evaluate selector-null, selector-empty and selector-not-self. Each constraint has at most one finding."""
    for placed in subject.placed:
        selector, keys = placed.constraint.selector, placed.constraint.match_label_keys or ()
        labels = placed.template.pod.labels
        if selector is None:
            # With matchLabelKeys it is refused: then there is a finding already.
            if (subject.offline or not subject.workload.built_in) and not keys:
                yield from guarded((NULL,), _null, placed, subject.workload)
            continue
        wanted = selector.match_labels or {}
        if wanted and not selector.match_expressions and wanted.items() <= labels.items():
            continue  # most selectors plainly match the pods
        if has_conditions(selector):
            yield from guarded((NOT_SELF,), _not_self, placed, selector, subject)
        # Else matchLabelKeys may give it a condition.
        elif not any(key in labels or may_be_added(subject.workload, key, in_template=False) for key in keys):
            yield from guarded((EMPTY,), _empty, placed, subject)


_rule = partial(
    Rule,
    severity=Severity.HIGH,
    mode=Mode.WARN,
    evaluate=evaluate,
    reevaluated=Reevaluated.AFTER_FIXES,
    recounts=True,
    of_a_part=True,
)
NULL = _rule(
    id="selector-null",
    title="the constraint has no labelSelector",
    why=(
        "A null or absent labelSelector matches no pods. Every domain counts 0 pods, so the scheduler never spreads "
        "your pods. A hard constraint only keeps them off nodes without the topology key."
    ),
)
EMPTY = _rule(
    id="selector-empty",
    title="the constraint has an empty labelSelector",
    why=(
        "In Kubernetes 1.31 to 1.37, `labelSelector: {}` counts no existing pods, so the constraint does nothing. "
        "Kubernetes 1.38 is announced to count every pod in the namespace."
    ),
)
NOT_SELF = _rule(
    id="selector-not-self",
    title="the constraint's labelSelector does not match the workload's own pods",
    why=(
        "The scheduler counts the pods matched by labelSelector. If your pods are not among them, placing one changes "
        "no count. The constraint then follows other pods, or none, and does not spread yours."
    ),
)


def _null(placed: Placed, workload: Workload) -> Iterator[Finding]:
    own, fix = _own_selector(placed, workload)
    yield NULL.finding(
        placed,
        "labelSelector",
        fix,
        summary=f"{placed.name} has no labelSelector, so it counts no pods",
        remedy=f"use {own}",
        detail="without a labelSelector every domain counts 0 pods, so the scheduler does not spread the pods",
    )


def counted_by_empty(version: KubernetesVersion) -> str:
    """The pods counted by an empty selector, in words."""
    return "every pod in the namespace" if gates.COUNTS_EMPTY_SELECTOR.holds(version) else "no existing pod"


def _empty(placed: Placed, subject: Subject) -> Iterator[Finding]:
    counts = counted_by_empty(subject.version)
    own, fix = _own_selector(placed, subject.workload)
    yield EMPTY.finding(
        placed,
        "labelSelector",
        fix,
        summary=EMPTY_SUMMARY.format(name=placed.name, counts=counts, version=subject.version),
        remedy=f"use {own}",
        detail=f"labelSelector {{}} counts {counts} in Kubernetes {subject.version}; other releases count other pods",
    )


def _not_self(placed: Placed, selector: LabelSelector, subject: Subject) -> Iterator[RuleAnswer]:
    labels, is_open = placed.template.pod.labels, False
    failing, given = list[Requirement](), dict[str, str]()
    for requirement in requirements(selector):
        key, values = requirement.key, known_label_values(subject.workload, requirement.key)
        if values is not None:
            if not all(requirement.matches({key: value}) for value in values):
                failing.append(requirement)
                given[key] = f"{key}={values[0]}" + (f" to {values[-1]}" if len(values) > 1 else "")
        elif may_be_added(subject.workload, requirement.key, in_template=requirement.key in labels):
            is_open = True
        elif not (is_refused(requirement) or requirement.matches(labels)):
            failing.append(requirement)
    if failing and not labels and not given and subject.workload.traits.selects:
        yield NotEvaluated(NOT_SELF.id, _NO_LABELS)
    elif failing:
        yield _mismatch(placed, failing, given, subject)
    elif is_open:
        yield NotEvaluated(NOT_SELF.id, LATE_LABELS)


def _mismatch(placed: Placed, failing: list[Requirement], given: Mapping[str, str], subject: Subject) -> Finding:
    """Return the finding about a selector that does not match the workload's own pods.

    ``given`` has the labels added by the controller, as text by key.
    """
    labels = placed.template.pod.labels
    counts = one_line(",".join(map(short_text, failing)))
    have = one_line(_labels_text(failing, labels, given))
    right, fix = _corrected_selector(placed, failing, subject.workload)
    remedy, setting = f"use {right}", f"set matchLabels {right}"
    if not (labels or given):
        remedy = setting = f"label {'this pod' if subject.workload.kind == 'Pod' else 'the pods'} {counts}"
        fix = _labels_to_add(placed, failing)
    said = NOT_SELF_SAID.format(name=placed.name, counts=counts, pods=subject.pods, have=have)
    them, these = ("it", "this pod") if subject.workload.is_pod else ("them", "these pods")
    does = f"may keep {them} Pending" if placed.constraint.hard else "follows other pods"
    lines = (line.format(said=said, them=them, remedy=remedy) for line in NOT_SELF_LINES)
    return NOT_SELF.finding(
        placed,
        "labelSelector",
        fix,
        summary=NOT_SELF_SUMMARY.format(said=said, these=these),
        remedy=remedy,
        warning=short_enough(NOT_SELF.id, *lines),
        headline=f"{said}; {setting}",
        detail=f"the constraint counts {counts}, but {subject.pods} {have}, so it does not spread {these} and {does}",
        key=f"{placed.key} {counts} {have}",
    )


def _labels_to_add(placed: Placed, failing: list[Requirement]) -> Fix:
    wanted = {each.key: (each.values or ("",))[0] for each in failing}
    labels = f"{placed.template.path}metadata.labels"
    text = f"add {flow(wanted)} to {labels}"
    if any(key_faults(key) or value_faults(value) for key, value in wanted.items()):
        return Fix(text)
    return Fix(text, tuple(Edit(f"{labels}[{key}]", value) for key, value in wanted.items()))


def _corrected_selector(placed: Placed, failing: list[Requirement], workload: Workload) -> tuple[str, Fix]:
    labels = placed.template.pod.labels
    selector = placed.constraint.selector or LabelSelector()
    if not all(each.key in labels and each.operator == "In" for each in failing):
        return _own_selector(placed, workload)
    changed = {each.key: labels[each.key] for each in failing}
    kept = tuple(each for each in selector.match_expressions or () if as_requirement(each) not in failing)
    right = LabelSelector(match_labels={**(selector.match_labels or {}), **changed}, match_expressions=kept or None)
    if any(value_faults(value) for value in changed.values()):
        return pairs_text(changed), Fix("change the pods' labels to values Kubernetes accepts")
    return pairs_text(changed), changes(placed, labelSelector=right)


def _own_selector(placed: Placed, workload: Workload) -> tuple[str, Fix]:
    own = own_labels(placed, workload)
    if own:
        return pairs_text(own), changes(placed, labelSelector={"matchLabels": own})
    if not placed.template.pod.labels:
        where = f"{placed.template.path}metadata.labels"
        return NO_LABEL_TO_SELECT, Fix(f"add a label to the pods in {where}, and select it with matchLabels")
    return NO_OWN_LABEL, Fix("set matchLabels to labels that all these pods have")


def _labels_text(failing: list[Requirement], labels: Mapping[str, str], given: Mapping[str, str]) -> str:
    """Describe the pod's labels with the selected keys: ``app=web and no tier``. Missing labels come last."""
    keys = dict.fromkeys(each.key for each in failing)
    have = {**{key: f"{quoted(key)}={quoted(labels[key])}" for key in keys if key in labels}, **given}
    present = ",".join(have[key] for key in keys if key in have)
    absent = (f"no {quoted(key)}" for key in keys if key not in have)
    return " and ".join(filter(None, (present, *absent)))
