"""An object as written, with the fields that kube-apiserver drops."""

import re
from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Struct

from webhook.core.api.types import SpreadConstraint, TypeMeta
from webhook.core.api.version import RECORDED
from webhook.core.apiserver.decoding import DecodeError, as_go_reads
from webhook.core.apiserver.go_json import go_type, is_plain
from webhook.core.cached_property import cached_property
from webhook.core.json_edits import value_at
from webhook.core.workloads.custom_kinds import EmbeddedKind
from webhook.core.workloads.kinds import group_of
from webhook.core.workloads.reading import parse_object
from webhook.core.workloads.workload import Workload

_UNKNOWN = re.compile(r'unknown field "(.*)"', re.DOTALL)
_TEMPLATE = "v1.PodTemplateSpec"
# The fields of a pod template, and misplaced fields of a constraint.
_PARTS = frozenset({"metadata", "spec", *SpreadConstraint.__struct_encode_fields__})


class Written(Struct, frozen=True, kw_only=True, dict=True):
    """The whole object, before decoding drops fields.

    Args:
        raw: JSON, or a mapping parsed from JSON.
        stated: The object's apiVersion and kind.
        embedded: Kinds of the configuration.
        workload: None for kinds without a pod template, and for unreadable objects.
        warnings: The warnings of kube-apiserver's strict decoding.
    """

    raw: bytes | Mapping[str, object]
    stated: TypeMeta
    embedded: tuple[EmbeddedKind, ...] = ()
    workload: Workload | None = None
    warnings: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """The object's apiVersion. Empty if absent."""
        return self.stated.api_version or ""

    @property
    def kind(self) -> str:
        """The object's kind. Empty if absent."""
        return self.stated.kind or ""

    @property
    def group(self) -> str:
        """The group of the object's apiVersion."""
        return group_of(self.api_version)

    @cached_property
    def value(self) -> Mapping[str, object]:
        value = parse_object(self.raw)
        return value if isinstance(value, dict) else {}

    @cached_property
    def unknown(self) -> tuple[str, ...]:
        """The paths of fields refused by kubectl as unknown. For a custom resource, only paths in pod templates."""
        if self.workload is None:
            return ()
        warnings = self.warnings if self.workload.built_in else self._in_custom_templates(self.workload)
        return tuple(found[1] for each in dict.fromkeys(warnings) if (found := _UNKNOWN.fullmatch(each)))

    def is_known(self, path: str) -> bool:
        """Whether Kubernetes knows all fields of the path. In a custom resource, only pod templates are known."""
        of = self.workload
        return of is not None and (of.built_in or any(f"{path}.".startswith(each.path) for each in of.templates))

    def _in_custom_templates(self, workload: Workload) -> Iterator[str]:
        for template in workload.templates:
            path = template.path.removesuffix(".")
            written = value_at(self.value, path)
            # Operators complete a part of a pod, so its other fields are unknown.
            if not isinstance(written, dict) or not written.keys() <= _PARTS:
                continue
            if is_plain(written, go_type(_TEMPLATE, RECORDED)):
                continue
            try:
                yield from as_go_reads(msgspec.json.encode(written), _TEMPLATE, (path,))[1]
            except DecodeError:
                continue  # a fault of the constraints is wrong-type; of the rest a controller may make what it likes
