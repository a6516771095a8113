"""A finding's fix as text, and the same change as edits: made together, so that they cannot differ.

The grammar of `Finding.fix`, where it has edits:

- the field as it is to be, key and value, in YAML on one line: it replaces the marked text (the field at
  `Finding.path` with its key): ``maxSkew: 1``, ``labelSelector: {matchLabels: {app: web}}``; an item of a list has no
  key: ``pod-template-hash``;
- else words, which begin with a verb: ``add nodeTaintsPolicy: Honor`` (the field is absent), ``remove minDomains``,
  ``set maxSkew: 2`` (the field stands elsewhere than the finding), ``remove the constraint``;
- several of them, joined by " and ": ``set whenUnsatisfiable: ScheduleAnyway and remove minDomains``;
- in other constraints than the marked one by name: ``set maxSkew: 2 in hostname[1]``, or ``… in every constraint``.

A fix without edits is for people, in words.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.apiserver.validation import soft_fields
from webhook.core.changes.change import field_text
from webhook.core.json_edits import Edit
from webhook.core.rules.frame.subject import Placed
from webhook.core.text import constraint_name
from webhook.core.yaml_text import plain

# The longest text of a fix: longer than with any selector that people write.
_MAX_FIX_CHARS = 500
_VERBS = frozenset({"add", "remove", "set", "move", "rename"})


class FixFields(TypedDict):
    """The fields of a finding that a fix fills."""

    fix: str
    edits: tuple[Edit, ...]
    by_hand: str


class Fix(Struct, frozen=True):
    """What a finding suggests: ``Finding(..., **fix.fields)``.

    Args:
        text: What to write in place of the text at the finding's path, or words for people.
        edits: The same change for programs.
        by_hand: Why there are no edits.
    """

    text: str = ""
    edits: tuple[Edit, ...] = ()
    by_hand: str = ""

    @property
    def fields(self) -> FixFields:
        """The fix as arguments of `Finding`."""
        return {"fix": self.text, "edits": self.edits, "by_hand": self.by_hand}


def all_of(fixes: Iterable[Fix]) -> Fix:
    """One fix from several that only help together."""
    several = [each for each in fixes if each != Fix()]
    # What a later edit overwrites would only be read by people, and puzzle them.
    needed = [each for index, each in enumerate(several) if not _is_overwritten(each, several[index + 1 :])]
    if len(needed) < 2:
        return needed[0] if needed else Fix()
    text = bounded(" and ".join(map(_as_words, needed)))
    if by_people := next((each for each in needed if not each.edits), None):
        return Fix(text, by_hand=by_people.by_hand)
    return Fix(text, tuple(edit for each in needed for edit in each.edits))


def _is_overwritten(fix: Fix, later: Iterable[Fix]) -> bool:
    paths = tuple(f"{edit.path}{mark}" for each in later for edit in each.edits for mark in ".[")
    return bool(paths and fix.edits) and all(f"{edit.path}.".startswith(paths) for edit in fix.edits)


def without_edits(fix: Fix) -> Fix:
    """The fix as text only, without edits."""
    return Fix(_as_words(fix), by_hand=fix.by_hand)


def _as_words(fix: Fix) -> str:
    return fix.text if fix.text.partition(" ")[0] in _VERBS else f"set {fix.text}"


def bounded(text: str) -> str:
    """The text, or a hint to the command where it is too long for a line."""
    return (
        text
        if len(text) <= _MAX_FIX_CHARS
        else "run evenspread check --fix, which writes it: it is too long for one line"
    )


def changes(placed: Placed, *, at: str | None = None, named: bool = False, **fields: object) -> Fix:
    """The fix that sets fields of a constraint; the value None removes a field.

    Shape: ``fields`` have the API's names, and values of JSON or of `api.types`. ``at`` is the finding's path, if that
    is not the one field. ``named`` adds the constraint's name, for findings in another constraint.
    """
    fix = _fix((placed,), f" in {placed.name}" if named else "", fields)
    alone = len(fields) == 1 and not named and at in {None, f"{placed.path}.{next(iter(fields))}"}
    return replace(fix, text=fix.text.removeprefix("set ")) if alone else fix


def changes_in(several: Sequence[Placed], every: Sequence[Placed], **fields: object) -> Fix:
    """The fix that sets the same fields in several constraints; ``every`` are all constraints."""
    names = "every constraint" if len(several) == len(every) else " and ".join(each.name for each in several)
    return _fix(several, f" in {names}" if len(every) > 1 else "", fields)


def _fix(several: Sequence[Placed], where: str, fields: Mapping[str, object]) -> Fix:
    constraints = [each.constraint for each in several]
    texts = [field_text(name, value, *constraints) for name, value in fields.items()]
    edits = [Edit(f"{each.path}.{name}", plain(value)) for each in several for name, value in fields.items()]
    return Fix(bounded(f"{' and '.join(texts)}{where}"), tuple(edits))


def removal(placed: Placed, *, named: bool = False) -> Fix:
    """The fix that removes the constraint."""
    return Fix(f"remove {placed.name}" if named else "remove the constraint", (Edit(placed.path),))


def redundant(placed: Placed, **fields: str) -> Fix | None:
    """Remove a constraint if ``fields`` would give it the key and action of another one. None if there is no other.

    kube-apiserver refuses two of them. Edits remove this one only if the other says the same in every field.
    """
    after = replace(placed.constraint, **fields)
    pair = (after.topology_key, after.when_unsatisfiable)
    for number, other in enumerate(placed.template.template.pod_spec.constraints):
        if number != placed.index and (other.topology_key, other.when_unsatisfiable) == pair:
            fix, name = removal(placed), constraint_name(other.topology_key or "", number)
            return fix if other == after else Fix(fix.text, by_hand=f"{name} has this key and action, and other fields")
    return None


def over_another_key(placed: Placed, key: str) -> Fix:
    """The fix that puts the constraint over another key."""
    return redundant(placed, topology_key=key) or changes(placed, topologyKey=key)


def softening(placed: Placed, every: Sequence[Placed], *, named: bool = False) -> Fix:
    """Make a constraint soft, without minDomains. The fix has no edits if a soft one with its key exists.

    Shape: ``every`` are all constraints of its template.
    """
    fields = soft_fields(placed.constraint, [each.constraint for each in every if each.template is placed.template])
    if fields is None:
        return Fix(removal(placed, named=named).text, by_hand="a ScheduleAnyway constraint over its key exists already")
    return changes(placed, at=None, named=named, **fields)
