"""The configuration of the platform team. `webhook.config` reads it from YAML."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from webhook.core.api.selectors import EVERYTHING, Selector
from webhook.core.api.well_known import HOSTNAME
from webhook.core.policy.defaults import Defaults
from webhook.core.policy.matching import Exemption
from webhook.core.policy.options import Capacity, DenyFrom, Exempts, NamespaceLabel, ScaleIn, TooLarge
from webhook.core.scheduler.profile import DEFAULT_SCHEDULER, SchedulerProfile
from webhook.core.workloads.custom_kinds import EmbeddedKind


class Mode(StrEnum):
    """The effect of a finding."""

    OFF = "off"
    AUDIT = "audit"
    WARN = "warn"
    DENY = "deny"

    @property
    def rank(self) -> int:
        """The strength of the mode, from 0 for off to 3 for deny."""
        return _RANKS[self]

    def raised(self, floor: "Mode") -> "Mode":
        """Return the higher of this mode and the floor."""
        return self if self.rank >= floor.rank else floor

    def capped(self, ceiling: "Mode") -> "Mode":
        """Return the lower of this mode and the ceiling."""
        return self if self.rank <= ceiling.rank else ceiling


_RANKS = {Mode.OFF: 0, Mode.AUDIT: 1, Mode.WARN: 2, Mode.DENY: 3}


class _MessageDetail(StrEnum):
    """Field ``messages.detail``: the cluster facts that messages may name."""

    MINIMAL = "minimal"
    OWN_NAMESPACE = "own-namespace"
    FULL = "full"


class NamespaceMatch(Struct, frozen=True, kw_only=True, rename="camel"):
    """Selects namespaces by name and by labels. A namespace must match every given field."""

    names: tuple[str, ...] | None = None
    namespace_selector: Selector = EVERYTHING


class NamespaceSettings(Struct, frozen=True, kw_only=True, rename="camel"):
    """The settings of the matching namespaces. None stands for the global setting."""

    match: NamespaceMatch
    ceiling: Mode | None = None
    scale_in: ScaleIn | None = None


class Messages(Struct, frozen=True, kw_only=True, rename="camel"):
    """Settings for messages: the permitted cluster facts, a link and a footer.

    Methods take ``offline``: True on the command line, where the user has read access to the cluster. At admission the
    author of an object may lack access to other objects, and every client of the webhook can send a review.
    """

    detail: _MessageDetail = _MessageDetail.OWN_NAMESPACE
    docs_url: str = field(default="", name="docsURL")
    footer: str = ""

    def name_workloads(self, *, offline: bool) -> bool:
        """Whether messages may name other workloads of the object's namespace."""
        return self.detail == _MessageDetail.FULL or (offline and self.detail != _MessageDetail.MINIMAL)

    def count_others(self, *, offline: bool) -> bool:
        """Whether messages may give the number of other pods and workloads. If not, they give no number."""
        return self.detail == _MessageDetail.FULL or offline

    def name_keys(self, *, offline: bool) -> bool:
        """Whether messages may name custom label keys of nodes that the object does not use."""
        return self.name_workloads(offline=offline)

    def name_domains(self, key: str) -> bool:
        """Whether messages may name domains of this topology key. Domains of hostname are node names."""
        return self.detail == _MessageDetail.FULL or (self.detail != _MessageDetail.MINIMAL and key != HOSTNAME)


class Annotations(Struct, frozen=True, kw_only=True):
    """The allowed effects of annotations on objects."""

    exempt: Exempts = Exempts.WARNINGS


class Policy(Struct, frozen=True, kw_only=True, rename="camel"):
    """The whole configuration. docs/configuration.md describes each field and its default."""

    ceiling: Mode = Mode.WARN
    rules_version: str = "1.0"
    capacity: Capacity = Capacity.AUTO
    domains: Mapping[str, tuple[str, ...]] = {}
    scheduler_profiles: tuple[SchedulerProfile, ...] = ()  # the content of the file `schedulerConfiguration`
    rules: Mapping[str, Mode] = {}
    deny_from: DenyFrom = DenyFrom.NONE
    stuck_threshold: float = 0.01
    namespaces: tuple[NamespaceSettings, ...] = ()
    namespace_label: NamespaceLabel = NamespaceLabel.DEFAULT
    scale_in: ScaleIn = ScaleIn.OFF
    defaults: Defaults = Defaults()
    workloads: tuple[EmbeddedKind, ...] = ()
    scheduler_names: tuple[str, ...] = (DEFAULT_SCHEDULER,)
    controllers: tuple[str, ...] = ()  # users, in addition to Kubernetes' own controllers
    too_large: TooLarge = TooLarge.DENY
    exemptions: tuple[Exemption, ...] = ()
    annotations: Annotations = Annotations()
    messages: Messages = Messages()
    max_staleness_seconds: float = field(default=60.0, name="maxStaleness")
