"""What the platform team configured: modes, ceilings, exemptions, defaults. `webhook.config` reads it from YAML.

The mode of a rule in a namespace is

    mode_for(rule) capped by ceiling_for(namespace)

and at most ``audit`` for objects that an exemption matches. In every list, the first match wins.
"""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from webhook.core.api.selectors import EVERYTHING, Selector
from webhook.core.api.types import SpreadConstraint
from webhook.core.api.well_known import CEILING_LABEL, HOSTNAME, NAMESPACE_NAME
from webhook.core.scheduler.profile import DEFAULT_SCHEDULER, DefaultingType, SchedulerProfile
from webhook.core.workloads.custom_kinds import EmbeddedKind


class Mode(StrEnum):
    """What a rule does when broken."""

    OFF = "off"
    AUDIT = "audit"
    WARN = "warn"
    DENY = "deny"

    @property
    def rank(self) -> int:
        """From 0 for off to 3 for deny."""
        return _RANKS[self]

    def raised(self, floor: "Mode") -> "Mode":
        """The higher of this mode and the floor."""
        return self if self.rank >= floor.rank else floor

    def capped(self, ceiling: "Mode") -> "Mode":
        """The lower of this mode and the ceiling."""
        return self if self.rank <= ceiling.rank else ceiling


class Capacity(StrEnum):
    """Whether nodes can be added to the cluster. AUTO goes by the labels of the nodes."""

    AUTO = "auto"
    FIXED = "fixed"
    GROWING = "growing"


class DenyFrom(StrEnum):
    """The least severity at which a rule on `Mode.WARN` denies."""

    NONE = "none"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class NamespaceLabel(StrEnum):
    """What a namespace's label may do to its ceiling. DEFAULT is RAISE where the ceiling is deny, else ANY."""

    DEFAULT = ""
    RAISE = "raise"
    ANY = "any"
    NONE = "none"


class TooLarge(StrEnum):
    """The answer of a rule on `Mode.DENY` for an object that it cannot examine."""

    DENY = "deny"
    ALLOW = "allow"


class Exempts(StrEnum):
    """What an object's own annotation exempts it from."""

    NONE = "none"
    WARNINGS = "warnings"
    DENIALS = "denials"


class DefaultsMode(StrEnum):
    """What happens to a pod without constraints."""

    OFF = "off"
    OBSERVE = "observe"
    INJECT = "inject"


class RevisionKeys(StrEnum):
    """Whether injected constraints get the label of the revision as a matchLabelKey."""

    AUTO = "auto"
    OFF = "off"


class FallbackMode(StrEnum):
    """When a hard constraint that cannot be met becomes soft. ANNOTATION: for pods that ask for it."""

    OFF = "off"
    ANNOTATION = "annotation"
    ALWAYS = "always"


class Detail(StrEnum):
    """What of the cluster messages may name."""

    MINIMAL = "minimal"
    OWN_NAMESPACE = "own-namespace"
    FULL = "full"


_RANKS = {Mode.OFF: 0, Mode.AUDIT: 1, Mode.WARN: 2, Mode.DENY: 3}
_MODES = {mode.value: mode for mode in Mode}


class MatchedObject(Struct, frozen=True, kw_only=True):
    """The object that a `Match` is compared with, and its namespace, whose labels are empty if unknown."""

    namespace: str
    namespace_labels: Mapping[str, str] = {}
    kind: str = ""
    name: str = ""
    labels: Mapping[str, str] = {}


class Match(Struct, frozen=True, kw_only=True, rename="camel"):
    """The objects that an exemption applies to: every field that is given has to match."""

    namespace: str | None = None
    namespace_selector: Selector = EVERYTHING
    kind: str | None = None
    name: str | None = None
    selector: Selector = EVERYTHING

    def matches(self, target: MatchedObject) -> bool:
        """Whether every field that is given matches the object."""
        return (
            self.namespace in {None, target.namespace}
            and self.kind in {None, target.kind}
            and self.name in {None, target.name}
            and self.namespace_selector.matches({NAMESPACE_NAME: target.namespace, **target.namespace_labels})
            and self.selector.matches(target.labels)
        )


