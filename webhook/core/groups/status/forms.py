"""The status of a SpreadGroup as it is written, and read again by whoever writes the next one."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from webhook.core.api.spread_group import Condition, PlannedWorkload, SpreadGroup
from webhook.core.api.types import LabelSelector
from webhook.core.decoders import converted


class _Written(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of what stands in a status."""


class Dated(Condition, frozen=True, gc=False):
    """A condition with the ISO time since which it has its status."""

    last_transition_time: str = ""


class Distribution(_Written, frozen=True):
    """Pods by domain under one cap; ``more`` are domains that are not listed."""

    topology_key: str = ""
    selector: LabelSelector | None = None
    domains: Mapping[str, int] = {}
    more: int = 0
    cap: int = -1


class ProposedMove(_Written, frozen=True):
    """A pod whose deletion would bring a domain nearer to its cap, and where it could go then.

    Attributes:
        source: A domain of the cap's key, or a node without its label.
        to: A domain. Empty for a node.
    """

    pod: str = ""
    source: str = field(default="", name="from")
    to: str = ""
    reason: str = ""


class Unguarded(_Written, frozen=True):
    """Pods without the fields of the plan: how many, and the names of the first."""

    count: int = 0
    pods: tuple[str, ...] = ()


class Status(_Written, frozen=True):
    """The whole status."""

    observed_generation: int = 0
    revision: str = ""
    conditions: tuple[Dated, ...] = ()
    workloads: tuple[PlannedWorkload, ...] = ()
    distribution: tuple[Distribution, ...] = ()
    moves: tuple[ProposedMove, ...] = ()
    unguarded: Unguarded = Unguarded()

    def condition(self, of: str) -> Dated:
        """The condition of that type; an empty one where it is not there."""
        return next((each for each in self.conditions if each.type == of), Dated())


class Found(NamedTuple):
    """A group, and the status that it has."""

    group: SpreadGroup
    status: Status


def read_status(value: object) -> Status:
    """The status of an object; an empty one where there is none that can be read."""
    try:
        return converted(value, Status)
    except msgspec.ValidationError:
        return Status()


def as_json(status: Status) -> Mapping[str, Any]:
    """As it is written; nothing stands for what is empty.

    Shape: the number of unguarded pods is always there, since server-side apply makes null of an object whose fields
    are all gone, which the definition refuses.
    """
    found: dict[str, Any] = msgspec.to_builtins(status)
    found["unguarded"] = {"count": 0} | found.get("unguarded", {})
    return {
        key: [_without_empty(each) for each in value] if key in {"conditions", "workloads"} else value
        for key, value in found.items()
    }


def _without_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value not in (None, "", [], ())}


def dated(conditions: Sequence[Dated], before: Status, generation: int, now: str) -> tuple[Dated, ...]:
    """The conditions with the times since which they have their status."""
    return tuple(
        replace(
            each,
            observed_generation=generation,
            last_transition_time=old.last_transition_time if old.status == each.status else now,
        )
        for each in conditions
        for old in (before.condition(each.type),)
    )
