"""What a rule is, what it is asked about, and what it answers: nothing, findings, or that it could not look."""

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import ParamSpec

from msgspec import Struct

from webhook.core.api.well_known import HOSTNAME
from webhook.core.json_edits import Edit
from webhook.core.policy.policy import Mode
from webhook.core.text import quoted

# Kinds that keep no number of pods running, or one on each node.
NOT_REPLICATED = frozenset({"Pod", "PodTemplate", "DaemonSet", "Job", "CronJob"})
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
) -> Iterator[Answer]:
    """What these rules answer; if asking raises, they are not evaluated, and no other rule hears of it."""
    try:
        yield from ask(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 a rule may raise whatever it likes: every other rule still answers
        yield from (NotEvaluated(rule.id, FAILED, error) for rule in rules)


class Rule(Struct, frozen=True, kw_only=True):
    """One check. Its id, and the meaning of its id, are promises.

    Shape: ``mode`` is the default one; a finding may ask for another (`Finding.warns`). ``why`` and ``silent`` are for
    people: why it matters, and when the rule says nothing.
    """

    id: str
    title: str
    severity: Severity
    mode: Mode
    why: str
    silent: str
    since: str = "1.0"


def short_enough(rule: str, *lines: str) -> str:
    """The first of the lines that a warning of the rule has room for; empty where it has for none."""
    room = WARNING_CHARS - len(f"evenspread/{rule}: ")
    return next((line for line in lines if len(line) <= room), "")


def noun_of(key: str) -> str:
    """How messages call a domain of the key: ``zone``; a host is a node."""
    segment = key.rpartition("/")[2] or "domain"
    return "node" if key == HOSTNAME else quoted(segment, 40)
