"""Compile a policy into ValidatingAdmissionPolicies, one for each mode, with their bindings.

kube-apiserver evaluates them itself, so no webhook has to answer. Each admission policy has the rules with its mode in
some namespace. Expressions compute the mode of a rule from the namespace and the exemptions.

Source: k8s.io/apiserver pkg/admission/plugin/policy/validating dispatcher.go, validator.go.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from webhook.core.admission_policies.cel import literal, literals, shortened, with_names
from webhook.core.admission_policies.expressions import (
    IS_TOO_LARGE,
    NO_FIELDS,
    NO_ITEMS,
    StaticRule,
    Variables,
    field_or,
)
from webhook.core.admission_policies.policy_objects import (
    BINDING,
    NAMESPACE_LABELS,
    NOTHING_ADDED,
    InstalledParts,
    api_object,
    first_true,
    is_controlled,
    match_constraints,
    named,
    resource_rule,
    selects,
)
from webhook.core.admission_policies.static_rules import has_no_finding, static_rules
from webhook.core.api.version import KubernetesVersion
from webhook.core.api.well_known import (
    CEILING_LABEL,
    CONTROLLER_ACCOUNT_SUFFIX,
    CONTROLLER_MANAGER,
    EXEMPT_ANNOTATION,
    KUBE_SYSTEM_ACCOUNT,
    MIRROR_ANNOTATION,
    NODE_USER,
    NODES_GROUP,
)
from webhook.core.policy.lookup import mode_for
from webhook.core.policy.matching import Match
from webhook.core.policy.options import Exempts, NamespaceLabel, TooLarge
from webhook.core.policy.policy import Mode, NamespaceSettings, Policy
from webhook.core.rules.rule_set import denied_from
from webhook.core.workloads.kinds import MADE_BY, NATIVE, POD, resource_name

_HEADLINE_CHARS = 256
_MAX_ANNOTATION_CHARS = 4096  # A longer list of exemptions is ignored.
ACTIONS = {Mode.DENY: "Deny", Mode.WARN: "Warn", Mode.AUDIT: "Audit"}
_RANKS = f"{{{', '.join(f'{literal(mode.value)}: {mode.rank}' for mode in Mode)}}}"
_REASON = "Forbidden"  # Status 403, as of the webhook.
_REFERENCE = re.compile(r"\bvariables\.(\w+)")
_TOO_LARGE = "the topologySpreadConstraints are too large to be checked"


def admission_policies(
    policy: Policy, version: KubernetesVersion, today: str, *, suffix: str = ""
) -> Iterator[Mapping[str, object]]:
    """Yield the ValidatingAdmissionPolicies of a policy and their bindings, as objects of the API.

    Args:
        policy: The policy.
        version: The release of the API server.
        today: The ISO date (UTC). Exemptions that expired before this day are left out.
        suffix: The end of all names. Files of the API server need `STATIC_SUFFIX`.
    """
    for mode, action in ACTIONS.items():
        name = f"evenspread-{mode}{suffix}"
        yield compiled_policy(mode, policy, version, today, name=name)
        yield api_object(BINDING, name, {"policyName": name, "validationActions": [action]})


def compiled_policy(  # noqa: PLR0913 each differs between objects
    mode: Mode,
    policy: Policy,
    version: KubernetesVersion,
    today: str,
    *,
    name: str,
    added: InstalledParts = NOTHING_ADDED,
) -> Mapping[str, object]:
    """Return the ValidatingAdmissionPolicy of a mode, with every default of the API written out.

    Args:
        mode: The mode: deny, warn or audit.
        policy: The policy.
        version: The release of the API server.
        today: The ISO date (UTC).
        name: The name of the object.
        added: The differences between an installation and the output of `evenspread compile`.
    """
    variables, rules = static_rules(policy, version)
    highest = max((each.rank for each in _ceilings(policy)), default=0)
    validations = [
        _validation(rule, mode, policy)
        for rule in rules
        if rule.rule.id not in added.without and _configured(rule, policy).rank >= mode.rank and mode.rank <= highest
    ]
    if not validations:
        # An object that does nothing: `kubectl apply` replaces an older policy by it.
        return _policy(name, (), [{"expression": "true"}], [("no-rule-has-this-mode", "false")], added)
    if mode is Mode.DENY and policy.too_large == TooLarge.DENY:
        denies = f"variables.ceiling == {mode.rank} && {IS_TOO_LARGE}"
        validations.insert(0, {"expression": f"!({denies})", "message": _TOO_LARGE, "reason": _REASON})
    needed = _needed((*variables, *_variables_of_modes(policy, today)), validations)
    return _policy(name, needed, validations, _conditions(mode, policy), added)


def _ceilings(policy: Policy) -> Iterable[Mode]:
    """The possible ceilings of namespaces."""
    if policy.ceiling is Mode.OFF:
        return ()
    if policy.namespace_label != NamespaceLabel.NONE:
        return (Mode.DENY,)  # by the label of the namespace
    return (policy.ceiling, *(each.ceiling for each in policy.namespaces if each.ceiling is not None))


def _configured(rule: StaticRule, policy: Policy) -> Mode:
    mode = mode_for(policy, rule.rule.id, rule.rule.mode, rule.rule.since)
    return Mode.DENY if mode is Mode.WARN and denied_from(policy, rule.rule) else mode


def _validation(rule: StaticRule, mode: Mode, policy: Policy) -> dict[str, str]:
    id_, rank = rule.rule.id, _configured(rule, policy).rank
    capped = f"(variables.ceiling < {rank} ? variables.ceiling : {rank})"
    conditions = [_exempting(id_)] if any(each.rule == id_ for each in policy.exemptions) else []
    if policy.annotations.exempt != Exempts.NONE:
        denials = "" if policy.annotations.exempt == Exempts.DENIALS else f"{capped} < {Mode.DENY.rank} && "
        conditions.append(f"{denials}{literal(id_)} in variables.exempted")
    is_exempt = " || ".join(f"({each})" for each in conditions) or "false"
    applies = f"{capped} == {mode.rank} && !({is_exempt})"
    message = rule.warning
    if mode is Mode.AUDIT:
        applies = f"{capped} == {mode.rank} || {capped} > {mode.rank} && ({is_exempt})"
    if mode is Mode.DENY:
        message = with_names(f'variables.title + ": " + {shortened("line", str(_HEADLINE_CHARS))}', line=rule.headline)
    # The mode comes first, because it is cheap. If it does not apply, the API server evaluates no other variable.
    found = f"({applies}) && {rule.found}"
    return {
        "expression": f"!({found})",
        "messageExpression": f'{found} ? ({message}) : ""',
        "message": f"evenspread/{id_}: {rule.rule.title}",
        "reason": _REASON,
    }


def _exempting(rule: str) -> str:
    """The variable with the exemptions from a rule."""
    return f"variables.exempt_{rule.replace('-', '_')}"


def _needed(variables: Variables, validations: Iterable[Mapping[str, str]]) -> Variables:
    """Return the variables of the validations, with all variables behind them."""
    named = {*_REFERENCE.findall(" ".join(text for each in validations for text in each.values()))}
    needed = []
    for name, expression in reversed(variables):
        if name in named:
            named.update(_REFERENCE.findall(expression))
            needed.append((name, expression))
    return tuple(reversed(needed))


def _policy(
    name: str,
    variables: Variables,
    validations: object,
    conditions: Iterable[tuple[str, str]],
    added: InstalledParts,
) -> Mapping[str, object]:
    groups: dict[str, list[str]] = {}
    for kind in NATIVE:
        if kind != POD:
            groups.setdefault(kind[0], []).append(resource_name(kind))
    rules = [resource_rule("", ["pods"], "CREATE")]
    rules += [resource_rule(group, resources, "CREATE", "UPDATE") for group, resources in groups.items()]
    spec = {
        "failurePolicy": added.failure_policy,
        "matchConstraints": match_constraints(*rules),
        "matchConditions": named((*conditions, *added.conditions)),
        **({"variables": named(variables)} if variables else {}),
        "validations": validations,
    }
    return api_object("ValidatingAdmissionPolicy", name, spec, owners=added.owners)


def _conditions(mode: Mode, policy: Policy) -> Iterator[tuple[str, str]]:
    """Yield names and expressions of the conditions for an evaluation. The webhook skips the same objects."""
    user, meta = "request.userInfo.username", "object.metadata"
    controllers = literals([CONTROLLER_MANAGER, *policy.controllers])
    own = f"{user}.startsWith({literal(KUBE_SYSTEM_ACCOUNT)}) && {user}.endsWith({literal(CONTROLLER_ACCOUNT_SUFFIX)})"
    pairs = sorted(
        f"{made[1]} of {owner[0] or 'v1'}/{owner[1]}" for made, owner in MADE_BY if {made, owner} <= {*NATIVE}
    )
    owner = "dyn(object).kind + ' of ' + o.apiVersion.split('/')[0] + '/' + o.kind"
    annotated = f"has({meta}.annotations) && {literal(MIRROR_ANNOTATION)} in {meta}.annotations"
    node = f"{user}.startsWith({literal(NODE_USER)}) && {literal(NODES_GROUP)} in request.userInfo.groups"
    before, after = _compared("dyn(oldObject)", policy), _compared("dyn(object)", policy)
    yield "may-have-a-finding", f"!({has_no_finding(policy)})"
    yield "not-being-deleted", f"!has({meta}.deletionTimestamp)"
    yield (
        "not-made-by-a-controller",
        f"!({user} in {controllers} || {own}) || !({is_controlled(f'{owner} in {literals(pairs)}')})",
    )
    yield "no-mirror-pod", f"!({annotated} && {node})"
    if mode is Mode.WARN:
        yield "read-by-a-person", f"!({is_controlled('true')})"
    yield "new-or-changed", f"request.operation != 'UPDATE' || {before} != {after}"


def _compared(of: str, policy: Policy) -> str:
    """The parts of a workload that rules and exemptions read."""
    template = f"({of}.kind == 'CronJob' ? {of}.spec.jobTemplate.spec.template : {of}.spec.template)"
    constraints, affinity = f"{template}.spec.topologySpreadConstraints", f"{template}.spec.affinity"
    # A missing field has an empty value of its type: kube-apiserver takes a map and a list in a list for equal.
    parts = [
        f"has({of}.spec.replicas) ? {of}.spec.replicas : 1",
        field_or(constraints, NO_ITEMS),
        field_or(affinity, NO_FIELDS),
        _labels_of(f"{template}.metadata"),
    ]
    if policy.exemptions:
        parts.append(_labels_of(f"{of}.metadata"))
    if policy.annotations.exempt == Exempts.DENIALS:
        parts += [_exempt_of(f"{of}.metadata"), _exempt_of(f"{template}.metadata")]
    return f"[{', '.join(parts)}]"


def _labels_of(meta: str) -> str:
    return f"has({meta}) && has({meta}.labels) ? {meta}.labels : {NO_FIELDS}"


def _exempt_of(meta: str) -> str:
    annotations, key = f"{meta}.annotations", literal(EXEMPT_ANNOTATION)
    has_key = f"has({meta}) && has({annotations}) && {key} in {annotations}"
    return f'{has_key} ? {annotations}[{key}] : dyn("")'


def _variables_of_modes(policy: Policy, today: str) -> Variables:
    """The object's name in messages, the ceiling of its namespace, and its exemptions."""
    annotation = literal(EXEMPT_ANNOTATION)
    texts = (
        f"[variables.object.metadata, variables.meta].filter(m, has(m.annotations) && {annotation} in m.annotations)"
        f".map(m, m.annotations[{annotation}]).filter(t, t.size() <= {_MAX_ANNOTATION_CHARS})"
    )
    label = f"variables.namespaceLabels[{literal(CEILING_LABEL)}]"
    known = f"{literal(CEILING_LABEL)} in variables.namespaceLabels && {label} in {_RANKS}"
    ceilings = [_capped(policy, each.ceiling or policy.ceiling) for each in policy.namespaces]
    ceilings.append(_capped(policy, policy.ceiling))
    different = [*dict.fromkeys(ceilings)]
    numbers = [*map(different.index, ceilings)]
    exemptions = [each for each in policy.exemptions if each.expires is None or each.expires >= today]
    return (
        ("title", 'variables.kind + " " + request.namespace + "/" + variables.object.metadata.name'),
        ("exempted", f"{texts}.map(t, t.split(',').map(r, r.trim())).map(l, l.join(',')).join(',').split(',')"),
        NAMESPACE_LABELS,
        ("label", f"{known} ? {_RANKS}[{label}] : -1"),
        ("namespaceAt", first_true((*map(_matches_namespace, policy.namespaces), "true"))),
        ("ceiling", f"[{', '.join(different)}][{numbers}[variables.namespaceAt]]"),
        *(
            (_exempting(rule).removeprefix("variables."), _any(each.match for each in exemptions if each.rule == rule))
            for rule in sorted({each.rule for each in policy.exemptions})
        ),
    )


