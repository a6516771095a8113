"""How uneven the pods of a workload stand now, by each of its constraints; nothing is placed."""

from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct

from webhook.core.explain.explanation import Balance, balances_of
from webhook.core.scheduler.cycle import Cycle
from webhook.core.scheduler.problem import Problem


class Origin(StrEnum):
    """Where a constraint comes from."""

    DECLARED = "declared"
    INJECTED = "injected"
    DEFAULT = "scheduler-default"


class Skew(Struct, frozen=True):
    """One constraint of a workload's pods, and how they stand."""

    balance: Balance
    origin: Origin

    @property
    def skew(self) -> int:
        """How many pods the fullest domain has above the global minimum.

        Unit: pods; 0 where no node counts.
        Source: filtering.go ``Filter``, of pods that have their node.
        """
        domains = self.balance.domains
        return max(domains.counts.values(), default=domains.global_minimum) - domains.global_minimum

    @property
    def exceeded(self) -> bool:
        """Whether it is above maxSkew, as after a scale-down, or when a domain came back empty."""
        return self.skew > self.balance.domains.constraint.max_skew


def skews(problem: Problem, *, injected: bool) -> Iterator[Skew]:
    """The skew of each constraint of a pod, in the pod's order; of one without, by the scheduler's defaults.

    Shape: ``injected`` says that the pod's constraints are not of its template.
    """
    own = Origin.INJECTED if injected else Origin.DECLARED
    for each in balances_of(Cycle(problem), soft_defaults=True):
        yield Skew(each, Origin.DEFAULT if each.index is None else own)
