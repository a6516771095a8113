"""The fields of a PodDisruptionBudget that decide whether the API server evicts a pod.

Only commands decode them. The index keeps none of them.
"""

from webhook.core.api.types import ApiType, Int32, LabelSelector


class _BudgetMeta(ApiType, frozen=True):
    name: str = ""
    namespace: str = ""
    generation: int = 0


class _BudgetSpec(ApiType, frozen=True):
    selector: LabelSelector | None = None


class _BudgetStatus(ApiType, frozen=True):
    disruptions_allowed: Int32 = 0
    observed_generation: int = 0


class DisruptionBudget(ApiType, frozen=True):
    """A PodDisruptionBudget of policy/v1.

    Source: k8s.io/api policy/v1/types.go.
    """

    metadata: _BudgetMeta = _BudgetMeta()
    spec: _BudgetSpec = _BudgetSpec()
    status: _BudgetStatus = _BudgetStatus()

    @property
    def allows(self) -> bool:
        """Whether the API server evicts a ready pod now. Source: pod/storage/eviction.go ``checkAndDecrement``."""
        is_current = self.status.observed_generation >= self.metadata.generation
        return is_current and self.status.disruptions_allowed > 0
