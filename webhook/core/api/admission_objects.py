"""LimitRanges, PriorityClasses and RuntimeClasses, read by admission plugins.

A class without a docstring is the API's type of the same name, reduced to the fields that admission copies into pods.

Source: k8s.io/api core/v1/types.go, scheduling/v1/types.go, node/v1/types.go.
"""

from collections.abc import Mapping

from webhook.core.api.types import ApiType, Int32, Named, Toleration, WrittenQuantity

OF_CONTAINERS = "Container"  # LimitRangeItem.type
OF_PODS = "Pod"
PREEMPTS = "PreemptLowerPriority"

Amounts = Mapping[str, WrittenQuantity]


class LimitRangeItem(ApiType, frozen=True):
    type: str = ""
    min: Amounts | None = None
    max: Amounts | None = None
    default: Amounts | None = None
    default_request: Amounts | None = None
    max_limit_request_ratio: Amounts | None = None

    @property
    def limits(self) -> Amounts:
        """Default limits of containers. Source: core/v1/defaults.go ``SetDefaults_LimitRangeItem``."""
        return {**(self.max or {}), **(self.default or {})}

    @property
    def requests(self) -> Amounts:
        """Default requests of containers. Source: core/v1/defaults.go ``SetDefaults_LimitRangeItem``."""
        return {**(self.min or {}), **self.limits, **(self.default_request or {})}


class _LimitRangeSpec(ApiType, frozen=True):
    limits: tuple[LimitRangeItem, ...] | None = None


class LimitRange(Named, frozen=True):
    spec: _LimitRangeSpec = _LimitRangeSpec()

    def items_of_type(self, item_type: str) -> tuple[LimitRangeItem, ...]:
        """Return the items of a type, `OF_CONTAINERS` or `OF_PODS`."""
        return tuple(item for item in self.spec.limits or () if item.type == item_type)


class PriorityClass(Named, frozen=True):
    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str = PREEMPTS


class _RuntimeOverhead(ApiType, frozen=True):
    """The API type ``Overhead``."""

    pod_fixed: Amounts | None = None


class _RuntimeScheduling(ApiType, frozen=True):
    """The API type ``Scheduling``."""

    node_selector: Mapping[str, str] | None = None
    tolerations: tuple[Toleration, ...] | None = None


class RuntimeClass(Named, frozen=True):
    overhead: _RuntimeOverhead | None = None
    scheduling: _RuntimeScheduling | None = None
