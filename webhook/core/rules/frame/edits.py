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

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from webhook.core.apiserver.validation import soft_fields
from webhook.core.changes.fix import Fix, bounded
from webhook.core.changes.wording import field_text
from webhook.core.json_edits import Edit
from webhook.core.rules.frame.subject import Placed
from webhook.core.text import constraint_name
from webhook.core.yaml_flow import plain


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
