"""Conditions on labels, the parts of label selectors and node selectors.

Source: k8s.io/apimachinery pkg/labels/selector.go, pkg/apis/meta/v1/helpers.go.
"""

import re
from collections.abc import Callable, Mapping

from msgspec import Struct

from webhook.core.api import gates
from webhook.core.api.go_text import json_text, quote
from webhook.core.api.label_syntax import key_faults, value_faults
from webhook.core.api.types import (
    DOES_NOT_EXIST,
    EQUALS,
    EXISTS,
    GREATER,
    IN,
    INT64_DIGITS,
    LESS,
    MAX_INT64,
    NOT_IN,
    LabelSelectorRequirement,
    NodeSelectorRequirement,
)
from webhook.core.api.version import RECORDED, KubernetesVersion

# Like strconv.ParseInt: a sign and leading zeros, but no underscores, spaces or digits of other scripts.
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)


class SelectorError(ValueError):
    """A selector rejected by kube-apiserver. ``text(version)`` returns the release's message."""

    def __init__(self, text: Callable[[KubernetesVersion], str]) -> None:
        super().__init__(text(RECORDED))
        self.text = text


class Requirement(Struct, frozen=True):
    """A condition on a label.

    Attributes:
        operator: EQUALS or an operator of the API.
        values: In written order.

    Source: labels/selector.go ``Requirement``.
    """

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet the condition. Source: labels/selector.go ``Matches``."""
        if self.operator in _POSITIVE:
            return labels.get(self.key, None) in self.values
        if self.operator == NOT_IN:
            return labels.get(self.key, None) not in self.values
        if self.operator == EXISTS:
            return self.key in labels
        if self.operator == DOES_NOT_EXIST:
            return self.key not in labels
        return len(self.values) == 1 and _is_beyond(self.operator, labels.get(self.key), self.values[0])

    @property
    def text(self) -> str:
        """Upstream's text: ``app=web``, ``tier in (a,b)``, ``!x``. Source: labels/selector.go ``String``."""
        values = ",".join(sorted(self.values))
        return {
            EQUALS: f"{self.key}={values}",
            IN: f"{self.key} in ({values})",
            NOT_IN: f"{self.key} notin ({values})",
            EXISTS: self.key,
            DOES_NOT_EXIST: f"!{self.key}",
            GREATER: f"{self.key}>{values}",
            LESS: f"{self.key}<{values}",
        }[self.operator]


_POSITIVE = frozenset({EQUALS, IN})


def compile_requirement(
    written: LabelSelectorRequirement | NodeSelectorRequirement, operators: frozenset[str], kind: str
) -> Requirement:
    """Compile one condition.

    Source: meta/v1/helpers.go ``LabelSelectorAsSelector``; nodeaffinity/nodeaffinity.go
    ``nodeSelectorRequirementsAsSelector``.
    """
    if written.operator not in operators:
        raise SelectorError(lambda _: f"{quote(written.operator)} is not {kind} operator")
    return checked_requirement(written.key, written.operator, written.values or ())


def checked_requirement(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    """Build a requirement, or raise SelectorError with the scheduler's text.

    Source: labels/selector.go ``NewRequirement``.
    """
    if _requirement_faults(key, operator, values, RECORDED):

        def text(version: KubernetesVersion) -> str:
            faults = _requirement_faults(key, operator, values, version)
            return faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"

        raise SelectorError(text)
    return Requirement(key, operator, values)


def _requirement_faults(key: str, operator: str, values: tuple[str, ...], version: KubernetesVersion) -> list[str]:
    """Source: labels/selector.go ``NewRequirement``."""
    faults = []
    if key_faults(key):
        faults.append(f"key: Invalid value: {quote(key)}: {'; '.join(key_faults(key, version))}")
    if operator in {IN, NOT_IN} and not values:
        faults.append(
            f"values: Invalid value: {_listed((), version)}: for 'in', 'notin' operators, values set can't be empty"
        )
    elif operator in {EXISTS, DOES_NOT_EXIST} and values:
        faults.append(
            f"values: Invalid value: {_listed(values, version)}: values set must be empty for exists and does not exist"
        )
    elif operator in {GREATER, LESS}:
        if len(values) != 1:
            shown = _listed(values, version)
            faults.append(f"values: Invalid value: {shown}: for 'Gt', 'Lt' operators, exactly one value is required")
        faults += [
            f"values[{index}]: Invalid value: {quote(value)}: for 'Gt', 'Lt' operators, the value must be an integer"
            for index, value in enumerate(values)
            if parse_integer(value) is None
        ]
    for index, value in enumerate(values):
        if value_faults(value):
            texts = "; ".join(value_faults(value, version))
            faults.append(f"values[{index}][{key}]: Invalid value: {quote(value)}: {texts}")
    return faults


def _listed(values: tuple[str, ...], version: KubernetesVersion) -> str:
    """Format label values as a list for an error message.

    The list is JSON, or Go's ``%#v`` in older releases.

    Source: field/errors.go ``ErrorBody``; before, ``%#v`` of fmt.
    """
    if gates.SHOWS_JSON.holds(version):
        return json_text(values or None)
    return f"[]string{{{', '.join(map(quote, values))}}}" if values else "[]string(nil)"


def parse_integer(text: str) -> int | None:
    """Parse like ``strconv.ParseInt(text, 10, 64)``, with None for an error. Source: strconv/atoi.go ``ParseInt``."""
    digits = text.lstrip("+-").lstrip("0")
    if not _INTEGER.fullmatch(text) or len(digits) > INT64_DIGITS:
        return None
    # Strip leading zeros: Python rejects integers of more than 4,300 digits.
    number = int(f"{text[0] if text[0] == '-' else ''}{digits or '0'}")
    return number if -MAX_INT64 - 1 <= number <= MAX_INT64 else None


def _is_beyond(operator: str, label: str | None, bound: str) -> bool:
    """Whether a label is an integer above (Gt) or below (Lt) the bound. Source: labels/selector.go ``Matches``."""
    value, limit = parse_integer(label or ""), parse_integer(bound)
    if value is None or limit is None:
        return False
    return (operator == GREATER and value > limit) or (operator == LESS and value < limit)
