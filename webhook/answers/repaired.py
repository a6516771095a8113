"""The documents of ``evenspread skew``: the cause of a skew, and its repair."""

from collections.abc import Callable, Mapping
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from webhook.answers.document import Document
from webhook.answers.scanned import NamedWorkload
from webhook.core.pods_to_remove.eviction_search import Eviction, NoPlan, RepairPlan
from webhook.core.pods_to_remove.past_scale_ins import PastScaleIn
from webhook.core.what_if.run import DEPENDS_ON_TIMING

REASONS: Mapping[NoPlan, str] = {
    NoPlan.AFFINITY: DEPENDS_ON_TIMING,
    NoPlan.BUDGETS: "PodDisruptionBudgets do not allow the evictions now",
    NoPlan.CONTROLLER: "evenspread does not know how its controller replaces pods",
    NoPlan.NO_SEQUENCE: "no sequence of evictions repairs it for every choice of the scheduler",
    NoPlan.OTHER_PODS: "pods of other workloads cause the skew",
    NoPlan.PENDING: "a replacement could stay Pending",
    NoPlan.ROLLOUT: "its pods have several revisions: wait for the rollout",
    NoPlan.UNDECIDED: "too many orders to check",
    NoPlan.UNSETTLED: "its running pods differ from its replicas: wait, or see evenspread explain --pending",
    NoPlan.VOLUMES: "its pods have volumes, which can bind them to nodes",
}


class CausedSkew(Document, frozen=True):
    """Why a constraint is above maxSkew: a scale-in, from and to a number of pods. Absent if no event proves it."""

    left_by_scale_in: PastScaleIn | UnsetType = UNSET


class _EvictionStep(Document, frozen=True, rename={"from_": "from"}):
    """An eviction.

    Attributes:
        from_: By topology key, the domain of the evicted pod.
        to: By topology key, the domains the scheduler can choose for the replacement.
        commands: The eviction, and commands that wait for the replacement.
    """

    pod: str
    node: str
    from_: Mapping[str, str]
    to: Mapping[str, tuple[str, ...]]
    commands: tuple[str, ...]


class _Repair(Document, frozen=True):
    """The plan of a repair. Without a plan, ``evictions`` is empty and ``reason`` is not."""

    evictions: tuple[_EvictionStep, ...]
    fewest: Annotated[bool, Meta(description="Whether no plan with fewer evictions exists.")]
    reason: NoPlan | None
    message: str


class RepairedWorkload(NamedWorkload, frozen=True):
    """A workload with constraints above maxSkew, and the repair of its hard constraints.

    Attributes:
        hard: The names of its hard constraints above maxSkew.
        soft: The names of its soft constraints above maxSkew. They have no repair.
        fix: null without hard constraints above maxSkew.
    """

    hard: tuple[str, ...]
    soft: tuple[str, ...]
    fix: _Repair | None


def repair_document(plan: RepairPlan, commands: Callable[[Eviction], tuple[str, ...]]) -> _Repair:
    """Return the document of a plan. ``commands`` returns the commands of a step."""
    steps = tuple(
        _EvictionStep(pod=step.pod, node=step.node, from_=step.leaves, to=step.enters, commands=commands(step))
        for step in plan.evictions
    )
    return _Repair(
        evictions=steps,
        fewest=plan.proven and plan.reason is None,
        reason=plan.reason,
        message="" if plan.reason is None else REASONS[plan.reason],
    )
