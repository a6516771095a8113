"""Which objects are looked at: those that no other object makes, and one for all that a controller makes elsewhere.

ReplicaSets of a Deployment and their pods repeat its template; they are skipped if the controller is among the objects.
"""

from collections.abc import Collection

from webhook.core.api.types import ObjectMeta
from webhook.core.scan.scan_context import ObjectKey, key_of, stands_for
from webhook.core.workloads.custom_kinds import EmbeddedKind
from webhook.core.workloads.kinds import group_kind


class Representatives:
    """Choose objects one by one; ``present`` are the keys of all objects with a template that are looked at."""

    def __init__(self, present: Collection[ObjectKey], embedded: tuple[EmbeddedKind, ...] = ()) -> None:
        self._present = present
        self._embedded = embedded
        self._elsewhere: set[ObjectKey] = set()

    def takes(self, api_version: str, kind: str, meta: ObjectMeta) -> bool:
        """Whether the object is to be looked at; of the objects of a controller that is not present, the first is."""
        owner = stands_for(group_kind(api_version, kind), api_version, meta, self._embedded)
        if owner is None:
            return True
        key = key_of(meta.namespace, owner.api_version, owner.kind, owner.name)
        if key in self._present or key in self._elsewhere:
            return False
        self._elsewhere.add(key)
        return True
