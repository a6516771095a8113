"""Recognise files that are not manifests, and name what to check instead.

A text *claims* to be a Kubernetes object if it has an apiVersion and a kind, or a pod template. Only an unreadable
claim is an input error. All other files of a repository get a note.
"""

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from webhook.core.workloads.custom_kinds import CONSTRAINTS
from webhook.core.workloads.kinds import BUILT_IN_KINDS

Json = Any  # raw JSON from outside

KUSTOMIZATION = "a kustomization; check what it builds: evenspread check --kustomize DIR"
LARGER_KUSTOMIZATION = "a kustomization with remote bases or Helm charts; check what kustomize build DIR prints"
TEMPLATE = "a template; check what it renders: helm template CHART | evenspread check -"
VALUES = "Helm values; check what helm template CHART prints"
_KUSTOMIZATION = re.compile(r"kustomization\.ya?ml|Kustomization")
# By the name of the file: its type, and the command to check instead.
_BY_NAME = (
    (re.compile(r"(.*[-._])?values([-._].*)?\.(ya?ml|json)"), VALUES),
    (re.compile(r"Chart\.(ya?ml|lock)"), "what a Helm chart says of itself; check what helm template CHART prints"),
)
# By keys of the document: all of one row are there.
_BY_KEYS = (
    (("$schema",), "a JSON schema, or a file that names its schema"),
    (("swagger",), "an OpenAPI document"),
    (("openapi",), "an OpenAPI document"),
    (("suite", "tests"), "a helm-unittest suite; check what helm template CHART prints"),
    (("templates", "tests"), "a helm-unittest suite; check what helm template CHART prints"),
)
_OF_SERVICES = frozenset({"image", "build", "extends"})
# The field with a value that is not empty, as a key of YAML or JSON inside a text, or in the path of a JSON 6902 patch.
# Comments and prose have none.
_IN_TEXT = re.compile(
    rf"""(?:^[ \t]*(?:-[ \t]+)?|[{{,]\s*)["']?{CONSTRAINTS}["']?[ \t]*:"""
    r"""\s*(?:[|>][-+0-9]*[ \t]*\n\s*)?(?:\#[^\n]*\n\s*)*(?:-\s|\[\s*[^\]\s]|\{\s*[^}\s])"""
    rf"""|\bpath["']?[ \t]*:[ \t]*["']?/[\w/~-]*/{CONSTRAINTS}\b""",
    re.MULTILINE,
)
_KINDS = frozenset(kind for _, kind in BUILT_IN_KINDS)
_POD_FIELDS = frozenset({"template", "jobTemplate", "containers"})
_TYPE_FIELD = re.compile(rb"""^["']?(apiVersion|kind)["']?[ \t]*:""", re.MULTILINE)
_TYPE_MEMBER = re.compile(rb'"(apiVersion|kind)"\s*:')
# An action of a template as a line of its own; one inside a block of text is no fault of the YAML.
_ACTION_LINE = re.compile(r"^[ \t]*(?:-[ \t]+)?\{[{%]", re.MULTILINE)


def claims(value: Mapping[str, Json]) -> bool:
    """Whether a mapping without apiVersion or kind looks like a built-in workload."""
    spec, kind = value.get("spec"), value.get("kind")
    if isinstance(spec, Mapping) and not _POD_FIELDS.isdisjoint(spec):
        return True
    return isinstance(kind, str) and kind in _KINDS and isinstance(spec, Mapping)


def claims_in_text(text: bytes) -> bool:
    """Whether a text that cannot be parsed has an apiVersion and a kind."""
    pattern = _TYPE_MEMBER if text.lstrip().startswith(b"{") else _TYPE_FIELD
    return len({*pattern.findall(text)}) > 1


def is_template(text: str, index: int | None) -> bool:
    """Whether the YAML at this character is broken by an action of a template, or by a placeholder such as ``%s``."""
    if _ACTION_LINE.search(text):
        return True
    at = index or 0
    line = text[text.rfind("\n", 0, at) + 1 :].partition("\n")[0]
    return "{{" in line or text[at : at + 1] == "%"


def beside(file: str, value: Json) -> str:
    """The note about a document that is no manifest, such as Helm values. Empty for any other document."""
    if not isinstance(value, dict):
        return ""
    kind, version = value.get("kind"), value.get("apiVersion")
    path = PurePath(file)
    if str(version).startswith("kustomize.config.k8s.io/"):
        # The patches in a file that kustomize finds by its name are judged.
        return f"passed over: {KUSTOMIZATION}" if _KUSTOMIZATION.fullmatch(path.name) else _note(KUSTOMIZATION, value)
    if _is_text(kind) and _is_text(version) and "metadata" in value:
        return ""
    if _KUSTOMIZATION.fullmatch(path.name):
        return f"passed over: {KUSTOMIZATION}"
    what = next((what for pattern, what in _BY_NAME if pattern.fullmatch(path.name)), "")
    if not what and not (_is_text(kind) and _is_text(version)):
        what = VALUES if path.parent.name == "values" and not claims(value) else ""
        what = what or ("a Compose file" if _is_compose(value.get("services")) else "")
        what = what or next((what for keys, what in _BY_KEYS if all(key in value for key in keys)), "")
    return _note(what, value) if what else ""


def in_text(text: str) -> bool:
    """Whether a text has constraints, as a field or in a JSON 6902 patch."""
    return CONSTRAINTS in text and _IN_TEXT.search(text) is not None


def passed_constraints(value: Json) -> str:
    """The end of a note about a value that no rule reads; empty if it has no constraints."""
    return f"; its {CONSTRAINTS} were not looked at" if _has_constraints(value) else ""


def _note(what: str, value: Json) -> str:
    return f"passed over: {what}{passed_constraints(value)}"


def _is_compose(services: Json) -> bool:
    """Source: compose-spec schema/compose-spec.json ``service``: an image, or what to build or extend."""
    return isinstance(services, dict) and any(
        isinstance(each, dict) and not _OF_SERVICES.isdisjoint(each) for each in services.values()
    )


def _is_text(value: Json) -> bool:
    return isinstance(value, str) and bool(value)


def _has_constraints(value: Json) -> bool:
    """Whether there are constraints anywhere in the value, texts included."""
    if isinstance(value, dict):
        path = value.get("path")
        is_pointed_at = isinstance(path, str) and CONSTRAINTS in path.split("/")
        return is_pointed_at or bool(value.get(CONSTRAINTS)) or any(map(_has_constraints, value.values()))
    if isinstance(value, str):
        return in_text(value)
    return isinstance(value, list) and any(map(_has_constraints, value))
