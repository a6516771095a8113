"""A label selector as written: its conditions, and their wording in messages.

`webhook.core.api.selectors` compiles what kube-apiserver accepts. Here nothing is checked.
"""

from collections.abc import Mapping

from webhook.core.api.selectors import (
    DOES_NOT_EXIST,
    EQUALS,
    EXISTS,
    GREATER,
    IN,
    LESS,
    NOT_IN,
    Requirement,
)
from webhook.core.api.types import LabelSelector, LabelSelectorRequirement
from webhook.core.text import one_line, quoted


def requirements(selector: LabelSelector | None) -> tuple[Requirement, ...]:
    """The conditions in the order written. matchLabels come first, as In with one value."""
    if selector is None:
        return ()
    pairs = tuple(Requirement(key, IN, (value,)) for key, value in (selector.match_labels or {}).items())
    return (*pairs, *(as_requirement(each) for each in selector.match_expressions or ()))


def as_requirement(written: LabelSelectorRequirement) -> Requirement:
    """The entry of matchExpressions as a condition, valid or not."""
    return Requirement(written.key, written.operator, written.values or ())


def is_refused(requirement: Requirement) -> bool:
    """Whether no label could meet it because kube-apiserver refuses it: an unknown operator, or In without values."""
    return not requirement.values if requirement.operator == IN else requirement.operator not in _OF_LABELS


_OF_LABELS = frozenset({IN, NOT_IN, EXISTS, DOES_NOT_EXIST})


def selected_keys(selector: LabelSelector | None) -> frozenset[str]:
    """The label keys in the selector."""
    if selector is None:
        return frozenset()
    return frozenset((*(selector.match_labels or ()), *(each.key for each in selector.match_expressions or ())))


def has_conditions(selector: LabelSelector | None) -> bool:
    """Whether it is neither null nor empty."""
    return selector is not None and bool(selector.match_labels or selector.match_expressions)


def without_key(selector: LabelSelector, key: str) -> LabelSelector:
    """The selector without the conditions on one label."""
    pairs = {name: value for name, value in (selector.match_labels or {}).items() if name != key}
    expressions = tuple(each for each in selector.match_expressions or () if each.key != key)
    return LabelSelector(match_labels=pairs or None, match_expressions=expressions or None)


def selector_as_json(selector: LabelSelector) -> dict[str, object]:
    """The selector as the API has it, without what is absent or empty."""
    written: dict[str, object] = {}
    if selector.match_labels:
        written["matchLabels"] = dict(selector.match_labels)
    if selector.match_expressions:
        written["matchExpressions"] = [
            {"key": each.key, "operator": each.operator} | ({"values": list(each.values)} if each.values else {})
            for each in selector.match_expressions
        ]
    return written


def pairs_text(labels: Mapping[str, str]) -> str:
    """Labels as a warning says them: ``app=web,tier=a``."""
    return one_line(",".join(f"{quoted(key)}={quoted(value)}" for key, value in labels.items()))


def short_text(requirement: Requirement) -> str:
    """A condition as a warning says it, much as kubectl takes it: ``app=web``, ``tier notin (a,b)``, ``!x``."""
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
    """A condition in a sentence, after "wants": ``app=web``, ``tier other than a``, ``no label x``.

    Shape: of a compiled requirement; names from outside are as they are.
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
