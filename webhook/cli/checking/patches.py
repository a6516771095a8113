"""Check patches of a kustomization by their own content, without their base.

Source: kustomize api/filters/patchstrategicmerge, api/filters/patchjson6902, api/internal/builtins/PatchTransformer.go;
apimachinery pkg/util/strategicpatch/patch.go (directives); RFC 6901 and 6902.
"""

import copy
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct, structs

from webhook.cli.frame import Frame
from webhook.core.api.types import TypeMeta
from webhook.core.api.well_known import HOSTNAME
from webhook.core.json_edits import value_at
from webhook.core.review.decision import Examination
from webhook.core.rules.rule_set import API_RULES
from webhook.core.workloads.custom_kinds import CONSTRAINTS
from webhook.core.workloads.kind_fields import constraint_paths
from webhook.core.workloads.kinds import BUILT_IN_KINDS, CRON_JOB, DEPLOYMENT, KINDS, POD, native_version
from webhook.core.workloads.operators import OPERATOR_LAYOUTS
from webhook.manifests.reading.kustomizations import is_kustomization
from webhook.manifests.reading.manifest import JSON_PATCH, OPERATIONS, FieldPosition, Manifest

Json = Any  # raw JSON from outside

_DIRECTIVE = "$patch"
# Fields of a constraint that the base may have. With these, no field is missing.
_BASE = {
    "maxSkew": 1,
    "topologyKey": HOSTNAME,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"base": "base"}},
}
# Rules about a value alone. All others need the base.
_OF_PLACES = "unread-constraints"
_OF_LISTS = "duplicate-constraint"
_OF_VALUES = (API_RULES - {_OF_LISTS}) | {
    *("unknown-field", _OF_PLACES, "topology-key-typo", "topology-key-deprecated"),
}


# The kinds by the path of their constraints, for a patch without a kind.
_BY_PATH = {
    "spec.template.spec": DEPLOYMENT,
    "spec.jobTemplate.spec.template.spec": CRON_JOB,
    "spec": POD,
}
# Versions for a target without one. Built-in kinds come last and win.
_VERSIONS = {each[1]: native_version(each) for each in (*OPERATOR_LAYOUTS, *KINDS, *BUILT_IN_KINDS)}
# The limits of a pointer: its list index and its steps. Longer ones are skipped.
_MAX_INDEX = 100
_MAX_STEPS = 64
_PADS: tuple[Json, ...] = (_BASE, {})
_BY_HAND = "fixes are not written into JSON 6902 patches and kustomizations"


class Patch(Struct, frozen=True, kw_only=True):
    """A patch as an object to examine.

    Attributes:
        manifest: The object with its kind, and the places of its fields in the patch.
        said: The object as far as the patch states it: None where only its operations know.
        operations: Path of the object and index, of each operation of a JSON 6902 patch that sets a value.
        is_editable: Whether fixes can be written into its text.
    """

    manifest: Manifest
    said: Mapping[str, Json] | None = None
    operations: Sequence[tuple[str, int]] = ()
    is_editable: bool = True

    def judged(self, examined: Examination) -> Examination:
        """The findings about values in the patch itself."""
        kept = [each for each in examined.findings if self._says(each.finding.path, each.finding.rule)]
        if not self.is_editable:
            kept = [
                structs.replace(each, finding=structs.replace(each.finding, edits=(), by_hand=_BY_HAND))
                for each in kept
            ]
        return structs.replace(examined, findings=tuple(kept), not_evaluated=())

    def _says(self, path: str, rule: str) -> bool:
        if self.said is not None:
            return rule in _OF_VALUES and value_at(self.said, path) is not None
        for place, _ in self.operations:
            if _below(path, place) is not None and (
                rule in _OF_VALUES or (rule == _OF_LISTS and not place.endswith("]"))
            ):
                return True
            if rule == _OF_PLACES and _below(place, path) is not None:
                return True
        return False


def read_patch(manifest: Manifest, frame: Frame) -> Patch | None:
    """The patch that an object is: a kustomization names it, or it has a directive or operations. None for others."""
    file = os.path.realpath(manifest.file)
    target = frame.patches.get(file)
    is_editable = not is_kustomization(manifest.file)
    if manifest.kind == JSON_PATCH:
        value: Mapping[str, Json] = msgspec.json.decode(manifest.json_text)
        built, operations = _built(value[OPERATIONS])
        typed = _typed(manifest, built, target, frame)
        typed = structs.replace(typed, locate=lambda path: _located(manifest, operations, path))
        return Patch(manifest=typed, operations=operations, is_editable=False)
    if file not in frame.patches and b'"$' not in manifest.json_text:
        return None
    value = msgspec.json.decode(manifest.json_text)
    if file not in frame.patches and not _has_directive(value):
        return None
    whole = {} if value.get(_DIRECTIVE) == "delete" else _completed(value)
    return Patch(manifest=_typed(manifest, whole, target, frame), said=value, is_editable=is_editable)


