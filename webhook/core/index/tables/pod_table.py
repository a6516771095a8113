"""The pods on nodes, as in kube-scheduler's cache: where each is, and what it takes from its node.

Finished pods and pods without a node are not in it. A terminating pod still holds its resources, ports, volumes and
affinity terms; only spread constraints do not count it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from msgspec import Struct

from webhook.core.api import gates
from webhook.core.api.resources import PodRequest, existing_request
from webhook.core.api.selectors import Selector, compile_selector
from webhook.core.api.types import (
    ANY_ADDRESS,
    Container,
    ObjectMeta,
    Pod,
    PodAffinityTerm,
    PodSpec,
    Volume,
    named_claims,
)
from webhook.core.api.version import KubernetesVersion
from webhook.core.index.tables.node_table import Nodes
from webhook.core.index.tables.pod_groups import Counts, NamespacePods, PodRecord, Requirements, bump
from webhook.core.index.tables.shrinking import discard, drop, drop_under, put_under
from webhook.core.time_limit import check_time

FINISHED = frozenset({"Succeeded", "Failed"})
# A term is looked up by namespace and label if that takes at most this many entries: their product can be immense.
_MAX_ENTRIES_OF_A_TERM = 16
# Different terms of one namespace's pods that are compared with an incoming pod, 3 µs each. Of a namespace that has
# more none is: its pods would slow down everybody's.
MOST_TERMS_ON_A_SHELF = 100
_ANY = ""  # instead of a namespace

_Outer = TypeVar("_Outer")
_Key = TypeVar("_Key")
_Shelf = tuple[str, ...]  # namespace, label and value; without label where a term requires none
# Weight of a volume that is no plain claim: looking at it can fail. More than any limit, so that the scheduler's
# NodeVolumeLimits always looks, and fails where upstream does.
_PAST_ANY_LIMIT = 2**31

HostPort = tuple[str, str, int]  # address, protocol, port


class Term(Struct, frozen=True):
    """A required pod affinity or anti-affinity term, resolved for the pod that has it.

    Shape: it applies to pods in ``namespaces``, and in namespaces that ``namespace_selector`` matches.
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


def host_ports(pod: Pod, version: KubernetesVersion) -> tuple[HostPort, ...]:
    """The host ports of containers and sidecars.

    Source: pkg/scheduler/util/utils.go ``GetHostPorts``; kube-scheduler framework/types.go ``sanitize``.
    """
    return _ports(pod.pod_spec, version)


def _ports(spec: PodSpec, version: KubernetesVersion) -> tuple[HostPort, ...]:
    """Source: pkg/scheduler/util/utils.go ``GetHostPorts``."""
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
        return sum(1 if _plain(volume) else _PAST_ANY_LIMIT for volume in self.volumes)


def _plain(volume: Volume) -> bool:
    claim = volume.persistent_volume_claim
    return claim is not None and bool(claim.claim_name)


class _Extras(Struct, frozen=True):
    """What few pods have: host ports, volumes, and required anti-affinity terms."""

    ports: tuple[HostPort, ...] = ()
    mounted: Mounted | None = None
    terms: tuple[Term, ...] = ()


_NO_EXTRAS = _Extras()


class PodOnNode(Struct, frozen=True):
    """A pod on a node. ``terms`` are its anti-affinity terms; ``terminates`` is true during its deletion."""

    slot: int
    terminates: bool
    labels: Mapping[str, str]
    request: PodRequest
    ports: tuple[HostPort, ...]
    terms: tuple[Term, ...]


class _TermUse:
    """An anti-affinity term of a namespace's pods; ``counts`` maps a slot to how many of its pods have it."""

    __slots__ = ("counts", "namespace", "term")

    def __init__(self, namespace: str, term: Term) -> None:
        self.namespace = namespace
        self.term = term
        self.counts: dict[int, int] = {}


