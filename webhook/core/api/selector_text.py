"""Label selectors in messages."""

from collections.abc import Mapping

from webhook.core.api.requirements import Requirement
from webhook.core.api.types import DOES_NOT_EXIST, EQUALS, EXISTS, GREATER, IN, LESS, NOT_IN
from webhook.core.text import one_line, quoted


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
    """Describe a label requirement for a message, as the object of "wants".

    For example ``app=web``, ``tier other than a`` or ``no label x``. Keys and values are not quoted.
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
