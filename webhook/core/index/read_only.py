"""The read-only index: queries about the cluster, in five views. No method changes the index.

Reviews and commands get a `ReadOnlyIndex`. Only code that applies watch events has the `ClusterIndex` itself.
"""

from collections.abc import Mapping, Sequence

from webhook.core.api.selectors import Selector
from webhook.core.api.spread_group import SpreadGroup
from webhook.core.api.storage import Claim, CsiDriver, PersistentVolume, StorageCapacity, StorageClass
from webhook.core.api.types import Service
from webhook.core.api.version import KubernetesVersion
from webhook.core.apiserver.admission_plugins import AdmissionFacts
from webhook.core.index.nodes import Nodes
from webhook.core.index.objects import Autoscaler, Owner
from webhook.core.index.pods import Pods
from webhook.core.index.view import View

Handle = tuple[str, str]  # a volume's driver, and the driver's id for the volume


class Volumes(View["Volumes"]):
    """Claims, volumes, storage classes and storage drivers."""

    def claim(self, namespace: str, name: str) -> Claim | None:
        """The claim of this name."""
        return self._below.claim(namespace, name)

    def volume(self, name: str) -> PersistentVolume | None:
        """The volume of this name."""
        return self._below.volume(name)

    def candidates(self, claim: Claim) -> tuple[PersistentVolume, ...]:
        """The volumes for the claim: unclaimed volumes of its class, and reserved volumes.

        Source: storage/volume/pv_helpers.go ``FindMatchingVolume``; volumebinding/assume_cache.go ``ListPVs``.
        """
        return self._below.candidates(claim)

    def storage_class(self, name: str) -> StorageClass | None:
        """The storage class of this name."""
        return self._below.storage_class(name)

    def default_class(self) -> StorageClass | None:
        """The default storage class: the newest of the classes marked as default. None without one.

        Source: pkg/volume/util/storageclass.go ``GetDefaultClass``.
        """
        return self._below.default_class()

    def attach_limits(self) -> Mapping[str, Mapping[str, int]]:
        """The limit of attached volumes from each CSINode, by node name and CSI driver.

        Drivers without a limit are missing.
        """
        return self._below.attach_limits()

    def drivers(self) -> Mapping[str, CsiDriver]:
        """The storage drivers with a CSIDriver object, by name."""
        return self._below.drivers()

    def nodes_with_driver(self, driver: str) -> frozenset[str]:
        """The nodes with the storage driver."""
        return self._below.nodes_with_driver(driver)

    def capacities(self, storage_class: str) -> tuple[StorageCapacity, ...]:
        """The published free capacity of a class."""
        return self._below.capacities(storage_class)

    def attachments(self) -> Mapping[str, int]:
        """The number of volumes attached to each node, including volumes not used by a pod."""
        return self._below.attachments()

    def attached(self, nodes: Sequence[str]) -> Mapping[str, tuple[Handle, ...]]:
        """The volumes attached to these nodes, with driver and id.

        Source: nodevolumelimits/csi.go ``getNodeVolumeAttachmentInfo``.
        """
        return self._below.attached(nodes)


class Owners(View["Owners"]):
    """The cluster's pod controllers and workloads, and the autoscalers that target them."""

    def get(self, api_version: str, kind: str, namespace: str, name: str) -> Owner | None:
        """The owner of this group, kind and name, in any version."""
        return self._below.get(api_version, kind, namespace, name)

    def of_namespace(self, namespace: str) -> tuple[Owner, ...]:
        """The namespace's owners of every kind."""
        return self._below.of_namespace(namespace)

    def controlled(self, namespace: str, kind: str, name: str) -> tuple[Owner, ...]:
        """The namespace's owners whose controller has this kind and name, in any group."""
        return self._below.controlled(namespace, kind, name)

    def matching(self, namespace: str, selector: Selector, most: int) -> tuple[Owner, ...]:
        """The namespace's workloads with a matching pod template, without labels added by controllers.

        Compares the first ``most`` workloads by name, among those with the selector's rarest required label.
        """
        return self._below.matching(namespace, selector, most)

    def autoscaler(self, api_version: str, kind: str, namespace: str, name: str) -> Autoscaler | None:
        """Return the autoscaler of the given object. None without one.

        If several autoscalers target the object, return the first by name. The index may lack the object itself.
        """
        return self._below.autoscaler(api_version, kind, namespace, name)


