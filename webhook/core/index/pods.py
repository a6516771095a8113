"""Queries about pods (`Pods`), and their results. Verdicts need no other data about pods."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from webhook.core.api.pod_requests import PodRequest
from webhook.core.api.selectors import Selector
from webhook.core.api.types import Pod
from webhook.core.index.affinity_terms import Term
from webhook.core.index.pod_extras import HostPort, Mounted
from webhook.core.index.view import View

FINISHED = frozenset({"Succeeded", "Failed"})

# The number of pods by slot. Read-only.
Counts = Mapping[int, int]


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


class ScoreFacts(Struct, frozen=True):
    """Facts about existing pods, used only to score nodes for a new pod.

    Attributes:
        assumed: The CPU (milli-CPU) and memory (bytes) assumed for pods without requests, by the slot of an existing
            node. The score adds these amounts to the requests.
        term_weights: The affinity and anti-affinity terms of existing pods that match the new pod. Each entry has a
            topology key, and the term's weight on each node by slot. Anti-affinity has a negative weight.
    """

    assumed: Mapping[int, tuple[int, int]]
    term_weights: tuple[tuple[str, Mapping[int, int]], ...]

    def joined(self, other: "ScoreFacts") -> "ScoreFacts":
        """Return these facts together with the facts of another source."""
        assumed = dict(self.assumed)
        for slot, (cpu, memory) in other.assumed.items():
            before = assumed.get(slot, (0, 0))
            assumed[slot] = before[0] + cpu, before[1] + memory
        return ScoreFacts(assumed, (*self.term_weights, *other.term_weights))


class Pods(View["Pods"]):
    """Queries on the pods of the cluster.

    A slot is a node's index in `Nodes.view`. Results by slot can include slots of deleted nodes.
    """

    def count(self, namespace: str, selector: Selector, *, terminating: bool = False) -> Counts:
        """The number of matching pods on each node, by node slot. Nodes without a matching pod are missing.

        With ``terminating``, terminating pods count too.
        """
        return self._below.count(namespace, selector, terminating=terminating)

    def count_unspread(self, namespace: str, selector: Selector) -> int:
        """The number of matching scheduled pods without a constraint.

        Terminating pods do not count. Overlays do not change this number.
        """
        return self._below.count_unspread(namespace, selector)

    def free_ordinal(self, namespace: str, stem: str, first: int) -> int:
        """Return the lowest ordinal from ``first`` without an unfinished pod of this name.

        The pod's name is ``<stem>-<ordinal>``.
        """
        return self._below.free_ordinal(namespace, stem, first)

    def on_node(self, namespace: str, name: str) -> PodOnNode | None:
        """The pod of this name, even if terminating. None if it is on no node."""
        return self._below.on_node(namespace, name)

    def namespaces(self) -> tuple[str, ...]:
        """The namespaces with a pod on a node."""
        return self._below.namespaces()

    def matching(self, namespace: str, selector: Selector) -> Sequence[tuple[str, int]]:
        """The names of the namespace's matching pods, each with the slot of its node. Terminating pods are included."""
        return self._below.matching(namespace, selector)

    def objecting(self, namespace: str, labels: Mapping[str, str]) -> Sequence[tuple[str, str, int]]:
        """The pods whose anti-affinity rejects a pod with these labels: namespace, name and slot."""
        return self._below.objecting(namespace, labels)

    def terms_matching(self, namespace: str, labels: Mapping[str, str]) -> Sequence[tuple[str, Counts]]:
        """The existing pods' anti-affinity terms that match a pod with these labels.

        Each entry is the term's topology key, and the number of pods with the term by node slot.
        """
        return self._below.terms_matching(namespace, labels)

    def score_facts(self, namespace: str, labels: Mapping[str, str]) -> ScoreFacts | None:
        """The facts used only to score nodes for a pod with these labels. None if the index lacks these facts."""
        return self._below.score_facts(namespace, labels)

    def waiting(self, namespace: str | None = None) -> tuple[Pod, ...]:
        """The pods without a node, in this namespace or all namespaces."""
        return self._below.waiting(namespace)

    def count_waiting(self, namespace: str, selector: Selector) -> int:
        """The number of the namespace's matching pods without a node."""
        return self._below.count_waiting(namespace, selector)

    def nominated(self) -> Mapping[str, tuple[Pod, ...]]:
        """The waiting pods nominated for a node by preemption, by the node's name."""
        return self._below.nominated()

    def lower(self, priority: int) -> Mapping[int, Sequence[tuple[int, PodRequest]]]:
        """The pods with a lower priority, by node slot.

        Each entry has the pod's priority and resource requests. Takes about 20 ms for 150,000 pods.
        """
        return self._below.lower(priority)

    def host_ports(self) -> Mapping[int, tuple[HostPort, ...]]:
        """The host ports in use on each node, by the node's slot."""
        return self._below.host_ports()

    def claim_users(self, namespace: str, name: str) -> Counts:
        """The number of pods on each node that mount the claim."""
        return self._below.claim_users(namespace, name)

    def mounts(self) -> Mapping[int, int]:
        """The most volumes that the pods on a node can need from any one driver, by node slot. An upper bound."""
        return self._below.mounts()

    def mounting(self, slots: Sequence[int] | None = None) -> Mapping[int, tuple[Mounted, ...]]:
        """The pods with volumes on these nodes, by slot. Without ``slots``, on every node."""
        return self._below.mounting(slots)
