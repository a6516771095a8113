"""The facts of a running pod that decide when its controller removes it.

Only commands and the scale-in guard decode these fields. The index keeps none of them.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from webhook.core.api.types import ApiType, Int32
from webhook.core.api.well_known import DELETION_COST_ANNOTATION

_ENDED = ("Succeeded", "Failed")
# Go accepts leading zeros only after a minus sign.
_COST = re.compile(r"(-0*|(?!0.))([0-9]{1,10})", re.ASCII)
_ORDINAL = re.compile(r".*-([0-9]{1,253})", re.ASCII)  # A name has at most 253 characters.
_MAX_INT32 = 2**31 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_ZERO_TIME = datetime(1, 1, 1, tzinfo=UTC)


class RemovalMeta(ApiType, frozen=True):
    """The metadata in `RemovalFields`."""

    name: str = ""
    uid: str = ""
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: str | None = None


class _InitContainer(ApiType, frozen=True):
    name: str = ""
    restart_policy: str | None = None


class _Spec(ApiType, frozen=True):
    node_name: str = ""
    init_containers: tuple[_InitContainer, ...] | None = None


class _Condition(ApiType, frozen=True):
    type: str = ""
    status: str = ""
    last_transition_time: datetime | None = None


class _ContainerStatus(ApiType, frozen=True):
    name: str = ""
    restart_count: Int32 = 0


class _Status(ApiType, frozen=True):
    phase: str = ""
    conditions: tuple[_Condition, ...] | None = None
    container_statuses: tuple[_ContainerStatus, ...] | None = None
    init_container_statuses: tuple[_ContainerStatus, ...] | None = None


class RemovalFields(ApiType, frozen=True):
    """The fields of a Pod that decide when its controller removes it."""

    metadata: RemovalMeta = RemovalMeta()
    spec: _Spec = _Spec()
    status: _Status = _Status()


class RunningPod(Struct, frozen=True, kw_only=True):
    """An active pod: not terminating, not Succeeded, not Failed.

    Attributes:
        node: The pod's node, or "" if unassigned.
        phase: The phase as written.
        ready_since: Nanoseconds since 1970 of the Ready condition's last change. None if not ready, or without time.
        deletion_cost: The annotation's value. 0 if absent or invalid.
        restarts: The most restarts of a regular container, and of a sidecar.
        created: Nanoseconds since 1970 of the creation. None if unknown.
        ordinal: The number at the end of the name. None without one.
    """

    name: str
    uid: str = ""
    node: str = ""
    phase: str = ""
    ready: bool = False
    ready_since: int | None = None
    deletion_cost: int = 0
    restarts: tuple[int, int] = (0, 0)
    created: int | None = None
    ordinal: int | None = None
    labels: Mapping[str, str] = {}


def active_pod(fields: RemovalFields) -> RunningPod | None:
    """Return the facts of a pod. None if it is not active: it neither ranks nor is it removed.

    Source: pkg/controller/controller_utils.go ``IsPodActive``, ``podReadyTime``, ``maxContainerRestarts``;
    pkg/controller/statefulset/stateful_set_utils.go ``getOrdinal``.
    """
    meta, spec, status = fields.metadata, fields.spec, fields.status
    if meta.deletion_timestamp is not None or status.phase in _ENDED:
        return None
    condition = next((each for each in status.conditions or () if each.type == "Ready"), _Condition())
    ready = condition.status == "True"
    sidecars = {each.name for each in spec.init_containers or () if each.restart_policy == "Always"}
    sidecar_statuses = [each for each in status.init_container_statuses or () if each.name in sidecars]
    numbered = _ORDINAL.fullmatch(meta.name)
    ordinal = int(numbered[1]) if numbered else None
    return RunningPod(
        name=meta.name,
        uid=meta.uid,
        node=spec.node_name,
        phase=status.phase,
        ready=ready,
        ready_since=nanoseconds(condition.last_transition_time) if ready else None,
        deletion_cost=_deletion_cost((meta.annotations or {}).get(DELETION_COST_ANNOTATION, "")),
        restarts=(_most_restarts(status.container_statuses or ()), _most_restarts(sidecar_statuses)),
        created=nanoseconds(meta.creation_timestamp),
        ordinal=ordinal if ordinal is None or ordinal <= _MAX_INT32 else None,
        labels=meta.labels or {},
    )


def _most_restarts(statuses: Iterable[_ContainerStatus]) -> int:
    return max((0, *(status.restart_count for status in statuses)))


def nanoseconds(time: datetime | None) -> int | None:
    """Convert to nanoseconds since 1970. None for Go's zero time, the first second of year 1, written as null."""
    if time is not None and time.tzinfo is None:
        time = time.replace(tzinfo=UTC)  # The API server refuses a time without zone, but files can have one.
    return None if time is None or time == _ZERO_TIME else (time - _EPOCH) // _MICROSECOND * 1000


def _deletion_cost(written: str) -> int:
    """Source: pkg/apis/core/helper/helpers.go ``GetDeletionCostFromPodAnnotations``."""
    match = _COST.fullmatch(written)
    cost = 0 if match is None else int(match[2]) * (-1 if match[1] else 1)
    return cost if -_MAX_INT32 - 1 <= cost <= _MAX_INT32 else 0
