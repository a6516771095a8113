"""Types of a rule and its results: findings, or a reason for no evaluation.

Example of an evaluating function. Its `Rule` is a line in `rule_set.RULES`::

    def evaluate(subject: Subject) -> Iterator[RuleAnswer]:
        for placed in subject.placed:
            if placed.constraint.selector is None:
                yield NULL.finding(placed, "labelSelector", Fix(), summary="no labelSelector")
"""

from collections.abc import Callable, Iterable
from enum import Enum, StrEnum, auto
from typing import ParamSpec, TypedDict, Unpack

from msgspec import Struct

from webhook.core.budget import Missing, Reason
from webhook.core.json_edits import Edit
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.as_written import Written
from webhook.core.rules.frame.fixes import Fix
from webhook.core.rules.frame.subject import Placed, Subject

# Replicas of a workload without pods to spread.
NO_REPLICAS = frozenset({0, 1})
# The API recommends at most 120 characters per warning. Beyond 4,096 in all, kube-apiserver truncates each.
WARNING_CHARS = 120


class Severity(StrEnum):
    """How much damage the fault causes if nobody acts."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"

    @property
    def rank(self) -> int:
        """The rank of the severity. 0 for the highest."""
        return [*reversed(Severity)].index(self)


class Finding(Struct, frozen=True, kw_only=True):
    """A rule's report of one fault in an object.

    Returned as a value, never raised as an exception.

    Attributes:
        rule: The rule's id.
        path: The full API path.
        summary: The fault, with its numbers. Summary and remedy are the warning and the first line of a denial.
        remedy: The smallest fix in a few words.
        warning: The warning, instead of summary and remedy.
        headline: The first line of a denial, instead of summary and remedy.
        detail: The explanation.
        fix: The new text of the field at ``path``, or an instruction.
        edits: The same fix for programs. Together the edits remove the finding, cause no other warning (hidden notes
            may appear), and change no unrelated constraint.
        by_hand: Why there are no edits.
        key: Identifies the same fault in an older or newer version of the object. The key contains no list index,
            because indices can change.
        warns: Whether to warn or stay silent by default. None for the rule's default mode.
        at_most: The highest mode of the finding, whatever mode is configured.
        severity: The finding's own severity. None for the rule's severity.
    """

    rule: str
    path: str
    summary: str
    remedy: str = ""
    warning: str = ""
    headline: str = ""
    detail: str = ""
    fix: str = ""
    edits: tuple[Edit, ...] = ()
    by_hand: str = ""
    key: str = ""
    warns: bool | None = None
    at_most: Mode = Mode.DENY
    severity: Severity | None = None


class _OtherFields(TypedDict, total=False):
    remedy: str
    warning: str
    headline: str
    detail: str
    key: str
    warns: bool | None
    at_most: Mode
    severity: Severity | None


class NotEvaluated(Struct, frozen=True):
    """A rule without an evaluation, and the reason. ``fault`` is the exception of a failed rule (a bug), or None."""

    rule: str
    reason: Reason
    fault: Exception | None = None

    @property
    def missing(self) -> str:
        """The reason for users, as a text about the missing fact: ``another scheduler``."""
        return self.reason.text

    @property
    def needs_search(self) -> bool:
        """Whether the evaluation needs a search, which would delay other reviews."""
        return self.reason.kind is Missing.NEEDS_SEARCH


RuleAnswer = Finding | NotEvaluated


_P = ParamSpec("_P")


def guarded(
    rules: Iterable["Rule"], evaluate: Callable[_P, Iterable[RuleAnswer]], *args: _P.args, **kwargs: _P.kwargs
) -> list[RuleAnswer]:
    """Return the rules' answers from calling ``evaluate``.

    If ``evaluate`` raises an exception, keep its answers so far and add a failure for each rule.
    """
    answers: list[RuleAnswer] = []
    try:
        answers.extend(evaluate(*args, **kwargs))  # what it answered before it raised stays
    except Exception as error:  # noqa: BLE001 a rule may raise whatever it likes: every other rule still answers
        answers.extend(failed(rules, error))
    return answers


def failed(rules: Iterable["Rule"], error: Exception) -> list[NotEvaluated]:
    """Return a `NotEvaluated` with this exception for each rule."""
    return [NotEvaluated(rule.id, Missing.RULE_FAILED.reason, error) for rule in rules]


class Need(Enum):
    """A part of the cluster read by a rule. The size of this part determines the evaluation time."""

    NODES = auto()
    PODS = auto()
    VOLUMES = auto()
    WORKLOADS = auto()
    DRY_RUN = auto()  # pods are placed as the scheduler would place them


class Reevaluated(Enum):
    """When to evaluate a rule again, to detect new findings caused by another rule's fix."""

    NEVER = auto()
    AFTER_FIXES = auto()
    AFTER_RECOUNTS = auto()  # only after fixes of rules with `Rule.recounts`


