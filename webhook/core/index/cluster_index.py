"""A copy of the cluster in memory, updated by watch events.

Each event changes one object. Query results do not change with later events. The index never waits, never calls the API
server, and never expires an object. The cluster may have objects missing from the index.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Literal

from msgspec.structs import replace

from webhook.core.api.admission_objects import LimitRange, PriorityClass, RuntimeClass
from webhook.core.api.spread_group import SpreadGroup
from webhook.core.api.types import Node, Pod, Service
from webhook.core.api.version import RECORDED, KubernetesVersion
from webhook.core.index.objects import ApiObject, Autoscaler, Namespace, Owner
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.index.tables.namespace_table import NamespaceTable
from webhook.core.index.tables.node_table import NodeTable
from webhook.core.index.tables.owner_table import OwnerTable
from webhook.core.index.tables.pod_groups import LEARN_AT
from webhook.core.index.tables.pod_table import PodTable
from webhook.core.index.tables.volume_table import VolumeTable
from webhook.core.text import one_line

_MOST_OF_A_REASON = 200  # characters

Event = Literal["ADDED", "MODIFIED", "DELETED"]  # The types of watch events. A list counts as ADDED events.


class ClusterIndex(ReadOnlyIndex):
    """An index of the cluster, updated by the events of a watch or a snapshot.

    The latest event of an object wins. Events of different kinds can arrive in any order. The index has no lock, so
    only one thread may use it at a time.

    Args:
        version: The cluster's Kubernetes release.
        scoring: Whether to keep the data used only to score nodes.
        learn_at: Number of pods before label keys are examined for many distinct values. Only tests change the default.

    Example:
        ``index = ClusterIndex()``, then ``index.apply("ADDED", node)`` for each node, then ``index.nodes.view()``.
    """

    nodes: NodeTable
    pods: PodTable
    volumes: VolumeTable
    owners: OwnerTable
    namespaces: NamespaceTable

    def __init__(
        self, version: KubernetesVersion = RECORDED, *, scoring: bool = False, learn_at: int = LEARN_AT
    ) -> None:
        self._version = version
        self._taken_at = ""
        self._revision = 0
        self._lacking: dict[str, str] = {}
        self.nodes = NodeTable()
        self.namespaces = NamespaceTable(self._lacking)
        self.pods = PodTable(self.nodes, self.namespaces, scoring=scoring, learn_at=learn_at)
        self.owners = OwnerTable()
        self.volumes = VolumeTable()

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

    def mark_missing(self, resource: str, why: str) -> None:
        """Record that the objects of a resource (its plural name) are unreadable, and why ("403 Forbidden")."""
        self._lacking[resource] = why
        self._revision += 1

    def mark_known(self, resource: str) -> None:
        """Undo `mark_missing`: all objects of the resource are readable."""
        self._lacking.pop(resource, None)
        self._revision += 1

    @property
    def lacking(self) -> Mapping[str, str]:
        return {**self._lacking, "": "no nodes known"} if self.nodes.is_empty() else dict(self._lacking)

    def known_namespaces(self) -> tuple[str, ...]:
        """All namespaces with an object in the index, including Namespace objects."""
        of_pods = {*self.pods.namespaces(), *(pod.meta.namespace for pod in self.pods.waiting())}
        return tuple(sorted({*self.namespaces.known(), *self.owners.namespaces(), *of_pods} - {""}))

    def apply(self, event: Event, value: ApiObject) -> str:
        """Apply one event of a watch. Never raises.

        A finished pod counts as deleted, like in the scheduler.

        Returns:
            The error. Empty without an error. After an error the index has no object of this name.
        """
        try:
            self.change(event, value)
        except Exception as error:  # noqa: BLE001 One bad object must not stop a watch.
            with suppress(Exception):
                # An earlier pod of this name has another uid. It is gone too.
                gone = replace(value, metadata=replace(value.meta, uid="")) if isinstance(value, Pod) else value
                self.change("DELETED", gone)
            return f"{type(error).__name__}: {one_line(str(error), _MOST_OF_A_REASON)}"
        return ""

    def change(self, event: Event, value: ApiObject) -> None:
        """Apply an event of an object that evenspread itself builds. Raises any error."""
        self._revision += 1
        deleted = event == "DELETED"
        match value:
            case Pod():
                self.apply_pod(event, value, value.meta.name)
            case Node():
                (self.nodes.remove if deleted else self.nodes.put)(value)
            case Owner() | Autoscaler():
                (self.owners.remove if deleted else self.owners.put)(value)
            case Namespace() | Service() | SpreadGroup() | LimitRange() | PriorityClass() | RuntimeClass():
                (self.namespaces.remove if deleted else self.namespaces.put)(value)
            case _:
                (self.volumes.remove if deleted else self.volumes.put)(value)

    @contextmanager
    def temporary_pods(self) -> Iterator[Callable[[Pod], None]]:
        """Return a context manager. Its value is a function for adding pods to the index.

        After the ``with`` block, or an error in the block, the index has its old pods again. An added pod replaces a
        pending pod of the same name. A pod with the name of a pod on a node must not be added.
        """
        added, waiting = list[Pod](), dict[str, tuple[Pod, ...]]()

        def add(pod: Pod) -> None:
            waiting.setdefault(pod.meta.namespace, self.pods.waiting(pod.meta.namespace))
            added.append(pod)
            self.change("ADDED", pod)

        try:
            yield add
        finally:
            for pod in added:
                self.change("DELETED", pod)
            for namespace, before in waiting.items():
                # Adding all of them again restores their order.
                for pod in before if self.pods.waiting(namespace) != before else ():
                    self.change("ADDED", pod)

    def apply_pod(self, event: Event, pod: Pod, key: str) -> None:
        """Apply an event of a pod. Ignore the deletion of an earlier pod of the same name.

        ``key`` is the pod's name, or any unique text for a pod without name.
        """
        self._revision += 1
        if event == "DELETED":
            self.pods.remove(pod.meta.namespace, key, pod.meta.uid)
        else:
            self.pods.put(pod, key, self._version)
