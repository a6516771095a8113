"""Changes of constraints in words.

- A field is set, added or removed: ``set maxSkew: 2``, ``add nodeTaintsPolicy: Honor``, ``remove minDomains``.
- Several are joined by " and ". Constraints are named where there are several: ``set maxSkew: 2 in zone[0]``.
"""

from collections.abc import Sequence

import msgspec

from webhook.core.api.types import SpreadConstraint
from webhook.core.api.well_known import HOSTNAME
from webhook.core.changes.change import Change, Changes
from webhook.core.text import constraint_name, plural, segment_of, together
from webhook.core.yaml_flow import one_field


def field_text(field: str, value: object, *constraints: SpreadConstraint) -> str:
    """One field in these constraints: ``set`` where one of them has it, if only as null."""
    if value is None:
        return f"remove {field}"
    there = any(field in msgspec.to_builtins(each) for each in constraints)
    return f"{'set' if there else 'add'} {one_field(field, value)}"


def in_words(changes: Changes, constraints: Sequence[SpreadConstraint]) -> str:
    """The changes in the constraints of a pod, by name if several are hard."""
    parts: dict[str, list[str]] = {}
    for change in changes:
        name = constraint_name(constraints[change.index].topology_key or "", change.index)
        parts.setdefault(_verb(change, constraints, name), []).append(name)
    if sum(each.hard for each in constraints) == 1:
        return together([*parts])
    by_names: dict[tuple[str, ...], list[str]] = {}
    for text, names in parts.items():
        by_names.setdefault(() if text.startswith("remove ") and "[" in text else tuple(names), []).append(text)
    return together(
        f"{together(texts)}{f' in {together(names)}' if names else ''}" for names, texts in by_names.items()
    )


def _verb(change: Change, constraints: Sequence[SpreadConstraint], name: str) -> str:
    return field_text(change.field, change.value, constraints[change.index]) if change.field else f"remove {name}"


def trade_off(change: Change, constraints: Sequence[SpreadConstraint]) -> str:
    """What a change gives up; empty where it only stops counting nodes that no pod can use."""
    key = constraints[change.index].topology_key or ""
    segment = "node" if key == HOSTNAME else segment_of(key)
    match change.field, change.value:
        case "maxSkew", value:
            return f"one {segment} may have {value} pods more than another"
        case "whenUnsatisfiable" | "", _:
            return f"all pods may come to stand in one {segment}"
        case "minDomains", int(value):
            return f"pods may run in only {plural(value, segment)}"
        case _:
            return ""