def _typed(manifest: Manifest, value: Mapping[str, Json], target: TypeMeta | None, frame: Frame) -> Manifest:
    """The manifest with the value, and with the type of the target, or one that fits the value where none is known."""
    version, kind = manifest.api_version, manifest.kind
    embedded = frame.policy.workloads
    versions = {**_VERSIONS, **{each.kind: each.api_version for each in embedded}}
    if target is not None and target.kind and ("/" in (target.api_version or "") or target.kind in versions):
        stated = target.api_version or ""
        version, kind = stated if "/" in stated else versions[target.kind], target.kind
    elif not version and kind in versions:
        version = versions[kind]
    elif not constraint_paths(version, kind, embedded):
        fitting = (each for path, each in _BY_PATH.items() if value_at(value, f"{path}.{CONSTRAINTS}") is not None)
        if (found := next(fitting, None)) is not None:
            version, kind = native_version(found), found[1]
    if not version:
        value = {}
    value = {**value, "apiVersion": version, "kind": kind}
    return structs.replace(manifest, api_version=version, kind=kind, value=value)


def _built(patch: Sequence[Mapping[str, Json]]) -> tuple[Mapping[str, Json], list[tuple[str, int]]]:
    """The object that the operations add up to: what they set, with constraints of the base where they set a field."""
    built: dict[str, Json] = {}
    operations = list[tuple[str, int]]()
    for number, each in enumerate(patch):
        steps = [step.replace("~1", "/").replace("~0", "~") for step in each["path"].split("/")[1:]]
        if each["op"] not in {"add", "replace"} or not 0 < len(steps) <= _MAX_STEPS:
            continue
        if path := _set(built, steps, copy.deepcopy(each.get("value")), adds=each["op"] == "add"):
            operations.append((path, number))
    return built, operations


def _set(built: Json, steps: Sequence[str], value: Json, *, adds: bool) -> str:
    """Set one value, or add it to a list; returns its path, empty if the operations before leave no place for it."""
    here, path = built, ""
    for step, following in zip(steps, (*steps[1:], None), strict=True):
        is_last = following is None
        if isinstance(here, list):
            index = len(here) if step == "-" else int(step) if re.fullmatch("[0-9]{1,3}", step) else _MAX_INDEX
            if adds and is_last and index < len(here) and here[index] not in _PADS:
                index = len(here)
            if index >= _MAX_INDEX:
                return ""
            in_constraints = path.endswith(CONSTRAINTS)
            here += [copy.deepcopy(_BASE) if in_constraints else {} for _ in range(len(here), index + (not is_last))]
            here[index : index + 1] = [value] if is_last else [here[index]]
            here, path = here[index], f"{path}[{index}]"
        elif isinstance(here, dict):
            empty: Json = [] if following is not None and (re.fullmatch("-|[0-9]+", following)) else {}
            here = here.setdefault(step, empty) if not is_last else here.update({step: value})
            path = f"{path}.{step}".removeprefix(".")
        else:
            return ""
    return path


def _below(path: str, place: str) -> str | None:
    """The rest of a path below another one; None if it is elsewhere."""
    rest = path.removeprefix(place)
    return rest if path.startswith(place) and rest[:1] in {"", ".", "["} else None


def _located(manifest: Manifest, operations: Sequence[tuple[str, int]], path: str) -> FieldPosition:
    """The place in the patch of a field of the object: in the last operation that sets it."""
    for place, number in reversed(operations):
        if (rest := _below(path, place)) is not None:
            return manifest.locate(f"{OPERATIONS}[{number}].value{rest}")
    for place, number in operations:
        if _below(place, path) is not None:
            return manifest.locate(f"{OPERATIONS}[{number}].path")
    return manifest.locate(OPERATIONS)


def _has_directive(value: Mapping[str, Json]) -> bool:
    """Whether an object has a directive of a strategic merge patch anywhere."""
    pending: list[Json] = [value]
    while pending:
        here = pending.pop()
        if isinstance(here, Mapping) and any(key.startswith("$") for key in here):
            return True
        pending += here.values() if isinstance(here, Mapping) else here if isinstance(here, list) else ()
    return False


def _completed(value: Json, *, constraint: bool = False) -> Json:
    """The patch without directives, deletions and nulls, and with constraints as whole ones."""
    if isinstance(value, list):
        return [_completed(each, constraint=constraint) for each in value]
    if not isinstance(value, Mapping):
        return value
    is_gone = value.get(_DIRECTIVE) == "delete"
    said = {} if is_gone else {key: each for key, each in value.items() if not key.startswith("$") and each is not None}
    said = {key: _completed(each, constraint=key == CONSTRAINTS) for key, each in said.items()}
    return {**_BASE, **said} if constraint else said
