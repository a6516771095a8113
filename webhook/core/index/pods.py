"""The pods: what verdicts need to know of them, and the questions about them."""

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
# Weight of a volume that is no plain claim: looking at it can fail. More than any limit, so that the scheduler's
# NodeVolumeLimits always looks, and fails where upstream does.
_PAST_ANY_LIMIT = 2**31

# Pods by slot, as they are read; who counts writes into a dict of its own.
Counts = Mapping[int, int]
HostPort = tuple[str, str, int]  # address, protocol, port


class Term(Struct, frozen=True):
    """A required pod affinity or anti-affinity term, resolved for the pod that has it.

    Source: k8s.io/kube-scheduler framework/types.go ``newAffinityTerm``.
    """

    topology_key: str
    namespaces: frozenset[str]
    namespace_selector: Selector
    selector: Selector

    def in_namespace(self, namespace: str, labels: Mapping[str, str] | None) -> bool:
        """Whether it applies to pods of this namespace. Source: kube-scheduler framework/types.go ``Matches``."""
        return namespace in self.namespaces or self.namespace_selector.matches(labels or {})


def resolve_term(term: PodAffinityTerm, namespace: str) -> Term:
    """Resolve a term of a pod in this namespace.

    Errors: ValueError for an invalid selector.
    Source: kube-scheduler framework/types.go ``newAffinityTerm``, ``getNamespacesFromPodAffinityTerm``.
    """
    own = not term.namespaces and term.namespace_selector is None
    selector = compile_selector(term.label_selector)  # the first fault is the one that upstream names
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
    """A pod on a node with its volumes; ``name`` and ``uid`` tell whether an ephemeral claim belongs to it."""

    namespace: str
    name: str
    uid: str
    volumes: tuple[Volume, ...]

    @property
    def weight(self) -> int:
        """An upper bound of the pod's volumes of one driver; past any limit if looking at one could fail."""
        claims = (volume.persistent_volume_claim for volume in self.volumes)
        return sum(1 if claim is not None and claim.claim_name else _PAST_ANY_LIMIT for claim in claims)


class Extras(Struct, frozen=True):
    """Host ports, volumes and required anti-affinity terms: few pods have any."""

    ports: tuple[HostPort, ...] = ()
    mounted: Mounted | None = None
    terms: tuple[Term, ...] = ()


NO_EXTRAS = Extras()


class PodOnNode(Struct, frozen=True):
    """A pod on a node. ``terms`` are its anti-affinity terms; ``terminates`` is true during its deletion."""

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
    """What a pod has of host ports, volumes and anti-affinity terms. Source: framework/types.go ``Update``."""
    anti_affinity = spec.affinity.pod_anti_affinity if spec.affinity is not None else None
    required = (anti_affinity.required if anti_affinity is not None else None) or ()
    ports = host_ports(spec, version)
    # The scheduler looks at no other kinds of volumes, as of ConfigMaps, Secrets or emptyDir.
    volumes = tuple(volume for volume in spec.volumes if volume.has_claim or _in_tree(volume)) if spec.volumes else ()
    if not (required or ports or volumes):
        return NO_EXTRAS
    try:
        terms = tuple(resolve_term(term, meta.namespace) for term in required)
    except ValueError:
        terms = ()  # as upstream, which drops all of them when one cannot be read
    mounted = Mounted(meta.namespace, meta.name, meta.uid, volumes) if volumes else None
    return Extras(ports, mounted, terms)


def _in_tree(volume: Volume) -> bool:
    """Whether the pod names a disk directly, without a claim."""
    disks = (volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.azure_disk, volume.cinder)
    return any(each is not None for each in (*disks, volume.iscsi, volume.rbd, volume.portworx_volume))


class ScoreFacts(Struct, frozen=True):
    """What scores depend on beside what filters ask; by slot, of nodes that exist.

    Attributes:
        assumed: The CPU and memory that pods count as beyond what they request, in milli-CPU and bytes.
        drawn: The terms of existing pods that match the pod. The topology key, and their weight on each node, which is
            negative for anti-affinity.
    """

    assumed: Mapping[int, tuple[int, int]]
    drawn: tuple[tuple[str, Mapping[int, int]], ...]

    def joined(self, other: "ScoreFacts") -> "ScoreFacts":
        """The facts of both."""
        assumed = dict(self.assumed)
        for slot, (cpu, memory) in other.assumed.items():
            before = assumed.get(slot, (0, 0))
            assumed[slot] = before[0] + cpu, before[1] + memory
        return ScoreFacts(assumed, (*self.drawn, *other.drawn))


