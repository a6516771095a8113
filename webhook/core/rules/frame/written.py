"""An object as somebody wrote it, before kube-apiserver drops what it does not know."""

from collections.abc import Mapping

from msgspec import Struct

from webhook.core.api.types import TypeMeta
from webhook.core.cached_property import cached_property
from webhook.core.workloads.custom_kinds import EmbeddedKind
from webhook.core.workloads.reading import parsed
from webhook.core.workloads.workload import Workload


class Written(Struct, frozen=True, kw_only=True, dict=True):
    """The whole object.

    Shape: ``raw`` is JSON, or a mapping parsed from it. ``embedded`` are kinds that the configuration adds.
    ``workload`` is None where the kind has no pod template or the object cannot be read. ``warnings`` are those of
    kube-apiserver's strict decoding.
    """

    raw: bytes | Mapping[str, object]
    stated: TypeMeta
    embedded: tuple[EmbeddedKind, ...] = ()
    workload: Workload | None = None
    warnings: tuple[str, ...] = ()

    @cached_property
    def value(self) -> Mapping[str, object]:
        """The parsed object."""
        value = parsed(self.raw)
        return value if isinstance(value, dict) else {}
