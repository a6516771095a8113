"""Whether a pod has a place at this moment: one dry run, for pods that nobody but their author answers for.

Pods of a controller are not tried, since their author wrote another object; neither are pods that the scheduler does
not try now: with scheduling gates, with a node already, or for another scheduler.
"""

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from webhook.core.api.types import PodTemplate
from webhook.core.defaulting.next_pod import after_admission, namespace_of
from webhook.core.explain.explanation import Balance, Explanation, explain_pod, standstill
from webhook.core.explain.fix_text import fix_text
from webhook.core.explain.reliefs import without_limits
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.policy.capacity import grows
from webhook.core.policy.policy import Mode, profile_for
from webhook.core.rules.frame.rule import (
    NOT_IN_THIS_RELEASE,
    Finding,
    Need,
    NotEvaluated,
    Rule,
    RuleAnswer,
    Severity,
    short_enough,
)
from webhook.core.rules.frame.subject import Subject
from webhook.core.scheduler.cycle import decide
from webhook.core.scheduler.plugins.volumes import claim_name
from webhook.core.scheduler.problem import may_preempt, take
from webhook.core.text import one_line, plural, shortened

_NO_NODE = "this pod fits on no node"
_DEVICES = "resource claims (DynamicResources)"
_STORAGE = ("persistentvolumeclaims", "persistentvolumes", "storageclasses", "csinodes")


class Feasibility(Struct, frozen=True):
    """What the dry run of one pod came to; ``cause`` is empty where it fits or nobody knows."""

    verdict: Literal["fits", "does-not-fit", "unknown"]
    cause: str = ""
    answer: Finding | NotEvaluated | None = None


def evaluate(subject: Subject) -> Iterator[RuleAnswer]:
    """What the dry run came to, or that there was none although spreading could be in the way."""
    tried = subject.once(feasibility)
    answer = _not_tried(subject) if tried is None else tried.answer
    if answer is not None:
        yield answer


DO_NOT_FIT = Rule(
    id="replicas-do-not-fit",
    title="not all replicas can be placed",
    severity=Severity.HIGH,
    mode=Mode.WARN,
    why="However the scheduler chooses, some pods stay Pending because of spread constraints. The cluster is asked as "
    "the scheduler would be: without its hard constraints a node admits the pod, with them none does.",
    silent="without a cluster; for workloads: this release does not try their pods yet, and lists the rule as not "
    "evaluated; for pods with a controller, a node, scheduling gates or another scheduler, and on update. It is audit "
    "where something else than spread is in the way, where nodes can be added (`capacity`), and where preemption may "
    "make room. A cluster that "
    "is not known, or was not heard of for `maxStaleness`, gives no finding.",
    ask=evaluate,
    needs=(Need.NODES, Need.PODS, Need.DRY_RUN),
    uses=(Need.VOLUMES,),
    highest_on_pods=Mode.WARN,
    of_a_part=True,
)


def feasibility(subject: Subject) -> Feasibility | None:
    """The dry run of a pod; None for what is not tried."""
    template = _tried(subject)
    if template is None:
        return None
    index = subject.index
    unknown = _unknown(subject, template)
    if unknown or index is None:
        return Feasibility("unknown", answer=NotEvaluated(DO_NOT_FIT.id, unknown))
    namespace = namespace_of(subject.workload.meta.namespace)
    pod = after_admission(template, namespace, subject.policy, index, subject.version, posted=subject.offline).pod
    if not any(constraint.hard for constraint in pod.pod_spec.constraints):
        return None
    profile = profile_for(subject.policy, pod.pod_spec.scheduler_name)
    # In a review the user waits, and reads one line: the smallest fix is enough.
    explanation = explain_pod(take(index, pod, profile=profile), brief=not subject.offline)
    if explanation.cause is None and pod.pod_spec.resource_claims:
        return Feasibility("unknown", answer=NotEvaluated(DO_NOT_FIT.id, _DEVICES))
    if explanation.cause is None:
        return Feasibility("fits")
    return Feasibility("does-not-fit", explanation.cause, _finding(explanation, subject, index))


