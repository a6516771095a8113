"""Pods outside workloads of built-in kinds: pods without a controller, and operators' pods.

The scan gets each unowned pod by name. It evaluates all other pods as part of their workload.
"""

from collections.abc import Sequence
from typing import NamedTuple

from webhook.core.api.types import OwnerReference, Pod
from webhook.core.index.objects import ApiObject
from webhook.core.workloads.kinds import BUILT_IN_KINDS, group_kind


class UnownedPod(NamedTuple):
    """A pod, and its controller if it has one."""

    namespace: str
    name: str
    owner: OwnerReference | None


class UnownedPods:
    """The names of all pods without a controller of a built-in kind. Callers hold the feed's lock."""

    def __init__(self) -> None:
        self._pods: dict[tuple[str, str], OwnerReference | None] = {}

    def apply(self, changes: Sequence[tuple[str, ApiObject]]) -> None:
        for event, value in changes:
            if not isinstance(value, Pod):
                continue
            owner, at = value.meta.controller, (value.meta.namespace, value.meta.name)
            unowned = owner is None or group_kind(owner.api_version, owner.kind) not in BUILT_IN_KINDS
            if unowned and event != "DELETED":
                self._pods[at] = owner
            else:
                self._pods.pop(at, None)

    def listed(self) -> tuple[UnownedPod, ...]:
        return tuple(UnownedPod(*at, owner) for at, owner in sorted(self._pods.items(), key=lambda item: item[0]))
