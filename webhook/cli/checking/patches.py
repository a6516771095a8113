"""Check the patches of a kustomization without their base.

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

Json = Any  # unchecked JSON of a patch

_DIRECTIVE = "$patch"
# The fields that the base of a constraint can have. They keep rules from reporting missing fields.
_BASE = {
    "maxSkew": 1,
    "topologyKey": HOSTNAME,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"base": "base"}},
}
# The rules that do not need the base: about the place of constraints, about a whole list, about a value.
_PLACE_RULE = "unread-constraints"
_LIST_RULE = "duplicate-constraint"
_VALUE_RULES = (API_RULES - {_LIST_RULE}) | {
    *("unknown-field", _PLACE_RULE, "topology-key-typo", "topology-key-deprecated"),
}


# The kind by the path of its constraints, for a patch without a kind.
_BY_PATH = {"spec.template.spec": DEPLOYMENT, "spec.jobTemplate.spec.template.spec": CRON_JOB, "spec": POD}
# The version of a kind, for a target without one. Built-in kinds come last and win.
_VERSIONS = {kind[1]: native_version(kind) for kind in (*OPERATOR_LAYOUTS, *KINDS, *BUILT_IN_KINDS)}
# Limits of a JSON pointer: its list index and its steps. Operations beyond them are skipped.
_MAX_INDEX = 100
_MAX_STEPS = 64
_PADS: tuple[Json, ...] = (_BASE, {})
_BY_HAND = "evenspread does not edit JSON 6902 patches and kustomizations"


class Patch(Struct, frozen=True, kw_only=True):
    """A patch as an object to examine.

    Attributes:
        manifest: The object with its kind, and the positions of its fields in the patch.
        stated: The fields in a strategic merge patch. None for a JSON 6902 patch.
        operations: The operations of a JSON 6902 patch that set a value: the field's path, and the operation's index in
            the patch.
        is_editable: Whether fixes can be written into its text.
    """

    manifest: Manifest
    stated: Mapping[str, Json] | None = None
    operations: Sequence[tuple[str, int]] = ()
    is_editable: bool = True

    def judged(self, examined: Examination) -> Examination:
        """Keep only the findings about values in the patch."""
        kept = [judged for judged in examined.findings if self._covers(judged.finding.path, judged.finding.rule)]
        if not self.is_editable:
            kept = [
                structs.replace(judged, finding=structs.replace(judged.finding, edits=(), by_hand=_BY_HAND))
                for judged in kept
            ]
        return structs.replace(examined, findings=tuple(kept), not_evaluated=())

    def _covers(self, path: str, rule: str) -> bool:
        """Whether a rule's finding at a path is caused by the patch alone, for any patched object."""
        if self.stated is not None:
            return rule in _VALUE_RULES and value_at(self.stated, path) is not None
        for place, _ in self.operations:
            if _below(path, place) is not None and (
                rule in _VALUE_RULES or (rule == _LIST_RULE and not place.endswith("]"))
            ):
                return True
            if rule == _PLACE_RULE and _below(place, path) is not None:
                return True
        return False


def read_patch(manifest: Manifest, frame: Frame) -> Patch | None:
    """Read a patch of an object. None if the manifest is no patch.

    A patch is a file named by a kustomization, or a manifest with patch directives or JSON 6902 operations.
    """
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
    return Patch(manifest=_typed(manifest, whole, target, frame), stated=value, is_editable=is_editable)


def _typed(manifest: Manifest, value: Mapping[str, Json], target: TypeMeta | None, frame: Frame) -> Manifest:
    """Return a manifest with a patch's value and the patched object's type. An unknown type is guessed."""
    version, kind = manifest.api_version, manifest.kind
    embedded = frame.policy.workloads
    versions = {**_VERSIONS, **{own.kind: own.api_version for own in embedded}}
    if target is not None and target.kind and ("/" in (target.api_version or "") or target.kind in versions):
        stated = target.api_version or ""
        version, kind = stated if "/" in stated else versions[target.kind], target.kind
    elif not version and kind in versions:
        version = versions[kind]
    elif not constraint_paths(version, kind, embedded):
        fitting = (known for path, known in _BY_PATH.items() if value_at(value, f"{path}.{CONSTRAINTS}") is not None)
        if (first := next(fitting, None)) is not None:
            version, kind = native_version(first), first[1]
    if not version:
        value = {}
    value = {**value, "apiVersion": version, "kind": kind}
    return structs.replace(manifest, api_version=version, kind=kind, value=value)


def _built(patch: Sequence[Mapping[str, Json]]) -> tuple[Mapping[str, Json], list[tuple[str, int]]]:
    """Build an object by applying a JSON 6902 patch to an empty object.

    Returns the object, and the path and index of each applied operation. If the patch sets single fields of a
    constraint, the constraint's other fields are taken from `_BASE`.
    """
    built: dict[str, Json] = {}
    operations = list[tuple[str, int]]()
    for number, operation in enumerate(patch):
        steps = [step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")[1:]]
        if operation["op"] not in {"add", "replace"} or not 0 < len(steps) <= _MAX_STEPS:
            continue
        if path := _set(built, steps, copy.deepcopy(operation.get("value")), adds=operation["op"] == "add"):
            operations.append((path, number))
    return built, operations


def _set(built: Json, steps: Sequence[str], value: Json, *, adds: bool) -> str:
    """Set a value, or add it to a list. Returns its path. Empty if earlier operations make that impossible."""
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
    """Return the rest of a field path after the parent path ``place``. None for a field outside the parent."""
    rest = path.removeprefix(place)
    return rest if path.startswith(place) and rest[:1] in {"", ".", "["} else None


def _located(manifest: Manifest, operations: Sequence[tuple[str, int]], path: str) -> FieldPosition:
    """Return the position of a field in the patch file.

    This is the field's line in the last operation with the field in its value. Otherwise, it is the ``path`` of the
    first operation on a subfield. Without such an operation, it is the list of operations.
    """
    for place, number in reversed(operations):
        if (rest := _below(path, place)) is not None:
            return manifest.locate(f"{OPERATIONS}[{number}].value{rest}")
    for place, number in operations:
        if _below(place, path) is not None:
            return manifest.locate(f"{OPERATIONS}[{number}].path")
    return manifest.locate(OPERATIONS)


def _has_directive(value: Mapping[str, Json]) -> bool:
    """Whether an object contains a directive of a strategic merge patch."""
    pending: list[Json] = [value]
    while pending:
        here = pending.pop()
        if isinstance(here, Mapping) and any(key.startswith("$") for key in here):
            return True
        pending += here.values() if isinstance(here, Mapping) else here if isinstance(here, list) else ()
    return False


def _completed(value: Json, *, constraint: bool = False) -> Json:
    """Return the patch without ``$`` directives, deleted objects and null fields.

    Constraints get missing fields from ``_BASE``. ``constraint`` is whether ``value`` is a constraint or a list of
    constraints.
    """
    if isinstance(value, list):
        return [_completed(item, constraint=constraint) for item in value]
    if not isinstance(value, Mapping):
        return value
    is_deleted = value.get(_DIRECTIVE) == "delete"
    completed = {
        key: _completed(field, constraint=key == CONSTRAINTS)
        for key, field in value.items()
        if not (is_deleted or key.startswith("$") or field is None)
    }
    return {**_BASE, **completed} if constraint else completed
