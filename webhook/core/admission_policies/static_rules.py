"""The rules about the object alone, as expressions of CEL.

kube-apiserver has validated objects of built-in kinds, so expressions check no syntax. An expression may use the
variables before it. kube-apiserver evaluates a variable at most once, and only if an expression needs it.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from webhook.core.admission_policies.cel import (
    MOST_ITEMS,
    cut,
    distinct,
    in_order,
    indexes,
    joined,
    literal,
    matches,
    name,
    one_slip,
    requirement_text,
    text,
    warning,
    with_names,
)
from webhook.core.api import gates
from webhook.core.api.version import KubernetesVersion
from webhook.core.api.well_known import HOSTNAME, POD_TEMPLATE_HASH, REGION, ZONE
from webhook.core.index.key_suggestions import MEANT_BY_NAME, WELL_KNOWN, WRONG_PREFIXES
from webhook.core.policy.policy import Mode, Policy
from webhook.core.rules.cluster import effect, topology_key
from webhook.core.rules.constraint import label_selector, match_label_keys, pods_refused
from webhook.core.rules.frame.counted_pods import IDENTITY
from webhook.core.rules.frame.rule import Rule
from webhook.core.spelling import with_article
from webhook.core.workloads.controller_labels import ADDED_TO_ANY
from webhook.core.workloads.kinds import (
    CRON_JOB,
    NATIVE,
    POD,
    REPLICATION_CONTROLLER,
    REVISION_LABELS,
    STATEFUL_SET,
    GroupKind,
    traits,
)

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


_Part = tuple[Variables, StaticRule]


def static_rules(policy: Policy, version: KubernetesVersion) -> tuple[Variables, tuple[StaticRule, ...]]:
    """Return the variables and the rules, in the order of reports."""
    parts = [_pods_refused()] if gates.MERGES_SPREAD_KEYS.holds(version) else []
    parts += [_selector_empty(version), _selector_not_self(), _key_absent(), _key_of_another_kind()]
    parts.append(_misspelt(policy))
    defaults = policy.defaults
    if not (defaults.injects and (defaults.default_constraints or defaults.overrides)):
        parts.append(_required())
    return (*_COMMON, *(each for more, _ in parts for each in more)), tuple(rule for _, rule in parts)


def has_no_finding(policy: Policy) -> str:
    """Return an expression without variables: whether a quick check shows that no rule has a finding.

    Most objects pass it. The API server then evaluates nothing else.
    """
    spec, selector = "template.spec.topologySpreadConstraints", "c.labelSelector"
    pairs = f"{selector}.matchLabels.all(k, k in labels && labels[k] == {selector}.matchLabels[k])"
    own = f"!has({selector}) || has({selector}.matchLabels) && !has({selector}.matchExpressions) && {pairs}"
    revision = literal([POD_TEMPLATE_HASH])
    keys = f"!has(c.matchLabelKeys) || kind == 'Deployment' && c.matchLabelKeys == {revision}"
    right = f"c.topologyKey in {literal([ZONE, HOSTNAME])} && ({own}) && ({keys})"
    expected = f"!({literal(POD_TEMPLATE_HASH)} in labels) && {_field(spec, _NONE)}.all(c, {right})"
    if policy.rules.get(effect.SPREAD_REQUIRED.id, Mode.OFF) is not Mode.OFF:
        expected = f"has({spec}) && {expected}"
    places = {"'CronJob'": "o.spec.jobTemplate.spec.template", "'Pod'": "o"}
    template = "".join(f"kind == {kind} ? {place} : " for kind, place in places.items()) + "o.spec.template"
    labels = f"has(template.metadata) && has(template.metadata.labels) ? template.metadata.labels : {_NOTHING}"
    return with_names(expected, o="dyn(object)", kind="o.kind", template=template, labels=labels)


_NONE, _NOTHING = "dyn([])", "dyn({})"
_SPEC, _LABELS = "variables.object.spec", "variables.labels"
_HERE = "variables.constraints[i]"


def _field(path: str, empty: str) -> str:
    return f"(has({path}) ? {path} : {empty})"


def _pairs(selector: str) -> str:
    return _field(f"{selector}.matchLabels", _NOTHING)


def _expressions(selector: str) -> str:
    return _field(f"{selector}.matchExpressions", _NONE)


def _keys(constraint: str) -> str:
    return _field(f"{constraint}.matchLabelKeys", _NONE)


def _by_kind(values: Mapping[GroupKind, str], *, others: str) -> str:
    return "".join(f"variables.kind == {literal(kind[1])} ? ({value}) : " for kind, value in values.items()) + others


def _kinds(kinds: Iterable[GroupKind]) -> str:
    return f"variables.kind in {literal(kind[1] for kind in kinds)}"


_ALWAYS_LATE = [each for each in ADDED_TO_ANY if not each.endswith("/")]
_LATE = {kind: literal([*(traits(kind).added or ()), *_ALWAYS_LATE]) for kind in NATIVE if traits(kind).added}
_INJECTED = "^(" + "|".join(each.replace(".", "[.]") for each in ADDED_TO_ANY if each.endswith("/")) + ")"
_CRON_SELECTOR = f"{_SPEC}.jobTemplate.spec.selector"
_SIZE = (
    f"(c.topologyKey.size() > {_MOST_KEY_CHARS} ? {_MOST_PARTS + 1} : 0) + {_keys('c')}.size() +"
    f" (has(c.labelSelector) ? {_pairs('c.labelSelector')}.size() +"
    f" {_expressions('c.labelSelector')}.map(e, has(e.values) ? e.values.size() + 1 : 1).sum() : 0)"
)
_LAST = "key.substring(key.lastIndexOf('/') + 1)"
_SEGMENT = 's == "" ? "constraint" : s.matches("^[!-~]+$") ? ' + cut("s", 40) + ' : ("\\"" + s + "\\"")'
_COMMON: Variables = (
    ("object", "dyn(object)"),
    ("kind", "variables.object.kind"),
    (
        "template",
        _by_kind({POD: "variables.object", CRON_JOB: f"{_SPEC}.jobTemplate.spec.template"}, others=f"{_SPEC}.template"),
    ),
    ("constraints", _field("variables.template.spec.topologySpreadConstraints", _NONE)),
    ("parts", f"variables.constraints.map(c, {_SIZE}).sum()"),
    # Without constraints if there are too many: the API server limits the cost of an expression.
    ("at", f"{IS_TOO_LARGE} ? [] : {indexes('variables.constraints')}"),
    (
        "names",
        f"variables.at.map(i, {with_names(_SEGMENT, key=f'{_HERE}.topologyKey', s=_LAST)} + '[' + string(i) + ']')",
    ),
    ("meta", _field("variables.template.metadata", _NOTHING)),
    ("labels", _field("variables.meta.labels", _NOTHING)),
    ("late", _by_kind(_LATE, others=literal(_ALWAYS_LATE))),
    (
        "selected",
        _by_kind(
            {
                POD: _NOTHING,
                REPLICATION_CONTROLLER: _field(f"{_SPEC}.selector", _NOTHING),
                CRON_JOB: f"has({_CRON_SELECTOR}) ? {_pairs(_CRON_SELECTOR)} : {_NOTHING}",
            },
            others=f"has({_SPEC}.selector) ? {_pairs(f'{_SPEC}.selector')} : {_NOTHING}",
        ),
    ),
    (
        "own",
        (
            f"variables.selected.size() > 0 && variables.selected.size() <= {MOST_ITEMS} &&"
            f" variables.selected.all(k, k in {_LABELS} && {_LABELS}[k] =="
            f" variables.selected[k]) ? {in_order('variables.selected.map(k, k)')} :"
            f" {literal(IDENTITY)}.filter(k, k in {_LABELS})"
        ),
    ),
)


def _is_late(key: str) -> str:
    """Whether a controller, a service mesh or the binding may add the label."""
    return f"({key} in variables.late || {key}.matches({literal(_INJECTED)}))"


def _labels_text(keys: str) -> str:
    """Write labels of the pods (`webhook.core.api.selector_text.pairs_text`)."""
    pair = f'{name("k")} + "=" + {name(f"{_LABELS}[k]")}'
    return joined(f"{keys}.map(k, {pair})", ",")


def _own_labels(constraint: str) -> str:
    """The labels for a selector of the workload's own pods, or words for them."""
    own = f"variables.own.filter(k, !(k in {_keys(constraint)}))"
    words = (label_selector.NO_LABEL_TO_SELECT, label_selector.NO_OWN_LABEL)
    none = f"{_LABELS}.size() == 0 ? {literal(words[0])} : {literal(words[1])}"
    return f"({own}.size() > 0 ? {_labels_text(own)} : {none})"


