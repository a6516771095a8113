"""Enums for policy fields. Each lists the words that the configuration file accepts."""

from enum import StrEnum


class Capacity(StrEnum):
    """Field ``capacity``: whether new nodes can be added to the cluster."""

    AUTO = "auto"  # GROWING if any node has the label of a node pool, else FIXED
    FIXED = "fixed"
    GROWING = "growing"


class DenyFrom(StrEnum):
    """Field ``denyFrom``: the lowest severity at which a rule on `Mode.WARN` denies. NONE turns this off."""

    NONE = "none"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class NamespaceLabel(StrEnum):
    """Field ``namespaceLabel``: the effect of a namespace's label ``evenspread.io/ceiling``."""

    DEFAULT = ""  # RAISE if the configured ceiling is deny, else ANY
    RAISE = "raise"  # the label can only raise the ceiling
    ANY = "any"  # the label replaces the ceiling
    NONE = "none"  # the label is ignored


class TooLarge(StrEnum):
    """Field ``tooLarge``: whether a rule on `Mode.DENY` denies an object too large to examine."""

    DENY = "deny"
    ALLOW = "allow"


class Exempts(StrEnum):
    """Field ``annotations.exempt``: findings that the annotation ``evenspread.io/exempt`` can waive."""

    NONE = "none"
    WARNINGS = "warnings"
    DENIALS = "denials"  # and warnings


class ScaleIn(StrEnum):
    """Field ``scaleIn``: the treatment of workloads whose pods a scale-in can leave uneven."""

    OFF = "off"
    REPORT = "report"  # measure the worst skew after a scale-in
    GUARD = "guard"  # and order the removal by pod deletion costs


class DefaultsMode(StrEnum):
    """Field ``defaults.mode``: the treatment of pods without constraints."""

    OFF = "off"
    OBSERVE = "observe"  # record the constraints that would be injected
    INJECT = "inject"  # patch the pod


class RevisionKeys(StrEnum):
    """Field ``defaults.matchLabelKeys``: whether injected constraints have matchLabelKeys."""

    AUTO = "auto"  # the configured keys, and the revision label of a ReplicaSet's pods
    OFF = "off"


class FallbackMode(StrEnum):
    """Field ``defaults.fallback``: which pods' hard constraints may become soft."""

    OFF = "off"
    ANNOTATION = "annotation"  # pods with the annotation evenspread.io/fallback
    ALWAYS = "always"
