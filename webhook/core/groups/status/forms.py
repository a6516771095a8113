"""The JSON form of a SpreadGroup's status."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec
from msgspec import Struct, field

from webhook.core.api.spread_group import Condition, PlannedWorkload, SpreadGroup
from webhook.core.api.types import LabelSelector
from webhook.core.decoders import converted


class _StatusPart(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base class of the structs that form a SpreadGroup's status."""


class DatedCondition(Condition, frozen=True, gc=False):
    """A condition with the time of its last status change, in ISO format."""

    last_transition_time: str = ""


class Distribution(_StatusPart, frozen=True):
    """The pods of a SpreadGroup in each domain of a topology key, with the cap.

    ``more`` is the number of domains not listed in ``domains``.
    """

    topology_key: str = ""
    selector: LabelSelector | None = None
    domains: Mapping[str, int] = {}
    more: int = 0
    cap: int = -1


class ProposedMove(_StatusPart, frozen=True):
    """A proposal to delete a pod, so the cap holds for the pod's replacement.

    Attributes:
        pod: The pod's name.
        source: The current domain, or the current node if the node lacks the topology label. The field is ``from``.
        to: The target domain. Empty for a move between nodes.
        reason: The broken cap, or the missing label.
    """

    pod: str = ""
    source: str = field(default="", name="from")
    to: str = ""
    reason: str = ""


class Unguarded(_StatusPart, frozen=True):
    """The number of pods without the fields of the plan, and the names of the first of these pods."""

    count: int = 0
    pods: tuple[str, ...] = ()


class SpreadGroupStatus(_StatusPart, frozen=True):
    """The whole status of a SpreadGroup."""

    observed_generation: int = 0
    revision: str = ""
    conditions: tuple[DatedCondition, ...] = ()
    workloads: tuple[PlannedWorkload, ...] = ()
    distribution: tuple[Distribution, ...] = ()
    moves: tuple[ProposedMove, ...] = ()
    unguarded: Unguarded = Unguarded()

    def condition(self, kind: str) -> DatedCondition:
        """Return the condition of this type. If absent, return an empty condition."""
        return next((condition for condition in self.conditions if condition.type == kind), DatedCondition())


class GroupWithStatus(NamedTuple):
    """A group and its current status."""

    group: SpreadGroup
    status: SpreadGroupStatus


def read_status(value: object) -> SpreadGroupStatus:
    """Read the status of an object. Return an empty status if it is absent or unreadable."""
    try:
        return converted(value, SpreadGroupStatus)
    except msgspec.ValidationError:
        return SpreadGroupStatus()


def status_json(status: SpreadGroupStatus) -> Mapping[str, object]:
    """Encode the status as JSON, without empty fields.

    The count in ``unguarded`` is always present. Without it, server-side apply would set ``unguarded`` to null, and the
    CRD schema rejects null.
    """
    fields: dict[str, object] = msgspec.to_builtins(status)
    fields["unguarded"] = {"count": 0} | msgspec.to_builtins(status.unguarded)
    listed = {"conditions": status.conditions, "workloads": status.workloads}
    return fields | {name: [*map(_without_empty, parts)] for name, parts in listed.items() if parts}


def _without_empty(part: Struct) -> Mapping[str, object]:
    return {key: value for key, value in msgspec.to_builtins(part).items() if value not in (None, "", [], ())}
