"""How rules about places are asked: each template of a workload is looked at in the cluster once, for all of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.rules.frame.rule import AskedAgain, Finding, Need, NotEvaluated, Rule, RuleAnswer, guarded
from webhook.core.rules.frame.subject import Placed, Subject
from webhook.core.rules.placement.frame.case import (
    TemplateUnderRule,
    is_replicated,
    templates_under_rule,
    unlike_the_scheduler,
)


class PlacementRule(Rule, frozen=True, kw_only=True):
    """A rule about the places that the pods of a template have in the cluster.

    Shape: ``of_template`` answers of one template; ``concerns`` is whether an object gives it something to look at, by
    its hard constraints, of which there are some. It is asked about Jobs too if it is ``of_jobs``. With
    ``unless_warned`` it has no word where another of these rules warns.
    """

    needs: tuple[Need, ...] = (Need.NODES, Need.PODS)
    asked_again: AskedAgain = AskedAgain.AFTER_RECOUNTS
    of_template: Callable[[TemplateUnderRule], Iterable[RuleAnswer]]
    concerns: Callable[[Subject, Sequence[Placed]], bool]
    of_jobs: bool = False
    unless_warned: bool = False


def evaluate(rules: Sequence[PlacementRule], subject: Subject) -> Iterable[RuleAnswer]:
    """What the rules say of a workload, or which of them could not look."""
    hard = [placed for placed in subject.placed if placed.constraint.hard]
    if not hard or not is_replicated(subject.workload, jobs=True):
        return ()
    is_job = not is_replicated(subject.workload)
    asked = [rule for rule in rules if (rule.of_jobs or not is_job) and rule.concerns(subject, hard)]
    missing = subject.lacks("nodes", "pods") or unlike_the_scheduler(subject)
    if missing is not None:
        return [NotEvaluated(rule.id, missing) for rule in asked]
    return _of_templates(asked, subject, subject.context.cluster) if asked else ()


def _of_templates(asked: list[PlacementRule], subject: Subject, index: ReadOnlyIndex) -> Iterator[RuleAnswer]:
    asked.sort(key=lambda rule: rule.unless_warned)
    for case in subject.timely(templates_under_rule(subject, index)):
        yield from _of_template(asked, case)


def _of_template(rules: Sequence[PlacementRule], case: TemplateUnderRule) -> Iterator[RuleAnswer]:
    warned = False
    for rule in rules:
        if not (warned and rule.unless_warned):
            for answer in guarded((rule,), rule.of_template, case):
                warned = warned or (isinstance(answer, Finding) and bool(answer.warns))
                yield answer
