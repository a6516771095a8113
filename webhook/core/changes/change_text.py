"""Print changes of constraints: ``set maxSkew: 2``, ``remove minDomains``."""

from collections.abc import Sequence

import msgspec

from webhook.core.api.types import SpreadConstraint
from webhook.core.api.well_known import HOSTNAME
from webhook.core.changes.change import Change, Changes
from webhook.core.text import constraint_name, plural, segment_of, together
from webhook.core.yaml_text import one_field


def field_text(field: str, value: object, *constraints: SpreadConstraint) -> str:
    """Describe the change of a constraint field, such as ``remove minDomains``.

    The verb is ``remove`` for the value None, and ``set`` if a constraint already has the field, even as
    null. Otherwise it is ``add``.
    """
    if value is None:
        return f"remove {field}"
    there = any(field in msgspec.to_builtins(constraint) for constraint in constraints)
    return f"{'set' if there else 'add'} {one_field(field, value)}"


def changes_text(changes: Changes, constraints: Sequence[SpreadConstraint]) -> str:
    """Return the changes in words: ``set maxSkew: 2 in zone[0]``.

    The constraint's name appears if the pod has several hard constraints.
    """
    parts: dict[str, list[str]] = {}
    for change in changes:
        name = constraint_name(constraints[change.index].topology_key or "", change.index)
        text = field_text(change.field, change.value, constraints[change.index]) if change.field else f"remove {name}"
        parts.setdefault(text, []).append(name)
    if sum(constraint.hard for constraint in constraints) == 1:
        return together([*parts])
    by_names: dict[tuple[str, ...], list[str]] = {}
    for text, names in parts.items():
        by_names.setdefault(() if text.startswith("remove ") and "[" in text else tuple(names), []).append(text)
    return together(
        f"{together(texts)}{f' in {together(names)}' if names else ''}" for names, texts in by_names.items()
    )


def trade_off(change: Change, constraints: Sequence[SpreadConstraint]) -> str:
    """The drawback of a change, in words. Empty if the change only stops counting unusable nodes."""
    key = constraints[change.index].topology_key or ""
    segment = "node" if key == HOSTNAME else segment_of(key)
    match change.field, change.value:
        case "maxSkew", value:
            return f"one {segment} may have {value} more pods than another"
        case "whenUnsatisfiable" | "", _:
            return f"all pods may end up in one {segment}"
        case "minDomains", int(value):
            return f"pods may run in only {plural(value, segment)}"
        case _:
            return ""
