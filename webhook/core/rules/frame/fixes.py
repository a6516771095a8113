"""A finding's fix: text for people and edits for programs, made together.

The text of a fix with edits has these forms:

- the new field as a line of YAML, in place of the field at `Finding.path`: ``maxSkew: 1``. List items have no key.
- an instruction with a verb: ``add nodeTaintsPolicy: Honor``, ``remove minDomains``, or ``set maxSkew: 2`` in another
  place than the finding's.
- several instructions: ``set whenUnsatisfiable: ScheduleAnyway and remove minDomains``.
- an instruction for named constraints: ``set maxSkew: 2 in hostname[1]``, or ``… in every constraint``.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.changes.change import soft_fields
from webhook.core.changes.change_text import field_text
from webhook.core.json_edits import Edit
from webhook.core.rules.frame.subject import Placed
from webhook.core.text import constraint_name
from webhook.core.yaml_text import plain

# The longest text of a fix. No hand-written selector needs more.
_MAX_FIX_CHARS = 500
_VERBS = frozenset({"add", "remove", "set", "move", "rename", "run"})


class _FixFields(TypedDict):
    """The fields of a finding that come from its fix."""

    fix: str
    edits: tuple[Edit, ...]
    by_hand: str


class Fix(Struct, frozen=True):
    """The suggestion of a finding: ``Finding(..., **fix.fields)``.

    Args:
        text: The new text for the finding's path, or an instruction.
        edits: The same change for programs.
        by_hand: Why there are no edits.
    """

    text: str = ""
    edits: tuple[Edit, ...] = ()
    by_hand: str = ""

    @property
    def fields(self) -> _FixFields:
        """The fix as arguments of `Finding`."""
        return {"fix": self.text, "edits": self.edits, "by_hand": self.by_hand}

    @property
    def without_edits(self) -> "Fix":
        """The same fix without machine-readable edits, as an instruction for a person."""
        return Fix(_as_words(self), by_hand=self.by_hand)


def all_of(fixes: Iterable[Fix]) -> Fix:
    """Combine fixes that help only together."""
    several = [each for each in fixes if each != Fix()]
    # Instructions for overwritten fields would confuse readers.
    needed = [each for index, each in enumerate(several) if not _is_overwritten(each, several[index + 1 :])]
    if len(needed) < 2:
        return needed[0] if needed else Fix()
    text = _bounded(" and ".join(map(_as_words, needed)))
    if by_people := next((each for each in needed if not each.edits), None):
        return Fix(text, by_hand=by_people.by_hand)
    return Fix(text, tuple(edit for each in needed for edit in each.edits))


def _is_overwritten(fix: Fix, later: Iterable[Fix]) -> bool:
    paths = tuple(f"{edit.path}{mark}" for each in later for edit in each.edits for mark in ".[")
    return bool(paths and fix.edits) and all(f"{edit.path}.".startswith(paths) for edit in fix.edits)


def _as_words(fix: Fix) -> str:
    return fix.text if fix.text.partition(" ")[0] in _VERBS else f"set {fix.text}"


def _bounded(text: str) -> str:
    """Return the fix, or a hint to run ``evenspread check --fix`` if the fix is too long for one line."""
    return (
        text if len(text) <= _MAX_FIX_CHARS else "run evenspread check --fix, because the fix is too long for one line"
    )


def changes(placed: Placed, *, at: str | None = None, named: bool = False, **fields: object) -> Fix:
    """Return a fix that sets fields of a constraint.

    A field with the value None is removed.

    Args:
        placed: The constraint.
        at: The path reported by the finding, if it differs from the path of the set field.
        named: Whether the fix names the constraint, for findings about another constraint.
        fields: New values of the fields, as JSON or as types of `api.types`, by the API's field names.
    """
    fix = _fix((placed,), f" in {placed.name}" if named else "", fields)
    alone = len(fields) == 1 and not named and at in {None, f"{placed.path}.{next(iter(fields))}"}
    return replace(fix, text=fix.text.removeprefix("set ")) if alone else fix


def changes_in(several: Sequence[Placed], every: Sequence[Placed], **fields: object) -> Fix:
    """Return a fix that sets the same fields in several constraints. ``every`` has all constraints of the object."""
    names = "every constraint" if len(several) == len(every) else " and ".join(each.name for each in several)
    return _fix(several, f" in {names}" if len(every) > 1 else "", fields)


def _fix(several: Sequence[Placed], where: str, fields: Mapping[str, object]) -> Fix:
    constraints = [each.constraint for each in several]
    texts = [field_text(name, value, *constraints) for name, value in fields.items()]
    edits = [Edit(f"{each.path}.{name}", plain(value)) for each in several for name, value in fields.items()]
    return Fix(_bounded(f"{' and '.join(texts)}{where}"), tuple(edits))


def removal(placed: Placed, *, named: bool = False) -> Fix:
    """Return the fix that removes the constraint."""
    return Fix(f"remove {placed.name}" if named else "remove the constraint", (Edit(placed.path),))


def redundant(placed: Placed, **fields: str) -> Fix | None:
    """Return a fix that removes a constraint, if ``fields`` would make it a duplicate.

    A duplicate has the topologyKey and whenUnsatisfiable of another constraint of the template. kube-apiserver refuses
    it. None if the constraint would not be a duplicate. The fix has edits only if both constraints agree in all fields.
    """
    after = replace(placed.constraint, **fields)
    pair = (after.topology_key, after.when_unsatisfiable)
    for number, other in enumerate(placed.template.pod.pod_spec.constraints):
        if number != placed.index and (other.topology_key, other.when_unsatisfiable) == pair:
            fix, name = removal(placed), constraint_name(other.topology_key or "", number)
            differs = f"{name} has the same topologyKey and whenUnsatisfiable, but other fields differ"
            return fix if other == after else Fix(fix.text, by_hand=differs)
    return None


def over_another_key(placed: Placed, key: str) -> Fix:
    """Return the fix that sets the constraint's topologyKey."""
    return redundant(placed, topology_key=key) or changes(placed, topologyKey=key)


def softening(placed: Placed, every: Sequence[Placed], *, named: bool = False) -> Fix:
    """Make a constraint soft and remove its minDomains. No edits if its topologyKey has a soft constraint already."""
    fields = soft_fields(placed.constraint, [each.constraint for each in every if each.template is placed.template])
    if fields is None:
        twin = "another ScheduleAnyway constraint has the same topologyKey"
        return Fix(removal(placed, named=named).text, by_hand=twin)
    return changes(placed, at=None, named=named, **fields)
