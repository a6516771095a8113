"""What may be asked of the cluster: the narrow questions that rules and verdicts have, and nothing that changes it.

Whoever judges is given a `ReadOnlyIndex`; only what feeds the cluster's events has the `ClusterIndex` itself.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from webhook.core.api.resources import PodRequest
from webhook.core.api.selectors import Selector
from webhook.core.api.spread_group import SpreadGroup
from webhook.core.api.storage import Claim, CsiDriver, PersistentVolume, StorageCapacity, StorageClass
from webhook.core.api.types import Node, Pod, Service
from webhook.core.api.version import KubernetesVersion
from webhook.core.apiserver.admission_plugins import AdmissionFacts
from webhook.core.index.objects import Autoscaler, Owner
from webhook.core.index.tables.node_table import NodeView
from webhook.core.index.tables.pod_groups import Counts
from webhook.core.index.tables.pod_table import HostPort, Mounted, PodOnNode
from webhook.core.index.tables.score_table import ScoreFacts
from webhook.core.index.tables.storage_drivers import Handle


class ReadOnlyIndex(Protocol):
    """The cluster at one moment.

    Shape: an answer is the caller's own copy, or immutable. An object that is not known may exist nevertheless, unless
    `lacks` says that all of its kind are known. A slot is a node's place in `view`; answers by slot may have slots of
    nodes that are gone.
    """

    @property
    def version(self) -> KubernetesVersion:
        """The cluster's release."""

    @property
    def taken_at(self) -> str:
        """The ISO time at which a snapshot was taken; empty for a cluster that is watched."""

    @property
    def revision(self) -> int:
        """A number that grows with every change."""

    @property
    def lacking(self) -> Mapping[str, str]:
        """The resources that could not be read, or not yet, each with a few words why.

        Shape: a resource is the API's plural; the empty text stands for "there are no nodes".
        """

    def lacks(self, *resources: str) -> str:
        """Which of these resources is missing and why, as rules print it; empty if all are known."""
        lacking = self.lacking
        for resource in resources:
            if resource in lacking:
                return f"{resource}: {lacking[resource]}"
        return lacking.get("", "") if "nodes" in resources else ""

    # Nodes.

    def view(self) -> NodeView:
        """All nodes as they are now, in a value that never changes."""

    def node(self, name: str) -> Node | None:
        """The node of that name."""

    def short_of(self, amounts: tuple[tuple[str, int], ...]) -> Mapping[str, tuple[int, ...]]:
        """The free amounts by slot of those resources of which some node has less than this amount."""

    def never_enough(self, resource: str, amount: int) -> tuple[int, ...] | None:
        """The allocatable amounts of a resource by slot; None if every node has this amount."""

    def amounts(self, resource: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The free and the allocatable amounts of a resource, by slot."""

    # Pods.

    def count(self, namespace: str, selector: Selector, *, leaving: bool = False) -> Counts:
        """How many of the namespace's pods on each node the selector matches; terminating ones only with ``leaving``.

        Shape: from slot to a number of pods, never 0.
        """

    def count_unspread(self, namespace: str, selector: Selector) -> int:
        """How many of the namespace's pods on nodes the selector matches that have no constraint and do not terminate.

        Shape: of the cluster as it is, without what is laid over it.
        """

    def pod_names(self, namespace: str) -> tuple[str, ...]:
        """The namespace's unfinished pods: first those on nodes, then those without a node."""

    def pod_on_node(self, namespace: str, name: str) -> PodOnNode | None:
        """The pod of that name, terminating or not; None if it is on no node."""

    def pod_namespaces(self) -> tuple[str, ...]:
        """The namespaces with a pod on a node."""

    def pods_matching(self, namespace: str, selector: Selector) -> Sequence[tuple[str, int]]:
        """The names and slots of the namespace's pods that a selector matches, including terminating pods."""

    def pods_objecting(self, namespace: str, labels: Mapping[str, str]) -> Sequence[tuple[str, str, int]]:
        """The pods with an anti-affinity term that matches such an incoming pod: namespace, name and slot."""

    def terms_matching(self, namespace: str, labels: Mapping[str, str]) -> Sequence[tuple[str, Counts]]:
        """The anti-affinity terms of existing pods that match such an incoming pod: topology key, and pods by slot."""

    def score_facts(self, namespace: str, labels: Mapping[str, str]) -> ScoreFacts | None:
        """What scores of nodes for such a pod depend on beside what filters ask; None where that is not kept."""

    def waiting_pods(self, namespace: str | None = None) -> tuple[Pod, ...]:
        """The namespace's pods that have no node yet, or those of all namespaces."""

    def count_waiting(self, namespace: str, selector: Selector) -> int:
        """How many of the namespace's pods that have no node yet the selector matches."""

    def nominated_pods(self) -> Mapping[str, tuple[Pod, ...]]:
        """The waiting pods that preemption has nominated for a node, by that node."""

    def lower_pods(self, priority: int) -> Mapping[int, Sequence[tuple[int, PodRequest]]]:
        """The pods of a lower priority on each node, by slot: the priority of each, and what it takes.

        Shape: looks at every pod; in 150,000 of them, some 20 ms.
        """

    def taken_ports(self) -> Mapping[int, tuple[HostPort, ...]]:
        """The host ports that existing pods use, by slot."""

    # Volumes.

    def claim(self, namespace: str, name: str) -> Claim | None:
        """The claim of that name."""

    def claim_users(self, namespace: str, name: str) -> Counts:
        """How many pods on each node mount the claim."""

    def volume(self, name: str) -> PersistentVolume | None:
        """The volume of that name."""

    def volumes_for(self, claim: Claim) -> tuple[PersistentVolume, ...]:
        """The volumes that the claim may bind: unclaimed ones of its class, and those reserved for it.

        Source: storage/volume/pv_helpers.go ``FindMatchingVolume``; volumebinding/assume_cache.go ``ListPVs``.
        """

    def storage_class(self, name: str) -> StorageClass | None:
        """The storage class of that name."""

    def default_class(self) -> StorageClass | None:
        """The storage class of claims that name none; None also if several are marked as default."""

    def attach_limits(self) -> Mapping[str, Mapping[str, int]]:
        """The most volumes that each CSI driver attaches, by node and driver, as far as drivers have said."""

    def csi_drivers(self) -> Mapping[str, CsiDriver]:
        """The storage drivers that say something of themselves, by name."""

    def nodes_with_driver(self, driver: str) -> frozenset[str]:
        """The nodes on which the storage driver is installed."""

    def storage_capacities(self, storage_class: str) -> tuple[StorageCapacity, ...]:
        """The free capacity that is published of a class."""

    def attachments(self) -> Mapping[str, int]:
        """How many volumes are attached to each node, whether a pod uses them or not."""

    def attached(self, nodes: Sequence[str]) -> Mapping[str, tuple[Handle, ...]]:
        """The volumes that are attached to these nodes: the driver, and what it calls the volume."""

    def mounts(self) -> Mapping[int, int]:
        """An upper bound of the volumes of one driver that a node's pods have, by slot."""

    def mounting_pods(self, slots: Sequence[int] | None = None) -> Mapping[int, tuple[Mounted, ...]]:
        """The pods with volumes on these nodes, by slot; without ``slots`` those on every node."""

    # Namespaces, services, and what makes pods.

    def admission_facts(self, namespace: str, priority_class: str, runtime_class: str) -> AdmissionFacts:
        """What kube-apiserver's admission reads for pods of the namespace that name these classes; "" for none."""

    def namespace_labels(self, name: str) -> Mapping[str, str] | None:
        """The namespace's labels; None where it is unknown."""

    def raw_namespace_labels(self, name: str) -> Mapping[str, str] | None:
        """The namespace's labels as they were read, without the name label that the API server adds."""

    def namespaces_with_labels(self) -> Mapping[str, Mapping[str, str]]:
        """All namespaces that exist, with their labels as they were read."""

    def services(self, namespace: str) -> tuple[Service, ...]:
        """The namespace's services."""

    def all_services(self) -> tuple[Service, ...]:
        """The services of all namespaces: upstream's lister returns them for an empty namespace."""

    def owner(self, api_version: str, kind: str, namespace: str, name: str) -> Owner | None:
        """The owner of that group, kind and name; its API version does not matter."""

    def owners(self, namespace: str) -> tuple[Owner, ...]:
        """The namespace's owners of every kind."""

    def workloads(self, namespace: str, selector: Selector, most: int) -> tuple[Owner, ...]:
        """The namespace's workloads with a pod template that the selector matches, as far as templates are known.

        Shape: only labels of the template count, not those that a controller adds later. Candidates are the workloads
        with the rarest label that the selector requires; of these, the first ``most`` by kind and name are compared.
        """

    def autoscaler(self, api_version: str, kind: str, namespace: str, name: str) -> Autoscaler | None:
        """The autoscaler whose target is this object, which need not be known; of several, the first by name."""

    def groups(self, namespace: str) -> tuple[SpreadGroup, ...]:
        """The namespace's SpreadGroups, the oldest first, up to `MOST_GROUPS`."""

    def every_group(self) -> Mapping[str, tuple[SpreadGroup, ...]]:
        """All SpreadGroups by namespace, the oldest first."""
