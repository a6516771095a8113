"""Build the core's `Policy` from a valid document."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from webhook.config.meaning import seconds
from webhook.core.api.selectors import Selector, compile_selector
from webhook.core.api.types import LabelSelector
from webhook.core.decoders import converted
from webhook.core.policy.policy import Policy
from webhook.core.scheduler.profile import SchedulerProfile

RawConfig = Mapping[str, Any]  # raw YAML, valid by the schema


def build_policy(value: RawConfig, profiles: tuple[SchedulerProfile, ...]) -> Policy:
    """Build the policy of a document. Absent fields get the defaults of `Policy`."""
    return msgspec.structs.replace(converted(_reshaped(value), Policy), scheduler_profiles=profiles)


def _reshaped(value: object) -> object:
    if isinstance(value, list):
        return [_reshaped(entry) for entry in value]
    if isinstance(value, dict):
        return {name: _SHAPES.get(name, _reshaped)(inner) for name, inner in value.items()}
    return value


def _selector(written: object) -> Selector:
    return compile_selector(converted(written, LabelSelector))


_SHAPES: Mapping[str, Callable[[Any], object]] = {
    "domains": dict,  # its keys are labels, which can have the name of a field
    "defaultConstraints": lambda entries: [
        {"constraint": entry, "hardWhenDomains": entry.get("hardWhenDomains")} for entry in entries
    ],
    "maxStaleness": seconds,
    "namespaceSelector": _selector,
    "owners": lambda entries: [(entry["apiVersion"], entry["kind"]) for entry in entries],
    "podLabels": lambda labels: tuple(labels.items()),
    "podSelector": _selector,
    "selector": _selector,
}
