"""A valid document -> the `Policy` that the core uses."""

from collections.abc import Mapping
from typing import Any

import msgspec

from webhook.config.semantic_checks import seconds
from webhook.core.api.selectors import EVERYTHING, Selector, compile_selector
from webhook.core.api.types import LabelSelector, SpreadConstraint
from webhook.core.decoders import converted
from webhook.core.policy.policy import (
    DefaultConstraint,
    Defaults,
    DefaultsOverride,
    Exemption,
    Match,
    Mode,
    NamespaceCeiling,
    NamespaceMatch,
    Policy,
)
from webhook.core.scheduler.profile import SchedulerProfile
from webhook.core.workloads.custom_kinds import EmbeddedKind

RawConfig = Mapping[str, Any]  # raw YAML, already checked against the schema


def built(value: RawConfig, profiles: tuple[SchedulerProfile, ...]) -> Policy:
    """The policy of a document; absent fields have the defaults of `Policy`."""
    plain = {name: inner for name, inner in value.items() if name not in _RESHAPED}
    policy = converted(plain, Policy)
    return msgspec.structs.replace(
        policy,
        namespaces=_namespaces(value.get("namespaces", [])),
        workloads=_workloads(value.get("workloads", [])),
        exemptions=_exemptions(value.get("exemptions", [])),
        defaults=_defaults(value.get("defaults", {})),
        annotation_exempt=value.get("annotations", {}).get("exempt", policy.annotation_exempt),
        max_staleness_seconds=seconds(value["maxStaleness"])
        if "maxStaleness" in value
        else policy.max_staleness_seconds,
        scheduler_profiles=profiles,
    )


_RESHAPED = frozenset({"workloads", "namespaces", "exemptions", "defaults", "annotations", "maxStaleness"})
_RESHAPED_DEFAULTS = frozenset({"defaultConstraints", "overrides", "owners"})


def _namespaces(entries: list[RawConfig]) -> tuple[NamespaceCeiling, ...]:
    return tuple(
        NamespaceCeiling(
            match=NamespaceMatch(
                names=tuple(entry["match"]["names"]) if "names" in entry["match"] else None,
                namespace_selector=_selector(entry["match"], "namespaceSelector"),
            ),
            ceiling=Mode(entry["ceiling"]),
        )
        for entry in entries
    )


def _workloads(entries: list[RawConfig]) -> tuple[EmbeddedKind, ...]:
    return tuple(
        converted({**entry, "podLabels": tuple(entry.get("podLabels", {}).items())}, EmbeddedKind) for entry in entries
    )


def _exemptions(entries: list[RawConfig]) -> tuple[Exemption, ...]:
    return tuple(
        Exemption(
            rule=entry["rule"],
            match=Match(
                namespace=entry["match"].get("namespace"),
                namespace_selector=_selector(entry["match"], "namespaceSelector"),
                kind=entry["match"].get("kind"),
                name=entry["match"].get("name"),
                selector=_selector(entry["match"], "selector"),
            ),
            reason=entry["reason"],
            expires=entry.get("expires"),
        )
        for entry in entries
    )


def _defaults(value: RawConfig) -> Defaults:
    return msgspec.structs.replace(
        converted({name: inner for name, inner in value.items() if name not in _RESHAPED_DEFAULTS}, Defaults),
        default_constraints=_constraints(value.get("defaultConstraints", [])),
        overrides=_overrides(value.get("overrides", [])),
        owners=tuple((owner["apiVersion"], owner["kind"]) for owner in value.get("owners", [])),
    )


def _overrides(entries: list[RawConfig]) -> tuple[DefaultsOverride, ...]:
    return tuple(
        DefaultsOverride(
            name=entry["name"],
            namespace_selector=_selector(entry, "namespaceSelector"),
            pod_selector=_selector(entry, "podSelector"),
            min_replicas=entry.get("minReplicas"),
            default_constraints=_constraints(entry["defaultConstraints"]),
        )
        for entry in entries
    )


def _constraints(entries: list[RawConfig]) -> tuple[DefaultConstraint, ...]:
    return tuple(
        DefaultConstraint(constraint=converted(entry, SpreadConstraint), hard_when_domains=entry.get("hardWhenDomains"))
        for entry in entries
    )


def _selector(value: RawConfig, name: str) -> Selector:
    written = value.get(name)
    return EVERYTHING if written is None else compile_selector(converted(written, LabelSelector))
