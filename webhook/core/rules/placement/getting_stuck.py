"""Find placement orders that leave pods without a node, although another order places all."""

from collections.abc import Iterator, Sequence

from webhook.core.budget import Reason
from webhook.core.placement.placement_verdict import PlacementVerdict
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.rule import Finding, Need, NotEvaluated, RuleAnswer, Severity
from webhook.core.rules.frame.subject import Placed, Subject
from webhook.core.rules.placement.frame.case import PlacementRule, TemplateUnderRule
from webhook.core.rules.placement.frame.shortfall import (
    Placement,
    Shortfall,
    missing,
    rollout,
    speaks_of,
    steps,
    suggested,
)

_NEEDS = (Need.NODES, Need.PODS, Need.DRY_RUN)


def _of_template(case: TemplateUnderRule) -> Iterator[RuleAnswer]:
    short = case.once(missing)
    if isinstance(short, Reason):
        yield NotEvaluated(STUCK.id, short.within("whether every order places all replicas"))
    elif short is not None and short.found.verdict is PlacementVerdict.STUCK:
        said = f"some orders place {short.fewest} of {short.replicas}"
        yield _finding(STUCK, short, said, f"always places {short.replicas}")


def _of_rollout(case: TemplateUnderRule) -> Iterator[RuleAnswer]:
    short = rollout(case)
    if isinstance(short, Reason):
        yield NotEvaluated(ROLLOUT_STUCK.id, short.within("whether a rolling update always ends"))
    elif short is not None:
        said = f"some orders of a rollout place {short.fewest} of {short.replicas} new pods"
        if short.found.verdict is PlacementVerdict.NO_FIT:
            most = f"at most {short.found.most}" if short.found.most else "none"
            said = f"a rollout places {most} of {short.replicas} new pods"
        yield _finding(ROLLOUT_STUCK, short, said, f"always places {short.replicas}")


def _rolls(subject: Subject, hard: Sequence[Placed]) -> bool:
    """Whether a change of the template replaces the pods step by step, by a known strategy."""
    workload, strategy = subject.workload, subject.workload.strategy
    at_once = strategy is not None and strategy.type in ("Recreate", "OnDelete")
    return (
        speaks_of(subject, hard)
        and bool(workload.traits.surges or (workload.traits.ordered and workload.built_in))
        and not at_once
    )


STUCK = PlacementRule(
    id="replicas-can-get-stuck",
    title="some orders of placing the replicas leave pods Pending",
    severity=Severity.HIGH,
    mode=Mode.WARN,
    why=(
        "The scheduler places one pod at a time and never moves a pod. Early placements can block your later pods. "
        "evenspread found such an order by simulation. It offers a fix only if every order then places all pods."
    ),
    needs=_NEEDS,
    of_template=_of_template,
    concerns=speaks_of,
    of_jobs=True,
    unless_warned=True,
    highest_on_pods=Mode.WARN,
)
ROLLOUT_STUCK = PlacementRule(
    id="rollout-can-get-stuck",
    title="some orders of a rolling update leave pods Pending",
    severity=Severity.HIGH,
    mode=Mode.WARN,
    why=(
        "Old pods count until they are gone. A new pod can wait until an old pod is deleted, while your rollout waits "
        "for the new pod. The simulation deletes old pods in any order allowed by your strategy, and places each new "
        "pod on any admitting node. A StatefulSet replaces its highest ordinal first. Up to Kubernetes 1.36, it "
        "ignores maxUnavailable and replaces one pod at a time."
    ),
    needs=_NEEDS,
    of_template=_of_rollout,
    concerns=_rolls,
    unless_warned=True,
    highest_on_pods=Mode.WARN,
)


def _finding(rule: PlacementRule, short: Shortfall, said: str, promise: str) -> Finding:
    stuck, threshold = short.found.stuck, short.case.subject.policy.stuck_threshold
    often = stuck is not None and stuck >= threshold
    at_most = short.at_most if often else Mode.AUDIT
    path, change = suggested(short)
    stay = short.case.stay if short.placement is Placement.MISSING else ""
    return Finding(
        rule=rule.id,
        path=path,
        summary=said,
        remedy=f"{change.words} {promise}" if change.words else "",
        detail=f"{said} (cause: {short.cause}){_how_often(short)}{steps(short)}{short.by_preempting}{stay}",
        **change.fix.fields,
        key=short.case.placed[0].template.path,
        warns=at_most is not Mode.AUDIT,
        at_most=at_most,
    )


def _how_often(short: Shortfall) -> str:
    stuck, sampled = short.found.stuck, short.found.sampled
    if stuck is None or short.found.verdict is PlacementVerdict.NO_FIT:
        return ""
    orders = f"{sampled} tried" if sampled else "random"
    return f"; {stuck:.1%} of {orders} orders leave pods Pending"
