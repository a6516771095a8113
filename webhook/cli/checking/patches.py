"""Patches of a kustomization: judged by what they say, never by what they leave to their base.

Source: kustomize api/filters/patchstrategicmerge; apimachinery pkg/util/strategicpatch/patch.go (directives).
"""

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from webhook.core.api.well_known import HOSTNAME
from webhook.core.json_edits import value_at
from webhook.core.review.decision import Examination
from webhook.core.rules.rule_set import API_RULES
from webhook.core.workloads.custom_kinds import CONSTRAINTS

Json = Any  # raw JSON from outside

_DIRECTIVE = "$patch"
# What the base may say of a constraint: with these, nothing is missing.
_BASE = {
    "maxSkew": 1,
    "topologyKey": HOSTNAME,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"base": "base"}},
}
# Rules about a value alone. All others compare it with what only the base knows.
_OF_VALUES = (API_RULES - {"duplicate-constraint"}) | {
    *("unknown-field", "unread-constraints", "topology-key-typo", "topology-key-deprecated"),
}


def is_patch(value: Mapping[str, Json]) -> bool:
    """Whether an object has a directive of a strategic merge patch anywhere."""
    pending: list[Json] = [value]
    while pending:
        here = pending.pop()
        if isinstance(here, Mapping) and any(key.startswith("$") for key in here):
            return True
        pending += here.values() if isinstance(here, Mapping) else here if isinstance(here, list) else ()
    return False


def completed(value: Json, *, constraint: bool = False) -> Json:
    """The patch without directives, deletions and nulls, and with constraints as whole ones."""
    if isinstance(value, list):
        return [completed(each, constraint=constraint) for each in value]
    if not isinstance(value, Mapping):
        return value
    is_gone = value.get(_DIRECTIVE) == "delete"
    said = {} if is_gone else {key: each for key, each in value.items() if not key.startswith("$") and each is not None}
    said = {key: completed(each, constraint=key == CONSTRAINTS) for key, each in said.items()}
    return {**_BASE, **said} if constraint else said


def of_patch(examined: Examination, value: Mapping[str, Json]) -> Examination:
    """What a patch says itself: findings about values that stand in it, and that it does not delete."""
    kept = tuple(
        judged
        for judged in examined.findings
        if judged.finding.rule in _OF_VALUES and value_at(value, judged.finding.path) is not None
    )
    return structs.replace(examined, findings=kept, not_evaluated=())
