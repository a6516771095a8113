"""The rules about the object alone, as expressions of CEL."""

from webhook.core.admission_policies.cel import literal, literals, with_names
from webhook.core.admission_policies.expressions import (
    COMMON_VARIABLES,
    NO_FIELDS,
    NO_ITEMS,
    StaticRule,
    Variables,
    field_or,
)
from webhook.core.admission_policies.label_key_rules import key_absent, key_of_another_kind, pods_refused_for_keys
from webhook.core.admission_policies.selector_rules import selector_empty, selector_not_self
from webhook.core.admission_policies.spread_rules import misspelt_topology_key, required_constraints
from webhook.core.api import gates
from webhook.core.api.version import KubernetesVersion
from webhook.core.api.well_known import HOSTNAME, POD_TEMPLATE_HASH, ZONE
from webhook.core.policy.policy import Mode, Policy
from webhook.core.rules.cluster import effect


def static_rules(policy: Policy, version: KubernetesVersion) -> tuple[Variables, tuple[StaticRule, ...]]:
    """Return the variables and the rules, in the order of reports."""
    parts = [pods_refused_for_keys()] if gates.MERGES_SPREAD_KEYS.holds(version) else []
    parts += [selector_empty(version), selector_not_self(), key_absent(), key_of_another_kind()]
    parts += [misspelt_topology_key(policy), required_constraints()]
    return (*COMMON_VARIABLES, *(each for more, _ in parts for each in more)), tuple(rule for _, rule in parts)


def has_no_finding(policy: Policy) -> str:
    """Return an expression without variables: whether a quick check shows that no rule has a finding.

    Most objects pass it. The API server then evaluates nothing else.
    """
    spec, selector = "template.spec.topologySpreadConstraints", "c.labelSelector"
    pairs = f"{selector}.matchLabels.all(k, k in labels && labels[k] == {selector}.matchLabels[k])"
    own = f"!has({selector}) || has({selector}.matchLabels) && !has({selector}.matchExpressions) && {pairs}"
    revision = literals([POD_TEMPLATE_HASH])
    keys = f"!has(c.matchLabelKeys) || kind == 'Deployment' && c.matchLabelKeys == {revision}"
    right = f"c.topologyKey in {literals([ZONE, HOSTNAME])} && ({own}) && ({keys})"
    expected = f"!({literal(POD_TEMPLATE_HASH)} in labels) && {field_or(spec, NO_ITEMS)}.all(c, {right})"
    if policy.rules.get(effect.SPREAD_REQUIRED.id, Mode.OFF) is not Mode.OFF:
        expected = f"has({spec}) && {expected}"
    places = {"'CronJob'": "o.spec.jobTemplate.spec.template", "'Pod'": "o"}
    template = "".join(f"kind == {kind} ? {place} : " for kind, place in places.items()) + "o.spec.template"
    labels = f"has(template.metadata) && has(template.metadata.labels) ? template.metadata.labels : {NO_FIELDS}"
    return with_names(expected, o="dyn(object)", kind="o.kind", template=template, labels=labels)
