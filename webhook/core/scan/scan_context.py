"""The inputs of a scan: facts shared by all workloads, the objects to scan, and each workload's next pods."""

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import ObjectMeta, OwnerReference, Pod
from webhook.core.api.well_known import ZONE
from webhook.core.context import Context
from webhook.core.defaulting.injection import Injection, inject
from webhook.core.index.lost_nodes import without_nodes
from webhook.core.index.owners import controllers
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.pods_to_create.next_pod import NextPod, PodSource, next_pod_of
from webhook.core.policy.options import DefaultsMode
from webhook.core.workloads.custom_kinds import EmbeddedKind
from webhook.core.workloads.kind_fields import has_template, makes_kind
from webhook.core.workloads.kinds import POD, GroupKind, group_kind
from webhook.core.workloads.workload import Workload, namespace_of

_MOST_ZONES = 12  # clusters have fewer zones, so a label with more values does not name zones


class ObjectKey(NamedTuple):
    """The identity of an object, independent of its version."""

    namespace: str
    group: str
    kind: str
    name: str


class FailingZone(Struct, frozen=True, kw_only=True):
    """A zone and the cluster after the zone's failure.

    Attributes:
        name: The value of the zone label.
        nodes: The zone's nodes, as a bit set.
        unreachable: The cluster while the zone's nodes are unreachable.
        gone: The cluster after the deletion of the zone's nodes.
    """

    name: str
    nodes: int
    unreachable: ReadOnlyIndex
    gone: ReadOnlyIndex


class ScanContext(Struct, frozen=True, kw_only=True):
    """The cluster and the policy of a scan, at one moment.

    Attributes:
        waiting: The Pending pods of each controller, oldest first, without terminating pods. A pod without a controller
            is listed under its own key.
        zones: The cluster's zones. Empty with a single zone, or if nodes or pods are unknown.
    """

    context: Context
    waiting: Mapping[ObjectKey, tuple[Pod, ...]] = {}
    zones: tuple[FailingZone, ...] = ()

    @property
    def index(self) -> ReadOnlyIndex | None:
        """The cluster. None if nodes or pods are unknown, and then the scan has no facts about pods."""
        index = self.context.index
        return None if index is None or index.lacks("nodes", "pods") else index


def scan_context(context: Context) -> ScanContext:
    """Read every node and every Pending pod once, for a slice of workloads."""
    index = context.index
    within = ScanContext(context=context)
    if within.index is None or index is None:
        return within
    return ScanContext(context=context, waiting=_waiting(index), zones=tuple(_zones(index)))


def within_index(within: ScanContext, index: ReadOnlyIndex) -> ScanContext:
    """Return the context with another index of the same cluster."""
    return replace(within, context=within.context.with_index(index), zones=tuple(_zones(index)) if within.zones else ())


def stands_for(
    kind: GroupKind, api_version: str, meta: ObjectMeta, embedded: tuple[EmbeddedKind, ...]
) -> OwnerReference | None:
    """Return the object's controller if it created the object, as a Deployment creates a ReplicaSet.

    None without a controller, for a kind without a pod template, and for a controller kind that does not create
    objects of this kind.
    """
    owner = meta.controller
    if owner is None or not has_template(api_version, kind[1], embedded):
        return None
    return owner if makes_kind(owner.api_version, owner.kind, kind, embedded) else None


def key_of(namespace: str, api_version: str, kind: str, name: str) -> ObjectKey:
    """Return the key of an object."""
    return ObjectKey(namespace, *group_kind(api_version, kind), name)


def _waiting(index: ReadOnlyIndex) -> Mapping[ObjectKey, tuple[Pod, ...]]:
    by_controller: dict[ObjectKey, list[Pod]] = {}
    pods = (pod for pod in index.pods.waiting() if pod.meta.deletion_timestamp is None)
    for pod in sorted(pods, key=lambda pod: (pod.meta.creation_timestamp or "", pod.meta.namespace, pod.meta.name)):
        namespace, above = pod.meta.namespace, controllers(pod, index)
        keys = [key_of(namespace, each.api_version, each.kind, each.name) for each in above]
        for key in keys or [ObjectKey(namespace, *POD, pod.meta.name)]:
            by_controller.setdefault(key, []).append(pod)
    return {key: tuple(listed) for key, listed in by_controller.items()}


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
    """Select the objects to scan. Each controller's pod template is scanned once.

    ``present`` are the keys of all listed objects with a template.
    """

    def __init__(self, present: Collection[ObjectKey], embedded: tuple[EmbeddedKind, ...] = ()) -> None:
        self._present = present
        self._embedded = embedded
        self._elsewhere: set[ObjectKey] = set()

    def takes(self, api_version: str, kind: str, meta: ObjectMeta) -> bool:
        """Whether to scan the object.

        If several objects have the same absent controller, only the first of them is scanned.
        """
        owner = stands_for(group_kind(api_version, kind), api_version, meta, self._embedded)
        if owner is None:
            return True
        key = key_of(meta.namespace, owner.api_version, owner.kind, owner.name)
        if key in self._present or key in self._elsewhere:
            return False
        self._elsewhere.add(key)
        return True


def next_pods(workload: Workload, within: ScanContext) -> Iterator[NextPod]:
    """Yield the next pod of each template. For an existing pod, yield the pod itself.

    Yield nothing without an index. Yield nothing if the object has only parts of its pods, such as constraints and
    labels in a custom resource.
    """
    if within.index is None or not workload.whole:
        return
    namespace = namespace_of(workload.meta.namespace, within.context.namespace)
    for template in workload.templates:
        source = PodSource(workload=workload, template=template, namespace=namespace, applied=True)
        yield next_pod_of(source, within.context, posted=not workload.is_pod)


def to_inject(next_pod: NextPod) -> Injection | None:
    """Return the default constraints to inject into the next pod, or None. Mode ``observe`` counts as ``inject``."""
    policy = next_pod.context.policy
    defaults = policy.defaults
    if defaults.mode == DefaultsMode.OFF:
        return None
    policy = replace(policy, defaults=replace(defaults, mode=DefaultsMode.INJECT))
    result = inject(next_pod.sent, next_pod.source.namespace, replace(next_pod.context, policy=policy), waited=True)
    return result if isinstance(result, Injection) else None
