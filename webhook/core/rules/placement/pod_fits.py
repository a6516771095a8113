"""Decide whether a pod without a controller, or all pods of a workload, fit now.

A single pod is run through the scheduler's filters. A workload's pods are placed in turn, in every order
(`frame.shortfall`). Three kinds of pods are skipped:

- pods of a controller, because their author edits the controller and not the pods,
- pods with scheduling gates or a node, because the scheduler does not place them now,
- pods of another scheduler.
"""

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import PodTemplate
from webhook.core.budget import Reason
from webhook.core.context import problem_of
from webhook.core.explain.explanation import Balance, Explanation, explain_pod, why_minimum_stays
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.placement_verdict import PlacementVerdict
from webhook.core.placement.proofs.pinned_claims import template_volumes
from webhook.core.pods_to_create.next_pod import after_admission
from webhook.core.policy.capacity import can_add_nodes
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.rule import Finding, Need, NotEvaluated, RuleAnswer, Severity, short_enough
from webhook.core.rules.frame.subject import Subject
from webhook.core.rules.placement.frame.case import POD_GROUP, PlacementRule, TemplateUnderRule
from webhook.core.rules.placement.frame.shortfall import Shortfall, in_the_way, missing, speaks_of, steps, suggested
from webhook.core.scheduler.cycle import decide
from webhook.core.scheduler.plugins.volumes import claim_name
from webhook.core.scheduler.problem import may_preempt, without_limits
from webhook.core.text import one_line, plural, shortened

_NO_NODE = "this pod fits on no node"
_DEVICES = Reason("resource claims (DynamicResources)")
_FUTURE_VOLUMES = Reason("the nodes of the pod's future volumes")
_STORAGE = ("persistentvolumeclaims", "persistentvolumes", "storageclasses", "csinodes")


class Feasibility(Struct, frozen=True):
    """The result of running the scheduler's filters for a pod.

    Attributes:
        verdict: Whether a node admits the pod.
        cause: Why no node admits the pod. Empty for the other verdicts.
        answer: The rule's finding, or why the rule was not evaluated. None if there is nothing to report.
    """

    verdict: Literal["fits", "does-not-fit", "unknown"]
    cause: str = ""
    answer: Finding | NotEvaluated | None = None


def evaluate(subject: Subject) -> Iterable[RuleAnswer]:
    """Run the scheduler's filters for a pod, and yield the rule's result.

    The result is a finding, or why the rule was not evaluated. Yield nothing if a node admits the pod, or for an object
    other than a Pod.
    """
    tried = subject.once(feasibility) if subject.workload.is_pod else None
    return () if tried is None or tried.answer is None else (tried.answer,)


def _of_template(case: TemplateUnderRule) -> Iterator[RuleAnswer]:
    short = case.once(missing)
    if isinstance(short, Reason):
        yield NotEvaluated(DO_NOT_FIT.id, short.within("whether all replicas fit"))
    elif short is not None and short.found.verdict is PlacementVerdict.NO_FIT:
        yield _of_replicas(short)


DO_NOT_FIT = PlacementRule(
    id="replicas-do-not-fit",
    title="some replicas fit on no node",
    severity=Severity.HIGH,
    mode=Mode.WARN,
    why=(
        "Some pods stay Pending, whatever nodes the scheduler chooses. evenspread simulates every order of placing "
        "the pods, and found none that places all. The cause is spread if all pods would fit without hard "
        "constraints. evenspread offers a fix only if every order then places all pods."
    ),
    evaluate=evaluate,
    of_template=_of_template,
    concerns=speaks_of,
    of_jobs=True,
    unless_warned=True,
    needs=(Need.NODES, Need.PODS, Need.DRY_RUN),
    uses=(Need.VOLUMES,),
    without_constraints=True,
    highest_on_pods=Mode.WARN,
)


def feasibility(subject: Subject) -> Feasibility | None:
    """Run a new Pod through the scheduler's filters.

    None for an object other than a new Pod, if the pod is skipped, or if it has no hard constraint.
    """
    template = _tried(subject)
    if template is None:
        return None
    unknown = _missing_facts(subject, template)
    if unknown is not None:
        return Feasibility("unknown", answer=NotEvaluated(DO_NOT_FIT.id, unknown))
    namespace, beside, index = subject.workload.namespace, subject.context, subject.context.cluster
    pod = after_admission(template, namespace, beside, posted=subject.offline).pod
    # kube-apiserver gives a new pod a uid before it calls validating webhooks.
    pod = replace(pod, metadata=replace(pod.meta, uid=""))
    if not any(constraint.hard for constraint in pod.pod_spec.constraints):
        return None
    problem = problem_of(pod, beside)
    # In a review the user waits and reads a single line, so the smallest fix is enough.
    explanation = explain_pod(
        problem,
        brief=not subject.offline,
        well_known=not subject.policy.messages.name_keys(offline=subject.offline),
    )
    if explanation.cause is not None:
        return Feasibility("does-not-fit", explanation.cause, _finding(explanation, subject, index))
    devices = _DEVICES if pod.pod_spec.resource_claims else None
    unknown = devices or (None if template_volumes(problem, index).are_certain(1) else _FUTURE_VOLUMES)
    return Feasibility("unknown", answer=NotEvaluated(DO_NOT_FIT.id, unknown)) if unknown else Feasibility("fits")