class Pods(View):
    """The pods of the cluster.

    A slot is a node's place in `Nodes.view`. Answers by slot may have slots of nodes that are gone.
    """

    def count(self, namespace: str, selector: Selector, *, terminating: bool = False) -> Counts:
        """The number of matching pods by slot, never 0. Terminating pods count only with ``terminating``."""
        return self._ask(Pods.count, namespace, selector, terminating=terminating)

    def count_unspread(self, namespace: str, selector: Selector) -> int:
        """The number of matching pods on nodes without a constraint that do not terminate. No overlay changes it."""
        return self._ask(Pods.count_unspread, namespace, selector)

    def names(self, namespace: str) -> tuple[str, ...]:
        """The namespace's unfinished pods: first those on nodes, then those without a node."""
        return self._ask(Pods.names, namespace)

    def on_node(self, namespace: str, name: str) -> PodOnNode | None:
        """The pod of that name, terminating or not; None if it is on no node."""
        return self._ask(Pods.on_node, namespace, name)

    def namespaces(self) -> tuple[str, ...]:
        """The namespaces with a pod on a node."""
        return self._ask(Pods.namespaces)

    def matching(self, namespace: str, selector: Selector) -> Sequence[tuple[str, int]]:
        """The names and slots of the namespace's pods that a selector matches, including terminating pods."""
        return self._ask(Pods.matching, namespace, selector)

    def objecting(self, namespace: str, labels: Mapping[str, str]) -> Sequence[tuple[str, str, int]]:
        """The pods with an anti-affinity term that matches such an incoming pod: namespace, name and slot."""
        return self._ask(Pods.objecting, namespace, labels)

    def terms_matching(self, namespace: str, labels: Mapping[str, str]) -> Sequence[tuple[str, Counts]]:
        """The anti-affinity terms of existing pods that match such an incoming pod: topology key, and pods by slot."""
        return self._ask(Pods.terms_matching, namespace, labels)

    def score_facts(self, namespace: str, labels: Mapping[str, str]) -> ScoreFacts | None:
        """What scores of nodes for such a pod depend on beside what filters ask; None where that is not kept."""
        return self._ask(Pods.score_facts, namespace, labels)

    def waiting(self, namespace: str | None = None) -> tuple[Pod, ...]:
        """The namespace's pods that have no node yet, or those of all namespaces."""
        return self._ask(Pods.waiting, namespace)

    def count_waiting(self, namespace: str, selector: Selector) -> int:
        """How many of the namespace's pods that have no node yet the selector matches."""
        return self._ask(Pods.count_waiting, namespace, selector)

    def nominated(self) -> Mapping[str, tuple[Pod, ...]]:
        """The waiting pods that preemption has nominated for a node, by that node."""
        return self._ask(Pods.nominated)

    def lower(self, priority: int) -> Mapping[int, Sequence[tuple[int, PodRequest]]]:
        """The pods of a lower priority by slot: priority and request. Takes some 20 ms for 150,000 pods."""
        return self._ask(Pods.lower, priority)

    def host_ports(self) -> Mapping[int, tuple[HostPort, ...]]:
        """The host ports that existing pods use, by slot."""
        return self._ask(Pods.host_ports)

    def claim_users(self, namespace: str, name: str) -> Counts:
        """How many pods on each node mount the claim."""
        return self._ask(Pods.claim_users, namespace, name)

    def mounts(self) -> Mapping[int, int]:
        """An upper bound of the volumes of one driver that a node's pods have, by slot."""
        return self._ask(Pods.mounts)

    def mounting(self, slots: Sequence[int] | None = None) -> Mapping[int, tuple[Mounted, ...]]:
        """The pods with volumes on these nodes, by slot; without ``slots`` those on every node."""
        return self._ask(Pods.mounting, slots)
