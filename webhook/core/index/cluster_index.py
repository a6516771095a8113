"""The cluster in memory: an event changes one object, and every answer is a copy.

Nothing here waits, asks the API server, or expires. An object that is not in the index is unknown; it may exist.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Literal, TypeVar

from msgspec.structs import replace

from webhook.core.api.admission_objects import LimitRange, PriorityClass, RuntimeClass
from webhook.core.api.resources import PodRequest
from webhook.core.api.selectors import Selector
from webhook.core.api.spread_group import MOST_GROUPS, SpreadGroup
from webhook.core.api.storage import (
    Claim,
    CsiDriver,
    CsiNode,
    PersistentVolume,
    StorageCapacity,
    StorageClass,
    VolumeAttachment,
)
from webhook.core.api.types import Node, ObjectMeta, Pod, Service
from webhook.core.api.version import RECORDED, KubernetesVersion
from webhook.core.api.well_known import DEFAULT_CLASS, NAMESPACE_NAME
from webhook.core.apiserver.admission_plugins import AdmissionFacts
from webhook.core.index.objects import ApiObject, Autoscaler, Namespace, Owner
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.index.tables.admission_table import AdmissionTable
from webhook.core.index.tables.node_table import Nodes, NodeView
from webhook.core.index.tables.pod_groups import LEARN_AT, Counts
from webhook.core.index.tables.pod_table import FINISHED, HostPort, Mounted, PodOnNode, Pods
from webhook.core.index.tables.score_table import ScoreFacts, ScoreTable
from webhook.core.index.tables.shrinking import drop, drop_under, put_under
from webhook.core.index.tables.storage_drivers import Handle, StorageDrivers
from webhook.core.index.tables.template_table import Templates
from webhook.core.text import one_line
from webhook.core.time_limit import check_time
from webhook.core.workloads.kinds import GroupKind, group_of

_MOST_OF_A_REASON = 200  # characters

Event = Literal["ADDED", "MODIFIED", "DELETED"]  # the words of a watch; a list is events ADDED

_Outer = TypeVar("_Outer")
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class ClusterIndex(ReadOnlyIndex):
    """Nodes, pods, namespaces, services, owners, autoscalers, groups, volumes, from events of a watch or a snapshot.

    Shape: the latest event of an object wins, whatever was known before; events of different kinds may come in any
    order. What may be asked is said in `ReadOnlyIndex`; threads that share an index take turns. ``learn_at``
    is `pod_groups.LEARN_AT` for tests. ``scoring`` keeps what only scores of nodes depend on.
    """

    def __init__(
        self, version: KubernetesVersion = RECORDED, *, scoring: bool = False, learn_at: int = LEARN_AT
    ) -> None:
        self._version = version
        self._taken_at = ""
        self._revision = 0
        self._nodes: dict[str, Node] = {}
        self._node_table = Nodes()
        self._pod_table = Pods(self._node_table, learn_at)
        self._scores = ScoreTable() if scoring else None
        self._waiting: dict[str, dict[str, Pod]] = {}
        self._nominated: dict[str, dict[tuple[str, str], Pod]] = {}
        self._namespaces: dict[str, Namespace] = {}
        self._services: dict[str, dict[str, Service]] = {}
        self._owners: dict[str, dict[GroupKind, dict[str, Owner]]] = {}
        self._templates: dict[str, Templates] = {}
        self._autoscalers: dict[str, dict[str, Autoscaler]] = {}
        self._scaling: dict[tuple[str, GroupKind, str], dict[str, Autoscaler]] = {}  # by what they scale
        self._groups: dict[str, dict[str, SpreadGroup]] = {}
        self._oldest: dict[str, tuple[SpreadGroup, ...]] = {}  # of namespaces that were asked for since they changed
        self._claims: dict[str, dict[str, Claim]] = {}
        self._volumes: dict[str, PersistentVolume] = {}
        self._unclaimed: dict[str, dict[str, PersistentVolume]] = {}  # by class
        self._claimed: dict[tuple[str, str], dict[str, PersistentVolume]] = {}  # by claim
        self._classes: dict[str, StorageClass] = {}
        self._drivers = StorageDrivers()
        self._admission = AdmissionTable()
        self._lacking: dict[str, str] = {}

    @property
    def version(self) -> KubernetesVersion:
        return self._version

    @version.setter
    def version(self, version: KubernetesVersion) -> None:
        self._version = version
        self._revision += 1

    @property
    def revision(self) -> int:
        return self._revision

    @property
    def taken_at(self) -> str:
        return self._taken_at

    @taken_at.setter
    def taken_at(self, time: str) -> None:
        self._taken_at = time

    def lack(self, resource: str, why: str) -> None:
        """Note that the objects of a resource could not be read, or not yet; then their absence means nothing.

        Shape: ``resource`` is the API's plural; ``why`` is a few words, as in "403 Forbidden".
        """
        self._lacking[resource] = why
        self._revision += 1

    def has(self, resource: str) -> None:
        """Undo `lack`: all objects of the resource are known."""
        self._lacking.pop(resource, None)
        self._revision += 1

    @property
    def lacking(self) -> Mapping[str, str]:
        return dict(self._lacking) if self._nodes else {**self._lacking, "": "no nodes known"}

    def apply(self, event: Event, value: ApiObject) -> str:
        """Apply one event of a watch. Never raises.

        A finished pod counts as deleted, as in the scheduler.

        Returns:
            Why the object was left out, or an empty text. The index then has no object of this name.
        """
        try:
            self.change(event, value)
        except Exception as error:  # noqa: BLE001 one object must not stop a watch
            with suppress(Exception):
                # An earlier pod of this name has another uid, and is no more either.
                gone = replace(value, metadata=replace(value.meta, uid="")) if isinstance(value, Pod) else value
                self.change("DELETED", gone)
            return f"{type(error).__name__}: {one_line(str(error), _MOST_OF_A_REASON)}"
        return ""

    def change(self, event: Event, value: ApiObject) -> None:
        """As `apply`, for objects that the program makes itself: raises whatever is wrong with one."""
        self._revision += 1
        match value:
            case Pod():
                self.apply_pod(event, value, value.meta.name)
            case Node():
                self._apply_node(event, value)
            case Namespace():
                _put(self._namespaces, value.meta.name, value, event)
            case Service():
                meta = value.metadata or ObjectMeta()
                _put_under(self._services, meta.namespace, meta.name, value, event)
            case Owner():
                self._apply_owner(event, value)
            case SpreadGroup():
                _put_under(self._groups, value.meta.namespace, value.meta.name, value, event)
                drop(self._oldest, value.meta.namespace)
            case LimitRange() | PriorityClass() | RuntimeClass():
                (self._admission.remove if event == "DELETED" else self._admission.put)(value)
            case CsiDriver() | CsiNode() | StorageCapacity() | VolumeAttachment():
                (self._drivers.remove if event == "DELETED" else self._drivers.put)(value)
            case Autoscaler():
                self._apply_autoscaler(event, value)
            case _:
                self._apply_storage(event, value)

    def _apply_owner(self, event: Event, owner: Owner) -> None:
        namespace, group, name = owner.meta.namespace, group_of(owner.api_version), owner.meta.name
        kinds = self._owners.setdefault(namespace, {})
        _put_under(kinds, (group, owner.kind), name, owner, event)
        if not kinds:
            drop(self._owners, namespace)
        templates = self._templates.setdefault(namespace, Templates())
        if event == "DELETED":
            templates.remove((group, owner.kind, name))
        else:
            templates.put((group, owner.kind, name), owner)
        if not templates:
            drop(self._templates, namespace)

    def _apply_autoscaler(self, event: Event, autoscaler: Autoscaler) -> None:
        namespace, name = autoscaler.meta.namespace, autoscaler.meta.name
        before = self._autoscalers.get(namespace, {}).get(name)
        if before is not None:
            drop_under(self._scaling, before.target, name)
        _put_under(self._autoscalers, namespace, name, autoscaler, event)
        if event != "DELETED":
            put_under(self._scaling, autoscaler.target, name, autoscaler)

    def _apply_storage(self, event: Event, value: Claim | PersistentVolume | StorageClass) -> None:
        name = value.meta.name
        match value:
            case Claim():
                _put_under(self._claims, value.meta.namespace, name, value, event)
            case PersistentVolume():
                self._apply_volume(event, value, name)
            case _:
                _put(self._classes, name, value, event)

    def _apply_volume(self, event: Event, volume: PersistentVolume, name: str) -> None:
        before = self._volumes.get(name)
        claim = None if before is None else before.spec.claim_ref
        if claim is not None:
            drop_under(self._claimed, (claim.namespace, claim.name), name)
        elif before is not None:
            drop_under(self._unclaimed, before.storage_class, name)
        _put(self._volumes, name, volume, event)
        claim = volume.spec.claim_ref
        if event == "DELETED":
            return
        if claim is None:
            put_under(self._unclaimed, volume.storage_class, name, volume)
        else:
            put_under(self._claimed, (claim.namespace, claim.name), name, volume)

    def _apply_node(self, event: Event, node: Node) -> None:
        _put(self._nodes, node.name, node, event)
        if event == "DELETED":
            self._node_table.remove(node.name)
        else:
            self._node_table.put(node)
        if self._scores is not None:
            (self._scores.remove_node if event == "DELETED" else self._scores.put_node)(node)

    def apply_pod(self, event: Event, pod: Pod, key: str) -> None:
        """Apply an event of a pod under this key: its name, or any unique text for a pod that has none.

        Errors: none; the deletion of an earlier pod of the same name changes nothing.
        """
        self._revision += 1
        namespace, uid = pod.meta.namespace, pod.meta.uid
        if event == "DELETED":
            if self._pod_table.remove(namespace, key, uid) and self._scores is not None:
                self._scores.remove_pod(namespace, key)
            known = self._waiting.get(namespace, {}).get(key)
            # The name may belong to a later pod by now.
            if known is not None and (not uid or known.meta.uid in {"", uid}):
                self._stop_waiting(namespace, key)
            return
        self._pod_table.put(pod, key, self.version)
        if self._scores is not None:
            held = self._pod_table.record(namespace, key) is not None
            self._scores.put_pod(pod, key, self.version) if held else self._scores.remove_pod(namespace, key)
        if namespace in self._waiting:
            self._stop_waiting(namespace, key)
        # Waiting pods take no room, but hold reservations, and people ask for them.
        if not pod.pod_spec.node_name and not (pod.status is not None and pod.status.phase in FINISHED):
            put_under(self._waiting, namespace, key, pod)
            node = pod.status.nominated_node_name if pod.status is not None else None
            if node:
                put_under(self._nominated, node, (namespace, key), pod)

    def _stop_waiting(self, namespace: str, key: str) -> None:
        pod = drop_under(self._waiting, namespace, key)
        node = pod.status.nominated_node_name if pod is not None and pod.status is not None else None
        if node:
            drop_under(self._nominated, node, (namespace, key))

    def nodes(self) -> tuple[Node, ...]:
        """All nodes, cordoned and unready ones included."""
        return tuple(self._nodes.values())

    def node(self, name: str) -> Node | None:
        check_time()
        return self._nodes.get(name)

    def view(self) -> NodeView:
        check_time()
        return self._node_table.view()

    def count(self, namespace: str, selector: Selector, *, leaving: bool = False) -> Counts:
        check_time()
        return {} if selector.nothing else self._pod_table.count(namespace, selector.requirements, leaving=leaving)

    def count_unspread(self, namespace: str, selector: Selector) -> int:
        return 0 if selector.nothing else self._pod_table.count_unspread(namespace, selector.requirements)

    def short_of(self, amounts: tuple[tuple[str, int], ...]) -> Mapping[str, tuple[int, ...]]:
        short_of = self._node_table.short_of
        return {name: free for name, amount in amounts if (free := short_of(name, amount)) is not None}

    def never_enough(self, resource: str, amount: int) -> tuple[int, ...] | None:
        return self._node_table.never_enough(resource, amount)

    def amounts(self, resource: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        check_time()
        free, allocatable = self._node_table.amounts(resource)
        return tuple(free), tuple(allocatable)

    def pod_on_node(self, namespace: str, name: str) -> PodOnNode | None:
        check_time()
        return self._pod_table.on_node(namespace, name)

    def pod_namespaces(self) -> tuple[str, ...]:
        return self._pod_table.namespaces()

    def pods_matching(self, namespace: str, selector: Selector) -> Sequence[tuple[str, int]]:
        return tuple(self._pod_table.matching(namespace, selector))

    def pods_objecting(self, namespace: str, labels: Mapping[str, str]) -> Sequence[tuple[str, str, int]]:
        return tuple(self._pod_table.objecting(namespace, self.raw_namespace_labels(namespace), labels))

    def terms_matching(self, namespace: str, labels: Mapping[str, str]) -> Sequence[tuple[str, Counts]]:
        check_time()
        return self._pod_table.terms_matching(namespace, self.raw_namespace_labels(namespace), labels)

    def lower_pods(self, priority: int) -> Mapping[int, Sequence[tuple[int, PodRequest]]]:
        return self._pod_table.lower(priority)

    def score_facts(self, namespace: str, labels: Mapping[str, str]) -> ScoreFacts | None:
        if self._scores is None:
            return None
        return self._scores.facts(self.view(), namespace, self.raw_namespace_labels(namespace), labels)

    def taken_ports(self) -> Mapping[int, tuple[HostPort, ...]]:
        return {slot: tuple(used) for slot, used in self._pod_table.ports.items()}

    def claim_users(self, namespace: str, name: str) -> Counts:
        check_time()
        return self._pod_table.claim_users(namespace, name)

    def mounts(self) -> Mapping[int, int]:
        return dict(self._pod_table.mounts)

    def mounting_pods(self, slots: Sequence[int] | None = None) -> Mapping[int, tuple[Mounted, ...]]:
        check_time()
        mounted = self._pod_table.mounted
        wanted = mounted if slots is None else [slot for slot in slots if slot in mounted]
        return {slot: tuple(mounted[slot].values()) for slot in wanted}

    def pod_names(self, namespace: str) -> tuple[str, ...]:
        return (*self._pod_table.keys(namespace), *self._waiting.get(namespace, ()))

    def waiting_pods(self, namespace: str | None = None) -> tuple[Pod, ...]:
        wanted = self._waiting.values() if namespace is None else (self._waiting.get(namespace, {}),)
        return tuple(pod for pods in wanted for pod in pods.values())

    def count_waiting(self, namespace: str, selector: Selector) -> int:
        return sum(selector.matches(each.labels) for each in self._waiting.get(namespace, {}).values())

    def nominated_pods(self) -> Mapping[str, tuple[Pod, ...]]:
        return {node: tuple(pods.values()) for node, pods in self._nominated.items()}

    def claim(self, namespace: str, name: str) -> Claim | None:
        check_time()
        return self._claims[namespace].get(name) if namespace in self._claims else None

    def volume(self, name: str) -> PersistentVolume | None:
        check_time()
        return self._volumes.get(name)

    def volumes_for(self, claim: Claim) -> tuple[PersistentVolume, ...]:
        check_time()
        made = self._claimed.get((claim.meta.namespace, claim.meta.name), {}).values()
        free = self._unclaimed.get(claim.storage_class, {}).values()
        return (*(volume for volume in made if volume.storage_class == claim.storage_class), *free)

    def storage_class(self, name: str) -> StorageClass | None:
        return self._classes.get(name)

    def default_class(self) -> StorageClass | None:
        defaults = [
            each for each in self._classes.values() if (each.meta.annotations or {}).get(DEFAULT_CLASS) == "true"
        ]
        return defaults[0] if len(defaults) == 1 else None

    def attach_limits(self) -> Mapping[str, Mapping[str, int]]:
        return self._drivers.limits()

    def csi_drivers(self) -> Mapping[str, CsiDriver]:
        return self._drivers.drivers()

    def nodes_with_driver(self, driver: str) -> frozenset[str]:
        return self._drivers.installed(driver)

    def storage_capacities(self, storage_class: str) -> tuple[StorageCapacity, ...]:
        return self._drivers.capacities(storage_class)

    def attachments(self) -> Mapping[str, int]:
        return self._drivers.attachments()

    def attached(self, nodes: Sequence[str]) -> Mapping[str, tuple[Handle, ...]]:
        return {node: found for node in nodes if (found := tuple(self._drivers.attached(node, self._volumes)))}

    def admission_facts(self, namespace: str, priority_class: str, runtime_class: str) -> AdmissionFacts:
        return self._admission.facts(namespace, priority_class, runtime_class, self._lacking)

    def raw_namespace_labels(self, name: str) -> Mapping[str, str] | None:
        namespace = self._namespaces.get(name)
        return None if namespace is None else namespace.meta.labels or {}

    def namespaces_with_labels(self) -> Mapping[str, Mapping[str, str]]:
        return {name: namespace.meta.labels or {} for name, namespace in self._namespaces.items()}

    def namespaces(self) -> tuple[str, ...]:
        """Every namespace that is known by itself or by an object in it."""
        known = {*self._namespaces, *self._pod_table.namespaces(), *self._waiting, *self._services, *self._owners}
        return tuple(sorted(known - {""}))

    def namespace_labels(self, name: str) -> Mapping[str, str] | None:
        namespace = self._namespaces.get(name)
        if namespace is None:
            return None
        # The API server puts this label on every namespace; objects from files may lack it.
        return {NAMESPACE_NAME: name, **(namespace.meta.labels or {})}

    def services(self, namespace: str) -> tuple[Service, ...]:
        return tuple(self._services[namespace].values()) if namespace in self._services else ()

    def all_services(self) -> tuple[Service, ...]:
        return tuple(service for services in self._services.values() for service in services.values())

    def owner(self, api_version: str, kind: str, namespace: str, name: str) -> Owner | None:
        check_time()
        return self._owners.get(namespace, {}).get((group_of(api_version), kind), {}).get(name)

    def owners(self, namespace: str) -> tuple[Owner, ...]:
        check_time()
        return tuple(owner for owners in self._owners.get(namespace, {}).values() for owner in owners.values())

    def workloads(self, namespace: str, selector: Selector, most: int) -> tuple[Owner, ...]:
        check_time()
        templates = self._templates.get(namespace)
        return () if templates is None else tuple(templates.matching(selector, most))

    def autoscaler(self, api_version: str, kind: str, namespace: str, name: str) -> Autoscaler | None:
        scalers = self._scaling.get((namespace, (group_of(api_version), kind), name))
        return None if scalers is None else scalers[min(scalers)]

    def groups(self, namespace: str) -> tuple[SpreadGroup, ...]:
        return self._oldest_first(namespace)[:MOST_GROUPS]

    def every_group(self) -> Mapping[str, tuple[SpreadGroup, ...]]:
        return {namespace: self._oldest_first(namespace) for namespace in self._groups}

    def _oldest_first(self, namespace: str) -> tuple[SpreadGroup, ...]:
        """All groups of the namespace, sorted once: reviews ask for them, and whoever may create them makes many."""
        if namespace not in self._groups:
            return ()
        if namespace not in self._oldest:
            known = self._groups[namespace].values()
            self._oldest[namespace] = tuple(
                sorted(known, key=lambda each: (each.meta.creation_timestamp or "", each.meta.name))
            )
        return self._oldest[namespace]

    def domains(self, topology_key: str) -> frozenset[str]:
        """The values that nodes have for the key; empty where no node has it."""
        return frozenset(self.view().column(topology_key).values)


def _put(table: dict[_Key, _Value], key: _Key, value: _Value, event: Event) -> None:
    if event == "DELETED":
        drop(table, key)
    else:
        table[key] = value


def _put_under(tables: dict[_Outer, dict[_Key, _Value]], outer: _Outer, key: _Key, value: _Value, event: Event) -> None:
    if event == "DELETED":
        drop_under(tables, outer, key)
    else:
        put_under(tables, outer, key, value)
