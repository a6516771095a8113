"""Label selectors as written, valid or not.

`webhook.core.api.selectors` compiles valid selectors. This module checks nothing.
"""

from webhook.core.api.requirements import Requirement
from webhook.core.api.types import (
    DOES_NOT_EXIST,
    EXISTS,
    IN,
    NOT_IN,
    LabelSelector,
    LabelSelectorRequirement,
    SpreadConstraint,
)


def requirements(selector: LabelSelector | None) -> tuple[Requirement, ...]:
    """List the conditions in written order: matchLabels first, as In with one value."""
    if selector is None:
        return ()
    pairs = tuple(Requirement(key, IN, (value,)) for key, value in (selector.match_labels or {}).items())
    return (*pairs, *(as_requirement(entry) for entry in selector.match_expressions or ()))


def as_requirement(written: LabelSelectorRequirement) -> Requirement:
    """Convert an entry of matchExpressions, valid or not."""
    return Requirement(written.key, written.operator, written.values or ())


def is_refused(requirement: Requirement) -> bool:
    """Whether kube-apiserver refuses the condition's operator, or In without values."""
    return not requirement.values if requirement.operator == IN else requirement.operator not in _OF_LABELS


_OF_LABELS = frozenset({IN, NOT_IN, EXISTS, DOES_NOT_EXIST})


def selected_keys(selector: LabelSelector | None) -> frozenset[str]:
    """Collect the label keys of the selector."""
    if selector is None:
        return frozenset()
    return frozenset((*(selector.match_labels or ()), *(entry.key for entry in selector.match_expressions or ())))


def has_conditions(selector: LabelSelector | None) -> bool:
    """Whether the selector has a condition. A null or empty selector has none."""
    return selector is not None and bool(selector.match_labels or selector.match_expressions)


def without_key(selector: LabelSelector, key: str) -> LabelSelector:
    """Drop the conditions on a label."""
    pairs = {name: value for name, value in (selector.match_labels or {}).items() if name != key}
    expressions = tuple(entry for entry in selector.match_expressions or () if entry.key != key)
    return LabelSelector(match_labels=pairs or None, match_expressions=expressions or None)


def narrowed(constraint: SpreadConstraint, own: LabelSelector) -> LabelSelector:
    """Restrict a constraint's selector to the pods of the workload with the selector ``own``.

    Leave out requirements added by kube-apiserver for matchLabelKeys, because it adds them again.
    """
    selector, merged = constraint.selector or LabelSelector(), constraint.match_label_keys or ()
    expressions = [
        entry
        for entry in selector.match_expressions or ()
        if entry.key not in merged or entry.operator != IN or len(entry.values or ()) != 1
    ]
    expressions += [entry for entry in own.match_expressions or () if entry not in expressions]
    labels = {**(selector.match_labels or {}), **(own.match_labels or {})}
    return LabelSelector(match_labels=labels or None, match_expressions=tuple(expressions) or None)


def selector_as_json(selector: LabelSelector) -> dict[str, object]:
    """Convert the selector to JSON, without absent and empty fields."""
    written: dict[str, object] = {}
    if selector.match_labels:
        written["matchLabels"] = dict(selector.match_labels)
    if selector.match_expressions:
        written["matchExpressions"] = [
            {"key": entry.key, "operator": entry.operator} | ({"values": list(entry.values)} if entry.values else {})
            for entry in selector.match_expressions
        ]
    return written
