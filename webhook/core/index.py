"""What is known of the cluster: one event changes one object; every answer is a copy.

Nothing here waits, asks or forgets on its own. What is not in the index is unknown, never "not there".
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Literal, TypeVar

from webhook.core.model import Node, ObjectMeta, Pod, Service
from webhook.core.objects import ApiObject, Autoscaler, Namespace, Owner

Event = Literal["ADDED", "MODIFIED", "DELETED"]  # the words of a watch; a list is events ADDED

# The phases of a pod that the scheduler no longer sees, nor anything else here.
FINISHED = frozenset({"Succeeded", "Failed"})
NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_OwnerKey = tuple[str, str, str]  # group, kind, name


class ClusterIndex:
    """Nodes, pods, namespaces, services, owners and autoscalers by name, from the events of a watch or a snapshot.

    Shape: an event on an object that is unknown, or already so, is taken as the truth; order across kinds is free.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._node_values: dict[str, Counter[str]] = defaultdict(Counter)  # label key -> value -> nodes
        self._pods: dict[str, dict[str, Pod]] = defaultdict(dict)
        self._namespaces: dict[str, Namespace] = {}
        self._services: dict[str, dict[str, Service]] = defaultdict(dict)
        self._owners: dict[str, dict[_OwnerKey, Owner]] = defaultdict(dict)
        self._autoscalers: dict[str, dict[str, Autoscaler]] = defaultdict(dict)

    def apply(self, event: Event, value: ApiObject) -> None:
        """Take one event of a watch.

        Errors: none; a finished pod counts as deleted, as in the scheduler.
        """
        match value:
            case Node():
                self._apply_node(event, value)
            case Pod():
                finished = value.status is not None and value.status.phase in FINISHED
                _put(self._pods[value.meta.namespace], value.meta.name, value, "DELETED" if finished else event)
            case Namespace():
                _put(self._namespaces, value.meta.name, value, event)
            case Service():
                meta = value.metadata or ObjectMeta()
                _put(self._services[meta.namespace], meta.name, value, event)
            case Owner(api_version=api_version, kind=kind, meta=meta):
                _put(self._owners[meta.namespace], (_group(api_version), kind, meta.name), value, event)
            case Autoscaler():
                _put(self._autoscalers[value.meta.namespace], value.meta.name, value, event)

    def nodes(self) -> tuple[Node, ...]:
        """All nodes, cordoned and unready ones included."""
        return tuple(self._nodes.values())

    def node(self, name: str) -> Node | None:
        """The node of that name."""
        return self._nodes.get(name)

    def pods(self, namespace: str) -> tuple[Pod, ...]:
        """The namespace's pods that are not finished: bound, Pending, terminating."""
        return tuple(self._pods[namespace].values()) if namespace in self._pods else ()

    def namespaces(self) -> tuple[str, ...]:
        """Every namespace that is known by itself or by an object in it."""
        known = {*self._namespaces, *self._pods, *self._services, *self._owners}
        return tuple(sorted(known - {""}))

    def namespace_labels(self, name: str) -> Mapping[str, str] | None:
        """The namespace's labels; None where it is unknown."""
        namespace = self._namespaces.get(name)
        if namespace is None:
            return None
        # The API server puts this label on every namespace; objects from files may lack it.
        return {NAMESPACE_NAME_LABEL: name, **(namespace.meta.labels or {})}

    def services(self, namespace: str) -> tuple[Service, ...]:
        """The namespace's services."""
        return tuple(self._services[namespace].values()) if namespace in self._services else ()

    def owner(self, api_version: str, kind: str, namespace: str, name: str) -> Owner | None:
        """The owner of that group, kind and name, in whatever version it was read."""
        owners = self._owners.get(namespace)
        return None if owners is None else owners.get((_group(api_version), kind, name))

    def owners(self, namespace: str) -> tuple[Owner, ...]:
        """The namespace's owners of every kind."""
        return tuple(self._owners[namespace].values()) if namespace in self._owners else ()

    def autoscaler(self, api_version: str, kind: str, namespace: str, name: str) -> Autoscaler | None:
        """The autoscaler that scales this owner, known or not; of several, the first by name."""
        scalers = self._autoscalers.get(namespace, {})
        wanted = (_group(api_version), kind, name)
        for _, scaler in sorted(scalers.items()):
            target = scaler.spec.scale_target_ref
            if (_group(target.api_version), target.kind, target.name) == wanted:
                return scaler
        return None

    def domains(self, topology_key: str) -> frozenset[str]:
        """The values that nodes have for the key; empty where no node has it."""
        return frozenset(self._node_values.get(topology_key, ()))

    def _apply_node(self, event: Event, node: Node) -> None:
        before = self._nodes.get(node.name)
        for key, value in (before.labels if before else {}).items():
            self._node_values[key][value] -= 1
            if not self._node_values[key][value]:
                del self._node_values[key][value]
        _put(self._nodes, node.name, node, event)
        for key, value in (node.labels if event != "DELETED" else {}).items():
            self._node_values[key][value] += 1


def _put(table: dict[_Key, _Value], key: _Key, value: _Value, event: Event) -> None:
    if event == "DELETED":
        table.pop(key, None)
    else:
        table[key] = value


def _group(api_version: str) -> str:
    """The API group: an owner is the same object in every version that serves it."""
    return api_version.rpartition("/")[0]
