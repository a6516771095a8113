"""Find scale-in annotations without effect: an unknown value, or a kind that the guard does not support."""

from collections.abc import Iterable, Iterator

from webhook.core.api.well_known import SCALE_IN_ANNOTATION
from webhook.core.json_edits import Edit
from webhook.core.policy.options import ScaleIn
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.fixes import Fix
from webhook.core.rules.frame.rule import Finding, Rule, RuleAnswer, Severity
from webhook.core.rules.frame.subject import Subject
from webhook.core.spelling import nearest, with_article
from webhook.core.text import quoted
from webhook.core.workloads.kinds import are_removed_by_replica_sets

_VALUES = tuple(value.value for value in ScaleIn)
_SLIPS = 2  # The most wrong letters of a misspelt value.
_PATH = f"metadata.annotations[{SCALE_IN_ANNOTATION}]"


def evaluate(subject: Subject) -> Iterable[RuleAnswer]:
    """Evaluate scale-in-annotation. Controllers copy annotations, so objects with a controller are left out."""
    annotations, meta = subject.workload.meta.annotations, subject.workload.meta
    if not annotations or SCALE_IN_ANNOTATION not in annotations or meta.controller is not None:
        return ()
    return _evaluated(annotations[SCALE_IN_ANNOTATION], subject)


def _evaluated(value: str, subject: Subject) -> Iterator[Finding]:
    workload, written = subject.workload, f"{SCALE_IN_ANNOTATION}: {quoted(value, 40)}"
    if value not in _VALUES:
        meant = nearest(value.lower(), _VALUES, _SLIPS)
        wanted = meant or f"{', '.join(_VALUES[:-1])} or {_VALUES[-1]}"
        fix = Fix(f"set {SCALE_IN_ANNOTATION}: {wanted}", (Edit(_PATH, meant),) if meant else ())
        yield _finding(
            fix,
            summary=f"{written} is no known value",
            remedy=f"use {wanted}",
            detail=f"evenspread ignores the annotation, so scaleIn of the policy decides; values: {', '.join(_VALUES)}",
        )
    elif value != ScaleIn.OFF and not are_removed_by_replica_sets(workload.group_kind):
        yield _finding(
            Fix(f"remove {_PATH}", (Edit(_PATH),)),
            summary=f"{written} has no effect on {with_article(quoted(workload.kind, 40))}",
            remedy="remove it",
            detail="the guard works for Deployments, ReplicaSets and Rollouts only, because no other controller reads"
            " pod deletion costs",
        )


def _finding(fix: Fix, *, summary: str, remedy: str, detail: str) -> Finding:
    return Finding(
        rule=ANNOTATION.id,
        path=_PATH,
        summary=summary,
        remedy=remedy,
        detail=detail,
        key=SCALE_IN_ANNOTATION,
        **fix.fields,
    )


ANNOTATION = Rule(
    id="scale-in-annotation",
    title="the scale-in annotation has no effect",
    severity=Severity.MEDIUM,
    mode=Mode.WARN,
    why="Your annotation asks for a guard, but nothing guards your pods. An autoscaler can still empty a zone.",
    since="1.1",
    evaluate=evaluate,
    of_a_part=True,
    without_constraints=True,
    highest_on_pods=Mode.WARN,
)
