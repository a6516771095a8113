"""Edits of JSON values, addressed by API paths such as ``spec.containers[0].name``."""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from msgspec import Struct

from webhook.core.text import one_line

# Stands in a list or a mapping for an entry that `marked` has removed.
GONE: Final = object()
_NAME = re.compile(r"\.?([^.\[\]]+)|\[(\d{1,7})\]|\[([^\]]*)\]")
_ENDS = re.compile(r"[.\[]")


class Edit(Struct, frozen=True):
    """One change of an object: the new JSON value at a path.

    Shape: ``path`` is the full API path, as in `Finding.path`; ``value`` is None if the field is removed.
    """

    path: str
    value: object = None


def applied(value: object, edits: Iterable[Edit]) -> dict[str, object]:
    """A copy of an object with all edits; their paths refer to the object before any of them.

    Shape: missing mappings on the way to a path are created, and so is the item after the last one of a list. A list
    whose last item is removed is removed too.
    Errors: LookupError for a path that leads through anything but mappings and lists.
    """
    changed = without_gone(marked(value, edits))
    return changed if isinstance(changed, dict) else {}


def marked(value: object, edits: Iterable[Edit]) -> object:
    """As `applied`, but with `GONE` in place of what was removed, so that the others keep their indices."""
    for edit in edits:
        value = _with(value, edit.path, GONE if edit.value is None else edit.value)
    return value


def value_at(value: object, path: str) -> object:
    """The value at a path; None if there is none."""
    while path:
        try:
            step, path = _step(value, path)
        except LookupError:
            return None
        value = _below(value, step)
    return value


def _with(value: object, path: str, new: object) -> object:
    if not path:
        return new
    step, rest = _step(value, path)
    below = _below(value, step)
    if isinstance(value, list) and isinstance(step, int):
        return [*value[:step], _with(below, rest, new), *value[step + 1 :]]
    # Removing what is not there changes nothing, and makes no mappings on the way.
    if new is GONE and below is None:
        return value
    return {**(value if isinstance(value, dict) else {}), step: _with(below, rest, new)}


def _below(value: object, step: str | int) -> object:
    if isinstance(value, list) and isinstance(step, int):
        return value[step] if step < len(value) else None
    return value.get(step) if isinstance(value, dict) else None


def _step(value: object, path: str) -> tuple[str | int, str]:
    """The first step of a path, and the rest; keys may contain dots, as label keys do: the longest match is taken."""
    match = _NAME.match(path)
    if isinstance(value, dict):
        rest = path.removeprefix(".")
        if key := first_key(value, rest):
            return key, rest[len(key) :]
    if match and match[2] is not None and isinstance(value, list) and int(match[2]) <= len(value):
        return int(match[2]), path[match.end() :]
    if match and match[2] is None and (value is None or isinstance(value, dict)):
        return match[1] or match[3], path[match.end() :]
    raise LookupError(one_line(path))


def first_key(keys: Collection[str], path: str) -> str | None:
    """The longest of the keys that a path begins with; a key may contain dots, as label keys do."""
    ends = [len(path), *(each.start() for each in reversed([*_ENDS.finditer(path)]))]
    if len(ends) <= len(keys):  # one look-up for each: a mapping may have very many keys, and so may a path dots
        return next((path[:end] for end in ends if path[:end] in keys), None)
    return max(
        (each for each in keys if path == each or path.startswith((f"{each}.", f"{each}["))), key=len, default=None
    )


def without_gone(value: object) -> object:
    """The value without `GONE` entries; `GONE` itself for a list that has no others."""
    if isinstance(value, dict):
        pairs = ((key, without_gone(each)) for key, each in value.items())
        return {key: each for key, each in pairs if each is not GONE}
    if isinstance(value, list):
        left = [each for each in map(without_gone, value) if each is not GONE]
        return left if left or not value else GONE
    return value


def written_path(steps: Sequence[str]) -> str:
    """An API path from its steps: ``spec.template.spec``."""
    plain = str.maketrans("", "", "-_")
    parts = (
        step if step.startswith("[") else f".{step}" if step.translate(plain).isalnum() else f"[{step}]"
        for step in steps
    )
    return "".join(parts).removeprefix(".")
