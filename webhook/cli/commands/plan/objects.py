"""Workloads and SpreadGroups read from files or the cluster, to print as manifests."""

from collections.abc import Mapping

from msgspec import Raw, Struct

from webhook.cli.output.terminal import Json
from webhook.core.api.types import TypeMeta
from webhook.core.api.well_known import LAST_APPLIED_ANNOTATION
from webhook.core.what_if.sources import ReplicatedSource
from webhook.core.workloads.reading import parse_object

_Value = bytes | Raw | Mapping[str, object]
_META = ("labels", "annotations")


class SourceObject(Struct, frozen=True):
    """An object with its type and origin. It is ``applied`` if the cluster has it."""

    of: TypeMeta
    value: _Value
    where: str
    applied: bool


class WrittenWorkload(Struct, frozen=True):
    """A workload read from the input, with its original object. The workload can be printed as a manifest."""

    source: ReplicatedSource
    of: TypeMeta
    value: _Value

    @property
    def name(self) -> str:
        """The workload's name."""
        return self.source.workload.meta.name

    def manifest(self, namespace: str) -> Json:
        """The object to apply."""
        return applicable(self.of, object_of(self.value), namespace)


def object_of(value: _Value) -> Mapping[str, object]:
    """Parse an object. Empty for any other JSON. Raises DecodeError if the text is not JSON."""
    decoded = parse_object(value)
    return decoded if isinstance(decoded, Mapping) else {}


def applicable(of: TypeMeta, value: Mapping[str, object], namespace: str) -> Json:
    """The object without server fields, for ``kubectl apply`` in this namespace."""
    meta = value.get("metadata")
    stated = meta if isinstance(meta, Mapping) else {}
    kept = {key: stated[key] for key in _META if stated.get(key)}
    if isinstance(annotations := kept.get("annotations"), Mapping) and LAST_APPLIED_ANNOTATION in annotations:
        kept["annotations"] = {key: text for key, text in annotations.items() if key != LAST_APPLIED_ANNOTATION}
    named = {"name": stated.get("name"), "namespace": namespace}
    return {"apiVersion": of.api_version, "kind": of.kind, "metadata": named | kept, "spec": value.get("spec")}
