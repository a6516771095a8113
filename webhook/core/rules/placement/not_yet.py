"""Rules that this release does not have yet, and the objects that they would speak of.

They are listed with the objects of which they could speak, so that a clean result never looks like approval by a
rule that could not look.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.rule import NO_REPLICAS, NOT_IN_THIS_RELEASE, Need, NotEvaluated, Rule, Severity
from webhook.core.rules.frame.subject import Subject


class WorkloadFacts(NamedTuple):
    """The facts about an object that decide which of these rules would apply."""

    hard: bool
    replicated: bool
    rolls: bool


def evaluate(subject: Subject) -> tuple[NotEvaluated, ...]:
    """The rules that could have spoken of this object; a cluster would not help them yet."""
    return _missing(_shape(subject))


def _rule(id_: str, title: str, why: str, *, highest_on_pods: Mode = Mode.DENY) -> Rule:
    return Rule(
        id=id_,
        title=title,
        severity=Severity.HIGH,
        mode=Mode.WARN,
        why=why,
        silent="in this release, which does not look for it yet: the rule is listed as not evaluated.",
        ask=evaluate,
        needs=(Need.NODES, Need.PODS, Need.DRY_RUN),
        highest_on_pods=highest_on_pods,
    )


STUCK = _rule(
    "replicas-can-get-stuck",
    "some orders of placing the replicas leave pods Pending",
    "The scheduler places one pod at a time and never moves one: two constraints can exclude each other on the way.",
    highest_on_pods=Mode.WARN,
)
ROLLOUT_STUCK = _rule(
    "rollout-can-get-stuck",
    "some orders of a rolling update leave pods Pending",
    "Old pods count until they are gone; a rollout can wait for a place that only its own progress would free.",
    highest_on_pods=Mode.WARN,
)
GROUP_CAP = _rule(
    "group-cap",
    "a cap of a SpreadGroup is or would be broken",
    "A SpreadGroup says how much of a group one zone or node may hold.",
)
_NEEDS: tuple[tuple[Rule, Callable[[WorkloadFacts], bool]], ...] = (
    (STUCK, lambda shape: shape.hard and shape.replicated),
    (ROLLOUT_STUCK, lambda shape: shape.hard and shape.rolls),
    (GROUP_CAP, lambda shape: shape.replicated),
)


@cache  # at most 2 ** 3 answers, as many as there are facts
def _missing(shape: WorkloadFacts) -> tuple[NotEvaluated, ...]:
    return tuple(NotEvaluated(rule.id, NOT_IN_THIS_RELEASE) for rule, could_speak in _NEEDS if could_speak(shape))


def _shape(subject: Subject) -> WorkloadFacts:
    workload = subject.workload
    return WorkloadFacts(
        hard=any(placed.constraint.hard for placed in subject.placed),
        replicated=workload.traits.replicated and workload.replicas not in NO_REPLICAS,
        rolls=workload.traits.rolls,
    )