def _of_replicas(short: Shortfall) -> Finding:
    found, of = short.found, f"of {short.replicas}"
    most = short.staying + (found.most or 0)
    fit = f"{most} {of} fit" if most == short.fewest else f"{short.fewest} to {most} {of} fit"
    limit = "" if short.replicas == short.case.wanted else " (the autoscaler's maximum)"
    path, change = suggested(short)
    why = in_the_way(short)
    return Finding(
        rule=DO_NOT_FIT.id,
        path=path,
        summary=f"{fit}{limit}: {why}",
        remedy=f"{change.words} fits {short.replicas}" if change.words else "",
        detail=f"{fit}{limit} (cause: {short.cause}): {why}{steps(short)}{short.by_preempting}{short.case.stay}",
        **change.fix.fields,
        key=short.case.placed[0].template.path,
        warns=short.at_most is not Mode.AUDIT,
        at_most=short.at_most,
    )


def _tried(subject: Subject) -> PodTemplate | None:
    workload = subject.workload
    if not workload.is_pod or not subject.context.creating or not workload.templates:
        return None
    template = workload.templates[0].pod
    spec = template.pod_spec
    foreign = spec.scheduler_name and spec.scheduler_name not in subject.policy.scheduler_names
    if workload.meta.controller is not None or spec.node_name or spec.scheduling_gates or foreign:
        return None
    may_get = subject.offline and subject.policy.defaults.injects
    return template if may_get or any(placed.constraint.hard for placed in subject.placed) else None


def _missing_facts(subject: Subject, pod: PodTemplate) -> Reason | None:
    claims = any(claim_name(pod.meta.name, volume) is not None for volume in pod.pod_spec.volumes or ())
    grouped = POD_GROUP if pod.pod_spec.scheduling_group else None
    return subject.lacks("nodes", "pods", *(_STORAGE if claims else ())) or grouped


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
    texts = [one_line(explanation.in_words(fix), 120) for fix in explanation.fixes]
    remedy = texts[0] if texts else ""
    return Finding(
        rule=DO_NOT_FIT.id,
        path=placed.path if placed else "spec",
        summary=f"{_NO_NODE}: {_waits(blocking, explanation, subject)}",
        remedy=remedy,
        warning=_warning(blocking, explanation, subject, remedy),
        detail=f"cause: spread; {explanation.verdict.sentence}",
        fix=" | ".join(
            f"{text} (fits {plural(fix.nodes, 'node')})" for text, fix in zip(texts, explanation.fixes, strict=True)
        ),
        key=placed.key if placed else "spec",
        at_most=Mode.WARN if _needs_action(explanation, subject, index) else Mode.AUDIT,
    )


def _warning(balance: Balance, explanation: Explanation, subject: Subject, remedy: str) -> str:
    """Return the warning about a pod without a node.

    A warning that is too long first loses "no node" at its start, then the reasons, then the remedy.
    """
    full, brief = (_waits(balance, explanation, subject, reasons=reasons) for reasons in (True, False))
    mended = [f"{said}; {remedy}" for said in (f"{_NO_NODE}: {full}", full, brief)] if remedy else []
    return short_enough(DO_NOT_FIT.id, *mended, f"{_NO_NODE}: {brief}")


def _needs_action(explanation: Explanation, subject: Subject, index: ReadOnlyIndex) -> bool:
    """Whether only a person can make the pod fit.

    No node can be added, preemption cannot help, and no plugin is unevaluated.
    """
    if can_add_nodes(subject.policy, index.nodes.view()) or "DynamicResources" in explanation.not_evaluated:
        return False
    return not may_preempt(explanation.problem.pod) or not decide(without_limits(explanation.problem)).feasible


def _waits(balance: Balance, explanation: Explanation, subject: Subject, *, reasons: bool = True) -> str:
    """Describe the domains that reject the pod, with node names and hostnames only if the policy allows."""
    names = subject.policy.messages.name_domains(balance.domains.constraint.topology_key)
    return shortened(why_minimum_stays(balance, explanation.verdict, names=names, reasons=reasons), 120)
