"""What all workloads of one slice of a scan are scanned in, looked through once for all of them."""

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

from webhook.core.api.types import ObjectMeta, OwnerReference, Pod
from webhook.core.api.well_known import ZONE
from webhook.core.context import Context
from webhook.core.index.lost_nodes import without_nodes
from webhook.core.index.owners import controllers
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.workloads.custom_kinds import EmbeddedKind
from webhook.core.workloads.kinds import POD, GroupKind, group_kind
from webhook.core.workloads.reading import has_template, makes

_MOST_ZONES = 12  # of more values, the label is none of zones


class ObjectKey(NamedTuple):
    """An object of any version."""

    namespace: str
    group: str
    kind: str
    name: str


class FailingZone(Struct, frozen=True, kw_only=True):
    """One zone, the set of its nodes, and the cluster after they are out of reach, and after they are gone."""

    name: str
    nodes: int
    unreachable: ReadOnlyIndex
    gone: ReadOnlyIndex


class ScanContext(Struct, frozen=True, kw_only=True):
    """What workloads are scanned in, at one moment.

    Shape: ``waiting`` has the pods without a node that nobody deletes, oldest first, under each of their controllers,
    or by themselves if they have none. ``zones`` are none where nodes or pods are not known, and with a single zone.
    """

    context: Context
    waiting: Mapping[ObjectKey, tuple[Pod, ...]] = {}
    zones: tuple[FailingZone, ...] = ()

    @property
    def index(self) -> ReadOnlyIndex | None:
        """The cluster, None where nodes or pods are not known: then nothing is said of where pods stand."""
        index = self.context.index
        return None if index is None or index.lacks("nodes", "pods") else index


def surroundings(context: Context) -> ScanContext:
    """The surroundings in these context.

    Shape: costs a look at every node and at every pod that waits, so one is made for many workloads; it knows nothing
    of pods that came later.
    """
    index = context.index
    found = ScanContext(context=context)
    if found.index is None or index is None:
        return found
    return ScanContext(context=context, waiting=_waiting(index), zones=tuple(_zones(index)))


def stands_for(
    of: GroupKind, api_version: str, meta: ObjectMeta, embedded: tuple[EmbeddedKind, ...]
) -> OwnerReference | None:
    """The controller whose objects this one stands for, if its controller makes such objects of a template.

    Shape: None for an object whose kind has no template, and if the controller's kind makes no such objects.
    """
    owner = meta.controller
    if owner is None or not has_template(api_version, of[1], embedded):
        return None
    return owner if makes(owner.api_version, owner.kind, of, embedded) else None


def key_of(namespace: str, api_version: str, kind: str, name: str) -> ObjectKey:
    """The key of an object."""
    return ObjectKey(namespace, *group_kind(api_version, kind), name)


def _waiting(index: ReadOnlyIndex) -> Mapping[ObjectKey, tuple[Pod, ...]]:
    found: dict[ObjectKey, list[Pod]] = {}
    pods = (pod for pod in index.pods.waiting() if pod.meta.deletion_timestamp is None)
    for pod in sorted(pods, key=lambda pod: (pod.meta.creation_timestamp or "", pod.meta.namespace, pod.meta.name)):
        namespace, above = pod.meta.namespace, controllers(pod, index)
        keys = [key_of(namespace, each.api_version, each.kind, each.name) for each in above]
        for key in keys or [ObjectKey(namespace, *POD, pod.meta.name)]:
            found.setdefault(key, []).append(pod)
    return {key: tuple(listed) for key, listed in found.items()}


def _zones(index: ReadOnlyIndex) -> list[FailingZone]:
    column = index.nodes.view().column(ZONE)
    if column.sets is None or not 1 < len(column.values) <= _MOST_ZONES:
        return []
    return [
        FailingZone(
            name=name,
            nodes=nodes,
            unreachable=without_nodes(index, nodes, gone=False),
            gone=without_nodes(index, nodes, gone=True),
        )
        for name, nodes in sorted(zip(column.values, column.sets, strict=True))
    ]
