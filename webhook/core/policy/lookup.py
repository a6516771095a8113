"""Look up the policy's mode, ceiling, exemption and scheduler profile.

Example:
    mode = mode_for(policy, rule.id, rule.mode, rule.since).capped(ceiling_for(policy, namespace, labels))

An exempted object has at most ``audit``. In every list, the first match wins.
"""

from collections.abc import Mapping

from webhook.core.api.well_known import CEILING_LABEL, NAMESPACE_NAME, SCALE_IN_ANNOTATION
from webhook.core.policy.matching import Exemption, MatchedObject
from webhook.core.policy.options import NamespaceLabel, ScaleIn
from webhook.core.policy.policy import Mode, NamespaceSettings, Policy
from webhook.core.scheduler.profile import DEFAULT_SCHEDULER, SchedulerProfile

_MODES = {mode.value: mode for mode in Mode}
_SCALE_INS = {value.value: value for value in ScaleIn}


def mode_for(policy: Policy, rule: str, default: Mode, since: str) -> Mode:
    """Return the mode of a rule before any ceiling: the configured mode, else its default.

    An unconfigured rule newer than ``rulesVersion`` is at most ``audit``. Upgrades thus add no denials or warnings.
    """
    configured = policy.rules.get(rule)
    if configured is not None:
        return configured
    is_newer = since != policy.rules_version and rules_version(since) > rules_version(policy.rules_version)
    return default.capped(Mode.AUDIT) if is_newer else default


def ceiling_for(policy: Policy, namespace: str, namespace_labels: Mapping[str, str]) -> Mode:
    """Return the highest mode of any rule in this namespace.

    The first matching entry of ``namespaces`` sets the ceiling, else the global ceiling holds. Then
    ``namespace_label`` decides whether the namespace's ceiling label replaces it, only raises it, or is ignored.
    Every editor of the namespace can set the label. A label with an unknown value is ignored. A global ``off`` is
    the kill switch: nothing overrides it.
    """
    if policy.ceiling is Mode.OFF:
        return Mode.OFF
    settings = _settings_of(policy, namespace, namespace_labels)
    ceiling = policy.ceiling if settings is None or settings.ceiling is None else settings.ceiling
    label = _MODES.get(namespace_labels.get(CEILING_LABEL, ""))
    if label is None or policy.namespace_label == NamespaceLabel.NONE:
        return ceiling
    only_raised = policy.namespace_label == NamespaceLabel.DEFAULT and Mode.DENY in {policy.ceiling, ceiling}
    return ceiling.raised(label) if only_raised or policy.namespace_label == NamespaceLabel.RAISE else label


def scale_in_for(
    policy: Policy, namespace: str, namespace_labels: Mapping[str, str], annotations: Mapping[str, str] | None
) -> ScaleIn:
    """Return the treatment of a workload's scale-ins: its annotation, else its namespace's entry, else the global one.

    Every author of a workload can opt in and out, because the guard denies nothing. An unknown value is ignored.
    """
    annotated = _SCALE_INS.get((annotations or {}).get(SCALE_IN_ANNOTATION, ""))
    if annotated is not None:
        return annotated
    settings = _settings_of(policy, namespace, namespace_labels)
    return policy.scale_in if settings is None or settings.scale_in is None else settings.scale_in


def _settings_of(policy: Policy, namespace: str, namespace_labels: Mapping[str, str]) -> NamespaceSettings | None:
    labels = {NAMESPACE_NAME: namespace, **namespace_labels}
    for entry in policy.namespaces:
        names = entry.match.names
        if (names is None or namespace in names) and entry.match.namespace_selector.matches(labels):
            return entry
    return None


def exemption_for(policy: Policy, rule: str, target: MatchedObject, today: str) -> Exemption | None:
    """Return the first exemption of the object from this rule that is valid on this ISO date (UTC)."""
    for exemption in policy.exemptions:
        expired = exemption.expires is not None and exemption.expires < today
        if exemption.rule == rule and not expired and exemption.match.matches(target):
            return exemption
    return None


def profile_for(policy: Policy, scheduler_name: str | None) -> SchedulerProfile | None:
    """Return the configuration of the named scheduler, or None if the policy has none."""
    name = scheduler_name or DEFAULT_SCHEDULER
    return next((profile for profile in policy.scheduler_profiles if profile.name == name), None)


def rules_version(text: str) -> tuple[int, ...]:
    """Parse a rules version into numbers, so that 1.10 is newer than 1.9. The schema has checked its form."""
    return tuple(int(part) for part in text.split("."))
