"""What a rule is, what it needs, and what it answers: nothing, findings, or that it was not evaluated."""

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

# Kinds that keep no number of pods running, or one on each node.
NO_REPLICAS = frozenset({0, 1})
# The API recommends at most 120 characters a warning; beyond 4,096 in all, kube-apiserver truncates each.
WARNING_CHARS = 120


class Severity(StrEnum):
    """How bad it is if nobody acts."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"

    @property
    def rank(self) -> int:
        """0 for the highest."""
        return [*reversed(Severity)].index(self)


class Finding(Struct, frozen=True, kw_only=True):
    """One rule broken at one place; a value, never an exception.

    Attributes:
        rule: The rule's id.
        path: The full API path.
        summary: The fault, with its numbers. With the remedy it is the warning and the first line of a denial.
        remedy: The smallest fix in a few words.
        warning: The warning, instead of summary and remedy.
        headline: The first line of a denial, instead of summary and remedy.
        detail: The explanation.
        fix: The new text of the field at ``path``, or an instruction.
        edits: The same fix for programs. Applied together, they remove the finding, cause no other that warns (hidden
            notes may appear), and change no unrelated constraint.
        by_hand: Why there are no edits.
        key: Identifies the finding in other versions of the object, so it has no index.
        warns: Whether to warn or stay silent by default. None for the rule's default mode.
        at_most: The highest mode, whatever is configured.
        severity: None for the rule's own.
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
    """A rule that applies to the object but was not evaluated. ``fault`` is the exception it raised, which is a bug."""

    rule: str
    reason: Reason
    fault: Exception | None = None

    @property
    def missing(self) -> str:
        """The missing fact, in a sentence for users."""
        return self.reason.text

    @property
    def needs_search(self) -> bool:
        """Whether a search was missing, for which others would have had to wait."""
        return self.reason.kind is Missing.NEEDS_SEARCH


RuleAnswer = Finding | NotEvaluated


_P = ParamSpec("_P")


def guarded(
    rules: Iterable["Rule"], ask: Callable[_P, Iterable[RuleAnswer]], *args: _P.args, **kwargs: _P.kwargs
) -> list[RuleAnswer]:
    """The answers of these rules; if asking raises, they are not evaluated, and other rules are not affected."""
    answers: list[RuleAnswer] = []
    try:
        answers.extend(ask(*args, **kwargs))  # what it answered before it raised stays
    except Exception as error:  # noqa: BLE001 a rule may raise whatever it likes: every other rule still answers
        answers.extend(failed(rules, error))
    return answers


def failed(rules: Iterable["Rule"], error: Exception) -> list[NotEvaluated]:
    """That none of these rules could look, for what one of them raised."""
    return [NotEvaluated(rule.id, Missing.RULE_FAILED.reason, error) for rule in rules]


class Need(Enum):
    """What a rule looks through in the cluster; the more there is of it, the longer it takes."""

    NODES = auto()
    PODS = auto()
    VOLUMES = auto()
    WORKLOADS = auto()
    DRY_RUN = auto()  # pods are placed as the scheduler would place them


class AskedAgain(Enum):
    """When a rule is asked again, to see whether another rule's fix causes a finding of this one."""

    NEVER = auto()
    AFTER_FIXES = auto()
    AFTER_RECOUNTS = auto()  # only after fixes of rules with `Rule.recounts`


class Rule(Struct, frozen=True, kw_only=True):
    """One check. Its id, and the meaning of its id, are promises.

    Args:
        id: Its name in messages and in the configuration. `docs/rules/silent.yaml` says when the rule says nothing.
        mode: The default; a finding may ask for another (`Finding.warns`).
        why: Why it matters, for people.
        ask: The function that decides it, shared by rules that are decided together.
        ask_written: Instead, for what kube-apiserver drops: nobody asks it at admission.
        needs: What the rule has nothing to say without.
        uses: What lets it say more.
        of_api: It says what kube-apiserver itself says.
        of_a_part: It needs only constraints and some labels, which is all that is known of operators' resources.
        without_constraints: It also speaks of objects without constraints.
        asked_again: When it judges the fixes of other rules.
        recounts: Its fixes change which pods a constraint counts.
        only_audits: No finding warns, unless that is configured.
        highest_on_pods: The highest mode for Pods, and for what the accounts of kube-system create.
    """

    id: str
    title: str
    severity: Severity
    mode: Mode
    why: str
    since: str = "1.0"
    ask: Callable[[Subject], Iterable[RuleAnswer]] | None = None
    ask_written: Callable[[Written], Iterable[RuleAnswer]] | None = None
    needs: tuple[Need, ...] = ()
    uses: tuple[Need, ...] = ()
    of_api: bool = False
    of_a_part: bool = False
    without_constraints: bool = False
    asked_again: AskedAgain = AskedAgain.NEVER
    recounts: bool = False
    only_audits: bool = False
    highest_on_pods: Mode = Mode.DENY

    @property
    def slow(self) -> bool:
        """Whether it may run out of time unnoticed; a dry run reports that itself."""
        return bool(self.needs or self.uses) and Need.DRY_RUN not in self.needs

    def finding(self, placed: Placed, field: str, fix: Fix, *, summary: str, **texts: Unpack[_OtherFields]) -> Finding:
        """A finding about a field of a constraint, or all of it; the constraint's key is its key, unless given."""
        path = f"{placed.path}.{field}" if field else placed.path
        texts.setdefault("key", placed.key)
        return Finding(rule=self.id, path=path, summary=summary, **fix.fields, **texts)


def short_enough(rule: str, *lines: str) -> str:
    """The first of the lines that fits a warning of the rule; empty if none does."""
    room = WARNING_CHARS - len(f"evenspread/{rule}: ")
    return next((line for line in lines if len(line) <= room), "")