def _any(matches: Iterable[Match]) -> str:
    return " || ".join(f"({_matches(each)})" for each in matches) or "false"


def _capped(policy: Policy, ceiling: Mode) -> str:
    """The ceiling of a namespace whose settings have this ceiling (`webhook.core.policy.lookup.ceiling_for`)."""
    if policy.ceiling is Mode.OFF or policy.namespace_label == NamespaceLabel.NONE:
        return str((Mode.OFF if policy.ceiling is Mode.OFF else ceiling).rank)
    only_raised = policy.namespace_label == NamespaceLabel.DEFAULT and Mode.DENY in {policy.ceiling, ceiling}
    if only_raised or policy.namespace_label == NamespaceLabel.RAISE:
        return f"(variables.label > {ceiling.rank} ? variables.label : {ceiling.rank})"
    return f"(variables.label >= 0 ? variables.label : {ceiling.rank})"


def _matches_namespace(settings: NamespaceSettings) -> str:
    named = settings.match.names
    conditions = [] if named is None else [f"request.namespace in {literals(named)}"]
    conditions.append(selects(settings.match.namespace_selector, "variables.namespaceLabels"))
    return " && ".join(filter(None, conditions)) or "true"


def _matches(match: Match) -> str:
    """Whether an exemption selects the object (`webhook.core.policy.matching`)."""
    meta = "variables.object.metadata"
    given = (("request.namespace", match.namespace), ("variables.kind", match.kind), (f"{meta}.name", match.name))
    conditions = [f"{field} == {literal(value)}" for field, value in given if value is not None]
    conditions.append(selects(match.namespace_selector, "variables.namespaceLabels"))
    conditions.append(selects(match.selector, field_or(f"{meta}.labels", NO_FIELDS)))
    return " && ".join(filter(None, conditions)) or "true"