class Pods:
    """The pods on nodes by namespace, and what they take from each node.

    Shape: ``ports``, ``mounted`` and ``mounts`` are by slot; ``mounts`` is an upper bound of the volumes of one driver
    that the node's pods have.
    """

    def __init__(self, nodes: Nodes, learn_at: int) -> None:
        self._nodes = nodes
        self._learn_at = learn_at
        self._namespaces: dict[str, NamespacePods] = {}
        self.ports: dict[int, dict[HostPort, int]] = {}
        self.mounted: dict[int, dict[tuple[str, str], Mounted]] = {}
        self.mounts: dict[int, int] = {}
        self._claim_users: dict[tuple[str, str], dict[int, int]] = {}
        self._terms: dict[tuple[str, Term], _TermUse] = {}
        self._shelves: dict[_Shelf, dict[str, set[_TermUse]]] = {}  # by the namespace of the pods that have them

    def put(self, pod: Pod, key: str, version: KubernetesVersion) -> bool:
        """Add or replace a pod; ``key`` is its name, or any other text that is unique in its namespace.

        Errors: none; False if nothing changed that this table keeps.
        """
        meta, spec, status = pod.meta, pod.pod_spec, pod.status
        namespace, node_name = meta.namespace, spec.node_name
        if not node_name or (status is not None and status.phase in FINISHED):
            return self.remove(namespace, key)
        slot, leaving = self._nodes.slot(node_name), meta.deletion_timestamp is not None
        request, extras = existing_request(pod, version), extras_of(meta, spec, version)
        old = self.record(namespace, key)
        # Most events of a running pod change its status only: comparing is cheaper than removing and adding.
        if old is not None:
            group, aside = self._namespaces[namespace].group(meta.labels or {})
            if (
                old.group is group
                and old.slot == slot
                and old.leaving is leaving
                and old.uid == meta.uid
                and old.request == request
                and old.aside == aside
                and old.extras == extras
            ):
                return False
            self.remove(namespace, key)  # which may let go of the namespace, the group and the slot
            slot = self._nodes.slot(node_name)
        space = self._namespaces.get(namespace)
        if space is None:
            space = self._namespaces[namespace] = NamespacePods(self._learn_at)
        record = PodRecord(meta.uid, slot, *space.group(meta.labels or {}), request)
        record.leaving, record.extras, record.priority = leaving, extras, spec.priority or 0
        record.spread = bool(spec.topology_spread_constraints)
        space.add(key, record)
        self._nodes.use(slot, request, 1)
        if extras is not _NO_EXTRAS:
            self._take_extras(namespace, key, slot, extras)
        return True

    def remove(self, namespace: str, key: str, uid: str = "") -> bool:
        """Remove a pod; with a uid, only that pod and not a later one of the same name."""
        space = self._namespaces.get(namespace)
        record = None if space is None else space.records.get(key)
        if space is None or record is None or (uid and record.uid and record.uid != uid):
            return False
        space.remove(key)
        self._nodes.use(record.slot, record.request, -1)
        if isinstance(record.extras, _Extras) and record.extras is not _NO_EXTRAS:
            self._drop_extras(namespace, key, record.slot, record.extras)
        self._nodes.release(record.slot)
        if not space.records:
            drop(self._namespaces, namespace)
        return True

    def keys(self, namespace: str) -> tuple[str, ...]:
        """The keys of the namespace's pods on nodes."""
        space = self._namespaces.get(namespace)
        return () if space is None else tuple(space.records)

    def namespaces(self) -> tuple[str, ...]:
        """The namespaces with a pod on a node."""
        return tuple(self._namespaces)

    def on_node(self, namespace: str, key: str) -> PodOnNode | None:
        """The stored facts of one pod, as a copy."""
        record = self.record(namespace, key)
        if record is None:
            return None
        extras = record.extras if isinstance(record.extras, _Extras) else _NO_EXTRAS
        labels = {**record.group.labels, **record.aside}
        return PodOnNode(record.slot, record.leaving, labels, record.request, extras.ports, extras.terms)

    def record(self, namespace: str, key: str) -> PodRecord | None:
        """One pod on a node."""
        space = self._namespaces.get(namespace)
        return None if space is None else space.records.get(key)

    def count(self, namespace: str, requirements: Requirements, *, leaving: bool = False) -> Counts:
        """How many pods of the namespace on each node meet all requirements.

        Shape: a fresh dict from slot to pods, never 0; slots of nodes that are gone are among them.
        """
        space = self._namespaces.get(namespace)
        return {} if space is None else space.count(requirements, leaving=leaving)

    def count_unspread(self, namespace: str, requirements: Requirements) -> int:
        """How many pods of the namespace meet all requirements, and have no constraint and do not terminate."""
        space = self._namespaces.get(namespace)
        return 0 if space is None else space.count_unspread(requirements)

    def lower(self, priority: int) -> dict[int, list[tuple[int, PodRequest]]]:
        """The pods of a lower priority, by slot: the priority, and what the pod takes."""
        found: dict[int, list[tuple[int, PodRequest]]] = {}
        for space in self._namespaces.values():
            for record in space.records.values():
                check_time()
                if record.priority < priority:
                    found.setdefault(record.slot, []).append((record.priority, record.request))
        return found

    def claim_users(self, namespace: str, claim: str) -> Counts:
        """How many pods on each node mount the claim."""
        return dict(self._claim_users.get((namespace, claim), {}))

    def terms_matching(
        self, namespace: str, namespace_labels: Mapping[str, str] | None, labels: Mapping[str, str]
    ) -> list[tuple[str, Counts]]:
        """The anti-affinity terms of existing pods that match an incoming pod: topology key, and pods by slot."""
        # Terms are looked up by a label that they require, since a cluster has thousands and a pod a few labels.
        if not self._shelves:
            return []
        candidates: set[_TermUse] = set()
        for space in {_ANY, namespace}:
            for shelf in ((space,), *((space, key, value) for key, value in labels.items())):
                for uses in self._shelves.get(shelf, {}).values():
                    if len(uses) <= MOST_TERMS_ON_A_SHELF:
                        candidates |= uses
        return [
            (use.term.topology_key, dict(use.counts))
            for use in candidates
            if use.term.in_namespace(namespace, namespace_labels) and use.term.selector.matches(labels)
        ]

    def matching(self, namespace: str, selector: Selector) -> Iterator[tuple[str, int]]:
        """The keys and slots of the namespace's pods that a selector matches, including terminating pods."""
        space = self._namespaces.get(namespace)
        return iter(()) if space is None or selector.nothing else space.pods_matching(selector.requirements)

    def objecting(
        self, namespace: str, namespace_labels: Mapping[str, str] | None, labels: Mapping[str, str]
    ) -> Iterator[tuple[str, str, int]]:
        """The pods with an anti-affinity term that matches an incoming pod: namespace, key and slot."""
        for its_namespace, space in self._namespaces.items():
            for key, record in space.records.items():
                check_time()
                terms = record.extras.terms if isinstance(record.extras, _Extras) else ()
                if any(
                    each.in_namespace(namespace, namespace_labels) and each.selector.matches(labels) for each in terms
                ):
                    yield its_namespace, key, record.slot

    def _take_extras(self, namespace: str, key: str, slot: int, extras: _Extras) -> None:
        for port in extras.ports:
            bump(self.ports.setdefault(slot, {}), port, 1)
        if extras.mounted is not None:
            put_under(self.mounted, slot, (namespace, key), extras.mounted)
            bump(self.mounts, slot, extras.mounted.weight)
            for claim in named_claims(extras.mounted.volumes):
                bump(self._claim_users.setdefault((namespace, claim), {}), slot, 1)
        for term in extras.terms:
            use = self._terms.get((namespace, term))
            if use is None:
                use = self._terms[namespace, term] = _TermUse(namespace, term)
                self._shelve(use)
            bump(use.counts, slot, 1)

    def _drop_extras(self, namespace: str, key: str, slot: int, extras: _Extras) -> None:
        for port in extras.ports:
            _drop_one(self.ports, slot, port)
        if extras.mounted is not None:
            drop_under(self.mounted, slot, (namespace, key))
            bump(self.mounts, slot, -extras.mounted.weight)
            for claim in named_claims(extras.mounted.volumes):
                _drop_one(self._claim_users, (namespace, claim), slot)
        for term in extras.terms:
            use = self._terms[namespace, term]
            bump(use.counts, slot, -1)
            if not use.counts:
                drop(self._terms, (namespace, term))
                self._unshelve(use)

    def _shelve(self, use: _TermUse) -> None:
        """Put the term where `terms_matching` looks for it."""
        for shelf in _shelves(use.term):
            self._shelves.setdefault(shelf, {}).setdefault(use.namespace, set()).add(use)

    def _unshelve(self, use: _TermUse) -> None:
        for shelf in _shelves(use.term):
            uses = self._shelves[shelf][use.namespace]
            discard(uses, use)
            if not uses:
                drop_under(self._shelves, shelf, use.namespace)