def _rule(rule: Rule, found: str, summary: str, remedy: str, *lines: str) -> StaticRule:
    """Return a rule with the usual headline: the summary and the remedy."""
    headline = text("{summary}; {remedy}", summary=summary, remedy=remedy)
    return StaticRule(rule, found, warning(rule.id, summary, remedy, *lines), headline)


def _selector_empty(version: KubernetesVersion) -> _Part:
    selector, first = f"{_HERE}.labelSelector", "variables.constraints[variables.emptyAt[0]]"
    key = f"{_keys(_HERE)}.exists(k, k in {_LABELS} || {_is_late('k')})"
    empty = f"{_pairs(selector)}.size() == 0 && {_expressions(selector)}.size() == 0"
    counts = literal(label_selector.counted_by_empty(version))
    parts = {"name": "variables.names[variables.emptyAt[0]]", "counts": counts, "version": literal(str(version))}
    variables = (
        ("emptyAt", f"variables.at.filter(i, has({selector}) && {empty} && !{key})"),
        ("emptySummary", text(label_selector.EMPTY_SUMMARY, **parts)),
        ("emptyRemedy", text("use {own}", own=_own_labels(first))),
    )
    found = "variables.emptyAt.size() > 0"
    return variables, _rule(label_selector.EMPTY, found, "variables.emptySummary", "variables.emptyRemedy")


