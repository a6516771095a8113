"""A checked document -> the `Policy` that core works with."""

from collections.abc import Mapping
from typing import Any

import msgspec

from webhook.config.meaning import seconds
from webhook.core.policy import Policy, SchedulerProfile

Raw = Mapping[str, Any]  # raw YAML, already checked against the schema


def built(value: Raw, profiles: tuple[SchedulerProfile, ...]) -> Policy:
    """The policy that a document without faults says; what it leaves out has the defaults of `Policy`."""
    fields: dict[str, Any] = {key: inner for key, inner in value.items() if key not in _RESHAPED}
    if "defaults" in value:
        fields["defaults"] = _defaults(value["defaults"])
    if "exempt" in value.get("annotations", {}):
        fields["annotationExempt"] = value["annotations"]["exempt"]
    if "maxStaleness" in value:
        fields["maxStalenessSeconds"] = seconds(value["maxStaleness"])
    return msgspec.structs.replace(msgspec.convert(fields, Policy), scheduler_profiles=profiles)


_RESHAPED = frozenset({"apiVersion", "kind", "defaults", "annotations", "maxStaleness"})


def _defaults(value: Raw) -> dict[str, Any]:
    return {
        **value,
        "defaultConstraints": _constraints(value),
        "overrides": [
            {**override, "defaultConstraints": _constraints(override)} for override in value.get("overrides", ())
        ],
        "owners": [(owner["apiVersion"], owner["kind"]) for owner in value.get("owners", ())],
    }


def _constraints(value: Raw) -> list[dict[str, Any]]:
    return [
        {"constraint": constraint, "hardWhenDomains": constraint.get("hardWhenDomains")}
        for constraint in value.get("defaultConstraints", ())
    ]
