"""The rules selector-empty and selector-not-self as expressions."""

from webhook.core.admission_policies.cel import (
    distinct,
    in_order,
    joined,
    literal,
    matches,
    name,
    requirement_text,
    text,
)
from webhook.core.admission_policies.expressions import (
    HERE,
    LABELS,
    RulePart,
    Variables,
    is_late,
    label_keys,
    labels_text,
    match_expressions,
    match_labels,
    own_labels,
    usual_rule,
)
from webhook.core.api.version import KubernetesVersion
from webhook.core.rules.constraint import label_selector


def selector_empty(version: KubernetesVersion) -> RulePart:
    selector, first = f"{HERE}.labelSelector", "variables.constraints[variables.emptyAt[0]]"
    key = f"{label_keys(HERE)}.exists(k, k in {LABELS} || {is_late('k')})"
    empty = f"{match_labels(selector)}.size() == 0 && {match_expressions(selector)}.size() == 0"
    counts = literal(label_selector.counted_by_empty(version))
    parts = {"name": "variables.names[variables.emptyAt[0]]", "counts": counts, "version": literal(str(version))}
    variables = (
        ("emptyAt", f"variables.at.filter(i, has({selector}) && {empty} && !{key})"),
        ("emptySummary", text(label_selector.EMPTY_SUMMARY, **parts)),
        ("emptyRemedy", text("use {own}", own=own_labels(first))),
    )
    found = "variables.emptyAt.size() > 0"
    return variables, usual_rule(label_selector.EMPTY, found, "variables.emptySummary", "variables.emptyRemedy")


_OTHER = "variables.constraints[variables.otherAt[0]]"
_OTHER_SELECTOR = f"{_OTHER}.labelSelector"
_IS_POD = 'variables.kind == "Pod" ? '
_OTHER_TEXTS = {
    "said": "variables.otherSaid",
    "remedy": "variables.otherRemedy",
    "them": f'({_IS_POD}"it" : "them")',
    "these": f'({_IS_POD}"this pod" : "these pods")',
}


def selector_not_self() -> RulePart:
    lines = (text(line, **_OTHER_TEXTS) for line in label_selector.NOT_SELF_LINES)
    rule = usual_rule(
        label_selector.NOT_SELF,
        "variables.otherAt.size() > 0",
        "variables.otherSummary",
        "variables.otherRemedy",
        *lines,
    )
    return (*_other_conditions(), *_other_texts()), rule._replace(headline="variables.otherHeadline")


def _other_conditions() -> Variables:
    """Return the constraints with another selector, and the wrong conditions of the first."""
    here = f"{HERE}.labelSelector"

    def pair(of: str) -> str:
        return f"!{is_late('k')} && !(k in {LABELS} && {LABELS}[k] == {match_labels(of)}[k])"

    entry = f"!{is_late('e.key')} && !{matches('e', LABELS)}"
    return (
        (
            "otherAt",
            (
                f"variables.at.filter(i, has({here}) && ({match_labels(here)}.exists(k, {pair(here)}) ||"
                f" {match_expressions(here)}.exists(e, {entry})))"
            ),
        ),
        ("otherWrong", f"{match_labels(_OTHER_SELECTOR)}.filter(k, {pair(_OTHER_SELECTOR)})"),
        ("otherPairs", in_order("variables.otherWrong")),
        ("otherExpressions", f"{match_expressions(_OTHER_SELECTOR)}.filter(e, {entry})"),
        ("otherAllKeys", "variables.otherPairs + variables.otherExpressions.map(e, e.key)"),
        ("otherKeys", distinct("variables.otherAllKeys")),
    )


def _other_texts() -> Variables:
    """Return the texts about the wrong conditions."""
    value, condition = name(f"{match_labels(_OTHER_SELECTOR)}[k]"), requirement_text("e")
    pairs = f'variables.otherPairs.map(k, {name("k")} + "=" + {value})'
    present = f"variables.otherKeys.filter(k, k in {LABELS})"
    absent = f'variables.otherKeys.filter(k, !(k in {LABELS})).map(k, "no " + {name("k")})'
    are_wrong = f'variables.otherKeys.all(k, k in {LABELS}) && variables.otherExpressions.all(e, e.operator == "In")'
    said = {
        "name": "variables.names[variables.otherAt[0]]",
        "counts": "variables.otherCounts",
        "pods": f'({_IS_POD}"this pod has" : "the pods have")',
        "have": joined(f"([{present}].filter(p, p.size() > 0).map(p, {labels_text('p')}) + {absent})", " and "),
    }
    remedy = f'({_IS_POD}"label this pod " : "label the pods ") + variables.otherCounts'
    return (
        ("otherCounts", joined(f"({pairs} + variables.otherExpressions.map(e, {condition}))", ",")),
        ("otherSaid", text(label_selector.NOT_SELF_SAID, **said)),
        ("otherRight", f"{are_wrong} ? {labels_text('variables.otherKeys')} : {own_labels(_OTHER)}"),
        ("otherRemedy", f'{LABELS}.size() > 0 ? "use " + variables.otherRight : {remedy}'),
        ("otherSummary", text(label_selector.NOT_SELF_SUMMARY, **_OTHER_TEXTS)),
        (
            "otherHeadline",
            (
                f'variables.otherSaid + "; " + ({LABELS}.size() > 0 ? "set matchLabels " + variables.otherRight :'
                " variables.otherRemedy)"
            ),
        ),
    )