def _selector_not_self() -> _Part:
    here, first = f"{_HERE}.labelSelector", "variables.constraints[variables.otherAt[0]]"
    selector = f"{first}.labelSelector"

    def pair(of: str) -> str:
        return f"!{_is_late('k')} && !(k in {_LABELS} && {_LABELS}[k] == {_pairs(of)}[k])"

    entry = f"!{_is_late('e.key')} && !{matches('e', _LABELS)}"
    pairs, entries = "variables.otherPairs", "variables.otherExpressions"
    value, condition = name(f"{_pairs(selector)}[k]"), requirement_text("e")
    texts = f'{pairs}.map(k, {name("k")} + "=" + {value}) + {entries}.map(e, {condition})'
    present = f"variables.otherKeys.filter(k, k in {_LABELS})"
    absent = f'variables.otherKeys.filter(k, !(k in {_LABELS})).map(k, "no " + {name("k")})'
    are_wrong = f'variables.otherKeys.all(k, k in {_LABELS}) && {entries}.all(e, e.operator == "In")'
    is_pod = 'variables.kind == "Pod" ? '
    said = {
        "name": "variables.names[variables.otherAt[0]]",
        "counts": "variables.otherCounts",
        "pods": f'({is_pod}"this pod has" : "the pods have")',
        "have": joined(f"([{present}].filter(p, p.size() > 0).map(p, {_labels_text('p')}) + {absent})", " and "),
    }
    them = {"them": f'({is_pod}"it" : "them")', "these": f'({is_pod}"this pod" : "these pods")'}
    texts_of = {"said": "variables.otherSaid", "remedy": "variables.otherRemedy", **them}
    variables = (
        (
            "otherAt",
            (
                f"variables.at.filter(i, has({here}) && ({_pairs(here)}.exists(k, {pair(here)}) ||"
                f" {_expressions(here)}.exists(e, {entry})))"
            ),
        ),
        ("otherWrong", f"{_pairs(selector)}.filter(k, {pair(selector)})"),
        ("otherPairs", in_order("variables.otherWrong")),
        ("otherExpressions", f"{_expressions(selector)}.filter(e, {entry})"),
        ("otherAllKeys", f"{pairs} + {entries}.map(e, e.key)"),
        ("otherKeys", distinct("variables.otherAllKeys")),
        ("otherCounts", joined(f"({texts})", ",")),
        ("otherSaid", text(label_selector.NOT_SELF_SAID, **said)),
        ("otherRight", f"{are_wrong} ? {_labels_text('variables.otherKeys')} : {_own_labels(first)}"),
        (
            "otherRemedy",
            (
                f'{_LABELS}.size() > 0 ? "use " + variables.otherRight :'
                f' ({is_pod}"label this pod " : "label the pods ") + variables.otherCounts'
            ),
        ),
        ("otherSummary", text(label_selector.NOT_SELF_SUMMARY, **texts_of)),
        (
            "otherHeadline",
            (
                f'variables.otherSaid + "; " + ({_LABELS}.size() > 0 ? "set matchLabels " + variables.otherRight :'
                " variables.otherRemedy)"
            ),
        ),
    )
    lines = (text(line, **texts_of) for line in label_selector.NOT_SELF_LINES)
    rule = _rule(
        label_selector.NOT_SELF,
        "variables.otherAt.size() > 0",
        "variables.otherSummary",
        "variables.otherRemedy",
        *lines,
    )
    return variables, rule._replace(headline="variables.otherHeadline")


