"""What follows once a fix has been applied: asked of the rules that need no cluster, before anybody is told the fix.

A constraint that counts nothing, or that kube-apiserver refuses, keeps other rules from speaking. Where a fix would
make them speak, their fixes join it; where they have none, or where the finding would stay, the fix is for people only.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec import structs

from webhook.core.kinds import Template
from webhook.core.model import PodTemplate, SpreadConstraint
from webhook.core.rules.edits import Fix, all_of, applied, in_words
from webhook.core.rules.finding import Answer, Edit, Finding, Subject, place

# Beside so many findings with edits, others are told as they are: each takes a second look at the whole object. While
# a request waits there is less time for it.
_MOST_PROVEN, _MOST_PROVEN_OFFLINE = 16, 200

Ask = Callable[[Subject], Iterable[Answer]]


def proven(findings: Sequence[Finding], subject: Subject, ask: Ask, *, joins: bool = True) -> list[Finding]:
    """The findings, each with a fix after which it is gone and no other has come.

    Shape: ``ask`` asks the rules that look at the object alone, or more. Without ``joins`` no other fix joins it: where
    another finding would come, it is for people.
    """
    most = _MOST_PROVEN_OFFLINE if subject.offline else _MOST_PROVEN
    editing = [each for each in findings if each.edits][:most]
    if not editing:
        return [*findings]
    before = [each for each in ask(subject) if isinstance(each, Finding)]
    told = {id(each): _tried(each, subject, ask, before, joins=joins) for each in editing}
    return [told.get(id(each), each) for each in findings]


def _tried(finding: Finding, subject: Subject, ask: Ask, before: Sequence[Finding], *, joins: bool) -> Finding:
    try:
        return _proven(finding, subject, ask, before, joins=joins)
    except Exception:  # noqa: BLE001 a fix that cannot be tried is for people; the finding, and all others, stay
        return structs.replace(finding, fix=in_words(Fix(finding.fix)).text, edits=())


def _proven(finding: Finding, subject: Subject, ask: Ask, before: Sequence[Finding], *, joins: bool) -> Finding:
    fix = Fix(finding.fix, finding.edits)
    later = _after(subject, fix.edits)
    if later is None:
        return finding
    left = [each for each in ask(later) if isinstance(each, Finding)]
    more = _more(left, before)
    # Where items of a list went, the paths of what follows are no longer those of the object before.
    can_join = joins and not any(_takes_item(each) for each in fix.edits)
    if more and can_join and all(each.edits for each in more):
        joined = all_of((fix, *(Fix(each.fix, each.edits) for each in more)))
        try:
            last = _after(subject, joined.edits)
        except LookupError:  # two of them do not go together
            last = None
        if last is not None:
            fix, left = (
                structs.replace(joined, text=in_words(joined).text),
                [each for each in ask(last) if isinstance(each, Finding)],
            )
            more = _more(left, before)
    if more or 0 < _same(finding, before) <= _same(finding, left):
        fix = in_words(fix)
    return structs.replace(finding, fix=fix.text, edits=fix.edits)


def _takes_item(edit: Edit) -> bool:
    return edit.value is None and edit.path.endswith("]")


def _more(left: Sequence[Finding], before: Sequence[Finding]) -> list[Finding]:
    """Findings of the rules that have more to say than before."""
    grown = Counter(each.rule for each in left) - Counter(each.rule for each in before)
    return [each for each in left if each.rule in grown]


def _same(finding: Finding, findings: Iterable[Finding]) -> int:
    """How many there are that nobody could tell from it."""
    return sum((each.rule, each.key) == (finding.rule, finding.key) for each in findings)


def _after(subject: Subject, edits: Iterable[Edit]) -> Subject | None:
    """The subject with the edits; None where one of them is outside labels and constraints."""
    templates = []
    left = [*edits]
    for template in subject.workload.templates:
        own = [
            each
            for each in left
            if each.path.startswith((f"{template.path}metadata.labels", template.constraints_path))
        ]
        left = [each for each in left if each not in own]
        templates.append(_edited(template, own) if own else template)
    if left:
        return None
    workload = structs.replace(subject.workload, templates=tuple(templates))
    return structs.replace(subject, workload=workload, placed=place(workload))


def _edited(template: Template, edits: Sequence[Edit]) -> Template:
    pod = template.template
    constraints = msgspec.json.decode(msgspec.json.encode(pod.pod_spec.constraints))
    value = {"labels": {**pod.labels}, "constraints": constraints}
    after = applied(value, [structs.replace(each, path=_within(each.path, template)) for each in edits])
    kept = msgspec.convert(after.get("constraints", []), tuple[SpreadConstraint, ...])
    meta = structs.replace(pod.meta, labels=after["labels"])
    spec = structs.replace(pod.pod_spec, topology_spread_constraints=kept)
    return structs.replace(template, template=PodTemplate(metadata=meta, spec=spec))


def _within(path: str, template: Template) -> str:
    if path.startswith(template.constraints_path):
        return f"constraints{path.removeprefix(template.constraints_path)}"
    return path.removeprefix(f"{template.path}metadata.")
