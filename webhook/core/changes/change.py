"""Describe, apply and print a change of a constraint: ``set maxSkew: 2``, ``remove minDomains``."""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import fields, replace

from webhook.core.api.types import HONOR, LabelSelector, SpreadConstraint
from webhook.core.api.well_known import HOSTNAME
from webhook.core.apiserver.validation import soft_fields
from webhook.core.scheduler.plugins.pod_topology_spread import Constraint
from webhook.core.text import constraint_name, plural, segment_of, together
from webhook.core.workloads.workload import Template
from webhook.core.yaml_text import one_field

NODE_TAINTS_POLICY = "nodeTaintsPolicy"
NODE_AFFINITY_POLICY = "nodeAffinityPolicy"
WHEN_UNSATISFIABLE = "whenUnsatisfiable"
_NAMES = {field.encode_name: field.name for field in fields(SpreadConstraint)}


class Change(Struct, frozen=True):
    """Set or remove one field of one constraint.

    Attributes:
        index: The constraint's index in the pod or the template.
        field: The field's name in the API. Empty to remove the whole constraint.
        value: The new value. None to remove the field.

    Example:
        ``Change(0, "maxSkew", 2)`` sets maxSkew of the first constraint to 2.
    """

    index: int
    field: str = ""
    value: int | str | tuple[str, ...] | LabelSelector | None = None

    @property
    def at(self) -> str:
        """The path of the field in the list of constraints: ``[0].maxSkew``."""
        return f"[{self.index}]{f'.{self.field}' if self.field else ''}"

    @property
    def softens(self) -> bool:
        """Whether the constraint no longer rejects nodes."""
        return self.field in ("", WHEN_UNSATISFIABLE)


Changes = tuple[Change, ...]


def value_of(constraint: SpreadConstraint, field: str) -> object:
    """Read a field by its name in the API."""
    return getattr(constraint, _NAMES[field])


def set_honor(constraints: Sequence[SpreadConstraint], index: int, field: str) -> Changes:
    """Set a node policy to Honor, so only nodes usable by the pod count. No change if it already is Honor."""
    written = value_of(constraints[index], field) or (HONOR if field == NODE_AFFINITY_POLICY else None)
    return () if written == HONOR else (Change(index, field, HONOR),)


def soften(constraints: Sequence[SpreadConstraint], index: int) -> Changes:
    """Make a constraint soft. Remove it if the same soft constraint exists."""
    values = soft_fields(constraints[index], constraints)
    return (Change(index),) if values is None else tuple(Change(index, *item) for item in values.items())


def with_changes(constraints: Sequence[SpreadConstraint], changes: Iterable[Change]) -> tuple[SpreadConstraint, ...]:
    """Apply the changes to the constraints."""
    kept: list[SpreadConstraint | None] = [*constraints]
    for change in changes:
        written = kept[change.index]
        if written is not None:
            kept[change.index] = replace(written, **{_NAMES[change.field]: change.value}) if change.field else None
    return tuple(constraint for constraint in kept if constraint is not None)


def template_with(template: Template, changes: Iterable[Change]) -> Template:
    """Apply the changes to the template's constraints."""
    spec = template.template.pod_spec
    spec = replace(spec, topology_spread_constraints=with_changes(spec.constraints, changes))
    return replace(template, template=replace(template.template, spec=spec))


def hard_after(constraint: Constraint, index: int, changes: Iterable[Change]) -> Constraint | None:
    """Apply changes to a hard constraint of the scheduler. None if soft or removed afterwards. Ignores selectors."""
    own = [change for change in changes if change.index == index]
    if any(change.softens for change in own):
        return None
    # Changes only ever remove minDomains, whose default is 1.
    return replace(constraint, **{_NAMES[change.field]: 1 if change.value is None else change.value for change in own})


def field_text(field: str, value: object, *constraints: SpreadConstraint) -> str:
    """The change of a field in words: ``set`` if one of the constraints has the field, even as null, else ``add``."""
    if value is None:
        return f"remove {field}"
    there = any(field in msgspec.to_builtins(constraint) for constraint in constraints)
    return f"{'set' if there else 'add'} {one_field(field, value)}"


def changes_text(changes: Changes, constraints: Sequence[SpreadConstraint]) -> str:
    """The changes in words. With several hard constraints, each by name: ``set maxSkew: 2 in zone[0]``."""
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
    """The drawback of a change. Empty if it only stops counting unusable nodes."""
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