class NamespaceMatch(Struct, frozen=True, kw_only=True, rename="camel"):
    """The namespaces that a ceiling applies to: every field that is given has to match."""

    names: tuple[str, ...] | None = None
    namespace_selector: Selector = EVERYTHING


class NamespaceCeiling(Struct, frozen=True, kw_only=True, rename="camel"):
    """The highest mode that a rule has in some namespaces, whatever is configured for it."""

    match: NamespaceMatch
    ceiling: Mode


class Exemption(Struct, frozen=True, kw_only=True, rename="camel"):
    """Objects for which a rule is at most audited; ``expires`` is the last day (UTC) that it holds, an ISO date."""

    rule: str
    match: Match
    reason: str
    expires: str | None = None


class DefaultConstraint(Struct, frozen=True, kw_only=True, rename="camel"):
    """A default constraint: the fields of PodTopologySpreadArgs, and from how many domains on it is hard."""

    constraint: SpreadConstraint
    hard_when_domains: int | None = None


class DefaultsOverride(Struct, frozen=True, kw_only=True, rename="camel"):
    """Default constraints for some pods, in place of the general ones. Of several that apply, the first counts.

    ``min_replicas`` is the number of pods that the workload may have. None applies to any number.
    """

    name: str
    namespace_selector: Selector = EVERYTHING
    pod_selector: Selector = EVERYTHING
    min_replicas: int | None = None
    default_constraints: tuple[DefaultConstraint, ...] = ()