class Rule(Struct, frozen=True, kw_only=True):
    """A check of evenspread. A rule's id and its meaning never change.

    Args:
        id: The name in messages, in the configuration and in `docs/rules/silent.yaml`. This file lists examples without
            a finding.
        title: A short description of the mistake, for lists and reports.
        severity: The default severity of findings.
        mode: The default mode. A finding can change it (`Finding.warns`).
        why: The consequences of the mistake in the cluster, for the rule's documentation page.
        since: The first `rulesVersion` with the rule.
        evaluate: The function that evaluates the rule. Rules can share a function.
        evaluate_written: The function for fields dropped by kube-apiserver. Admission never calls it.
        needs: The required parts of the cluster.
        uses: The optional parts of the cluster. With these, the rule finds more mistakes.
        of_api: Whether the rule repeats kube-apiserver's own error.
        of_a_part: Whether the rule also evaluates operators' resources, with constraints and labels but no whole
            template.
        without_constraints: Whether the rule applies to objects without constraints.
        reevaluated: When the rule is evaluated again, to judge the fixes of other rules.
        recounts: Whether the rule's fixes change the counted pods.
        only_audits: Whether no finding warns by default.
        highest_on_pods: The highest mode for Pods, and for objects of kube-system accounts.
    """

    id: str
    title: str
    severity: Severity
    mode: Mode
    why: str
    since: str = "1.0"
    evaluate: Callable[[Subject], Iterable[RuleAnswer]] | None = None
    evaluate_written: Callable[[Written], Iterable[RuleAnswer]] | None = None
    needs: tuple[Need, ...] = ()
    uses: tuple[Need, ...] = ()
    of_api: bool = False
    of_a_part: bool = False
    without_constraints: bool = False
    reevaluated: Reevaluated = Reevaluated.NEVER
    recounts: bool = False
    only_audits: bool = False
    highest_on_pods: Mode = Mode.DENY

    @property
    def slow(self) -> bool:
        """Whether the rule reads the cluster, and so can exceed a review's time limit.

        evenspread reports such a rule as not evaluated after the time limit. False for rules with a dry run, because
        they report a timeout themselves.
        """
        return bool(self.needs or self.uses) and Need.DRY_RUN not in self.needs

    def finding(self, placed: Placed, field: str, fix: Fix, *, summary: str, **texts: Unpack[_OtherFields]) -> Finding:
        """Return a finding about a field of a constraint, or about the whole constraint.

        ``key`` defaults to the constraint's key.
        """
        path = f"{placed.path}.{field}" if field else placed.path
        texts.setdefault("key", placed.key)
        return Finding(rule=self.id, path=path, summary=summary, **fix.fields, **texts)


def short_enough(rule: str, *lines: str) -> str:
    """Return the first line short enough for a warning of the rule. Empty if all are too long."""
    room = WARNING_CHARS - len(f"evenspread/{rule}: ")
    return next((line for line in lines if len(line) <= room), "")
