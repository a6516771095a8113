"""What may be asked of the cluster: five views of it, with the narrow questions of rules, and nothing that changes it.

Whoever judges is given a `ReadOnlyIndex`; only what feeds the cluster's events has the `ClusterIndex` itself.
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

Handle = tuple[str, str]  # a volume's driver, and what that calls the volume


class Volumes(View):
    """Claims, volumes, classes, and what storage drivers say of themselves."""

    def claim(self, namespace: str, name: str) -> Claim | None:
        """The claim of that name."""
        return self._ask(Volumes.claim, namespace, name)

    def volume(self, name: str) -> PersistentVolume | None:
        """The volume of that name."""
        return self._ask(Volumes.volume, name)

    def candidates(self, claim: Claim) -> tuple[PersistentVolume, ...]:
        """The volumes that the claim may bind: unclaimed ones of its class, and those reserved for it.

        Source: storage/volume/pv_helpers.go ``FindMatchingVolume``; volumebinding/assume_cache.go ``ListPVs``.
        """
        return self._ask(Volumes.candidates, claim)

    def storage_class(self, name: str) -> StorageClass | None:
        """The storage class of that name."""
        return self._ask(Volumes.storage_class, name)

    def default_class(self) -> StorageClass | None:
        """The storage class of claims that name none; None also if several are marked as default."""
        return self._ask(Volumes.default_class)

    def attach_limits(self) -> Mapping[str, Mapping[str, int]]:
        """The most volumes that each CSI driver attaches, by node and driver, as far as drivers have said."""
        return self._ask(Volumes.attach_limits)

    def drivers(self) -> Mapping[str, CsiDriver]:
        """The storage drivers that say something of themselves, by name."""
        return self._ask(Volumes.drivers)

    def nodes_with_driver(self, driver: str) -> frozenset[str]:
        """The nodes on which the storage driver is installed."""
        return self._ask(Volumes.nodes_with_driver, driver)

    def capacities(self, storage_class: str) -> tuple[StorageCapacity, ...]:
        """The free capacity that is published of a class."""
        return self._ask(Volumes.capacities, storage_class)

    def attachments(self) -> Mapping[str, int]:
        """How many volumes are attached to each node, whether a pod uses them or not."""
        return self._ask(Volumes.attachments)

    def attached(self, nodes: Sequence[str]) -> Mapping[str, tuple[Handle, ...]]:
        """The volumes that are attached to these nodes: the driver, and what it calls the volume.

        Source: nodevolumelimits/csi.go ``getNodeVolumeAttachmentInfo``.
        """
        return self._ask(Volumes.attached, nodes)


class Owners(View):
    """What makes pods, and what scales it."""

    def get(self, api_version: str, kind: str, namespace: str, name: str) -> Owner | None:
        """The owner of that group, kind and name; its API version does not matter."""
        return self._ask(Owners.get, api_version, kind, namespace, name)

    def of_namespace(self, namespace: str) -> tuple[Owner, ...]:
        """The namespace's owners of every kind."""
        return self._ask(Owners.of_namespace, namespace)

    def matching(self, namespace: str, selector: Selector, most: int) -> tuple[Owner, ...]:
        """The namespace's workloads whose pod template the selector matches, without labels that a controller adds.

        Only workloads with the rarest label that the selector requires are compared: the first ``most`` by name.
        """
        return self._ask(Owners.matching, namespace, selector, most)

    def autoscaler(self, api_version: str, kind: str, namespace: str, name: str) -> Autoscaler | None:
        """The autoscaler whose target is this object, which need not be known; of several, the first by name."""
        return self._ask(Owners.autoscaler, api_version, kind, namespace, name)


class Namespaces(View):
    """Namespaces with their services and SpreadGroups, and what admission reads for their pods."""

    def labels(self, name: str) -> Mapping[str, str] | None:
        """The namespace's labels; None where it is unknown."""
        return self._ask(Namespaces.labels, name)

    def raw_labels(self, name: str) -> Mapping[str, str] | None:
        """The namespace's labels as they were read, without the name label that the API server adds."""
        return self._ask(Namespaces.raw_labels, name)

    def all_labels(self) -> Mapping[str, Mapping[str, str]]:
        """All namespaces that exist, with their labels as they were read."""
        return self._ask(Namespaces.all_labels)

    def services(self, name: str) -> tuple[Service, ...]:
        """The namespace's services."""
        return self._ask(Namespaces.services, name)

    def all_services(self) -> tuple[Service, ...]:
        """The services of all namespaces: upstream's lister returns them for an empty namespace."""
        return self._ask(Namespaces.all_services)

    def groups(self, name: str) -> tuple[SpreadGroup, ...]:
        """The namespace's SpreadGroups, the oldest first, up to `MOST_GROUPS`."""
        return self._ask(Namespaces.groups, name)

    def all_groups(self) -> Mapping[str, tuple[SpreadGroup, ...]]:
        """All SpreadGroups by namespace, the oldest first."""
        return self._ask(Namespaces.all_groups)

    def admission_facts(self, name: str, priority_class: str, runtime_class: str) -> AdmissionFacts:
        """What kube-apiserver's admission reads for pods of the namespace that name these classes; "" for none."""
        return self._ask(Namespaces.admission_facts, name, priority_class, runtime_class)


class ReadOnlyIndex:
    """The cluster at one moment.

    An answer is the caller's own copy, or immutable. An object that is not known may exist nevertheless, unless `lacks`
    says that all of its kind are known.

    Args:
        below: The cluster that this one is but for the views given here.
    """

    nodes: Nodes
    pods: Pods
    volumes: Volumes
    owners: Owners
    namespaces: Namespaces

    def __init__(
        self,
        below: "ReadOnlyIndex",
        *,
        nodes: Nodes | None = None,
        pods: Pods | None = None,
        volumes: Volumes | None = None,
        owners: Owners | None = None,
    ) -> None:
        self._below = below
        self.nodes, self.pods = nodes or below.nodes, pods or below.pods
        self.volumes, self.owners = volumes or below.volumes, owners or below.owners
        self.namespaces = below.namespaces

    @property
    def version(self) -> KubernetesVersion:
        """The cluster's release."""
        return self._below.version

    @property
    def taken_at(self) -> str:
        """The ISO time at which a snapshot was taken; empty for a cluster that is watched."""
        return self._below.taken_at

    @property
    def revision(self) -> int:
        """A number that grows with every change."""
        return self._below.revision

    @property
    def lacking(self) -> Mapping[str, str]:
        """The resources (the API's plural) that could not be read, each with the reason. Key "": there are no nodes."""
        return self._below.lacking

    def lacks(self, *resources: str) -> str:
        """Which of these resources is missing and why, as rules print it; empty if all are known."""
        lacking = self.lacking
        for resource in resources:
            if resource in lacking:
                return f"{resource}: {lacking[resource]}"
        return lacking.get("", "") if "nodes" in resources else ""
