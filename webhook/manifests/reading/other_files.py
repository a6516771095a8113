"""Classify files without manifests: their type, why they are unreadable, and whether a chart's templates use a value.

A text *claims* to be a Kubernetes object if it has an apiVersion and a kind, or a pod template. Only an unreadable
claim is an input error. All other files of a repository get a note.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path, PurePath

from webhook.core.workloads.custom_kinds import CONSTRAINTS
from webhook.core.workloads.kinds import BUILT_IN_KINDS
from webhook.manifests.reading.documents import NOT_JSON, InputDocument, InputFault
from webhook.manifests.reading.files import leads_out
from webhook.manifests.reading.go_yaml import Json
from webhook.manifests.reading.yaml_scalars import UnreadableDocumentError

KUSTOMIZATION = "a kustomization; check its output: evenspread check --kustomize DIR"
LARGER_KUSTOMIZATION = "a kustomization with remote bases or Helm charts; check the output of kustomize build DIR"
TEMPLATE = "a template; check its output: helm template CHART | evenspread check -"
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
_TYPE_FIELD = re.compile(rb"""^["']?(apiVersion|kind)["']?[ \t]*:""", re.MULTILINE)
_TYPE_MEMBER = re.compile(rb'"(apiVersion|kind)"\s*:')
# An action of a template on its own line. Inside a block of text it does not break the YAML.
_ACTION_LINE = re.compile(r"^[ \t]*(?:-[ \t]+)?\{[{%]", re.MULTILINE)

_CHART = "Chart.yaml"
# A chart's templates are small. Only the first part of a larger file is read.
_MAX_TEMPLATE_BYTES = 2**20

# A key with a value printed by Go. Source: Go fmt ``printValue``, the verb %v.
_GO_VALUE = re.compile(r"^([ ]*(?:- )?)([\w-]+):\s*\[*map\[", re.MULTILINE)
_GO_MAP = re.compile(r"map\[[^\]\s:]+:")
_MOST_KEY_CHARS = 317  # of a label's key: a prefix of 253, a slash and 63
# msgspec's words for an invalid character in JSON, and the words of Go's decoder as printed by kubectl. Source:
# encoding/json/scanner.go ``stateBeginString``, ``stateEndValue``, ``stateBeginValue``.
_GO_WORDS = {
    "expected '\"'": "looking for beginning of object key string",
    "expected ':'": "after object key",
    "expected ',' or '}'": "after object key:value pair",
    "expected ',' or ']'": "after array element",
    "": "looking for beginning of value",
}


def claims(value: Mapping[str, Json]) -> bool:
    """Whether a mapping without apiVersion or kind looks like a built-in workload."""
    spec, kind = value.get("spec"), value.get("kind")
    if isinstance(spec, Mapping) and not _POD_FIELDS.isdisjoint(spec):
        return True
    return isinstance(kind, str) and kind in _KINDS and isinstance(spec, Mapping)


def why_passed_over(file: str, value: Json) -> str:
    """The note about another kind of document, such as Helm values. Empty for a manifest."""
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
    """The end of a note about an unchecked value. Empty for a value without constraints."""
    return f"; its {CONSTRAINTS} were not checked" if _has_constraints(value) else ""


def _note(what: str, value: Json) -> str:
    return f"skipped: {what}{passed_constraints(value)}"


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


def unreadable(document: InputDocument, error: UnreadableDocumentError) -> InputFault:
    """The fault for a document that is neither JSON nor YAML."""
    foreign = not _claims_in_text(document.text)
    if document.malformed and document.text[document.malformed_at :].startswith((b"//", b"/*")):
        words = _GO_WORDS.get(document.malformed.removeprefix(NOT_JSON), _GO_WORDS[""])
        message = f"{NOT_JSON}invalid character '/' {words}; JSON has no comments: remove them"
        return document.fault(message, document.malformed_at, foreign=foreign)
    if document.malformed and document.text.lstrip()[1:].lstrip().startswith(b'"'):
        return document.fault(document.malformed, document.malformed_at, foreign=foreign)
    text = document.text.decode("utf-8", "replace").removeprefix("\ufeff")
    character = text[error.index : error.index + 1] if error.index is not None else ""
    message = error.message
    if _is_template(text, error.index):
        return document.fault(TEMPLATE, error.index, foreign=True)
    if character == "\t":
        message = "a tab character; YAML is indented with spaces"
    elif message.startswith("found character that"):
        message = f"a plain text cannot start with {character}; quote it"
    elif go_text := _as_go_prints(text, error.index or 0):
        message = go_text
    return document.fault(f"not YAML: {message}", error.index, foreign=foreign)


def _as_go_prints(text: str, index: int) -> str:
    """The message for a value printed by a Helm template without toYaml: ``[map[maxSkew:1]]``."""
    start = text.rfind("\n", 0, index) + 1
    if not _GO_MAP.search(text, start, index + _MOST_KEY_CHARS):
        return ""
    # The key is on this line or the line above.
    key = _GO_VALUE.search(text, text.rfind("\n", 0, max(start - 1, 0)) + 1, index + 1)
    column, name = (len(key[1]), key[2]) if key else (len(text[start:]) - len(text[start:].lstrip()), "x")
    return f"a value printed by Go; in a Helm template write {{{{- toYaml .Values.{name} | nindent {column + 2} }}}}"


def _claims_in_text(text: bytes) -> bool:
    """Whether an unparsable text has an apiVersion and a kind."""
    pattern = _TYPE_MEMBER if text.lstrip().startswith(b"{") else _TYPE_FIELD
    return len({*pattern.findall(text)}) > 1


def _is_template(text: str, index: int | None) -> bool:
    """Whether the YAML at this character is broken by an action of a template, or by a placeholder such as ``%s``."""
    if _ACTION_LINE.search(text):
        return True
    at = index or 0
    line = text[text.rfind("\n", 0, at) + 1 :].partition("\n")[0]
    return "{{" in line or text[at : at + 1] == "%"


def chart_reads(values_file: str, name: str) -> bool:
    """Whether the chart around a values file, or a chart inside it, has a template with this name as a word."""
    chart = next((each for each in Path(values_file).absolute().parents if (each / _CHART).is_file()), None)
    return chart is not None and name in _words(chart)


@cache
def _words(chart: Path) -> frozenset[str]:
    words = set[str]()
    for path in chart.rglob("templates/**/*"):
        if path.is_file() and not leads_out(str(path)):
            with path.open("rb") as file:
                words.update(re.findall(r"\w+", file.read(_MAX_TEMPLATE_BYTES).decode("utf-8", "replace")))
    return frozenset(words)