def _not_tried(subject: Subject) -> NotEvaluated | None:
    """That a workload, or a pod that its controller answers for, was not tried although it could be in the way."""
    if subject.workload.is_pod and subject.workload.meta.controller is None:
        return None
    if not any(placed.constraint.hard for placed in subject.placed):
        return None
    return NotEvaluated(DO_NOT_FIT.id, NOT_IN_THIS_RELEASE)


def _tried(subject: Subject) -> PodTemplate | None:
    """The pod; None for one that this rule has nothing to say of."""
    workload = subject.workload
    if not workload.is_pod or not subject.circumstances.creating or not workload.templates:
        return None
    template = workload.templates[0].template
    spec = template.pod_spec
    foreign = spec.scheduler_name and spec.scheduler_name not in subject.policy.scheduler_names
    if workload.meta.controller is not None or spec.node_name or spec.scheduling_gates or foreign:
        return None
    may_get = subject.offline and subject.policy.defaults.mode == "inject"
    return template if may_get or any(placed.constraint.hard for placed in subject.placed) else None


def _unknown(subject: Subject, pod: PodTemplate) -> str:
    """What is missing for an answer."""
    claims = any(claim_name(pod.meta.name, volume) is not None for volume in pod.pod_spec.volumes or ())
    return subject.lacks("nodes", "pods", *(_STORAGE if claims else ()))


def _finding(explanation: Explanation, subject: Subject, index: ReadOnlyIndex) -> Finding:
    blocking = explanation.blocking
    if blocking is None:
        return Finding(
            rule=DO_NOT_FIT.id,
            path="spec",
            summary=f"{_NO_NODE}: {explanation.verdict.sentence}",
            detail=f"cause: {explanation.cause}",
            key="spec",
            at_most=Mode.AUDIT,
        )
    # Injected constraints have no path in the object.
    placed = next((each for each in subject.placed if each.index == blocking.index), None)
    texts = [one_line(fix_text(fix, explanation.balances), 120) for fix in explanation.fixes]
    remedy = texts[0] if texts else ""
    return Finding(
        rule=DO_NOT_FIT.id,
        path=placed.path if placed else "spec",
        summary=f"{_NO_NODE}: {_waits(blocking, explanation, subject)}",
        remedy=remedy,
        warning=_warning(blocking, explanation, subject, remedy),
        detail=f"cause: spread; {explanation.verdict.sentence}",
        fix=" | ".join(
            f"{text} (opens {plural(fix.nodes, 'node')})" for text, fix in zip(texts, explanation.fixes, strict=True)
        ),
        key=placed.key if placed else "spec",
        at_most=Mode.WARN if _told(explanation, subject, index) else Mode.AUDIT,
    )


def _warning(balance: Balance, explanation: Explanation, subject: Subject, remedy: str) -> str:
    """The whole line; where it is too long, without its first words, the reasons, or at last the remedy."""
    full, brief = (_waits(balance, explanation, subject, reasons=reasons) for reasons in (True, False))
    mended = [f"{said}; {remedy}" for said in (f"{_NO_NODE}: {full}", full, brief)] if remedy else []
    return short_enough(DO_NOT_FIT.id, *mended, f"{_NO_NODE}: {brief}")


def _told(explanation: Explanation, subject: Subject, index: ReadOnlyIndex) -> bool:
    """Whether a person has to act: no new node, no preemption and nothing that we do not know would help."""
    if grows(subject.policy, index.view()) or "DynamicResources" in explanation.not_evaluated:
        return False
    return not may_preempt(explanation.problem.pod) or not decide(without_limits(explanation.problem)).feasible


def _waits(balance: Balance, explanation: Explanation, subject: Subject, *, reasons: bool = True) -> str:
    """What it waits for, as far as users may be told: hostnames are names of nodes."""
    names = subject.policy.messages.name_domains(balance.domains.constraint.topology_key)
    return shortened(standstill(balance, explanation.verdict, names=names, reasons=reasons), 120)
