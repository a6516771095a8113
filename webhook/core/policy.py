"""What the platform team decided: modes, ceilings, exemptions, defaults; `webhook.config` reads it from YAML."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from webhook.core.model import LabelSelector, SpreadConstraint


class Mode(StrEnum):
    """What a rule does when broken."""

    OFF = "off"
    AUDIT = "audit"
    WARN = "warn"
    DENY = "deny"

    @property
    def rank(self) -> int:
        """0 for off to 3 for deny; a ceiling is the lower of two ranks."""
        return _RANKS[self]

    def capped(self, ceiling: "Mode") -> "Mode":
        """This mode, or the ceiling where that is lower."""
        return self if self.rank <= ceiling.rank else ceiling


_RANKS = {Mode.OFF: 0, Mode.AUDIT: 1, Mode.WARN: 2, Mode.DENY: 3}


class Match(Struct, frozen=True, kw_only=True):
    """Which objects something applies to; every field given must match.

    Shape: ``names`` are namespaces; ``namespace`` is one of them. Absent fields match everything.
    """

    names: tuple[str, ...] | None = None
    namespace: str | None = None
    namespace_selector: LabelSelector | None = None
    kind: str | None = None
    name: str | None = None
    selector: LabelSelector | None = None


class NamespaceCeiling(Struct, frozen=True, kw_only=True):
    match: Match
    ceiling: Mode


class Exemption(Struct, frozen=True, kw_only=True):
    """Unit: ``expires`` is an ISO date; the exemption holds through that day (UTC)."""

    rule: str
    match: Match
    reason: str
    expires: str | None = None


class DefaultConstraint(Struct, frozen=True, kw_only=True):
    """A default constraint: PodTopologySpreadArgs' own fields, and the threshold for hardness that is ours."""

    constraint: SpreadConstraint
    hard_when_domains: int | None = None


class DefaultsOverride(Struct, frozen=True, kw_only=True):
    name: str
    namespace_selector: LabelSelector | None = None
    pod_selector: LabelSelector | None = None
    min_replicas: int | None = None
    default_constraints: tuple[DefaultConstraint, ...] = ()


class Defaults(Struct, frozen=True, kw_only=True):
    mode: str = "observe"  # off | observe | inject
    defaulting_type: str = "List"  # List | System
    default_constraints: tuple[DefaultConstraint, ...] = ()
    overrides: tuple[DefaultsOverride, ...] = ()
    match_label_keys: str = "auto"  # auto | off
    fill_null_selector: bool = False
    owners: tuple[tuple[str, str], ...] = ()  # (apiVersion, kind)
    fallback: str = "annotation"  # off | annotation | always
    accept_node_growth: bool = False


class EmbeddedKind(Struct, frozen=True, kw_only=True):
    """A further kind that embeds a pod template, from ``workloads`` of the configuration."""

    api_version: str
    kind: str
    template_path: str
    replicas_path: str | None = None
    selector_path: str | None = None


class Messages(Struct, frozen=True, kw_only=True):
    detail: str = "own-namespace"  # minimal | own-namespace | full
    docs_url: str = ""
    footer: str = ""


class Policy(Struct, frozen=True, kw_only=True):
    """The configured whole. Every default is the one of interfaces.md §1."""

    ceiling: Mode = Mode.WARN
    rules_version: str = "1.0"
    capacity: str = "auto"  # auto | fixed | growing
    domains: Mapping[str, tuple[str, ...]] = {}
    scheduler_configuration: str = ""
    rules: Mapping[str, Mode] = {}
    stuck_threshold: float = 0.01
    namespaces: tuple[NamespaceCeiling, ...] = ()
    defaults: Defaults = Defaults()
    workloads: tuple[EmbeddedKind, ...] = ()
    scheduler_names: tuple[str, ...] = ("default-scheduler",)
    exemptions: tuple[Exemption, ...] = ()
    annotation_exempt: str = "warnings"  # none | warnings | denials
    messages: Messages = Messages()
    max_staleness_seconds: float = 60.0
