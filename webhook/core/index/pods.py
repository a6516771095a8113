"""The facts about pods that verdicts need, and the queries about them (`Pods`)."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from webhook.core.api import gates
from webhook.core.api.resources import PodRequest
from webhook.core.api.selectors import Selector, compile_selector
from webhook.core.api.types import (
    ANY_ADDRESS,
    Container,
    ObjectMeta,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    Volume,
)
from webhook.core.api.version import KubernetesVersion
from webhook.core.index.view import View

FINISHED = frozenset({"Succeeded", "Failed"})
# The weight of a volume other than a plain claim. Reading it can fail. The weight exceeds any limit, so the scheduler's
# NodeVolumeLimits always reads it, and fails like upstream.
_PAST_ANY_LIMIT = 2**31

# The number of pods by slot. Read-only.
Counts = Mapping[int, int]
HostPort = tuple[str, str, int]  # address, protocol, port


class Term(Struct, frozen=True):
    """A required pod affinity or anti-affinity term, resolved for its pod.

    Source: k8s.io/kube-scheduler framework/types.go ``newAffinityTerm``.
    """

    topology_key: str
    namespaces: frozenset[str]
    namespace_selector: Selector
    selector: Selector

    def in_namespace(self, namespace: str, labels: Mapping[str, str] | None) -> bool:
        """Whether the term applies to pods of this namespace. Source: kube-scheduler framework/types.go ``Matches``."""
        return namespace in self.namespaces or self.namespace_selector.matches(labels or {})


def resolve_term(term: PodAffinityTerm, namespace: str) -> Term:
    """Resolve a term of a pod in this namespace.

    Raises:
        ValueError: A selector is invalid.

    Source: kube-scheduler framework/types.go ``newAffinityTerm``, ``getNamespacesFromPodAffinityTerm``.
    """
    own = not term.namespaces and term.namespace_selector is None
    selector = compile_selector(term.label_selector)  # Compiled first, because upstream reports its fault first.
    return Term(
        topology_key=term.topology_key,
        namespaces=frozenset({namespace} if own else term.namespaces or ()),
        namespace_selector=compile_selector(term.namespace_selector),
        selector=selector,
    )


def host_ports(spec: PodSpec, version: KubernetesVersion) -> tuple[HostPort, ...]:
    """The host ports of containers and sidecars.

    Source: pkg/scheduler/util/utils.go ``GetHostPorts``; kube-scheduler framework/types.go ``sanitize``.
    """
    ports: list[HostPort] = []
    for container in (spec.init_containers or ()) if gates.SIDECARS_HAVE_PORTS.holds(version) else ():
        if container.ports and container.restart_policy == "Always":
            ports += _ports_of(container)
    for container in spec.containers or ():
        if container.ports:
            ports += _ports_of(container)
    return tuple(ports)


def _ports_of(container: Container) -> Iterator[HostPort]:
    """Source: kube-scheduler framework/types.go ``sanitize``."""
    for port in container.ports or ():
        if port.host_port is not None and port.host_port > 0:
            yield port.host_ip or ANY_ADDRESS, port.protocol or "TCP", port.host_port


class Mounted(Struct, frozen=True):
    """The volumes of a pod on a node. An ephemeral claim belongs to the pod if ``name`` and ``uid`` match."""

    namespace: str
    name: str
    uid: str
    volumes: tuple[Volume, ...]

    @property
    def weight(self) -> int:
        """An upper bound of the pod's volumes of one driver. It exceeds any limit if reading a volume can fail."""
        claims = (volume.persistent_volume_claim for volume in self.volumes)
        return sum(1 if claim is not None and claim.claim_name else _PAST_ANY_LIMIT for claim in claims)


class Extras(Struct, frozen=True):
    """Host ports, volumes and required anti-affinity terms. Few pods have any."""

    ports: tuple[HostPort, ...] = ()
    mounted: Mounted | None = None
    terms: tuple[Term, ...] = ()


NO_EXTRAS = Extras()


class PodOnNode(Struct, frozen=True):
    """A pod on a node.

    Attributes:
        slot: The node's slot.
        terminates: Whether the pod is being deleted.
        labels: Its labels.
        request: Its requested resources.
        ports: Its host ports.
        terms: Its required anti-affinity terms.
    """

    slot: int
    terminates: bool
    labels: Mapping[str, str]
    request: PodRequest
    ports: tuple[HostPort, ...]
    terms: tuple[Term, ...]


def preferred_terms(affinity: PodAffinity | None) -> Iterator[tuple[int, PodAffinityTerm]]:
    """The preferred terms with their weights.

    Source: kube-scheduler framework/types.go ``GetWeightedAffinityTerms``.
    """
    for term in (affinity.preferred if affinity else None) or ():
        if term.pod_affinity_term is not None:
            yield term.weight or 0, term.pod_affinity_term


def extras_of(meta: ObjectMeta, spec: PodSpec, version: KubernetesVersion) -> Extras:
    """Collect the pod's host ports, volumes and anti-affinity terms. Source: framework/types.go ``Update``."""
    anti_affinity = spec.affinity.pod_anti_affinity if spec.affinity is not None else None
    required = (anti_affinity.required if anti_affinity is not None else None) or ()
    ports = host_ports(spec, version)
    # The scheduler ignores all other kinds of volumes, such as ConfigMaps, Secrets and emptyDir.
    volumes = tuple(volume for volume in spec.volumes if volume.has_claim or _in_tree(volume)) if spec.volumes else ()
    if not (required or ports or volumes):
        return NO_EXTRAS
    try:
        terms = tuple(resolve_term(term, meta.namespace) for term in required)
    except ValueError:
        terms = ()  # Upstream also drops all terms if one is invalid.
    mounted = Mounted(meta.namespace, meta.name, meta.uid, volumes) if volumes else None
    return Extras(ports, mounted, terms)


