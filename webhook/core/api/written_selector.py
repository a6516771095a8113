"""Label selectors as written: their conditions, and wording for messages.

`webhook.core.api.selectors` compiles valid selectors. This module checks nothing.
"""

from collections.abc import Mapping

from webhook.core.api.requirements import Requirement
from webhook.core.api.types import (
    DOES_NOT_EXIST,
    EQUALS,
    EXISTS,
    GREATER,
    IN,
    LESS,
    NOT_IN,
    LabelSelector,
    LabelSelectorRequirement,
)
from webhook.core.text import one_line, quoted


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


def pairs_text(labels: Mapping[str, str]) -> str:
    """Write labels for a warning: ``app=web,tier=a``."""
    return one_line(",".join(f"{quoted(key)}={quoted(value)}" for key, value in labels.items()))


def short_text(requirement: Requirement) -> str:
    """Write a condition in kubectl's style: ``app=web``, ``tier notin (a,b)``, ``!x``."""
    key, values = quoted(requirement.key), ",".join(map(quoted, requirement.values))
    match requirement.operator:
        case "In" if len(requirement.values) == 1:
            return f"{key}={values}"
        case "In" | "NotIn":
            return f"{key} {requirement.operator.lower()} ({values})"
        case "Exists":
            return key
        case _:
            return f"!{key}"


def requirement_in_words(requirement: Requirement) -> str:
    """Write a compiled condition for a sentence, after "wants".

    For example ``app=web``, ``tier other than a`` or ``no label x``. Names from users stay unquoted.
    """
    key, values = requirement.key, ", ".join(requirement.values)
    several = len(requirement.values) != 1
    return {
        EQUALS: f"{key}={values}",
        IN: f"{key} in ({values})" if several else f"{key}={values}",
        NOT_IN: f"{key} not in ({values})" if several else f"{key} other than {values}",
        EXISTS: f"a label {key}",
        DOES_NOT_EXIST: f"no label {key}",
        GREATER: f"{key} above {values}",
        LESS: f"{key} below {values}",
    }[requirement.operator]
