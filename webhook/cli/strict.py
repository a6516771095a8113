"""Unknown fields around spread constraints: kube-apiserver drops them with a warning, and kubectl refuses them.

Source: apimachinery's strict decoding, ``fieldValidation=Warn`` and ``Strict``.
"""

import re
from collections.abc import Iterator

import msgspec

from webhook.cli.manifests import Json, Manifest
from webhook.core import gojson
from webhook.core.kinds import Workload
from webhook.core.model import LabelSelector, LabelSelectorRequirement, SpreadConstraint

_UNKNOWN = re.compile(r'unknown field "(.*topologyspreadconstraint.*)"', re.IGNORECASE | re.DOTALL)
_FIELD = re.compile(rb'"([^"]*topologyspread[^"]*)":', re.IGNORECASE)
_CONSTRAINTS = "topologySpreadConstraints"
_KNOWN = {
    "": frozenset(SpreadConstraint.__struct_encode_fields__),
    "labelSelector": frozenset(LabelSelector.__struct_encode_fields__),
    "matchExpressions": frozenset(LabelSelectorRequirement.__struct_encode_fields__),
}


def unknown_fields(manifest: Manifest, workload: Workload) -> Iterator[tuple[str, str]]:
    """Path and kube-apiserver's words of each unknown field in the constraints, and of constraints misspelt as a whole.

    Shape: ``workload`` is what was made of the object; only of built-in kinds does kube-apiserver know the fields.
    """
    if not workload.built_in:
        return
    raw = manifest.value if isinstance(manifest.value, bytes) else msgspec.json.encode(manifest.value)
    if not _suspicious(raw, manifest.value, workload):
        return
    for text in gojson.decode(gojson.read(raw), f"v1.{workload.kind}").strict:
        found = _UNKNOWN.fullmatch(text)
        if found:
            yield found[1], text


def _suspicious(raw: bytes, value: Json, workload: Workload) -> bool:
    """Whether there can be an unknown field: reading by Go's rules costs more than all else that is done here."""
    fields = _FIELD.findall(raw)
    if not fields:
        return False
    if isinstance(value, bytes):
        value = msgspec.json.decode(value)
    lists = [_constraints(value, template.path) for template in workload.templates]
    if fields != [_CONSTRAINTS.encode()] * len([each for each in lists if each is not None]):
        return True
    return any(_has_unknown(each, "") for each in lists)


def _constraints(value: Json, path: str) -> Json:
    for name in (*path.split("."), "spec", _CONSTRAINTS):
        if name:
            value = value.get(name) if isinstance(value, dict) else None
    return value


def _has_unknown(value: Json, name: str) -> bool:
    if isinstance(value, list):
        return any(_has_unknown(each, name) for each in value)
    known = _KNOWN.get(name)
    if known is None or not isinstance(value, dict):
        return False
    return not known.issuperset(value) or any(_has_unknown(inner, key) for key, inner in value.items())
