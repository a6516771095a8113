"""Shared expressions of the rules: the object's template, labels and constraints.

An expression may use the variables before it. kube-apiserver evaluates a variable at most once, and only if an
expression needs it. Objects of built-in kinds are valid, so expressions check no syntax.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from webhook.core.admission_policies.cel import (
    MOST_ITEMS,
    cut,
    in_order,
    indexes,
    joined,
    literal,
    literals,
    name,
    text,
    warning,
    with_names,
)
from webhook.core.rules.constraint import label_selector
from webhook.core.rules.frame.own_pods import IDENTITY
from webhook.core.rules.frame.rule import Rule
from webhook.core.workloads.controller_labels import ADDED_TO_ANY
from webhook.core.workloads.kinds import CRON_JOB, NATIVE, POD, REPLICATION_CONTROLLER, GroupKind, traits

Variables = tuple[tuple[str, str], ...]

_MOST_PARTS = 256  # conditions, values and keys in all selectors of an object
_MOST_KEY_CHARS = 317  # of a topologyKey, as of the longest label key
IS_TOO_LARGE = f"(variables.constraints.size() > {MOST_ITEMS} || variables.parts > {_MOST_PARTS})"
"""An expression: whether the object has more than the expressions examine."""


class StaticRule(NamedTuple):
    """A rule of admission policies.

    Attributes:
        rule: The rule of the webhook.
        found: An expression: whether there is a finding.
        warning: An expression: the warning of the first finding.
        headline: An expression: the first line of a denial, without the object's name.
    """

    rule: Rule
    found: str
    warning: str
    headline: str


RulePart = tuple[Variables, StaticRule]

NO_ITEMS, NO_FIELDS = "dyn([])", "dyn({})"
SPEC, LABELS = "variables.object.spec", "variables.labels"
HERE = "variables.constraints[i]"


def field_or(path: str, empty: str) -> str:
    return f"(has({path}) ? {path} : {empty})"


def match_labels(selector: str) -> str:
    return field_or(f"{selector}.matchLabels", NO_FIELDS)


def match_expressions(selector: str) -> str:
    return field_or(f"{selector}.matchExpressions", NO_ITEMS)


def label_keys(constraint: str) -> str:
    return field_or(f"{constraint}.matchLabelKeys", NO_ITEMS)


def by_kind(values: Mapping[GroupKind, str], *, others: str) -> str:
    return "".join(f"variables.kind == {literal(kind[1])} ? ({value}) : " for kind, value in values.items()) + others


def is_kind(kinds: Iterable[GroupKind]) -> str:
    return f"variables.kind in {literals(kind[1] for kind in kinds)}"


_ALWAYS_LATE = [each for each in ADDED_TO_ANY if not each.endswith("/")]
_LATE = {kind: literals([*(traits(kind).added or ()), *_ALWAYS_LATE]) for kind in NATIVE if traits(kind).added}
_INJECTED = "^(" + "|".join(each.replace(".", "[.]") for each in ADDED_TO_ANY if each.endswith("/")) + ")"
_CRON_SELECTOR = f"{SPEC}.jobTemplate.spec.selector"
_MANY_KEYS = f"{label_keys('c')}.size() > {MOST_ITEMS}"
_SIZE = (
    f"(c.topologyKey.size() > {_MOST_KEY_CHARS} || {_MANY_KEYS} ? {_MOST_PARTS + 1} : 0) + {label_keys('c')}.size() +"
    f" (has(c.labelSelector) ? {match_labels('c.labelSelector')}.size() +"
    f" {match_expressions('c.labelSelector')}.map(e, has(e.values) ? e.values.size() + 1 : 1).sum() : 0)"
)
_LAST = "key.substring(key.lastIndexOf('/') + 1)"
_SEGMENT = 's == "" ? "constraint" : s.matches("^[!-~]+$") ? ' + cut("s", 40) + ' : ("\\"" + s + "\\"")'
COMMON_VARIABLES: Variables = (
    # Without types: those of the kinds differ.
    ("object", "dyn(object)"),
    ("kind", "variables.object.kind"),
    (
        "template",
        by_kind({POD: "variables.object", CRON_JOB: f"{SPEC}.jobTemplate.spec.template"}, others=f"{SPEC}.template"),
    ),
    ("constraints", field_or("variables.template.spec.topologySpreadConstraints", NO_ITEMS)),
    ("parts", f"variables.constraints.map(c, {_SIZE}).sum()"),
    # Without constraints if there are too many: the API server limits the cost of an expression.
    ("at", f"{IS_TOO_LARGE} ? [] : {indexes('variables.constraints')}"),
    (
        "names",
        f"variables.at.map(i, {with_names(_SEGMENT, key=f'{HERE}.topologyKey', s=_LAST)} + '[' + string(i) + ']')",
    ),
    ("meta", field_or("variables.template.metadata", NO_FIELDS)),
    ("labels", field_or("variables.meta.labels", NO_FIELDS)),
    ("late", by_kind(_LATE, others=literals(_ALWAYS_LATE))),
    (
        "selected",
        by_kind(
            {
                POD: NO_FIELDS,
                REPLICATION_CONTROLLER: field_or(f"{SPEC}.selector", NO_FIELDS),
                CRON_JOB: f"has({_CRON_SELECTOR}) ? {match_labels(_CRON_SELECTOR)} : {NO_FIELDS}",
            },
            others=f"has({SPEC}.selector) ? {match_labels(f'{SPEC}.selector')} : {NO_FIELDS}",
        ),
    ),
    (
        "own",
        (
            f"variables.selected.size() > 0 && variables.selected.size() <= {MOST_ITEMS} &&"
            f" variables.selected.all(k, k in {LABELS} && {LABELS}[k] =="
            f" variables.selected[k]) ? {in_order('variables.selected.map(k, k)')} :"
            f" {literals(IDENTITY)}.filter(k, k in {LABELS})"
        ),
    ),
)


def is_late(key: str) -> str:
    """Whether a controller, a service mesh or the binding may add the label."""
    return f"({key} in variables.late || {key}.matches({literal(_INJECTED)}))"


def labels_text(keys: str) -> str:
    """Write labels of the pods (`webhook.core.api.selector_text.pairs_text`)."""
    pair = f'{name("k")} + "=" + {name(f"{LABELS}[k]")}'
    return joined(f"{keys}.map(k, {pair})", ",")


def own_labels(constraint: str) -> str:
    """The labels for a selector of the workload's own pods, or words for them."""
    own = f"variables.own.filter(k, !(k in {label_keys(constraint)}))"
    words = (label_selector.NO_LABEL_TO_SELECT, label_selector.NO_OWN_LABEL)
    none = f"{LABELS}.size() == 0 ? {literal(words[0])} : {literal(words[1])}"
    return f"({own}.size() > 0 ? {labels_text(own)} : {none})"


def usual_rule(rule: Rule, found: str, summary: str, remedy: str, *lines: str) -> StaticRule:
    """Return a rule with the usual headline: the summary and the remedy."""
    headline = text("{summary}; {remedy}", summary=summary, remedy=remedy)
    return StaticRule(rule, found, warning(rule.id, summary, remedy, *lines), headline)
