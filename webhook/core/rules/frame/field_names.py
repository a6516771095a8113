"""Find the intended field of a constraint for an unknown key, by its name and value."""

from collections.abc import Callable, Mapping

from webhook.core.api.label_syntax import key_faults
from webhook.core.api.types import (
    DO_NOT_SCHEDULE,
    HONOR,
    IGNORE,
    SCHEDULE_ANYWAY,
    LabelSelector,
    LabelSelectorRequirement,
    SpreadConstraint,
)
from webhook.core.api.version import RECORDED
from webhook.core.apiserver.go_json import go_type, is_plain
from webhook.core.spelling import nearest
from webhook.core.workloads.custom_kinds import CONSTRAINTS

CONSTRAINT_FIELDS = frozenset(SpreadConstraint.__struct_encode_fields__)
SELECTOR_FIELDS = frozenset(LabelSelector.__struct_encode_fields__)
REQUIREMENT_FIELDS = frozenset(LabelSelectorRequirement.__struct_encode_fields__)
_FIELDS = (CONSTRAINTS, *sorted(CONSTRAINT_FIELDS), *sorted(SELECTOR_FIELDS), *sorted(REQUIREMENT_FIELDS))
_SLIPS = 2  # The most wrong letters of a misspelt name. Case does not count.
# Shorter names are skipped: two wrong letters leave too little to recognise.
_BY_LETTERS = {each.lower(): each for each in _FIELDS if len(each) // 2 > _SLIPS}
# A longer name resembles no field. Comparing takes time per letter, and the author chooses the length.
_MAX_COMPARED_LETTERS = 2 * len(CONSTRAINTS)
_MIN_PART_LETTERS = 4  # A name of four letters can be a part of a field's name: `skew` of maxSkew.
_SHARED_START = 0.6  # The least shared start of a field's name with another ending: `whenUnsatisfied`.


def intended_field(name: str) -> str:
    """Return the likely intended field. Empty if none is similar."""
    written = name.lower()
    if len(written) > _MAX_COMPARED_LETTERS:
        return ""
    near = nearest(written, _BY_LETTERS, _SLIPS)
    return "" if near is None else _BY_LETTERS[near]


def intended_field_of_value(name: str, value: object) -> str:
    """Return the likely intended constraint field for this name and value.

    Empty if unknown. The result is `intended_field`, else the only field with a similar name that accepts the value.
    """
    letters = "".join(filter(str.isalnum, name[:_MAX_COMPARED_LETTERS])).lower()
    alike = [field for field in _FITS if fits(field, value) and _resembles(letters, field.lower())]
    if value in _ACTIONS and not alike:
        alike = ["whenUnsatisfiable"]  # no other field has such a value
    return intended_field(name) or (alike[0] if len(alike) == 1 else "")


def fits(field: str, value: object) -> bool:
    """Whether Kubernetes accepts the value in this field of a constraint or of its selector."""
    return field in _FITS and _FITS[field](value)


def _resembles(letters: str, field: str) -> bool:
    if len(letters) >= _MIN_PART_LETTERS and (letters in field or field in letters):
        return True
    shared = next((at for at, (one, other) in enumerate(zip(letters, field, strict=False)) if one != other), 0)
    return shared >= _SHARED_START * len(field)


def _typed(expression: str) -> Callable[[object], bool]:
    return lambda value: value is not None and is_plain(value, go_type(expression, RECORDED))


def _positive(value: object) -> bool:
    return _typed("int32")(value) and isinstance(value, int) and value > 0


_ACTIONS = (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)
_FITS: Mapping[str, Callable[[object], bool]] = {
    "maxSkew": _positive,
    "topologyKey": lambda value: isinstance(value, str) and bool(value) and not key_faults(value),
    "whenUnsatisfiable": lambda value: value in _ACTIONS,
    "labelSelector": lambda value: bool(value) and _typed("v1.LabelSelector")(value),
    "minDomains": _positive,
    "nodeAffinityPolicy": lambda value: value in (HONOR, IGNORE),
    "nodeTaintsPolicy": lambda value: value in (HONOR, IGNORE),
    "matchLabelKeys": lambda value: bool(value) and _typed("[]string")(value),
    "matchLabels": lambda value: bool(value) and _typed("map[string]string")(value),
    "matchExpressions": lambda value: bool(value) and _typed("[]v1.LabelSelectorRequirement")(value),
}
