"""What a rule is, what it needs, and what it answers: nothing, findings, or that it could not look."""

from collections.abc import Callable, Iterable
from enum import Enum, StrEnum, auto
from typing import ParamSpec

from msgspec import Struct

from webhook.core.json_edits import Edit
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.subject import Subject
from webhook.core.rules.frame.written import Written

# Kinds that keep no number of pods running, or one on each node.
NO_REPLICAS = frozenset({0, 1})
NOT_YET = "not in this release"
# kube-apiserver asks for 120 characters a warning; beyond 4,096 in all it cuts every one of them.
WARNING_CHARS = 120


class Severity(StrEnum):
    """How much is lost if nobody acts."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Finding(Struct, frozen=True, kw_only=True):
    """One rule broken at one place; a value, never an exception.

    Shape: ``path`` is the whole API path. ``summary`` has the numbers and ``remedy`` the smallest fix in a few words:
    together they are a warning, unless ``warning`` has its words, and the first line of a denial, unless ``headline``
    has. ``detail`` is what it means, and ``fix`` what to write instead of the text at ``path``, or in words what to do.
    ``edits`` are the same change for programs: together they make the finding go and bring no other that warns (notes
    that the fault had hidden may come to light); without them the fix is for people. ``key`` tells the same finding in
    another version of the object: it holds no index. ``warns`` is None for the rule's own default mode; True asks for a
    warning and False for silence where
    nobody configured the rule. ``at_most`` is the highest mode that this finding may have, whatever is configured.
    ``severity`` is None for the rule's own.
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
    key: str = ""
    warns: bool | None = None
    at_most: Mode = Mode.DENY
    severity: Severity | None = None


class NotEvaluated(Struct, frozen=True):
    """A rule that could have spoken of this object, and the fact that it lacked.

    Shape: ``fault`` is what the rule raised, which is our fault and nobody else's.
    """

    rule: str
    missing: str
    fault: Exception | None = None


Answer = Finding | NotEvaluated
FAILED = "the rule failed, which is a fault of evenspread"


_P = ParamSpec("_P")


def guarded(
    rules: Iterable["Rule"], ask: Callable[_P, Iterable[Answer]], *args: _P.args, **kwargs: _P.kwargs
) -> list[Answer]:
    """What these rules answer; if asking raises, they are not evaluated, and no other rule hears of it."""
    answers: list[Answer] = []
    try:
        answers.extend(ask(*args, **kwargs))  # what it answered before it raised stays
    except Exception as error:  # noqa: BLE001 a rule may raise whatever it likes: every other rule still answers
        answers.extend(failed(rules, error))
    return answers


def failed(rules: Iterable["Rule"], error: Exception) -> list[NotEvaluated]:
    """That none of these rules could look, for what one of them raised."""
    return [NotEvaluated(rule.id, FAILED, error) for rule in rules]


class Need(Enum):
    """What of the cluster a rule looks through; it takes the longer the more there is of it."""

    NODES = auto()
    PODS = auto()
    VOLUMES = auto()
    WORKLOADS = auto()
    DRY_RUN = auto()  # pods are placed as the scheduler would place them


class AskedAgain(Enum):
    """When a rule is asked again, to see whether a fix of another rule brings a finding of this one."""

    NEVER = auto()
    AFTER_FIXES = auto()
    AFTER_RECOUNTS = auto()  # only after fixes of rules with `Rule.recounts`


class Rule(Struct, frozen=True, kw_only=True):
    """One check. Its id, and the meaning of its id, are promises. All that is known of a rule stands here.

    Shape: ``mode`` is the default one; a finding may ask for another (`Finding.warns`). ``why`` and ``silent`` are for
    people: why it matters, and when the rule says nothing. ``ask`` may be shared by rules that are decided together;
    ``ask_written`` is for rules about what kube-apiserver drops: at admission nobody asks them. Without ``needs`` the
    rule has nothing to say; what it ``uses`` lets it say more. ``of_api`` rules say what kube-apiserver itself says.
    ``of_a_part`` rules need no more of an object than its constraints and some labels of its pods, which is all that is
    known of resources of operators. A fix of a rule that ``recounts`` changes which pods a constraint counts.
    ``highest_on_pods`` is the highest mode for Pods, and for whatever the accounts of kube-system create.
    """

    id: str
    title: str
    severity: Severity
    mode: Mode
    why: str
    silent: str
    since: str = "1.0"
    ask: Callable[[Subject], Iterable[Answer]] | None = None
    ask_written: Callable[[Written], Iterable[Answer]] | None = None
    needs: tuple[Need, ...] = ()
    uses: tuple[Need, ...] = ()
    of_api: bool = False
    of_a_part: bool = False
    asked_again: AskedAgain = AskedAgain.NEVER
    recounts: bool = False
    highest_on_pods: Mode = Mode.DENY

    @property
    def slow(self) -> bool:
        """Whether it may run out of time without a word; a dry run tells so itself."""
        return bool(self.needs or self.uses) and Need.DRY_RUN not in self.needs


def short_enough(rule: str, *lines: str) -> str:
    """The first of the lines that a warning of the rule has room for; empty where it has for none."""
    room = WARNING_CHARS - len(f"evenspread/{rule}: ")
    return next((line for line in lines if len(line) <= room), "")
