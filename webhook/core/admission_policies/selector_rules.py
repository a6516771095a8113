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


def selector_not_self() -> RulePart:
    here, first = f"{HERE}.labelSelector", "variables.constraints[variables.otherAt[0]]"
    selector = f"{first}.labelSelector"

    def pair(of: str) -> str:
        return f"!{is_late('k')} && !(k in {LABELS} && {LABELS}[k] == {match_labels(of)}[k])"

    entry = f"!{is_late('e.key')} && !{matches('e', LABELS)}"
    pairs, entries = "variables.otherPairs", "variables.otherExpressions"
    value, condition = name(f"{match_labels(selector)}[k]"), requirement_text("e")
    texts = f'{pairs}.map(k, {name("k")} + "=" + {value}) + {entries}.map(e, {condition})'
    present = f"variables.otherKeys.filter(k, k in {LABELS})"
    absent = f'variables.otherKeys.filter(k, !(k in {LABELS})).map(k, "no " + {name("k")})'
    are_wrong = f'variables.otherKeys.all(k, k in {LABELS}) && {entries}.all(e, e.operator == "In")'
    is_pod = 'variables.kind == "Pod" ? '
    said = {
        "name": "variables.names[variables.otherAt[0]]",
        "counts": "variables.otherCounts",
        "pods": f'({is_pod}"this pod has" : "the pods have")',
        "have": joined(f"([{present}].filter(p, p.size() > 0).map(p, {labels_text('p')}) + {absent})", " and "),
    }
    them = {"them": f'({is_pod}"it" : "them")', "these": f'({is_pod}"this pod" : "these pods")'}
    texts_of = {"said": "variables.otherSaid", "remedy": "variables.otherRemedy", **them}
    variables = (
        (
            "otherAt",
            (
                f"variables.at.filter(i, has({here}) && ({match_labels(here)}.exists(k, {pair(here)}) ||"
                f" {match_expressions(here)}.exists(e, {entry})))"
            ),
        ),
        ("otherWrong", f"{match_labels(selector)}.filter(k, {pair(selector)})"),
        ("otherPairs", in_order("variables.otherWrong")),
        ("otherExpressions", f"{match_expressions(selector)}.filter(e, {entry})"),
        ("otherAllKeys", f"{pairs} + {entries}.map(e, e.key)"),
        ("otherKeys", distinct("variables.otherAllKeys")),
        ("otherCounts", joined(f"({texts})", ",")),
        ("otherSaid", text(label_selector.NOT_SELF_SAID, **said)),
        ("otherRight", f"{are_wrong} ? {labels_text('variables.otherKeys')} : {own_labels(first)}"),
        (
            "otherRemedy",
            (
                f'{LABELS}.size() > 0 ? "use " + variables.otherRight :'
                f' ({is_pod}"label this pod " : "label the pods ") + variables.otherCounts'
            ),
        ),
        ("otherSummary", text(label_selector.NOT_SELF_SUMMARY, **texts_of)),
        (
            "otherHeadline",
            (
                f'variables.otherSaid + "; " + ({LABELS}.size() > 0 ? "set matchLabels " + variables.otherRight :'
                " variables.otherRemedy)"
            ),
        ),
    )
    lines = (text(line, **texts_of) for line in label_selector.NOT_SELF_LINES)
    rule = usual_rule(
        label_selector.NOT_SELF,
        "variables.otherAt.size() > 0",
        "variables.otherSummary",
        "variables.otherRemedy",
        *lines,
    )
    return variables, rule._replace(headline="variables.otherHeadline")
