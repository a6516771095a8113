"""Describe and apply changes of constraints."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import fields, replace

from webhook.core.api.types import (
    HONOR,
    NODE_AFFINITY_POLICY,
    SCHEDULE_ANYWAY,
    WHEN_UNSATISFIABLE,
    LabelSelector,
    SpreadConstraint,
)
from webhook.core.scheduler.plugins.spread_constraints import Constraint
from webhook.core.workloads.workload import Template

_NAMES = {field.encode_name: field.name for field in fields(SpreadConstraint)}


class Change(Struct, frozen=True):
    """Set or remove a field of a constraint.

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

    def value_before(self, constraints: Sequence[SpreadConstraint]) -> object:
        """The field's value without the change."""
        return getattr(constraints[self.index], _NAMES[self.field])


Changes = tuple[Change, ...]


def set_honor(constraints: Sequence[SpreadConstraint], index: int, field: str) -> Changes:
    """Return the change of a node policy to Honor. Empty if it already is Honor.

    With Honor, the constraint counts only nodes usable by the pod.
    """
    change = Change(index, field, HONOR)
    written = change.value_before(constraints) or (HONOR if field == NODE_AFFINITY_POLICY else None)
    return () if written == HONOR else (change,)


def soft_fields(constraint: SpreadConstraint, every: Iterable[SpreadConstraint]) -> Mapping[str, str | None] | None:
    """Return the fields to set to make a constraint soft. None if the constraint must be removed instead.

    A value of None removes the field. ``every`` are all constraints of the pod. A soft constraint cannot have
    minDomains, and two soft constraints cannot share a topology key.

    Source: validation.go ``validateMinDomains``, ``ValidateSpreadConstraintNotRepeat``.
    """
    if sum(other.topology_key == constraint.topology_key for other in every) > 1:
        return None
    fields: dict[str, str | None] = {WHEN_UNSATISFIABLE: SCHEDULE_ANYWAY}
    return fields if constraint.min_domains is None else fields | {"minDomains": None}


def soften(constraints: Sequence[SpreadConstraint], index: int) -> Changes:
    """Return the changes that make a constraint soft. Remove it if the same soft constraint exists."""
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
    spec = template.pod.pod_spec
    spec = replace(spec, topology_spread_constraints=with_changes(spec.constraints, changes))
    return replace(template, pod=replace(template.pod, spec=spec))


def hard_after(constraint: Constraint, index: int, changes: Iterable[Change]) -> Constraint | None:
    """Return the hard constraint after its changes. None if softened or removed.

    ``index`` is the constraint's index. The changes must not change its selector.
    """
    own = [change for change in changes if change.index == index]
    if any(change.softens for change in own):
        return None
    # Changes only ever remove minDomains. Its default is 1.
    return replace(constraint, **{_NAMES[change.field]: 1 if change.value is None else change.value for change in own})
