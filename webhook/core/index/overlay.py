"""Overlays: views of the cluster with some objects added or removed. The index itself does not change.

An overlay answers queries about its own objects, and passes all others to the view below it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.pod_requests import existing_request
from webhook.core.api.resources import PODS
from webhook.core.api.selectors import Selector
from webhook.core.api.spread_group import MOST_GROUPS, SpreadGroup
from webhook.core.api.storage import Claim, PersistentVolume
from webhook.core.api.types import Pod, named_claims
from webhook.core.api.well_known import HOSTNAME
from webhook.core.index.nodes import NodeRow, Nodes, NodeView
from webhook.core.index.objects import Autoscaler, Owner, is_controlled_by
from webhook.core.index.pod_extras import HostPort, Mounted, extras_of
from webhook.core.index.pods import Counts, PodOnNode, Pods, ScoreFacts
from webhook.core.index.read_only import Namespaces, Owners, ReadOnlyIndex, Volumes
from webhook.core.index.tables.pod_groups import bump
from webhook.core.index.tables.score_table import ScoreTable
from webhook.core.workloads.kinds import group_of


def with_pods(index: ReadOnlyIndex, node: str, pods: Sequence[Pod]) -> ReadOnlyIndex:
    """Return the index with these pods added to a known node.

    `Pods.matching` and `Pods.objecting` do not return the added pods.

    Example:
        ``with_pods(index, "node-1", [pod]).pods.count("shop", selector)`` includes the added pod.
    """
    slot, taken = index.nodes.view().slots[node], {PODS: len(pods)}
    for pod in pods:
        for resource, amount in existing_request(pod, index.version).amounts:
            bump(taken, resource, amount)
    left = _WithRoom(index.nodes, lambda resource: {slot: -taken.get(resource, 0)}, takes=True)
    return ReadOnlyIndex(index, nodes=left, pods=_WithPods(index, slot, pods))


def without_pods(index: ReadOnlyIndex, like: Pod, own: Selector, running: Counts) -> ReadOnlyIndex:
    """Remove the pods of a workload.

    Args:
        index: The cluster.
        like: One of the pods. Each frees its requests (up to the node's resources), host ports and anti-affinity terms.
        own: Selects the pods in the namespace of ``like``.
        running: The number of pods by slot.
    """
    held = {PODS: 1, **dict(existing_request(like, index.version).amounts)}

    def freed(resource: str) -> Mapping[int, int]:
        amount = held.get(resource, 0)
        return {slot: pods * amount for slot, pods in running.items()} if amount else {}

    return ReadOnlyIndex(index, nodes=_WithRoom(index.nodes, freed), pods=_WithoutPods(index, like, own, running))


def without_named(index: ReadOnlyIndex, namespace: str, pods: Mapping[str, PodOnNode]) -> ReadOnlyIndex:
    """Return a view of the index without these terminating pods, given by name.

    `Pods.lower` and scores still include the pods.
    """

    def freed(resource: str) -> Mapping[int, int]:
        slots = Counter[int]()
        for pod in pods.values():
            slots[pod.slot] += 1 if resource == PODS else dict(pod.request.amounts).get(resource, 0)
        return slots

    return ReadOnlyIndex(index, nodes=_WithRoom(index.nodes, freed), pods=_WithoutNamed(index, namespace, pods))


def with_room(index: ReadOnlyIndex, freed: Mapping[int, Mapping[str, int]]) -> ReadOnlyIndex:
    """Return the index with more free resources on some nodes.

    ``freed`` has the added amount of each resource, by node slot. Pod counts do not change.
    """

    def of_resource(resource: str) -> Mapping[int, int]:
        return {slot: amounts.get(resource, 0) for slot, amounts in freed.items()}

    return ReadOnlyIndex(index, nodes=_WithRoom(index.nodes, of_resource))


def with_owners(index: ReadOnlyIndex, owners: Sequence[Owner]) -> ReadOnlyIndex:
    """Add or replace owners. `Owners.matching` still returns replaced owners."""
    return ReadOnlyIndex(index, owners=_WithOwners(index.owners, owners))


def with_claims(index: ReadOnlyIndex, claims: Sequence[Claim], volume: PersistentVolume) -> ReadOnlyIndex:
    """Add or replace claims, and add a volume."""
    return ReadOnlyIndex(index, volumes=_WithClaims(index.volumes, claims, volume))


def with_declared(index: ReadOnlyIndex, scalers: Sequence[Autoscaler], groups: Sequence[SpreadGroup]) -> ReadOnlyIndex:
    """Return the index with these autoscalers and SpreadGroups added, or replaced if the index has them."""
    if not scalers and not groups:
        return index
    owners, namespaces = _WithAutoscalers(index.owners, scalers), _WithGroups(index.namespaces, groups)
    return ReadOnlyIndex(index, owners=owners, namespaces=namespaces)


class AddedNodes(Struct, frozen=True):
    """Empty nodes to add.

    Attributes:
        like: The slot of the node to copy.
        nodes: The number of nodes.
        labels: Labels that replace the copied ones.
    """

    like: int
    nodes: int
    labels: Mapping[str, str] = {}


def with_nodes(
    index: ReadOnlyIndex, added: Sequence[AddedNodes] = (), changed: Mapping[int, NodeRow] | None = None
) -> ReadOnlyIndex:
    """Return the index with added nodes and changed nodes.

    Added nodes are named ``<node>-added-1`` and get the last slots. `Nodes.get` and `Volumes.attached` do not return
    added nodes.

    Args:
        index: The cluster.
        added: The nodes to add, as copies of existing nodes.
        changed: The changed nodes by slot. None removes the node.
    """
    view = index.nodes.view()
    rows = view.rows(0, view.size)
    for slot, row in (changed or {}).items():
        rows[slot] = row
    models: list[int] = []
    for more in added:
        model = rows[more.like]
        for _ in range(more.nodes if model is not None else 0):
            name = f"{view.names[more.like]}-added-{len(models) + 1}"
            rows.append(model and model._replace(name=name, labels=_labels(model.labels, more.labels, name)))
            models.append(more.like)
    keys = view.keys.union(*(row.labels for row in rows[view.size :] if row is not None))
    after = NodeView(rows, view.live | ((1 << len(models)) - 1) << view.size, keys)
    names = {after.names[view.size + number]: view.names[like] for number, like in enumerate(models)}
    return ReadOnlyIndex(
        index, nodes=_WithNodes(index.nodes, after, models), volumes=_WithDrivers(index.volumes, names)
    )


def _labels(of_model: Mapping[str, str], others: Mapping[str, str], name: str) -> Mapping[str, str]:
    return {**of_model, **others, **({HOSTNAME: name} if HOSTNAME in of_model else {})}


class _WithOwners(Owners):
    def __init__(self, below: Owners, owners: Sequence[Owner]) -> None:
        super().__init__(below)
        self._owners = {_identity(owner): owner for owner in owners}

    def get(self, api_version: str, kind: str, namespace: str, name: str) -> Owner | None:
        added = self._owners.get((namespace, group_of(api_version), kind, name))
        return added or self._below.get(api_version, kind, namespace, name)

    def controlled(self, namespace: str, kind: str, name: str) -> tuple[Owner, ...]:
        return tuple(owner for owner in self.of_namespace(namespace) if is_controlled_by(owner, kind, name))

    def of_namespace(self, namespace: str) -> tuple[Owner, ...]:
        kept = (owner for owner in self._below.of_namespace(namespace) if _identity(owner) not in self._owners)
        return (*kept, *(owner for owner in self._owners.values() if owner.meta.namespace == namespace))


def _identity(owner: Owner) -> tuple[str, str, str, str]:
    return owner.meta.namespace, group_of(owner.api_version), owner.kind, owner.meta.name


class _WithAutoscalers(Owners):
    def __init__(self, below: Owners, scalers: Sequence[Autoscaler]) -> None:
        super().__init__(below)
        self._scalers = {(scaler.meta.namespace, scaler.meta.name): scaler for scaler in scalers}

    def autoscaler(self, api_version: str, kind: str, namespace: str, name: str) -> Autoscaler | None:
        target = namespace, (group_of(api_version), kind), name
        added = [scaler for scaler in self._scalers.values() if scaler.target == target]
        if added:  # also instead of an autoscaler that KEDA named differently in the cluster
            return min(added, key=lambda scaler: scaler.meta.name)
        below = self._below.autoscaler(api_version, kind, namespace, name)
        is_replaced = below is not None and (below.meta.namespace, below.meta.name) in self._scalers
        return None if is_replaced else below


class _WithGroups(Namespaces):
    def __init__(self, below: Namespaces, groups: Sequence[SpreadGroup]) -> None:
        super().__init__(below)
        self._groups = {(group.meta.namespace, group.meta.name): group for group in groups}

    def groups(self, name: str) -> tuple[SpreadGroup, ...]:
        return self._joined(name, self._below.groups(name))[:MOST_GROUPS]

    def all_groups(self) -> Mapping[str, tuple[SpreadGroup, ...]]:
        below = self._below.all_groups()
        names = {*below, *(namespace for namespace, _ in self._groups)}
        return {name: self._joined(name, below.get(name, ())) for name in names}

    def _joined(self, namespace: str, below: Sequence[SpreadGroup]) -> tuple[SpreadGroup, ...]:
        kept = [group for group in below if (namespace, group.meta.name) not in self._groups]
        added = [group for (own, _), group in self._groups.items() if own == namespace]
        return tuple(sorted((*kept, *added), key=attrgetter("age_order")))


class _WithRoom(Nodes):
    """The nodes of another index with changed free resources.

    ``freed`` returns the amounts to add to the free amounts of a resource, by node slot. The sum is at most the node's
    allocatable amount. With ``takes``, the amounts are negative and the sum is not limited.
    """

    def __init__(self, below: Nodes, freed: Callable[[str], Mapping[int, int]], *, takes: bool = False) -> None:
        super().__init__(below)
        self._freed, self._takes = freed, takes

    def amounts(self, resource: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        free, allocatable = self._below.amounts(resource)
        left = list(free)
        for slot, amount in self._freed(resource).items():
            left[slot] = left[slot] + amount if self._takes else min(allocatable[slot], left[slot] + amount)
        return tuple(left), allocatable

    def short_of(self, amounts: tuple[tuple[str, int], ...]) -> Mapping[str, tuple[int, ...]]:
        below = self._below.short_of(amounts)
        affected = [amount for amount in amounts if self._takes or amount[0] in below]
        return _short_of(affected, self)


class _WithNodes(Nodes):
    """The nodes of the cluster with added nodes, which are copies of existing nodes.

    ``models`` has the slot of the copied node for each added node, in the order of the added nodes.
    """

    def __init__(self, below: Nodes, view: NodeView, models: Sequence[int]) -> None:
        super().__init__(below)
        self._view, self._models = view, models

    def view(self) -> NodeView:
        return self._view

    def amounts(self, resource: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        free, allocatable = self._below.amounts(resource)
        more = tuple(allocatable[slot] for slot in self._models)
        return (*free, *more), (*allocatable, *more)

    def short_of(self, amounts: tuple[tuple[str, int], ...]) -> Mapping[str, tuple[int, ...]]:
        return _short_of(amounts, self)

    def never_enough(self, resource: str, amount: int) -> tuple[int, ...] | None:
        return _if_any_less(self.amounts(resource)[1], amount)


def _short_of(amounts: Iterable[tuple[str, int]], nodes: Nodes) -> Mapping[str, tuple[int, ...]]:
    short = ((name, _if_any_less(nodes.amounts(name)[0], amount)) for name, amount in amounts)
    return {name: free for name, free in short if free is not None}


def _if_any_less(amounts: tuple[int, ...], wanted: int) -> tuple[int, ...] | None:
    return amounts if min(amounts, default=wanted) < wanted else None


class _WithDrivers(Volumes):
    """The index's volume data, with CSI drivers for nodes added by a simulation.

    ``models`` maps an added node to the node it copies.
    """

    def __init__(self, below: Volumes, models: Mapping[str, str]) -> None:
        super().__init__(below)
        self._models = models

    def attach_limits(self) -> Mapping[str, Mapping[str, int]]:
        limits = self._below.attach_limits()
        return {**limits, **{name: limits[like] for name, like in self._models.items() if like in limits}}

    def nodes_with_driver(self, driver: str) -> frozenset[str]:
        there = self._below.nodes_with_driver(driver)
        return there | {name for name, like in self._models.items() if like in there}


class _WithClaims(Volumes):
    def __init__(self, below: Volumes, claims: Sequence[Claim], volume: PersistentVolume) -> None:
        super().__init__(below)
        self._claims = {(claim.meta.namespace, claim.meta.name): claim for claim in claims}
        self._volume = volume

    def claim(self, namespace: str, name: str) -> Claim | None:
        return self._claims.get((namespace, name)) or self._below.claim(namespace, name)

    def volume(self, name: str) -> PersistentVolume | None:
        return self._volume if name == self._volume.meta.name else self._below.volume(name)


class _PodsOverlay(Pods):
    def __init__(self, below: ReadOnlyIndex) -> None:
        super().__init__(below.pods)
        self._labels_of = below.namespaces.raw_labels


class _WithPods(_PodsOverlay):
    def __init__(self, below: ReadOnlyIndex, slot: int, pods: Sequence[Pod]) -> None:
        super().__init__(below)
        self._index, self._slot = below, slot
        self._pods = [(pod, extras_of(pod.meta, pod.pod_spec, below.version)) for pod in pods]

    def count(self, namespace: str, selector: Selector, *, terminating: bool = False) -> Counts:
        of_namespace = (pod for pod, _ in self._pods if pod.meta.namespace == namespace)
        counted = (pod for pod in of_namespace if terminating or pod.meta.deletion_timestamp is None)
        number = 0 if selector.nothing else sum(selector.matches(pod.labels) for pod in counted)
        return self._plus(self._below.count(namespace, selector, terminating=terminating), number)

    def namespaces(self) -> tuple[str, ...]:
        return tuple({*self._below.namespaces(), *(pod.meta.namespace for pod, _ in self._pods)})

    def terms_matching(self, namespace: str, labels: Mapping[str, str]) -> Sequence[tuple[str, Counts]]:
        of_namespace = self._labels_of(namespace)
        return [
            *self._below.terms_matching(namespace, labels),
            *(
                (term.topology_key, {self._slot: 1})
                for _, extras in self._pods
                for term in extras.terms
                if term.in_namespace(namespace, of_namespace) and term.selector.matches(labels)
            ),
        ]

    def score_facts(self, namespace: str, labels: Mapping[str, str]) -> ScoreFacts | None:
        known, added = self._below.score_facts(namespace, labels), ScoreTable()
        view = self._index.nodes.view()
        for number, (pod, _) in enumerate(self._pods):
            on_node = replace(pod, spec=replace(pod.pod_spec, node_name=view.names[self._slot]))
            added.put_pod(on_node, str(number), self._index.version)
        more = added.facts(view, namespace, self._labels_of(namespace), labels)
        return None if known is None else known.joined(more)

    def host_ports(self) -> Mapping[int, tuple[HostPort, ...]]:
        taken = self._below.host_ports()
        added = (port for _, extras in self._pods for port in extras.ports)
        return {**taken, self._slot: (*taken.get(self._slot, ()), *added)}

    def claim_users(self, namespace: str, name: str) -> Counts:
        mounted = [pod for pod in self._mounted() if pod.namespace == namespace]
        users = sum(list(named_claims(pod.volumes)).count(name) for pod in mounted)
        return self._plus(self._below.claim_users(namespace, name), users)

    def mounts(self) -> Mapping[int, int]:
        return self._plus(self._below.mounts(), sum(pod.weight for pod in self._mounted()))

    def mounting(self, slots: Sequence[int] | None = None) -> Mapping[int, tuple[Mounted, ...]]:
        mounted = dict(self._below.mounting(slots))
        added = tuple(self._mounted())
        if added and (slots is None or self._slot in slots):
            mounted[self._slot] = (*mounted.get(self._slot, ()), *added)
        return mounted

    def _mounted(self) -> list[Mounted]:
        return [extras.mounted for _, extras in self._pods if extras.mounted is not None]

    def _plus(self, counts: Mapping[int, int], number: int) -> Counts:
        return {**counts, self._slot: counts.get(self._slot, 0) + number} if number else dict(counts)


class _WithoutPods(_PodsOverlay):
    def __init__(self, below: ReadOnlyIndex, like: Pod, own: Selector, running: Counts) -> None:
        super().__init__(below)
        self._namespace, self._own, self._running = like.meta.namespace, own, running
        self._extras = extras_of(like.meta, like.pod_spec, below.version)

    def count(self, namespace: str, selector: Selector, *, terminating: bool = False) -> Counts:
        counts = self._below.count(namespace, selector, terminating=terminating)
        if namespace != self._namespace or selector.nothing or not counts:
            return counts
        both = selector.joined(self._own.requirements)
        if both.contradicts_itself:  # With many overlays on top of one another, each would query all below it.
            return counts
        # Terminating pods are not part of ``running``, so they stay.
        return _less(counts, self._below.count(namespace, both))

    def terms_matching(self, namespace: str, labels: Mapping[str, str]) -> Sequence[tuple[str, Counts]]:
        left, of_namespace = list(self._below.terms_matching(namespace, labels)), self._labels_of(namespace)
        for term in self._extras.terms:
            if term.in_namespace(namespace, of_namespace) and term.selector.matches(labels):
                # If all these pods can have two such terms, either may be removed.
                candidates = (known for known in left if known[0] == term.topology_key and self._is_of_all(known[1]))
                own = next(candidates, None)
                if own is not None:
                    left.remove(own)
                    left += [(own[0], rest)] if (rest := _less(own[1], self._running)) else []
        return left

    def _is_of_all(self, counts: Counts) -> bool:
        return all(counts.get(slot, 0) >= pods for slot, pods in self._running.items())

    def host_ports(self) -> Mapping[int, tuple[HostPort, ...]]:
        own = frozenset(self._extras.ports)
        return {
            slot: tuple(port for port in ports if port not in own) if slot in self._running else ports
            for slot, ports in self._below.host_ports().items()
        }


class _WithoutNamed(_PodsOverlay):
    def __init__(self, below: ReadOnlyIndex, namespace: str, pods: Mapping[str, PodOnNode]) -> None:
        super().__init__(below)
        self._namespace, self._pods = namespace, pods
        self._slots = tuple({pod.slot for pod in pods.values()})

    def _is_gone(self, namespace: str, name: str) -> bool:
        return namespace == self._namespace and name in self._pods

    def on_node(self, namespace: str, name: str) -> PodOnNode | None:
        return None if self._is_gone(namespace, name) else self._below.on_node(namespace, name)

    def count(self, namespace: str, selector: Selector, *, terminating: bool = False) -> Counts:
        counts = self._below.count(namespace, selector, terminating=terminating)
        if not terminating or namespace != self._namespace:
            return counts
        return _less(counts, Counter(pod.slot for pod in self._pods.values() if selector.matches(pod.labels)))

    def matching(self, namespace: str, selector: Selector) -> Sequence[tuple[str, int]]:
        pods = self._below.matching(namespace, selector)
        return [pod for pod in pods if not self._is_gone(namespace, pod[0])]

    def objecting(self, namespace: str, labels: Mapping[str, str]) -> Sequence[tuple[str, str, int]]:
        pods = self._below.objecting(namespace, labels)
        return [pod for pod in pods if not self._is_gone(pod[0], pod[1])]

    def terms_matching(self, namespace: str, labels: Mapping[str, str]) -> Sequence[tuple[str, Counts]]:
        terms = [(key, dict(counts)) for key, counts in self._below.terms_matching(namespace, labels)]
        of_namespace = self._labels_of(namespace)
        for pod in self._pods.values():
            for term in pod.terms:
                if term.in_namespace(namespace, of_namespace) and term.selector.matches(labels):
                    # Two terms with the same key reject the same pods, so the pod may be removed from either.
                    of_key = (counts for key, counts in terms if key == term.topology_key and pod.slot in counts)
                    bump(next(of_key), pod.slot, -1)
        return [term_counts for term_counts in terms if term_counts[1]]

    def host_ports(self) -> Mapping[int, tuple[HostPort, ...]]:
        gone = {(pod.slot, port) for pod in self._pods.values() for port in pod.ports}
        taken = self._below.host_ports().items()
        return {slot: tuple(port for port in ports if (slot, port) not in gone) for slot, ports in taken}

    def claim_users(self, namespace: str, name: str) -> Counts:
        users = Counter(slot for slot, pod in self._mounted() for _ in range([*named_claims(pod.volumes)].count(name)))
        counts = self._below.claim_users(namespace, name)
        return _less(counts, users) if namespace == self._namespace else counts

    def mounts(self) -> Mapping[int, int]:
        weights = Counter[int]()
        for slot, pod in self._mounted():
            weights[slot] += pod.weight
        return _less(self._below.mounts(), weights)

    def mounting(self, slots: Sequence[int] | None = None) -> Mapping[int, tuple[Mounted, ...]]:
        mounting = self._below.mounting(slots).items()
        kept = (
            (slot, tuple(pod for pod in pods if not self._is_gone(pod.namespace, pod.name))) for slot, pods in mounting
        )
        return {slot: pods for slot, pods in kept if pods}

    def _mounted(self) -> Iterator[tuple[int, Mounted]]:
        for slot, pods in self._below.mounting(self._slots).items():
            yield from ((slot, pod) for pod in pods if self._is_gone(pod.namespace, pod.name))


def _less(counts: Counts, others: Counts) -> Counts:
    if counts == others:  # The usual case: a workload's selector only counts its own pods.
        return {}
    left = {slot: pods - others.get(slot, 0) for slot, pods in counts.items()}
    return {slot: pods for slot, pods in left.items() if pods > 0}