def _in_tree(volume: Volume) -> bool:
    """Whether the pod names a disk directly, without a claim."""
    disks = (volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.azure_disk, volume.cinder)
    return any(disk is not None for disk in (*disks, volume.iscsi, volume.rbd, volume.portworx_volume))


class ScoreFacts(Struct, frozen=True):
    """The facts that only node scores need, by slot of existing nodes.

    Attributes:
        assumed: CPU and memory that scores assume beyond the pods' requests, in milli-CPU and bytes.
        drawn: The matching terms of existing pods: the topology key, and their weight on each node. The weight of
            anti-affinity is negative.
    """

    assumed: Mapping[int, tuple[int, int]]
    drawn: tuple[tuple[str, Mapping[int, int]], ...]

    def joined(self, other: "ScoreFacts") -> "ScoreFacts":
        """Add the facts of another source."""
        assumed = dict(self.assumed)
        for slot, (cpu, memory) in other.assumed.items():
            before = assumed.get(slot, (0, 0))
            assumed[slot] = before[0] + cpu, before[1] + memory
        return ScoreFacts(assumed, (*self.drawn, *other.drawn))


class Pods(View):
    """The pods of the cluster.

    A slot is a node's index in `Nodes.view`. Answers by slot can include slots of deleted nodes.
    """

    def count(self, namespace: str, selector: Selector, *, terminating: bool = False) -> Counts:
        """The number of matching pods by slot, never 0. With ``terminating``, terminating pods count too."""
        return self._ask(Pods.count, namespace, selector, terminating=terminating)

    def count_unspread(self, namespace: str, selector: Selector) -> int:
        """The number of matching pods on nodes without a constraint, except terminating ones. No overlay changes it."""
        return self._ask(Pods.count_unspread, namespace, selector)

    def names(self, namespace: str) -> tuple[str, ...]:
        """The namespace's unfinished pods: first those on nodes, then those without a node."""
        return self._ask(Pods.names, namespace)

    def on_node(self, namespace: str, name: str) -> PodOnNode | None:
        """The pod of this name, even if terminating. None if it is on no node."""
        return self._ask(Pods.on_node, namespace, name)

    def namespaces(self) -> tuple[str, ...]:
        """The namespaces with a pod on a node."""
        return self._ask(Pods.namespaces)

    def matching(self, namespace: str, selector: Selector) -> Sequence[tuple[str, int]]:
        """The names and slots of the namespace's matching pods, including terminating ones."""
        return self._ask(Pods.matching, namespace, selector)

    def objecting(self, namespace: str, labels: Mapping[str, str]) -> Sequence[tuple[str, str, int]]:
        """The pods whose anti-affinity rejects a pod with these labels: namespace, name and slot."""
        return self._ask(Pods.objecting, namespace, labels)

    def terms_matching(self, namespace: str, labels: Mapping[str, str]) -> Sequence[tuple[str, Counts]]:
        """The anti-affinity terms of pods that reject a pod with these labels: topology key, and pods by slot."""
        return self._ask(Pods.terms_matching, namespace, labels)

    def score_facts(self, namespace: str, labels: Mapping[str, str]) -> ScoreFacts | None:
        """The facts that only scores need, for a pod with these labels. None if the index does not keep them."""
        return self._ask(Pods.score_facts, namespace, labels)

    def waiting(self, namespace: str | None = None) -> tuple[Pod, ...]:
        """The pods without a node, of one or all namespaces."""
        return self._ask(Pods.waiting, namespace)

    def count_waiting(self, namespace: str, selector: Selector) -> int:
        """The number of the namespace's matching pods without a node."""
        return self._ask(Pods.count_waiting, namespace, selector)

    def nominated(self) -> Mapping[str, tuple[Pod, ...]]:
        """The waiting pods nominated for a node by preemption, by the node's name."""
        return self._ask(Pods.nominated)

    def lower(self, priority: int) -> Mapping[int, Sequence[tuple[int, PodRequest]]]:
        """The pods of a lower priority by slot: priority and request. Takes about 20 ms for 150,000 pods."""
        return self._ask(Pods.lower, priority)

    def host_ports(self) -> Mapping[int, tuple[HostPort, ...]]:
        """The host ports in use, by slot."""
        return self._ask(Pods.host_ports)

    def claim_users(self, namespace: str, name: str) -> Counts:
        """The number of pods on each node that mount the claim."""
        return self._ask(Pods.claim_users, namespace, name)

    def mounts(self) -> Mapping[int, int]:
        """An upper bound of the volumes of one driver on each node, by slot."""
        return self._ask(Pods.mounts)

    def mounting(self, slots: Sequence[int] | None = None) -> Mapping[int, tuple[Mounted, ...]]:
        """The pods with volumes on these nodes, by slot. Without ``slots``, on every node."""
        return self._ask(Pods.mounting, slots)