class Defaults(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a pod without constraints gets, and whether.

    Attributes:
        owners: Further kinds whose pods get defaults, each as API version and kind.
        accept_node_growth: Whether defaults by hostname are injected where Karpenter would add nodes.
    """

    mode: DefaultsMode = DefaultsMode.OBSERVE
    defaulting_type: DefaultingType = DefaultingType.LIST
    default_constraints: tuple[DefaultConstraint, ...] = ()
    overrides: tuple[DefaultsOverride, ...] = ()
    match_label_keys: RevisionKeys = RevisionKeys.AUTO
    fill_null_selector: bool = False
    owners: tuple[tuple[str, str], ...] = ()
    fallback: FallbackMode = FallbackMode.ANNOTATION
    accept_node_growth: bool = False

    @property
    def injects(self) -> bool:
        """Whether pods are patched."""
        return self.mode == DefaultsMode.INJECT


class Messages(Struct, frozen=True, kw_only=True, rename="camel"):
    """How messages are written, and what of the cluster they may name."""

    detail: Detail = Detail.OWN_NAMESPACE
    docs_url: str = field(default="", name="docsURL")
    footer: str = ""

    def name_workloads(self, *, offline: bool) -> bool:
        """Whether other workloads of the object's namespace may be named.

        ``offline`` is true for the command line, whose user has read the cluster. The author of an object need not be
        allowed to see those of others, and anybody who reaches the webhook can send it a review.
        """
        return self.detail == Detail.FULL or (offline and self.detail != Detail.MINIMAL)

    def count_others(self, *, offline: bool) -> bool:
        """Whether the pods and workloads of others may be counted; that there are some is told in any case."""
        return self.detail == Detail.FULL or offline

    def name_keys(self, *, offline: bool) -> bool:
        """Whether a label key of the nodes may be named that the object does not have, and no cluster has by itself."""
        return self.name_workloads(offline=offline)

    def name_domains(self, key: str) -> bool:
        """Whether domains of the topology key may be named; those of hosts are names of nodes."""
        return self.detail == Detail.FULL or (self.detail != Detail.MINIMAL and key != HOSTNAME)


class Annotations(Struct, frozen=True, kw_only=True):
    """What the annotations of objects may do."""

    exempt: Exempts = Exempts.WARNINGS


class Policy(Struct, frozen=True, kw_only=True, rename="camel"):
    """The whole configuration. Its defaults are documented in docs/configuration.md."""

    ceiling: Mode = Mode.WARN
    rules_version: str = "1.0"
    capacity: Capacity = Capacity.AUTO
    domains: Mapping[str, tuple[str, ...]] = {}
    scheduler_configuration: str = ""
    scheduler_profiles: tuple[SchedulerProfile, ...] = ()  # what stands in that file
    rules: Mapping[str, Mode] = {}
    deny_from: DenyFrom = DenyFrom.NONE
    stuck_threshold: float = 0.01
    namespaces: tuple[NamespaceCeiling, ...] = ()
    namespace_label: NamespaceLabel = NamespaceLabel.DEFAULT
    defaults: Defaults = Defaults()
    workloads: tuple[EmbeddedKind, ...] = ()
    scheduler_names: tuple[str, ...] = (DEFAULT_SCHEDULER,)
    controllers: tuple[str, ...] = ()  # users, beside Kubernetes' own controllers
    too_large: TooLarge = TooLarge.DENY
    exemptions: tuple[Exemption, ...] = ()
    annotations: Annotations = Annotations()
    messages: Messages = Messages()
    max_staleness_seconds: float = field(default=60.0, name="maxStaleness")


def profile_for(policy: Policy, scheduler_name: str | None) -> SchedulerProfile | None:
    """The configuration of the scheduler with that name; None if it is not given."""
    name = scheduler_name or DEFAULT_SCHEDULER
    return next((profile for profile in policy.scheduler_profiles if profile.name == name), None)


def ceiling_for(policy: Policy, namespace: str, namespace_labels: Mapping[str, str]) -> Mode:
    """The highest mode that any rule may have in this namespace.

    The policy's ceiling is that of the first matching entry of ``namespaces``, else the global one. ``namespace_label``
    decides whether the namespace's label replaces it, only raises it, or does nothing: whoever may edit the namespace
    sets the label. A global ``off`` is the kill switch: nothing overrides it. A label with an unknown value is ignored.
    """
    if policy.ceiling is Mode.OFF:
        return Mode.OFF
    ceiling = _configured_ceiling(policy, namespace, namespace_labels)
    label = _MODES.get(namespace_labels.get(CEILING_LABEL, ""))
    if label is None or policy.namespace_label == NamespaceLabel.NONE:
        return ceiling
    only_raised = policy.namespace_label == NamespaceLabel.DEFAULT and Mode.DENY in {policy.ceiling, ceiling}
    return ceiling.raised(label) if only_raised or policy.namespace_label == NamespaceLabel.RAISE else label


def _configured_ceiling(policy: Policy, namespace: str, namespace_labels: Mapping[str, str]) -> Mode:
    labels = {NAMESPACE_NAME: namespace, **namespace_labels}
    for entry in policy.namespaces:
        names = entry.match.names
        if (names is None or namespace in names) and entry.match.namespace_selector.matches(labels):
            return entry.ceiling
    return policy.ceiling


def mode_for(policy: Policy, rule: str, default: Mode, since: str) -> Mode:
    """The mode of a rule before any ceiling: the configured one, else its default.

    A rule that is newer than ``rulesVersion`` and not configured is at most ``audit``, so that an upgrade of the
    product brings no new denials or warnings.
    """
    configured = policy.rules.get(rule)
    if configured is not None:
        return configured
    is_newer = since != policy.rules_version and release(since) > release(policy.rules_version)
    return default.capped(Mode.AUDIT) if is_newer else default


def release(text: str) -> tuple[int, ...]:
    """A rules version as numbers, so that 1.10 is newer than 1.9.

    Errors: ValueError if a part is no number; `webhook.config` has checked what comes from the file.
    """
    return tuple(int(part) for part in text.split("."))


def exempted(policy: Policy, rule: str, target: MatchedObject, today: str) -> Exemption | None:
    """The first exemption from this rule that matches the object and is not over on this ISO date (UTC)."""
    for exemption in policy.exemptions:
        expired = exemption.expires is not None and exemption.expires < today
        if exemption.rule == rule and not expired and exemption.match.matches(target):
            return exemption
    return None


def override_for(
    defaults: Defaults, namespace_labels: Mapping[str, str], pod_labels: Mapping[str, str], replicas: int | None
) -> DefaultsOverride | None:
    """The first override that selects this pod. With unknown ``replicas``, no ``minReplicas`` matches."""
    for override in defaults.overrides:
        if (
            override.namespace_selector.matches(namespace_labels)
            and override.pod_selector.matches(pod_labels)
            and (override.min_replicas is None or (replicas is not None and replicas >= override.min_replicas))
        ):
            return override
    return None
