"""The rules about matchLabelKeys as expressions: match-label-key-absent, match-label-key-wrong-kind, pods-refused."""

from webhook.core.admission_policies.cel import indexes, literal, literals, name, text, warning
from webhook.core.admission_policies.expressions import (
    HERE,
    LABELS,
    NO_ITEMS,
    RulePart,
    StaticRule,
    Variables,
    by_kind,
    is_kind,
    is_late,
    label_keys,
    match_expressions,
    match_labels,
    usual_rule,
)
from webhook.core.rules.constraint import match_label_keys, pods_refused
from webhook.core.spelling import with_article
from webhook.core.workloads.kinds import NATIVE, REVISION_LABELS, GroupKind, traits

_REVISIONS = {kind: literal(traits(kind).revision or "") for kind in NATIVE if traits(kind).revision is not None}
_IS_REVISION = f"k in {literals(sorted(REVISION_LABELS))} && {is_kind(_REVISIONS)}"


def _in_selector(key: str, selector: str) -> str:
    """Whether a selector has a condition on the label key."""
    return f"({key} in {match_labels(selector)} || {match_expressions(selector)}.exists(e, e.key == {key}))"


def _at_keys(prefix: str, wrong: str) -> Variables:
    """Return variables for the constraints with a wrong key ``k`` in matchLabelKeys, and the first of these keys."""
    wrong = f'!(k in {LABELS}) && k != "" && k != variables.revision && {wrong}'
    first = label_keys(f"variables.constraints[variables.{prefix}At[0]]")
    return (
        (f"{prefix}At", f"variables.at.filter(i, {label_keys(HERE)}.exists(k, {wrong}))"),
        (f"{prefix}Key", f"{first}.filter(k, {wrong})[0]"),
        (f"{prefix}Name", f"variables.names[variables.{prefix}At[0]]"),
    )


def key_absent() -> RulePart:
    parts = {"name": "variables.absentName", "key": name("variables.absentKey", 80)}
    variables = (
        ("revision", by_kind(_REVISIONS, others='""')),
        *_at_keys("absent", f"!({_IS_REVISION}) && !{is_late('k')}"),
        ("absentSummary", text(match_label_keys.ABSENT_SUMMARY, **parts)),
    )
    lines = (text(line, **parts) for line in match_label_keys.ABSENT_LINES)
    remedy, found = literal(match_label_keys.ABSENT_REMEDY), "variables.absentAt.size() > 0"
    return variables, usual_rule(match_label_keys.ABSENT, found, "variables.absentSummary", remedy, *lines)


def key_of_another_kind() -> RulePart:
    first = "variables.constraints[variables.foreignAt[0]]"
    offered = literals([each for each in match_label_keys.OFFERED if each in {*map(_revision, _REVISIONS)}])
    selector = f"{first}.labelSelector"
    in_selector = f"has({selector}) && {_in_selector('variables.revision', selector)}"
    is_there = f"variables.revision in {label_keys(first)} || {in_selector}"
    kinds = by_kind({kind: literal(with_article(kind[1])) for kind in _REVISIONS}, others='""')
    parts = {"name": "variables.foreignName", "key": name("variables.foreignKey")}
    words = {**parts, "kind": "variables.kind", "remedy": "variables.foreignRemedy"}
    variables = (
        *_at_keys("foreign", f"{_IS_REVISION}"),
        (
            "foreignRemedy",
            f'variables.revision in {offered} && !({is_there}) ? "use " + variables.revision : "remove it"',
        ),
        ("foreignSummary", text(match_label_keys.WRONG_KIND_SUMMARY, kind=f"({kinds})", **parts)),
    )
    lines = (text(line, **words) for line in match_label_keys.WRONG_KIND_LINES)
    rule = usual_rule(
        match_label_keys.WRONG_KIND,
        "variables.foreignAt.size() > 0",
        "variables.foreignSummary",
        "variables.foreignRemedy",
        *lines,
    )
    return variables, rule


def _revision(kind: GroupKind) -> str | None:
    return traits(kind).revision


def pods_refused_for_keys() -> RulePart:
    """The rule pods-refused, for keys in matchLabelKeys and labelSelector, and keys twice in matchLabelKeys."""
    here, at = label_keys(HERE), "variables.refusedAt[0]"
    keys, selector = label_keys(f"variables.constraints[{at}]"), f"variables.constraints[{at}].labelSelector"

    def refused(all_keys: str, of: str) -> str:
        earlier = f"{indexes(all_keys)}.exists(m, m < n && {all_keys}[m] == {all_keys}[n])"
        given = f"({all_keys}[n] in {LABELS} || {all_keys}[n] in variables.given)"
        return f"{given} && ({_in_selector(f'{all_keys}[n]', of)} || {earlier})"

    given = {kind: literals(added) for kind, added in _GIVEN.items()}
    fault = f"{_in_selector('variables.refusedKey', selector)} ? " + " : ".join(
        f"({text(each, key=name('variables.refusedKey', 40))})" for each in (pods_refused.IN_BOTH, pods_refused.TWICE)
    )
    variables = (
        ("given", by_kind(given, others=NO_ITEMS)),
        (
            "refusedAt",
            (
                f'variables.kind != "Pod" ? variables.at.filter(i, has({HERE}.labelSelector) &&'
                f" {indexes(here)}.exists(n, {refused(here, f'{HERE}.labelSelector')})) : []"
            ),
        ),
        ("refusedKey", f"{keys}[{indexes(keys)}.filter(n, {refused(keys, selector)})[0]]"),
        (
            "refusedFault",
            text("{name}: {fault}", name=f"variables.names[{at}]", fault=f"({fault})"),
        ),
        ("refused", text(pods_refused.NO_POD, fault="variables.refusedFault")),
    )
    rule = StaticRule(
        pods_refused.REFUSED,
        "variables.refusedAt.size() > 0",
        warning(pods_refused.REFUSED.id, "variables.refused", ""),
        "variables.refused",
    )
    return variables, rule


# Labels of all new pods. Those of Jobs are in the template already.
_GIVEN = {kind: traits(kind).added or () for kind in NATIVE if traits(kind).revision}
