"""The context of the workloads of one slice of a scan, which objects stand for others, and the next pods of each."""

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import ObjectMeta, OwnerReference, Pod
from webhook.core.api.well_known import ZONE
from webhook.core.coming_pods.next_pod import ComingPod, PodSource, coming_pod
from webhook.core.context import Context
from webhook.core.defaulting.injection import Injection, inject
from webhook.core.index.lost_nodes import without_nodes
from webhook.core.index.owners import controllers
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.policy.options import DefaultsMode
from webhook.core.workloads.custom_kinds import EmbeddedKind
from webhook.core.workloads.kinds import POD, GroupKind, group_kind
from webhook.core.workloads.reading import has_template, makes_kind
from webhook.core.workloads.workload import Workload, namespace_of

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


def scan_context(context: Context) -> ScanContext:
    """The context of a slice of workloads. It reads every node and every Pending pod once, none later."""
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
    return owner if makes_kind(owner.api_version, owner.kind, of, embedded) else None


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


def next_pods(workload: Workload, within: ScanContext) -> Iterator[ComingPod]:
    """The next pod of each template; a pod that exists is its own.

    Shape: nothing where nodes or pods are not known, and for objects that do not have whole pods.
    """
    if within.index is None or not workload.whole:
        return
    namespace = namespace_of(workload.meta.namespace, within.context.namespace)
    for template in workload.templates:
        source = PodSource(workload=workload, template=template, namespace=namespace, applied=True)
        yield coming_pod(source, within.context, posted=not workload.is_pod)


def to_inject(of: ComingPod) -> Injection | None:
    """What injection adds to the next pod, or would add if defaults were not only observed; None for nothing."""
    policy = of.within.policy
    defaults = policy.defaults
    if defaults.mode == DefaultsMode.OFF:
        return None
    policy = replace(policy, defaults=replace(defaults, mode=DefaultsMode.INJECT))
    found = inject(of.sent, of.source.namespace, replace(of.within, policy=policy), waited=True)
    return found if isinstance(found, Injection) else None
