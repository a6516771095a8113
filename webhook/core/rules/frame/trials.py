"""Test each fix: apply its edits and evaluate the rules again.

Remove the edits of an unhelpful fix.

- In the pod templates in memory: if the edits reveal further findings, the fix gets the edits for these findings too.
- In the whole object, decoded again: this takes longer, so only callers without a waiting request use it.

Edits that do not fit and unreadable results are expected. Other exceptions are bugs of a rule (`rule.guarded`).
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

import msgspec
from msgspec import structs

from webhook.core.api.types import PodTemplate, SpreadConstraint
from webhook.core.apiserver.decoding import DecodeError
from webhook.core.budget import Missing
from webhook.core.decoders import converted
from webhook.core.json_edits import Edit, applied
from webhook.core.rules.frame.fixes import Fix, all_of
from webhook.core.rules.frame.rule import Finding, NotEvaluated, RuleAnswer
from webhook.core.rules.frame.subject import Subject, placed_constraints
from webhook.core.rules.object_cost import keys_in
from webhook.core.workloads.reading import parse_object
from webhook.core.workloads.workload import Template

# Beyond this many findings with edits, further fixes are reported untried: each takes a second look at the templates.
# While a request waits there is less time for it.
_MAX_TRIED_FIXES, _MAX_TRIED_FIXES_OFFLINE = 16, 200
# A trial evaluates every constraint and key again: 16 trials of 31 constraints with 31 keys took 1.4 s. This bounds
# their number in all trials. While a request waits, it allows 10 trials of two constraints with two keys. Offline, 128
# wrong constraints in 20 KB took 5 s without it.
_MAX_WEIGHT, _MAX_WEIGHT_OFFLINE = 64, 4096
_ITEM = re.compile(r"^.*topologySpreadConstraints\[\d+\]", re.DOTALL)
# Each trial evaluates the whole object. Further fixes lose their edits. A very large object gets a single trial.
_MAX_TRIED_FIXES_OF_OBJECT, _MAX_TRIED_BYTES = 16, 2**19


class Tried(NamedTuple):
    """The findings with tested fixes, and the first exception of each failed rule. Only helpful fixes have edits."""

    findings: tuple[Finding, ...]
    faults: tuple[NotEvaluated, ...] = ()


class _Before:
    """The rules' findings and exceptions before any fix, for comparison with those after a fix."""

    def __init__(self, answers: Iterable[RuleAnswer]) -> None:
        given = [*answers]
        self.findings = [each for each in given if isinstance(each, Finding)]
        self._failed = {each.rule for each in given if isinstance(each, NotEvaluated) and each.fault is not None}
        self._same = Counter(map(_identity, self.findings))

    def after(self, answers: Iterable[RuleAnswer]) -> list[Finding]:
        """Return the findings after a fix. Raise _FailedError if a rule fails only after the fix."""
        given = [*answers]
        faults = [each for each in given if isinstance(each, NotEvaluated) and each.fault is not None]
        if new := [each for each in faults if each.rule not in self._failed]:
            raise _FailedError(new)
        return [each for each in given if isinstance(each, Finding)]

    def is_new(self, finding: Finding) -> bool:
        return _identity(finding) not in self._same

    def stays(self, finding: Finding, left: Iterable[Finding]) -> bool:
        """Whether the finding remains after the fix.

        True if at least as many findings have the same rule and key (`Finding.key`) after the fix as before the fix.
        False if none had this rule and key before.

        Args:
            finding: The finding.
            left: The findings after the fix.
        """
        return 0 < self._same[_identity(finding)] <= sum(_identity(each) == _identity(finding) for each in left)

    def more(self, left: Sequence[Finding]) -> list[Finding]:
        """Return the findings of each rule with more findings after the fix than before."""
        # Compare numbers, because an edit of a finding's key must not make it look new.
        grown = Counter(each.rule for each in left) - Counter(each.rule for each in self.findings)
        return [each for each in left if each.rule in grown]


class _UntriedError(Exception):
    """The reason why a fix cannot be tested, as a message."""


class _FailedError(Exception):
    """Rules failed on the edited object, but not before."""

    def __init__(self, faults: Sequence[NotEvaluated]) -> None:
        super().__init__(", ".join(each.rule for each in faults))
        self.faults = faults


