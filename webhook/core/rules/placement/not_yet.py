"""Rules that this release does not have yet, and the objects that they would speak of.

They are listed with the objects of which they could speak, so that a clean result never looks like approval by a
rule that could not look.
"""

from collections.abc import Iterable

from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.rule import NO_REPLICAS, NOT_IN_THIS_RELEASE, Need, NotEvaluated, Rule, Severity
from webhook.core.rules.frame.subject import Subject


def evaluate(subject: Subject) -> Iterable[NotEvaluated]:
    """The rule, if it could have spoken of this object; a cluster would not help it yet."""
    workload = subject.workload
    could_speak = workload.traits.replicated and workload.replicas not in NO_REPLICAS
    return (NotEvaluated(GROUP_CAP.id, NOT_IN_THIS_RELEASE),) if could_speak else ()


GROUP_CAP = Rule(
    id="group-cap",
    title="a cap of a SpreadGroup is or would be broken",
    severity=Severity.HIGH,
    mode=Mode.WARN,
    why="A SpreadGroup says how much of a group one zone or node may hold.",
    silent="in this release, which does not look for it yet: the rule is listed as not evaluated.",
    ask=evaluate,
    needs=(Need.NODES, Need.PODS, Need.DRY_RUN),
    without_constraints=True,
)
