"""Write notes about unchecked constraints in strings, chart values and PodGroups.

The effect of these constraints depends on the tool reading the object. Argo CD and Flux pass values to Helm. Argo
Workflows and kustomize patch other objects. A user may apply the text of a ConfigMap with kubectl.
"""

import re
from collections.abc import Iterator, Mapping

import msgspec

from webhook.core.json_edits import Edit, applied, written_path
from webhook.core.spelling import with_article
from webhook.core.workloads.custom_kinds import CONSTRAINTS, VALUES_KIND, holds_chart_values, may_hold_constraints
from webhook.core.workloads.kinds import group_kind
from webhook.core.workloads.layout_paths import walk
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.go_yaml import Json, read_document
from webhook.manifests.reading.manifest import Manifest
from webhook.manifests.reading.other_files import in_text
from webhook.manifests.reading.yaml_scalars import UnreadableDocumentError

# Fields with a chart's values as text. Source: argo-cd pkg/apis/application/v1alpha1 ``ApplicationSourceHelm``;
# k3s-io/helm-controller pkg/apis ``HelmChartSpec``.
_SOURCES = ("spec.source", "spec.sources[*]", "spec.template.spec.source", "spec.template.spec.sources[*]")
_VALUES_TEXTS = (*(f"{source}.helm.values" for source in _SOURCES), "spec.valuesContent")
_IN_JSON = re.compile(CONSTRAINTS.encode())
# In JSON, a key of the object itself is followed by a quote.
_IN_JSON_TEXT = re.compile(rf'{CONSTRAINTS}[^"]'.encode())
# Kyverno's policies patch other objects. ``+()`` adds an absent field. Source: kyverno api/kyverno/v1 ``Mutation``;
# pkg/engine/anchor ``AddIfNotPresent``.
_POLICY_GROUP = re.compile(r"([a-z]+\.)?kyverno\.io/")
_POLICY_PATCH = "patchstrategicmerge"
_KEYS = frozenset({CONSTRAINTS, f"+({CONSTRAINTS})"})
_PASSED = frozenset({"metadata", "status"})  # of an object: kubectl keeps the whole object in an annotation
# Texts under names chosen by the author. A Secret's data and a ConfigMap's binaryData are base64.
_DATA = {"ConfigMap": "data", "Secret": "stringData"}
# Source: k8s.io/api scheduling/v1beta1 ``PodGroupSpec``, batch/v1 ``JobSchedulingConfiguration``.
_GROUPED = "schedulingConstraints"
_GROUPING = (
    ("scheduling.k8s.io", None),
    ("batch", "Job"),
    ("batch", "CronJob"),
)  # API groups, with a kind or all kinds
_ADVICE = (
    ("values", "check the output of the chart: helm template CHART | evenspread check -"),
    ("patch", "check the patched objects"),
    ("", "check the text as a separate file"),
)


def carried(manifest: Manifest) -> Iterator[InputFault]:
    """A note for each field with unread constraints."""
    if manifest.kind == VALUES_KIND:
        return  # a note about the file names them
    yield from _of_pod_groups(manifest)
    below = "values" if holds_chart_values(manifest.api_version, manifest.kind) else ""
    if _POLICY_GROUP.match(manifest.api_version):
        below = _POLICY_PATCH
    if isinstance(manifest.value, bytes) and not (_IN_JSON if below else _IN_JSON_TEXT).search(manifest.value):
        return
    own = _DATA.get(manifest.kind)
    fields = _parsed(with_values(manifest)).items()
    value = {key: each for key, each in fields if key not in _PASSED and own in {None, key}}
    for steps in _held(value, (), below):
        field = _field(steps, manifest.kind)
        advice = next(advice for word, advice in _ADVICE if word in field.lower())
        message = f"{CONSTRAINTS} in {field} of {with_article(manifest.kind)} were not checked: {advice}"
        yield manifest.fault(written_path(steps), message, fatal=False)


def _of_pod_groups(manifest: Manifest) -> Iterator[InputFault]:
    """A note for each topology of a PodGroup: in the object itself, in a template of a Workload, or in a Job."""
    group, kind = group_kind(manifest.api_version, manifest.kind)
    if (group, None) not in _GROUPING and (group, kind) not in _GROUPING:
        return
    for steps in _keyed(_parsed(manifest.value), ()):
        field = written_path(tuple("[*]" if step[:1] == "[" else step for step in steps))
        message = f"{field} of {with_article(kind)} were not checked: no rule judges the topology of a PodGroup"
        yield manifest.fault(written_path(steps), message, fatal=False)


def _keyed(value: Json, steps: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the path of each non-empty field with a PodGroup's topology constraints."""
    if isinstance(value, list):
        value = {f"[{index}]": each for index, each in enumerate(value)}
    for key, each in value.items() if isinstance(value, dict) else ():
        if key == _GROUPED:
            yield from [(*steps, key)] if each else []
        elif key not in _PASSED:
            yield from _keyed(each, (*steps, key))


def _field(steps: tuple[str, ...], kind: str) -> str:
    """Return the field's path for a note, without keys chosen by the author, so that equal notes share a line."""
    if kind in _DATA:
        return steps[0]
    top = ("values", _POLICY_PATCH)
    end = next((end for end, step in enumerate(steps, 1) if any(word in step.lower() for word in top)), len(steps))
    return written_path(tuple("[*]" if step[:1] == "[" else step for step in steps[:end]))


def with_values(manifest: Manifest) -> bytes | Mapping[str, Json]:
    """Return the object. Replace each YAML string of Helm chart values by its parsed mapping, if readable."""
    if not holds_chart_values(manifest.api_version, manifest.kind) or not may_hold_constraints(manifest.json_text):
        return manifest.value
    value = _parsed(manifest.value)
    edits = []
    for pattern in _VALUES_TEXTS:
        for steps, text, _ in walk(value, pattern):
            if isinstance(text, str) and isinstance(read := _read(text), dict):
                edits.append(Edit(written_path(steps), read))
    return applied(value, edits) if edits else manifest.value


def _read(text: str) -> Json:
    try:
        return read_document(text.encode()).value
    except UnreadableDocumentError:
        return None


def _parsed(given: bytes | Mapping[str, Json]) -> Mapping[str, Json]:
    value: Mapping[str, Json] = msgspec.json.decode(given) if isinstance(given, bytes) else given
    return value


def _held(value: Json, steps: tuple[str, ...], below: str) -> Iterator[tuple[str, ...]]:
    """Yield the path of each string with constraints in a value.

    ``steps`` is the path of the value itself. With ``below``, also yield the path of each constraint list under a field
    with ``below`` in its name.
    """
    if isinstance(value, str):
        if in_text(value):
            yield steps
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _held(each, (*steps, f"[{index}]"), below)
    elif isinstance(value, dict):
        for key, each in value.items():
            if below and key in _KEYS and each and any(below in step.lower() for step in steps):
                yield (*steps, key)
            else:
                yield from _held(each, (*steps, key), below)