def _identity(finding: Finding) -> tuple[str, str]:
    return (finding.rule, finding.key)


def _for_people(finding: Finding, by_hand: str, later: str = "") -> Finding:
    return structs.replace(finding, edits=(), fix=f"{Fix(finding.fix).without_edits.text}{later}", by_hand=by_hand)


_NO_PLACE = "the object has no field at the edited path"
_UNREADABLE = "the edited object cannot be read"
_STAYS = "the finding would remain"
_BRINGS = "the fix would cause"
_FAILS = "because of a bug, a rule of evenspread raised an error on the edited object"
_MANY = "evenspread reached its limit of tested fixes per object"


def _all_tried(findings: Iterable[Finding], tried: Iterable[Finding], attempt: Callable[[Finding], Finding]) -> Tried:
    after: dict[int, Finding] = {}
    faults: list[NotEvaluated] = []
    for each in tried:
        try:
            after[id(each)] = attempt(each)
        except _UntriedError as error:
            after[id(each)] = _for_people(each, str(error))
        except Exception as error:  # noqa: BLE001 as `guarded`: the finding, and all others, stay
            after[id(each)] = _for_people(each, _FAILS)
            faults += (
                error.faults
                if isinstance(error, _FailedError)
                else (NotEvaluated(each.rule, Missing.RULE_FAILED.reason, error),)
            )
    once = {each.rule: each for each in reversed(faults)}
    return Tried(tuple(after.get(id(each), each) for each in findings), tuple(reversed(once.values())))


@contextmanager
def _untried(why: str, *errors: type[Exception]) -> Iterator[None]:
    try:
        yield
    except errors as error:
        raise _UntriedError(why) from error