_REVISIONS = {kind: literal(traits(kind).revision or "") for kind in NATIVE if traits(kind).revision is not None}
_IS_REVISION = f"k in {literal(sorted(REVISION_LABELS))} && {_kinds(_REVISIONS)}"


def _at_keys(prefix: str, wrong: str) -> Variables:
    """Return variables for the constraints with a wrong key ``k`` in matchLabelKeys, and the first of these keys."""
    wrong = f'!(k in {_LABELS}) && k != "" && k != variables.revision && {wrong}'
    first = _keys(f"variables.constraints[variables.{prefix}At[0]]")
    return (
        (f"{prefix}At", f"variables.at.filter(i, {_keys(_HERE)}.exists(k, {wrong}))"),
        (f"{prefix}Key", f"{first}.filter(k, {wrong})[0]"),
        (f"{prefix}Name", f"variables.names[variables.{prefix}At[0]]"),
    )


def _key_absent() -> _Part:
    parts = {"name": "variables.absentName", "key": name("variables.absentKey", 80)}
    variables = (
        ("revision", _by_kind(_REVISIONS, others='""')),
        *_at_keys("absent", f"!({_IS_REVISION}) && !{_is_late('k')}"),
        ("absentSummary", text(match_label_keys.ABSENT_SUMMARY, **parts)),
    )
    lines = (text(line, **parts) for line in match_label_keys.ABSENT_LINES)
    remedy, found = literal(match_label_keys.ABSENT_REMEDY), "variables.absentAt.size() > 0"
    return variables, _rule(match_label_keys.ABSENT, found, "variables.absentSummary", remedy, *lines)


def _key_of_another_kind() -> _Part:
    first = "variables.constraints[variables.foreignAt[0]]"
    offered = literal([each for each in match_label_keys.OFFERED if each in {*map(_revision, _REVISIONS)}])
    is_there = (
        f"variables.revision in {_keys(first)} || has({first}.labelSelector) && (variables.revision in"
        f" {_pairs(f'{first}.labelSelector')} || {_expressions(f'{first}.labelSelector')}.exists(e, e.key =="
        " variables.revision))"
    )
    kinds = _by_kind({kind: literal(with_article(kind[1])) for kind in _REVISIONS}, others='""')
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
    rule = _rule(
        match_label_keys.WRONG_KIND,
        "variables.foreignAt.size() > 0",
        "variables.foreignSummary",
        "variables.foreignRemedy",
        *lines,
    )
    return variables, rule


def _revision(kind: GroupKind) -> str | None:
    return traits(kind).revision


def _place(key: str) -> str:
    """The well-known key meant by a bare name. Empty for other names."""
    by_place = ((place, [each for each, meant in MEANT_BY_NAME.items() if meant == place]) for place in _PLACES)
    return "".join(f"{key} in {literal(names)} ? {literal(place)} : " for place, names in by_place) + '""'


_PLACES = (ZONE, HOSTNAME, REGION)