def _shelves(term: Term) -> Iterable[_Shelf]:
    """Where a term is looked up: by each of its namespaces, or `_ANY`, and by a label that it requires, if it does."""
    if term.selector.nothing:
        return ()
    narrow = term.namespace_selector.nothing and len(term.namespaces) <= _MAX_ENTRIES_OF_A_TERM
    spaces = term.namespaces if narrow else (_ANY,)
    positive = (each for each in term.selector.requirements if each.operator in ("=", "In"))
    # A term is put under each value in each namespace, and anybody may write many: then under none of them.
    few = (each for each in positive if len(set(each.values)) * len(spaces) <= _MAX_ENTRIES_OF_A_TERM)
    label = next(few, None)
    if label is None:
        return [(space,) for space in spaces]
    return [(space, label.key, value) for space in spaces for value in set(label.values)]


def extras_of(meta: ObjectMeta, spec: PodSpec, version: KubernetesVersion) -> _Extras:
    """What a pod has of host ports, volumes and anti-affinity terms. Source: framework/types.go ``Update``."""
    affinity = spec.affinity
    anti_affinity = affinity.pod_anti_affinity if affinity is not None else None
    required = (anti_affinity.required if anti_affinity is not None else None) or ()
    ports = _ports(spec, version)
    volumes = tuple(volume for volume in spec.volumes if _has_source(volume)) if spec.volumes else ()
    if not (required or ports or volumes):
        return _NO_EXTRAS
    try:
        terms = tuple(resolve_term(term, meta.namespace) for term in required)
    except ValueError:
        terms = ()  # as upstream, which drops all of them when one cannot be read
    mounted = Mounted(meta.namespace, meta.name, meta.uid, volumes) if volumes else None
    return _Extras(ports, mounted, terms)


def _has_source(volume: Volume) -> bool:
    """Whether the scheduler looks at volumes of this kind, unlike ConfigMaps, Secrets or emptyDir."""
    return volume.has_claim or _in_tree(volume)


def _in_tree(volume: Volume) -> bool:
    """Whether the pod names a disk directly, without a claim."""
    return (
        volume.gce_persistent_disk is not None
        or volume.aws_elastic_block_store is not None
        or volume.iscsi is not None
        or volume.rbd is not None
        or volume.azure_disk is not None
        or volume.cinder is not None
        or volume.portworx_volume is not None
    )


def _drop_one(tables: dict[_Outer, dict[_Key, int]], outer: _Outer, key: _Key) -> None:
    bump(tables[outer], key, -1)
    if not tables[outer]:
        drop(tables, outer)
