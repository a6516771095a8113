"""Edit JSON values at API paths such as ``spec.containers[0].name``."""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from msgspec import Struct

from webhook.core.text import one_line

# The placeholder of `marked` for a removed entry.
GONE: Final = object()
_NAME = re.compile(r"\.?([^.\[\]]+)|\[(\d{1,7})\]|\[([^\]]*)\]")
_ENDS = re.compile(r"[.\[]")


class Edit(Struct, frozen=True):
    """The new JSON value at a full API path, as in `Finding.path`. None removes the field."""

    path: str
    value: object = None


def applied(value: object, edits: Iterable[Edit]) -> dict[str, object]:
    """Return a copy of an object with all edits, whose paths refer to the original object.

    Example:
        applied({"spec": {"replicas": 1}}, [Edit("spec.replicas", 2)]) == {"spec": {"replicas": 2}}

    Missing mappings on a path are created, and an index just past the end of a list appends. A list without remaining
    items is removed.

    Raises:
        LookupError: A path leads through something else than mappings and lists.
    """
    changed = without_gone(marked(value, edits))
    return changed if isinstance(changed, dict) else {}


def marked(value: object, edits: Iterable[Edit]) -> object:
    """Apply the edits, with `GONE` in place of each removed value. So all other items of a list keep their indices."""
    for edit in edits:
        value = _with(value, edit.path, GONE if edit.value is None else edit.value)
    return value


def value_at(value: object, path: str) -> object:
    """Return the value at a path, or None."""
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
    # The removal of an absent field changes nothing, so it creates no mappings on the path.
    if new is GONE and below is None:
        return value
    return {**(value if isinstance(value, dict) else {}), step: _with(below, rest, new)}


def _below(value: object, step: str | int) -> object:
    if isinstance(value, list) and isinstance(step, int):
        return value[step] if step < len(value) else None
    return value.get(step) if isinstance(value, dict) else None


def _step(value: object, path: str) -> tuple[str | int, str]:
    """Split a path into its first key or list index, and the remaining path.

    Label keys contain dots, so the longest existing key is used.
    """
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
    """Return the longest key at the start of a path, or None. Label keys contain dots."""
    ends = [len(path), *(end.start() for end in reversed([*_ENDS.finditer(path)]))]
    # A mapping can have very many keys, and a path very many dots. Loop over the fewer.
    if len(ends) <= len(keys):
        return next((path[:end] for end in ends if path[:end] in keys), None)
    return max((key for key in keys if path == key or path.startswith((f"{key}.", f"{key}["))), key=len, default=None)


def without_gone(value: object) -> object:
    """Remove the `GONE` entries. A list with no other entry becomes `GONE` itself."""
    if isinstance(value, dict):
        pairs = ((key, without_gone(each)) for key, each in value.items())
        return {key: each for key, each in pairs if each is not GONE}
    if isinstance(value, list):
        left = [each for each in map(without_gone, value) if each is not GONE]
        return left if left or not value else GONE
    return value


def written_path(steps: Sequence[str]) -> str:
    """Join field names and list indices into an API path: ``spec.template.spec``."""
    plain = str.maketrans("", "", "-_")
    parts = (
        step if step.startswith("[") else f".{step}" if step.translate(plain).isalnum() else f"[{step}]"
        for step in steps
    )
    return "".join(parts).removeprefix(".")
