"""Recognise files that are not manifests, such as Helm values.

The command line skips these files with a note. For Helm values, also find out whether a template of the chart uses a
field.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path, PurePath

from webhook.core.workloads.custom_kinds import CONSTRAINTS
from webhook.core.workloads.kinds import BUILT_IN_KINDS
from webhook.manifests.reading.files import leads_out
from webhook.manifests.reading.go_yaml import Json

KUSTOMIZATION = "a kustomization; check its output: evenspread check --kustomize DIR"
LARGER_KUSTOMIZATION = "a kustomization with remote bases or Helm charts; check the output of kustomize build DIR"
VALUES = "Helm values; check the output of helm template CHART"
_KUSTOMIZATION = re.compile(r"kustomization\.ya?ml|Kustomization")
# By the name of the file: its type, and the command to check instead.
_BY_NAME = (
    (re.compile(r"(.*[-._])?values([-._].*)?\.(ya?ml|json)"), VALUES),
    (re.compile(r"Chart\.(ya?ml|lock)"), "metadata of a Helm chart; check the output of helm template CHART"),
)
# By the document's keys. All keys of a row must be present.
_BY_KEYS = (
    (("$schema",), "a JSON schema, or a file with a $schema"),
    (("swagger",), "an OpenAPI document"),
    (("openapi",), "an OpenAPI document"),
    (("suite", "tests"), "a helm-unittest suite; check the output of helm template CHART"),
    (("templates", "tests"), "a helm-unittest suite; check the output of helm template CHART"),
)
_OF_SERVICES = frozenset({"image", "build", "extends"})
# The field with a non-empty value: a key of YAML or JSON inside a text, or the path of a JSON 6902 patch. Comments
# and prose do not match.
_IN_TEXT = re.compile(
    rf"""(?:^[ \t]*(?:-[ \t]+)?|[{{,]\s*)["']?{CONSTRAINTS}["']?[ \t]*:"""
    r"""\s*(?:[|>][-+0-9]*[ \t]*\n\s*)?(?:\#[^\n]*\n\s*)*(?:-\s|\[\s*[^\]\s]|\{\s*[^}\s])"""
    rf"""|\bpath["']?[ \t]*:[ \t]*["']?/[\w/~-]*/{CONSTRAINTS}\b""",
    re.MULTILINE,
)
_KINDS = frozenset(kind for _, kind in BUILT_IN_KINDS)
_POD_FIELDS = frozenset({"template", "jobTemplate", "containers"})
_CHART = "Chart.yaml"
# A chart's templates are small. Only the first part of a larger file is read.
_MAX_TEMPLATE_BYTES = 2**20


def claims(value: Mapping[str, Json]) -> bool:
    """Whether a mapping without apiVersion or kind looks like a built-in workload."""
    spec, kind = value.get("spec"), value.get("kind")
    if isinstance(spec, Mapping) and not _POD_FIELDS.isdisjoint(spec):
        return True
    return isinstance(kind, str) and kind in _KINDS and isinstance(spec, Mapping)


def why_passed_over(file: str, value: Json) -> str:
    """Return the note why a document is skipped, for example "Helm values". Empty for a manifest."""
    if not isinstance(value, dict):
        return ""
    kind, version = value.get("kind"), value.get("apiVersion")
    path = PurePath(file)
    if str(version).startswith("kustomize.config.k8s.io/"):
        # In a file with a kustomization's name, kustomize applies the patches, so they are checked.
        return f"skipped: {KUSTOMIZATION}" if _KUSTOMIZATION.fullmatch(path.name) else _note(KUSTOMIZATION, value)
    if _is_text(kind) and _is_text(version) and "metadata" in value:
        return ""
    if _KUSTOMIZATION.fullmatch(path.name):
        return f"skipped: {KUSTOMIZATION}"
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
    """Return the end of the note about a skipped file with unchecked constraints.

    Empty for a file without constraints.
    """
    return f"; its {CONSTRAINTS} were not checked" if _has_constraints(value) else ""


def _note(what: str, value: Json) -> str:
    return f"skipped: {what}{passed_constraints(value)}"


def _is_compose(services: Json) -> bool:
    """Whether some service has the field ``image``, ``build`` or ``extends``.

    Source: compose-spec schema/compose-spec.json ``service``.
    """
    return isinstance(services, dict) and any(
        isinstance(service, dict) and not _OF_SERVICES.isdisjoint(service) for service in services.values()
    )


def _is_text(value: Json) -> bool:
    return isinstance(value, str) and bool(value)


def _has_constraints(value: Json) -> bool:
    """Whether constraints occur anywhere in a YAML value, including strings and the paths of JSON patches."""
    if isinstance(value, dict):
        path = value.get("path")
        is_pointed_at = isinstance(path, str) and CONSTRAINTS in path.split("/")
        return is_pointed_at or bool(value.get(CONSTRAINTS)) or any(map(_has_constraints, value.values()))
    if isinstance(value, str):
        return in_text(value)
    return isinstance(value, list) and any(map(_has_constraints, value))


def chart_reads(values_file: str, name: str) -> bool:
    """Whether a template of the values file's Helm chart contains this name as a word.

    Templates of charts inside that chart count too.
    """
    chart = next((parent for parent in Path(values_file).absolute().parents if (parent / _CHART).is_file()), None)
    return chart is not None and name in _words(chart)


@cache
def _words(chart: Path) -> frozenset[str]:
    words = set[str]()
    for path in chart.rglob("templates/**/*"):
        if path.is_file() and not leads_out(str(path)):
            with path.open("rb") as file:
                words.update(re.findall(r"\w+", file.read(_MAX_TEMPLATE_BYTES).decode("utf-8", "replace")))
    return frozenset(words)