def tried_as_a_whole(
    answers: Sequence[RuleAnswer],
    rules: Collection[str],
    raw: bytes | Mapping[str, object],
    again: Callable[[Mapping[str, object]], Iterable[RuleAnswer]],
    warns: Callable[[Finding], bool],
) -> Tried:
    """Test the fix of each finding of these rules, by changing the whole object.

    Args:
        answers: The results of all rules before the fixes.
        rules: The ids of the rules with fixes to test.
        raw: The object.
        again: Evaluates the rules on a changed object.
        warns: Whether a new finding counts against a fix.

    Raises:
        DecodeError: The object cannot be parsed.
    """
    before = _Before(answers)
    editing = [each for each in before.findings if each.rule in rules and each.edits]
    if not editing:
        return Tried(tuple(before.findings))
    value = parse_object(raw)
    size = len(raw if isinstance(raw, bytes) else msgspec.json.encode(raw))
    most = min(_MAX_TRIED_FIXES_OF_OBJECT, max(1, _MAX_TRIED_BYTES // size))

    def attempt(finding: Finding) -> Finding:
        with _untried(_NO_PLACE, LookupError):
            changed = applied(value, finding.edits)
        with _untried(_UNREADABLE, DecodeError):
            left = before.after(again(changed))
        new = (each for each in left if before.is_new(each))
        # A finding of the same rule counts in any mode, because the fix did not work.
        caused = next((each for each in new if each.rule == finding.rule or warns(each)), None)
        if caused is not None:
            return _for_people(finding, f"{_BRINGS} {caused.rule}", f"; then {caused.rule}: {caused.summary}")
        return _for_people(finding, _STAYS) if before.stays(finding, left) else finding

    # Each trial evaluates all rules again, and the author of the object chooses their number.
    late = {id(each): _for_people(each, _MANY) for each in editing[most:]}
    rest = (late.get(id(each), each) for each in before.findings)
    return _all_tried(rest, editing[:most], attempt)


_Evaluate = Callable[[Subject], Iterable[RuleAnswer]]


def tried_in_templates(
    findings: Sequence[Finding],
    subject: Subject,
    evaluate: _Evaluate,
    *,
    rules: Collection[str] | None = None,
    joins: bool = True,
) -> Tried:
    """Try the fixes of the findings in the pod templates.

    Args:
        findings: The findings of all rules.
        subject: The object.
        evaluate: Returns the results of the rules used to test a fix.
        rules: The ids of the rules with fixes to try. None for all.
        joins: If a fix causes new findings, whether to add their fixes to it. Otherwise such a fix loses its edits.
    """
    editing = [each for each in findings if each.edits and (rules is None or each.rule in rules)]
    del editing[_most_tried(subject) :]
    if not editing:
        return Tried(tuple(findings))
    before = _Before(evaluate(subject))

    def attempt(finding: Finding) -> Finding:
        fix = Fix(finding.fix, finding.edits)
        later = _after(subject, fix.edits)
        if later is None:
            return finding
        left = before.after(evaluate(later))
        more = before.more(left)
        # Removed list items change the paths of later items.
        can_join = joins and not any(each.value is None and each.path.endswith("]") for each in fix.edits)
        if more and can_join and all(_is_beside(fix, each.edits) for each in more):
            joined = all_of((fix, *(Fix(each.fix, each.edits) for each in more)))
            with suppress(_UntriedError):  # two of them may not go together
                if (last := _after(subject, joined.edits)) is not None:
                    fix, left = structs.replace(joined, text=joined.without_edits.text), before.after(evaluate(last))
                    more = before.more(left)
        if more or before.stays(finding, left):
            by_hand = f"{_BRINGS} {more[0].rule}" if more else _STAYS
            fix = structs.replace(fix.without_edits, by_hand=by_hand)
        return structs.replace(finding, **fix.fields)

    return _all_tried(findings, editing, attempt)


def _most_tried(subject: Subject) -> int:
    constraints = [each.constraint for each in subject.placed]
    weight = max(1, len(constraints) + keys_in(constraints))
    if subject.offline:
        weight += sum(len(each.pod.labels) for each in subject.workload.templates)
        return min(_MAX_TRIED_FIXES_OFFLINE, _MAX_WEIGHT_OFFLINE // weight)
    return min(_MAX_TRIED_FIXES, _MAX_WEIGHT // weight)


def _is_beside(fix: Fix, edits: Sequence[Edit]) -> bool:
    """Whether the edits can join the fix: they remove no constraint and change only constraints of the fix."""
    own = {each for edit in fix.edits for each in _ITEM.findall(edit.path)}
    removing = any(each.value is None and _ITEM.fullmatch(each.path) for each in edits)
    return bool(edits) and not removing and all(own.issuperset(_ITEM.findall(each.path)) for each in edits)


def _after(subject: Subject, edits: Sequence[Edit]) -> Subject | None:
    """Return the subject with the edits. None if an edit is outside of labels and constraints.

    Raise _UntriedError if an edit does not fit.
    """
    templates, inside = [], 0
    for template in subject.workload.templates:
        labels, constraints = f"{template.path}metadata.labels", template.constraints_path
        own = [each for each in edits if each.path.startswith((labels, constraints))]
        inside += len(own)
        with _untried(_NO_PLACE, LookupError, msgspec.ValidationError):
            templates.append(_edited(template, own) if own else template)
    if inside < len(edits):
        return None
    workload = structs.replace(subject.workload, templates=tuple(templates))
    return structs.replace(subject, workload=workload, placed=placed_constraints(workload))


class _Edited(msgspec.Struct, frozen=True):
    """The labels and constraints of a template after edits, to be decoded again."""

    labels: Mapping[str, str]
    constraints: tuple[SpreadConstraint, ...] = ()


def _edited(template: Template, edits: Sequence[Edit]) -> Template:
    """Apply edits to labels and constraints of a template. Raise LookupError or ValidationError if they do not fit."""
    pod = template.pod
    constraints = msgspec.json.decode(msgspec.json.encode(pod.pod_spec.constraints))
    within = [
        structs.replace(each, path=f"constraints{each.path.removeprefix(template.constraints_path)}")
        if each.path.startswith(template.constraints_path)
        else structs.replace(each, path=each.path.removeprefix(f"{template.path}metadata."))
        for each in edits
    ]
    kept = converted(applied({"labels": {**pod.labels}, "constraints": constraints}, within), _Edited)
    meta = structs.replace(pod.meta, labels=kept.labels)
    spec = structs.replace(pod.pod_spec, topology_spread_constraints=kept.constraints)
    return structs.replace(template, pod=PodTemplate(metadata=meta, spec=spec))
