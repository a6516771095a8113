"""What a finding's fix says, and the same change for programs: made together, so that they cannot differ.

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

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from webhook.core.rules.frame.rule import Edit
from webhook.core.rules.frame.subject import Placed
from webhook.core.text import one_line

Json = Any  # raw JSON from outside: core.apiserver.decoding gives it types

# The value of no field: what stands in a list, or under a key, where `marked` took something out.
GONE: Final = object()
# A line that nobody reads to its end: above any selector that people write.
_MOST_CHARS = 500
# Letters first: what begins with a digit, a sign or a point may be a number or a date to some reader of YAML.
_PLAIN = re.compile(r"[A-Za-z](?:[A-Za-z0-9_./-]*[A-Za-z0-9])?", re.ASCII)
_VERBS = frozenset({"add", "remove", "set", "move", "rename"})
_NO_TEXT = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null"})
_NAME = re.compile(r"\.?([^.\[\]]+)|\[(\d{1,7})\]|\[([^\]]*)\]")


class Fix(Struct, frozen=True):
    """A fix as people read it and as programs apply it: ``Finding(fix=fix.text, edits=fix.edits)``."""

    text: str = ""
    edits: tuple[Edit, ...] = ()


NO_FIX = Fix()


def changes(placed: Placed, *, at: str | None = None, named: bool = False, **fields: object) -> Fix:
    """Other values of a constraint's fields; None takes a field out.

    Shape: ``fields`` are named as in the API and have values of JSON or of the model. ``at`` is the finding's path,
    unless that is the one field. ``named`` says in which constraint, where the finding stands in another.
    """
    return change(placed, fields, at, named=named)


def change(placed: Placed, fields: Mapping[str, object], at: str | None = None, *, named: bool = False) -> Fix:
    """The same for fields whose names are values."""
    texts = []
    for name, value in fields.items():
        written = one_field(name, value)
        if value is None:
            texts.append(f"remove {name}")
        elif not _is_there(placed, name):
            texts.append(f"add {written}")
        elif len(fields) == 1 and not named and at in {None, f"{placed.path}.{name}"}:
            texts.append(written)
        else:
            texts.append(f"set {written}")
    where = f" in {placed.name}" if named else ""
    return Fix(_bounded(" and ".join(texts) + where), tuple(_edits((placed,), fields)))


def changes_in(several: Sequence[Placed], every: Sequence[Placed], **fields: object) -> Fix:
    """The same values in several constraints; ``every`` are all that there are beside them."""
    if len(several) == 1 and len(every) == 1:
        return change(several[0], fields, "")
    texts = []
    for name, value in fields.items():
        verb = "set" if any(_is_there(each, name) for each in several) else "add"
        texts.append(f"remove {name}" if value is None else f"{verb} {one_field(name, value)}")
    names = "every constraint" if len(several) == len(every) else " and ".join(each.name for each in several)
    return Fix(_bounded(f"{' and '.join(texts)} in {names}"), tuple(_edits(several, fields)))


def removal(placed: Placed, *, named: bool = False) -> Fix:
    """Out with the constraint."""
    return Fix(f"remove {placed.name}" if named else "remove the constraint", (Edit(placed.path),))


def softening(placed: Placed, every: Sequence[Placed], *, named: bool = False) -> Fix:
    """ScheduleAnyway, without minDomains; where a soft constraint with the same key stands, the hard one goes.

    Shape: ``every`` are all constraints of its template.
    """
    keys = [each.constraint.topology_key for each in every if each.template is placed.template]
    if keys.count(placed.constraint.topology_key) > 1:
        return removal(placed, named=named)
    if placed.constraint.min_domains is None:
        return changes(placed, named=named, whenUnsatisfiable="ScheduleAnyway")
    return changes(placed, named=named, whenUnsatisfiable="ScheduleAnyway", minDomains=None)


def all_of(fixes: Iterable[Fix]) -> Fix:
    """Several fixes of which none helps without the others."""
    given = [each for each in fixes if each != NO_FIX]
    found = [each for place, each in enumerate(given) if not _is_covered(each, given[place + 1 :])]
    if len(found) < 2:
        return found[0] if found else NO_FIX
    return Fix(_bounded(" and ".join(map(_as_words, found))), tuple(edit for each in found for edit in each.edits))


def _is_covered(fix: Fix, later: Iterable[Fix]) -> bool:
    """Whether what it writes is written anew by another."""
    paths = tuple(f"{edit.path}{mark}" for each in later for edit in each.edits for mark in ".[")
    return bool(paths) and all(f"{edit.path}.".startswith(paths) for edit in fix.edits)


def in_words(fix: Fix) -> Fix:
    """The fix for people alone."""
    return Fix(_as_words(fix))


def _as_words(fix: Fix) -> str:
    return fix.text if fix.text.partition(" ")[0] in _VERBS else f"set {fix.text}"


def _edits(several: Iterable[Placed], fields: Mapping[str, object]) -> Iterable[Edit]:
    return (Edit(f"{placed.path}.{name}", plain(value)) for placed in several for name, value in fields.items())


def plain(value: object) -> object:
    """A value of the model as JSON has it."""
    return msgspec.json.decode(msgspec.json.encode(value)) if isinstance(value, Struct | tuple) else value


def _is_there(placed: Placed, name: str) -> bool:
    """Whether the field is written, if only as null."""
    return name in msgspec.to_builtins(placed.constraint)


def _bounded(text: str) -> str:
    return (
        text if len(text) <= _MOST_CHARS else "run evenspread check --fix, which writes it: it is too long for one line"
    )


def one_field(name: str, value: object) -> str:
    """``maxSkew: 1``: a field in YAML, on one line."""
    return f"{scalar(name)}: {flow(value)}"


def flow(value: object) -> str:
    """A value in YAML's flow style, on one line, which every reader of YAML reads the same."""
    value = plain(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(one_field(str(key), each) for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    return scalar(value)


def scalar(value: object) -> str:
    """A text, quoted where it may be read as something else; a number, true, false or null."""
    if not isinstance(value, str):
        return json.dumps(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _NO_TEXT:
        return value
    if value.isprintable():
        return json.dumps(value, ensure_ascii=False)
    return '"' + "".join(map(_escaped, value)) + '"'


def _escaped(letter: str) -> str:
    if letter.isprintable():
        return json.dumps(letter, ensure_ascii=False)[1:-1]
    return f"\\u{ord(letter):04x}" if ord(letter) < 0x10000 else f"\\U{ord(letter):08x}"


def applied(value: Json, edits: Iterable[Edit]) -> Json:
    """A copy of an object with all of the edits; the paths are those of the object before.

    Shape: what a finding says stands nowhere is made on the way, an item right behind the last one of a list too.
    With its last item, a list goes.
    Errors: LookupError for a path that leads through something else than mappings and lists.
    """
    return without_gone(marked(value, edits))


def marked(value: Json, edits: Iterable[Edit]) -> Json:
    """The same with `GONE` in every place from which something was taken, so that all others keep theirs."""
    for edit in edits:
        value = _with(value, edit.path, GONE if edit.value is None else edit.value)
    return value


def value_at(value: Json, path: str) -> Json:
    """What stands at a path; None where nothing does."""
    while path:
        try:
            step, path = _step(value, path)
            value = value[step]
        except (LookupError, TypeError):
            return None
    return value


def _with(value: Json, path: str, given: Json) -> Json:
    if not path:
        return given
    step, rest = _step(value, path)
    if isinstance(step, int):
        return [*value[:step], _with(value[step] if step < len(value) else None, rest, given), *value[step + 1 :]]
    below = value.get(step) if value else None
    if given is GONE and below is None:
        return value
    return {**(value or {}), step: _with(below, rest, given)}


def _step(value: Json, path: str) -> tuple[str | int, str]:
    """The first step of a path and the rest of it; keys may hold dots, as labels do: the longest that fits is taken."""
    found = _NAME.match(path)
    if isinstance(value, Mapping):
        rest = path.removeprefix(".")
        fitting = (key for key in value if rest == key or rest.startswith((f"{key}.", f"{key}[")))
        if key := max(fitting, key=len, default=""):
            return key, rest[len(key) :]
    if found and found[2] is not None and isinstance(value, list) and int(found[2]) <= len(value):
        return int(found[2]), path[found.end() :]
    if found and found[2] is None and (value is None or isinstance(value, Mapping)):
        return found[1] or found[3], path[found.end() :]
    raise LookupError(one_line(path))


def without_gone(value: Json) -> Json:
    """The value without the places that are empty; `GONE` where all of a list is."""
    if isinstance(value, Mapping):
        pairs = ((key, without_gone(each)) for key, each in value.items())
        return {key: each for key, each in pairs if each is not GONE}
    if isinstance(value, list):
        left = [each for each in map(without_gone, value) if each is not GONE]
        return left if left or not value else GONE
    return value
