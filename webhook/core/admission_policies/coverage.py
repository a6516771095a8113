"""Which rules and defaults admission policies have, and why not the others."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from webhook.core.admission_policies.default_sets import default_sets
from webhook.core.admission_policies.static_rules import static_rules
from webhook.core.api.version import KubernetesVersion
from webhook.core.api.well_known import SKIP_ANNOTATION
from webhook.core.policy.lookup import mode_for
from webhook.core.policy.options import FallbackMode
from webhook.core.policy.policy import Mode, Policy
from webhook.core.rules.cluster import effect, topology_key
from webhook.core.rules.constraint import label_selector, match_label_keys, pods_refused, scale_in_annotation
from webhook.core.rules.frame.rule import Rule
from webhook.core.rules.rule_set import RULES


class Share(StrEnum):
    """How much of a rule or setting the admission policies have."""

    ALL = "all"
    PART = "part"
    NONE = "none"


class Coverage(NamedTuple):
    """The share of a rule or setting in the admission policies. ``why`` is the reason for less than all."""

    name: str
    share: Share
    why: str = ""


_PARTS: Mapping[str, str] = {
    pods_refused.REFUSED.id: "only matchLabelKeys of constraints, without labels from Jobs",
    label_selector.NOT_SELF.id: "a condition on a pod's name, ordinal or Job counts as met",
    topology_key.TYPO.id: "one wrong letter or a wrong prefix; the labels of your nodes are unknown",
}
_REASONS: Mapping[str, str] = {
    label_selector.NULL.id: "kube-apiserver warns itself",
    topology_key.DEPRECATED.id: "kube-apiserver warns itself",
    match_label_keys.MIXED.id: "computes the skew after a rollout",
    scale_in_annotation.ANNOTATION.id: "about the guard, which needs the controller",
    effect.DEFAULTS_LOST.id: "only audits",
    effect.NO_EFFECT.id: "only audits",
}

_SELECTS_NODES = "hardWhenDomains: pods with a node selector or node affinity are left alone"
_WITHOUT_OWNERS = (
    Coverage("owners", Share.PART, "only ReplicaSets of Deployments and Argo Rollouts"),
    Coverage("one-replica", Share.NONE, "replicas and autoscalers are unknown; a single pod gets defaults too"),
    Coverage(SKIP_ANNOTATION, Share.PART, "only of pods; annotate the pod template instead of its owner"),
)


def coverage(policy: Policy, version: KubernetesVersion) -> Iterator[Coverage]:
    """Yield each rule, in the order of reports."""
    compiled = {each.rule.id for each in static_rules(policy, version)[1]}
    for rule in RULES:
        is_off = Mode.OFF in (policy.ceiling, mode_for(policy, rule.id, rule.mode, rule.since))
        if rule.id in compiled and is_off:
            yield Coverage(rule.id, Share.NONE, "off in the policy")
        elif rule.id in compiled:
            why = _PARTS.get(rule.id, "")
            yield Coverage(rule.id, Share.PART if why else Share.ALL, why)
        else:
            yield Coverage(rule.id, Share.NONE, _reason(rule))


def defaults_coverage(policy: Policy) -> Iterator[Coverage]:
    """Yield each override, the general defaults, and the other settings and conditions of defaults."""
    for each in default_sets(policy):
        name = "defaultConstraints" if each.override is None else f"overrides: {each.override}"
        if each.why_not:
            yield Coverage(name, Share.NONE, each.why_not)
        elif each.any_node:
            yield Coverage(name, Share.PART, _SELECTS_NODES)
        else:
            yield Coverage(name, Share.ALL)
    yield from _WITHOUT_OWNERS
    if policy.defaults.fill_null_selector:
        yield Coverage("fillNullSelector", Share.NONE, "the selectors of Services and owners are unknown")
    if policy.defaults.fallback != FallbackMode.OFF:
        yield Coverage("fallback", Share.NONE, "nodes and other pods are unknown")


def _reason(rule: Rule) -> str:
    if rule.of_api:
        return "kube-apiserver refuses it in built-in kinds; other kinds are not compiled"
    if rule.evaluate_written is not None:
        return "only in files: kube-apiserver drops the field"
    return _REASONS.get(rule.id) or ("reads the cluster" if rule.needs else "not in this release of Kubernetes")