def _misspelt(policy: Policy) -> _Part:
    """The rule topology-key-typo, for a wrong prefix, a wrong letter, or a bare name."""
    prefix, last = "k.substring(0, k.lastIndexOf('/'))", "k.substring(k.lastIndexOf('/') + 1).lowerAscii()"
    slip = "".join(
        f"k.size() >= {len(place) - 1} && k.size() <= {len(place) + 1} && k.matches({literal(one_slip(place))}) ?"
        f" {literal(place)} : "
        for place in _PLACES
    )
    known = literal(sorted({*WELL_KNOWN, *policy.domains}))
    meant = (
        f"k in {known} ? \"\" : k.contains('/') && {prefix} in {literal(sorted(WRONG_PREFIXES))} && ({_place(last)}) !="
        f' "" ? ({_place(last)}) : {slip}""'
    )
    # Unless the rule is configured, it only audits a bare name such as zone.
    bare = f'k in {known} ? "" : {_place("k.lowerAscii()")}' if topology_key.TYPO.id in policy.rules else '""'
    keys, first = "variables.at.map(i, variables.constraints[i].topologyKey)", "variables.misspeltAt[0]"
    key = f"variables.constraints[{first}].topologyKey"
    parts = {"meant": f"variables.bare[{first}]", "key": key}
    wrong, own = text(topology_key.NO_SUCH_LABEL, key=name(key, 256)), text(topology_key.NOT_SET, **parts)
    variables = (
        ("meant", f"{keys}.map(k, {meant})"),
        ("bare", f"{keys}.map(k, {bare})"),
        ("misspeltAt", 'variables.at.filter(i, variables.meant[i] != "" || variables.bare[i] != "")'),
        ("misspeltSummary", f'variables.meant[{first}] != "" ? {wrong} : {own}'),
        (
            "misspeltRemedy",
            f'"use " + (variables.meant[{first}] != "" ? variables.meant[{first}] : variables.bare[{first}])',
        ),
    )
    found = "variables.misspeltAt.size() > 0"
    return variables, _rule(topology_key.TYPO, found, "variables.misspeltSummary", "variables.misspeltRemedy")


def _pods_refused() -> _Part:
    """The rule pods-refused, for keys in matchLabelKeys and labelSelector, and keys twice in matchLabelKeys."""
    here, at = _keys(_HERE), "variables.refusedAt[0]"
    keys, selector = _keys(f"variables.constraints[{at}]"), f"variables.constraints[{at}].labelSelector"

    def in_selector(key: str, of: str) -> str:
        return f"({key} in {_pairs(of)} || {_expressions(of)}.exists(e, e.key == {key}))"

    def refused(all_keys: str, of: str) -> str:
        earlier = f"{indexes(all_keys)}.exists(m, m < n && {all_keys}[m] == {all_keys}[n])"
        given = f"({all_keys}[n] in {_LABELS} || {all_keys}[n] in variables.given)"
        return f"{given} && ({in_selector(f'{all_keys}[n]', of)} || {earlier})"

    given = {kind: literal(added) for kind, added in _GIVEN.items()}
    fault = f"{in_selector('variables.refusedKey', selector)} ? " + " : ".join(
        f"({text(each, key=name('variables.refusedKey', 40))})" for each in (pods_refused.IN_BOTH, pods_refused.TWICE)
    )
    variables = (
        ("given", _by_kind(given, others=_NONE)),
        (
            "refusedAt",
            (
                f'variables.kind != "Pod" ? variables.at.filter(i, has({_HERE}.labelSelector) &&'
                f" {indexes(here)}.exists(n, {refused(here, f'{_HERE}.labelSelector')})) : []"
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
_GIVEN = {
    kind: traits(kind).added or () for kind in (STATEFUL_SET, *(kind for kind in NATIVE if traits(kind).revision))
}


def _required() -> _Part:
    """The rule spread-required, which is off unless configured."""
    affinity = "variables.template.spec.affinity"
    terms = f"{affinity}.podAntiAffinity"
    apart = " || ".join(
        f"has({terms}.{when}DuringSchedulingIgnoredDuringExecution)"
        f" && {terms}.{when}DuringSchedulingIgnoredDuringExecution.size() > 0"
        for when in ("required", "preferred")
    )
    has_terms = f"has({affinity}) && has({terms})"
    serving = _kinds(kind for kind in NATIVE if traits(kind).serves)
    thousands = '(n < 1000 ? string(n) : string(n / 1000) + "," + string(1000 + n % 1000).substring(1))'
    replicas = f'[variables.replicas].map(n, {thousands} + " replicas")[0]'
    variables = (
        ("replicas", f"{serving} && has({_SPEC}.replicas) ? int({_SPEC}.replicas) : 1"),
        (
            "unspread",
            f"variables.replicas > 1 && variables.constraints.size() == 0 && !({has_terms} && ({apart}))",
        ),
        ("unspreadSummary", text(effect.REQUIRED_SUMMARY, replicas=replicas)),
    )
    remedy = literal(effect.REQUIRED_REMEDY)
    return variables, _rule(effect.SPREAD_REQUIRED, "variables.unspread", "variables.unspreadSummary", remedy)
