"""All rules in one tuple, and the sets derived from it.

One line in `RULES` registers a rule. Everything else about the rule is in its own `Rule`.
"""

from collections.abc import Mapping

from webhook.core.policy.lookup import mode_for
from webhook.core.policy.options import DenyFrom
from webhook.core.policy.policy import Mode, Policy
from webhook.core.rules.cluster import (
    all_in_one_domain,
    autoscalers,
    differing_constraints,
    effect,
    replica_range,
    shared_selectors,
    topology_key,
)
from webhook.core.rules.constraint import (
    api,
    label_selector,
    match_label_keys,
    pods_refused,
    scale_in_annotation,
    unknown_fields,
    unread_constraints,
)
from webhook.core.rules.frame.rule import Rule, Severity
from webhook.core.rules.placement import affinity_conflicts, ceilings, getting_stuck, group_caps, pod_fits, zone_loss
from webhook.core.rules.placement.frame.case import PlacementRule

# In the order of reports.
RULES: tuple[Rule, ...] = (
    *api.VALIDATION_RULES,
    pods_refused.REFUSED,
    unknown_fields.UNKNOWN_FIELD,
    unread_constraints.UNREAD,
    label_selector.NULL,
    label_selector.EMPTY,
    label_selector.NOT_SELF,
    shared_selectors.TOO_WIDE,
    match_label_keys.MIXED,
    match_label_keys.ABSENT,
    match_label_keys.WRONG_KIND,
    topology_key.KEY_UNKNOWN,
    topology_key.KEY_PARTIAL,
    topology_key.TYPO,
    topology_key.DEPRECATED,
    ceilings.TAINTED,
    ceilings.MIN_DOMAINS_UNREACHABLE,
    ceilings.CEILING,
    affinity_conflicts.CONFLICTS,
    zone_loss.ZONE_LOSS,
    all_in_one_domain.ALL_IN_ONE,
    effect.DEFAULTS_LOST,
    effect.NO_EFFECT,
    differing_constraints.DIFFER,
    autoscalers.AUTOSCALER,
    replica_range.MINIMUM,
    replica_range.SCALE_IN,
    scale_in_annotation.ANNOTATION,
    effect.SPREAD_REQUIRED,
    pod_fits.DO_NOT_FIT,
    getting_stuck.STUCK,
    getting_stuck.ROLLOUT_STUCK,
    group_caps.GROUP_CAP,
)

BY_ID: Mapping[str, Rule] = {rule.id: rule for rule in RULES}
API_RULES = frozenset(rule.id for rule in RULES if rule.of_api)
# The webhook never evaluates these, because kube-apiserver drops their fields before it calls a webhook.
OFFLINE = frozenset(rule.id for rule in RULES if rule.evaluate_written is not None)
# Rules about pods without a node.
OF_PODS_WITHOUT_NODES = frozenset(
    rule.id
    for rule in (
        ceilings.TAINTED,
        ceilings.CEILING,
        affinity_conflicts.CONFLICTS,
        pod_fits.DO_NOT_FIT,
        topology_key.KEY_UNKNOWN,
        topology_key.KEY_PARTIAL,
    )
)
# Nearly every workload with constraints has such a finding, so a command reports the rule once.
ONCE_PER_RUN = frozenset({effect.DEFAULTS_LOST.id, replica_range.SCALE_IN.id})
# Rules about the number of pods. A change of the number starts no rollout.
OF_REPLICAS = frozenset(rule.id for rule in RULES if isinstance(rule, PlacementRule)) - {getting_stuck.ROLLOUT_STUCK.id}


_RISING = tuple(Severity)


def denied_from(policy: Policy, rule: Rule) -> bool:
    """Whether ``denyFrom`` turns the rule's warnings into denials. A rule with a mode in ``rules`` keeps this mode."""
    return (
        policy.deny_from != DenyFrom.NONE
        and rule.mode is Mode.WARN
        and rule.id not in policy.rules
        and _RISING.index(rule.severity) >= _RISING.index(Severity(policy.deny_from))
    )


def skipped_rules(policy: Policy, *, scanned: bool) -> frozenset[str]:
    """Return the rules to skip at admission, because no user would read their findings.

    Rules in mode off are skipped. In a ``scanned`` cluster, audit-only rules are skipped too, because the scan's
    reports contain their findings. A rule is never skipped if its findings silence another rule.
    """
    silent = set()
    for rule in RULES:
        if isinstance(rule, PlacementRule) and not rule.only_audits:
            continue  # what it finds may be why pods do not fit, which another rule would deny then
        mode = mode_for(policy, rule.id, rule.mode, rule.since)
        # A configured mode applies to all findings. Otherwise each finding can request a warning.
        audits = mode is Mode.AUDIT and (rule.only_audits or rule.id in policy.rules)
        if mode is Mode.OFF or (scanned and audits):
            silent.add(rule.id)
    return frozenset(silent)
