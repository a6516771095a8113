"""One change of a constraint, the constraints after it, and its words: ``set maxSkew: 2``, ``remove minDomains``."""

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
_NAMES = {each.encode_name: each.name for each in fields(SpreadConstraint)}


class Change(Struct, frozen=True):
    """One field of one constraint is set or removed.

    Args:
        index: The constraint's index in the pod or the template.
        field: The API's name. Empty removes the whole constraint.
        value: None removes the field.
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
    """A field by the API's name."""
    return getattr(constraint, _NAMES[field])


def honored(constraints: Sequence[SpreadConstraint], index: int, field: str) -> Changes:
    """Set a node policy to Honor, so that only nodes count that the pod can use; nothing where it is Honor."""
    written = value_of(constraints[index], field) or (HONOR if field == NODE_AFFINITY_POLICY else None)
    return () if written == HONOR else (Change(index, field, HONOR),)


def softened(constraints: Sequence[SpreadConstraint], index: int) -> Changes:
    """Make a constraint soft, or remove it, where it has a soft twin."""
    values = soft_fields(constraints[index], constraints)
    return (Change(index),) if values is None else tuple(Change(index, *each) for each in values.items())


def with_changes(constraints: Sequence[SpreadConstraint], changes: Iterable[Change]) -> tuple[SpreadConstraint, ...]:
    """The constraints after the changes."""
    kept: list[SpreadConstraint | None] = [*constraints]
    for each in changes:
        written = kept[each.index]
        if written is not None:
            kept[each.index] = replace(written, **{_NAMES[each.field]: each.value}) if each.field else None
    return tuple(each for each in kept if each is not None)


def template_with(template: Template, changes: Iterable[Change]) -> Template:
    """The template with its constraints after the changes."""
    spec = template.template.pod_spec
    spec = replace(spec, topology_spread_constraints=with_changes(spec.constraints, changes))
    return replace(template, template=replace(template.template, spec=spec))


def hard_after(constraint: Constraint, index: int, changes: Iterable[Change]) -> Constraint | None:
    """A hard constraint of the scheduler after changes of other fields than selectors; None if soft or removed."""
    own = [each for each in changes if each.index == index]
    if any(each.softens for each in own):
        return None
    # Only minDomains is ever removed. Without it one domain is enough.
    return replace(constraint, **{_NAMES[each.field]: 1 if each.value is None else each.value for each in own})


def field_text(field: str, value: object, *constraints: SpreadConstraint) -> str:
    """One field in these constraints: ``set`` where one of them has it, if only as null."""
    if value is None:
        return f"remove {field}"
    there = any(field in msgspec.to_builtins(each) for each in constraints)
    return f"{'set' if there else 'add'} {one_field(field, value)}"


def in_words(changes: Changes, constraints: Sequence[SpreadConstraint]) -> str:
    """The changes in the constraints of a pod, by name if several are hard: ``set maxSkew: 2 in zone[0]``."""
    parts: dict[str, list[str]] = {}
    for change in changes:
        name = constraint_name(constraints[change.index].topology_key or "", change.index)
        text = field_text(change.field, change.value, constraints[change.index]) if change.field else f"remove {name}"
        parts.setdefault(text, []).append(name)
    if sum(each.hard for each in constraints) == 1:
        return together([*parts])
    by_names: dict[tuple[str, ...], list[str]] = {}
    for text, names in parts.items():
        by_names.setdefault(() if text.startswith("remove ") and "[" in text else tuple(names), []).append(text)
    return together(
        f"{together(texts)}{f' in {together(names)}' if names else ''}" for names, texts in by_names.items()
    )


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