class Namespaces(View["Namespaces"]):
    """Namespaces, their services and SpreadGroups, and the admission objects for their pods."""

    def labels(self, name: str) -> Mapping[str, str] | None:
        """The namespace's labels. None if it is unknown."""
        return self._below.labels(name)

    def raw_labels(self, name: str) -> Mapping[str, str] | None:
        """The namespace's labels as read, without the name label that the API server adds."""
        return self._below.raw_labels(name)

    def all_labels(self) -> Mapping[str, Mapping[str, str]]:
        """The labels of all namespaces as read, by namespace name.

        The name label of the API server is not added if an object from a file lacks the label.
        """
        return self._below.all_labels()

    def services(self, name: str) -> tuple[Service, ...]:
        """The namespace's services."""
        return self._below.services(name)

    def all_services(self) -> tuple[Service, ...]:
        """The services of all namespaces. Upstream's lister returns them for an empty namespace."""
        return self._below.all_services()

    def groups(self, name: str) -> tuple[SpreadGroup, ...]:
        """The namespace's SpreadGroups, the oldest first, up to `MOST_GROUPS`."""
        return self._below.groups(name)

    def all_groups(self) -> Mapping[str, tuple[SpreadGroup, ...]]:
        """All SpreadGroups by namespace, the oldest first."""
        return self._below.all_groups()

    def admission_facts(self, name: str, priority_class: str, runtime_class: str) -> AdmissionFacts:
        """The objects read by kube-apiserver's admission, for pods with these classes ("" for none)."""
        return self._below.admission_facts(name, priority_class, runtime_class)


class ReadOnlyIndex:
    """The cluster at one moment.

    Each query returns an immutable value or the caller's own copy. An object missing from the index can still exist,
    unless `lacks` returns an empty text for its resource.

    Args:
        below: Another index. The other arguments replace its views, such as ``nodes``.

    Example:
        ``index.pods.count("shop", compile_selector(selector))`` is the number of matching pods by slot.
    """

    nodes: Nodes
    pods: Pods
    volumes: Volumes
    owners: Owners
    namespaces: Namespaces

    def __init__(  # noqa: PLR0913 one parameter a view
        self,
        below: "ReadOnlyIndex",
        *,
        nodes: Nodes | None = None,
        pods: Pods | None = None,
        volumes: Volumes | None = None,
        owners: Owners | None = None,
        namespaces: Namespaces | None = None,
    ) -> None:
        self._below = below
        self.nodes, self.pods = nodes or below.nodes, pods or below.pods
        self.volumes, self.owners = volumes or below.volumes, owners or below.owners
        self.namespaces = namespaces or below.namespaces

    @property
    def version(self) -> KubernetesVersion:
        """The cluster's release."""
        return self._below.version

    @property
    def taken_at(self) -> str:
        """The ISO time of a snapshot. Empty for a watched cluster."""
        return self._below.taken_at

    @property
    def revision(self) -> int:
        """A number that grows with every change of the cached cluster."""
        return self._below.revision

    @property
    def lacking(self) -> Mapping[str, str]:
        """The unreadable resources (plural names), each with the reason. Key "": there are no nodes."""
        return self._below.lacking

    def lacks(self, *resources: str) -> str:
        """The first unreadable resource with the reason, for messages. Empty if all these resources are readable."""
        lacking = self.lacking
        for resource in resources:
            if resource in lacking:
                return f"{resource}: {lacking[resource]}"
        return lacking.get("", "") if "nodes" in resources else ""
