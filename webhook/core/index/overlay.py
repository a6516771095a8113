"""The cluster as it would be with a few more objects in it, without a change to the index.

An overlay answers for the objects that it adds, and asks the index below it for all the rest.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.resources import PODS, existing_request
from webhook.core.api.selectors import Selector
from webhook.core.api.types import Pod, named_claims
from webhook.core.api.well_known import HOSTNAME
from webhook.core.index.objects import Owner
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.index.tables.node_table import NodeRow, NodeView
from webhook.core.index.tables.pod_groups import Counts, bump
from webhook.core.index.tables.pod_table import HostPort, Mounted, PodOnNode, extras_of
from webhook.core.index.tables.score_table import ScoreFacts, ScoreTable
from webhook.core.time_limit import check_time
from webhook.core.workloads.kinds import group_of


def with_pods(index: ReadOnlyIndex, node: str, pods: Sequence[Pod]) -> ReadOnlyIndex:
    """The index as if these pods ran on that node, which it knows.

    Shape: what is counted and taken includes them; `pods_matching` and `pods_objecting` do not name them.
    """
    return cast(ReadOnlyIndex, _WithPods(index, index.view().slots[node], pods))


def without_pods(index: ReadOnlyIndex, like: Pod, own: Selector, running: Counts) -> ReadOnlyIndex:
    """The index as if pods of one workload were gone.

    Shape: ``running`` are the pods by slot, ``own`` selects them in the namespace of ``like``; each is taken to hold
    what ``like`` requests, but no more than the node has, with its host ports and anti-affinity.
    """
    return cast(ReadOnlyIndex, _WithoutPods(index, like, own, running))


def without_named(index: ReadOnlyIndex, namespace: str, pods: Mapping[str, PodOnNode]) -> ReadOnlyIndex:
    """The index without these terminating pods, by name. `lower_pods` and scores still have them."""
    return cast(ReadOnlyIndex, _WithoutNamed(index, namespace, pods))


def with_owners(index: ReadOnlyIndex, owners: Sequence[Owner]) -> ReadOnlyIndex:
    """The index as if it had these owners, in place of any with the same names.

    Shape: `workloads` still has those that they replace.
    """
    return cast(ReadOnlyIndex, _WithOwners(index, owners))


class More(Struct, frozen=True):
    """So many ``nodes`` more that are like the one in a slot, but for some ``labels``, and empty."""

    like: int
    nodes: int
    labels: Mapping[str, str] = {}


def with_nodes(
    index: ReadOnlyIndex, added: Sequence[More] = (), changed: Mapping[int, NodeRow] | None = None
) -> ReadOnlyIndex:
    """The index as if it had more nodes, and as if some were others; these keep their names and what they offer.

    Shape: ``changed`` is by slot. Added nodes are named ``<node>-added-1`` and have slots behind all others; `node` and
    `attached` do not know them.
    """
    return cast(ReadOnlyIndex, _WithNodes(index, added, changed or {}))


def with_room(index: ReadOnlyIndex, freed: Mapping[int, Mapping[str, int]]) -> ReadOnlyIndex:
    """The index as if so much more were free of each resource, by slot; pods are counted as before."""
    return cast(ReadOnlyIndex, _WithRoom(index, freed))


class Overlay:
    """What is not answered here is what the index below answers."""

    def __init__(self, below: ReadOnlyIndex) -> None:
        self._answering = below

    @property
    def _below(self) -> ReadOnlyIndex:
        check_time()  # overlays ask the same again and again
        return self._answering

    def __getattr__(self, question: str) -> object:
        return getattr(self._below, question)


class _WithOwners(Overlay):
    def __init__(self, below: ReadOnlyIndex, owners: Sequence[Owner]) -> None:
        super().__init__(below)
        self._owners = {_identity(owner): owner for owner in owners}

    def owner(self, api_version: str, kind: str, namespace: str, name: str) -> Owner | None:
        added = self._owners.get((namespace, group_of(api_version), kind, name))
        return added or self._below.owner(api_version, kind, namespace, name)

    def owners(self, namespace: str) -> tuple[Owner, ...]:
        kept = (owner for owner in self._below.owners(namespace) if _identity(owner) not in self._owners)
        return (*kept, *(owner for owner in self._owners.values() if owner.meta.namespace == namespace))


def _identity(owner: Owner) -> tuple[str, str, str, str]:
    return owner.meta.namespace, group_of(owner.api_version), owner.kind, owner.meta.name


class _WithPods(Overlay):
    """The answers about pods that are counted and about what they take from their node."""

    def __init__(self, below: ReadOnlyIndex, slot: int, pods: Sequence[Pod]) -> None:
        super().__init__(below)
        self._slot = slot
        self._pods = [(pod, extras_of(pod.meta, pod.pod_spec, below.version)) for pod in pods]
        self._held = {PODS: len(pods)}
        for pod in pods:
            for resource, amount in existing_request(pod, below.version).amounts:
                bump(self._held, resource, amount)

    def count(self, namespace: str, selector: Selector, *, leaving: bool = False) -> Counts:
        of_namespace = (pod for pod, _ in self._pods if pod.meta.namespace == namespace)
        counted = (pod for pod in of_namespace if leaving or pod.meta.deletion_timestamp is None)
        number = 0 if selector.nothing else sum(selector.matches(pod.labels) for pod in counted)
        return self._plus(self._below.count(namespace, selector, leaving=leaving), number)

    def short_of(self, amounts: tuple[tuple[str, int], ...]) -> Mapping[str, tuple[int, ...]]:
        short, free = self._below.short_of(amounts), {name: self.amounts(name)[0] for name, _ in amounts}
        return {name: free[name] for name, amount in amounts if name in short or free[name][self._slot] < amount}

    def amounts(self, resource: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        free, allocatable = self._below.amounts(resource)
        left = list(free)
        left[self._slot] -= self._held.get(resource, 0)
        return tuple(left), allocatable

    def pod_namespaces(self) -> tuple[str, ...]:
        return tuple({*self._below.pod_namespaces(), *(pod.meta.namespace for pod, _ in self._pods)})

    def terms_matching(self, namespace: str, labels: Mapping[str, str]) -> Sequence[tuple[str, Counts]]:
        namespace_labels = self._below.raw_namespace_labels(namespace)
        return [
            *self._below.terms_matching(namespace, labels),
            *(
                (term.topology_key, {self._slot: 1})
                for _, extras in self._pods
                for term in extras.terms
                if term.in_namespace(namespace, namespace_labels) and term.selector.matches(labels)
            ),
        ]

    def score_facts(self, namespace: str, labels: Mapping[str, str]) -> ScoreFacts | None:
        known, added, view = self._below.score_facts(namespace, labels), ScoreTable(), self._below.view()
        for number, (pod, _) in enumerate(self._pods):
            on_node = replace(pod, spec=replace(pod.pod_spec, node_name=view.names[self._slot]))
            added.put_pod(on_node, str(number), self._below.version)
        more = added.facts(view, namespace, self._below.raw_namespace_labels(namespace), labels)
        return None if known is None else known.joined(more)

    def taken_ports(self) -> Mapping[int, tuple[HostPort, ...]]:
        taken = self._below.taken_ports()
        return {
            **taken,
            self._slot: (*taken.get(self._slot, ()), *(port for _, each in self._pods for port in each.ports)),
        }

    def claim_users(self, namespace: str, name: str) -> Counts:
        return self._plus(
            self._below.claim_users(namespace, name),
            sum(
                list(named_claims(mounted.volumes)).count(name)
                for mounted in self._mounted()
                if mounted.namespace == namespace
            ),
        )

    def mounts(self) -> Mapping[int, int]:
        return self._plus(self._below.mounts(), sum(each.weight for each in self._mounted()))

    def mounting_pods(self, slots: Sequence[int] | None = None) -> Mapping[int, tuple[Mounted, ...]]:
        mounted = dict(self._below.mounting_pods(slots))
        added = tuple(self._mounted())
        if added and (slots is None or self._slot in slots):
            mounted[self._slot] = (*mounted.get(self._slot, ()), *added)
        return mounted

    def _mounted(self) -> list[Mounted]:
        return [each.mounted for _, each in self._pods if each.mounted is not None]

    def _plus(self, counts: Mapping[int, int], number: int) -> Counts:
        """The counts with so many more on the node of the added pods."""
        return {**counts, self._slot: counts.get(self._slot, 0) + number} if number else dict(counts)


class _WithoutPods(Overlay):
    """The answers about pods that are counted and about what they take from their nodes."""

    def __init__(self, below: ReadOnlyIndex, like: Pod, own: Selector, running: Counts) -> None:
        super().__init__(below)
        self._namespace, self._labels, self._own, self._running = like.meta.namespace, like.labels, own, running
        self._extras = extras_of(like.meta, like.pod_spec, below.version)
        self._held = {PODS: 1, **dict(existing_request(like, below.version).amounts)}

    def count(self, namespace: str, selector: Selector, *, leaving: bool = False) -> Counts:
        counts = self._below.count(namespace, selector, leaving=leaving)
        if namespace != self._namespace or selector.nothing or not counts:
            return counts
        both = selector.joined(self._own.requirements)
        if both.contradicts_itself:  # of many workloads laid over one another, each would ask all below it
            return counts
        # Terminating pods are not among those that run, and stay.
        return _less(counts, self._below.count(namespace, both))

    def short_of(self, amounts: tuple[tuple[str, int], ...]) -> Mapping[str, tuple[int, ...]]:
        below = self._below.short_of(amounts)
        return _short_of([each for each in amounts if each[0] in below], self.amounts)

    def amounts(self, resource: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        free, allocatable = self._below.amounts(resource)
        held, left = self._held.get(resource, 0), list(free)
        for slot, pods in self._running.items() if held else ():
            left[slot] = min(allocatable[slot], left[slot] + pods * held)
        return tuple(left), allocatable

    def terms_matching(self, namespace: str, labels: Mapping[str, str]) -> Sequence[tuple[str, Counts]]:
        left = list(self._below.terms_matching(namespace, labels))
        for term in self._extras.terms:
            if term.in_namespace(namespace, self._below.raw_namespace_labels(namespace)) and term.selector.matches(
                labels
            ):
                # Of two terms that all of these pods may have, one is left, and it does not matter which.
                own = next((each for each in left if each[0] == term.topology_key and self._is_of_all(each[1])), None)
                if own is not None:
                    left.remove(own)
                    left += [(own[0], rest)] if (rest := _less(own[1], self._running)) else []
        return left

    def _is_of_all(self, counts: Counts) -> bool:
        return all(counts.get(slot, 0) >= pods for slot, pods in self._running.items())

    def taken_ports(self) -> Mapping[int, tuple[HostPort, ...]]:
        own = frozenset(self._extras.ports)
        return {
            slot: tuple(port for port in ports if port not in own) if slot in self._running else ports
            for slot, ports in self._below.taken_ports().items()
        }


class _WithoutNamed(Overlay):
    """The answers about single pods, pods that affinity counts, and what pods take from their nodes."""

    def __init__(self, below: ReadOnlyIndex, namespace: str, pods: Mapping[str, PodOnNode]) -> None:
        super().__init__(below)
        self._namespace, self._pods = namespace, pods
        self._slots = tuple({pod.slot for pod in pods.values()})

    def _is_gone(self, namespace: str, name: str) -> bool:
        return namespace == self._namespace and name in self._pods

    def pod_on_node(self, namespace: str, name: str) -> PodOnNode | None:
        return None if self._is_gone(namespace, name) else self._below.pod_on_node(namespace, name)

    def count(self, namespace: str, selector: Selector, *, leaving: bool = False) -> Counts:
        counts = self._below.count(namespace, selector, leaving=leaving)
        if not leaving or namespace != self._namespace:
            return counts
        return _less(counts, Counter(pod.slot for pod in self._pods.values() if selector.matches(pod.labels)))

    def pods_matching(self, namespace: str, selector: Selector) -> Sequence[tuple[str, int]]:
        found = self._below.pods_matching(namespace, selector)
        return [each for each in found if not self._is_gone(namespace, each[0])]

    def pods_objecting(self, namespace: str, labels: Mapping[str, str]) -> Sequence[tuple[str, str, int]]:
        found = self._below.pods_objecting(namespace, labels)
        return [each for each in found if not self._is_gone(each[0], each[1])]

    def terms_matching(self, namespace: str, labels: Mapping[str, str]) -> Sequence[tuple[str, Counts]]:
        found = [(key, dict(counts)) for key, counts in self._below.terms_matching(namespace, labels)]
        of_namespace = self._below.raw_namespace_labels(namespace)
        for pod in self._pods.values():
            for term in pod.terms:
                if term.in_namespace(namespace, of_namespace) and term.selector.matches(labels):
                    # Of two terms with the same key, either may lose the pod: what they keep out is the same.
                    bump(
                        next(counts for key, counts in found if key == term.topology_key and pod.slot in counts),
                        pod.slot,
                        -1,
                    )
        return [each for each in found if each[1]]

    def amounts(self, resource: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        free, allocatable = self._below.amounts(resource)
        left = list(free)
        for pod in self._pods.values():
            left[pod.slot] += 1 if resource == PODS else dict(pod.request.amounts).get(resource, 0)
        return tuple(left), allocatable

    def short_of(self, amounts: tuple[tuple[str, int], ...]) -> Mapping[str, tuple[int, ...]]:
        below = self._below.short_of(amounts)
        return _short_of([each for each in amounts if each[0] in below], self.amounts)

    def taken_ports(self) -> Mapping[int, tuple[HostPort, ...]]:
        gone = {(pod.slot, port) for pod in self._pods.values() for port in pod.ports}
        taken = self._below.taken_ports().items()
        return {slot: tuple(port for port in ports if (slot, port) not in gone) for slot, ports in taken}

    def claim_users(self, namespace: str, name: str) -> Counts:
        users = Counter(
            slot for slot, each in self._mounted() for _ in range([*named_claims(each.volumes)].count(name))
        )
        counts = self._below.claim_users(namespace, name)
        return _less(counts, users) if namespace == self._namespace else counts

    def mounts(self) -> Mapping[int, int]:
        weights = Counter[int]()
        for slot, each in self._mounted():
            weights[slot] += each.weight
        return _less(self._below.mounts(), weights)

    def mounting_pods(self, slots: Sequence[int] | None = None) -> Mapping[int, tuple[Mounted, ...]]:
        mounting = self._below.mounting_pods(slots).items()
        kept = (
            (slot, tuple(pod for pod in pods if not self._is_gone(pod.namespace, pod.name))) for slot, pods in mounting
        )
        return {slot: pods for slot, pods in kept if pods}

    def _mounted(self) -> Iterator[tuple[int, Mounted]]:
        for slot, pods in self._below.mounting_pods(self._slots).items():
            yield from ((slot, pod) for pod in pods if self._is_gone(pod.namespace, pod.name))


def _less(counts: Counts, others: Counts) -> Counts:
    if counts == others:  # mostly a workload's pods are all that its selector counts
        return {}
    left = {slot: pods - others.get(slot, 0) for slot, pods in counts.items()}
    return {slot: pods for slot, pods in left.items() if pods > 0}


class _WithNodes(Overlay):
    """The answers about nodes, and about what they offer."""

    def __init__(self, below: ReadOnlyIndex, added: Sequence[More], changed: Mapping[int, NodeRow]) -> None:
        super().__init__(below)
        view = below.view()
        rows = view.rows(0, view.size)
        for slot, row in changed.items():
            rows[slot] = row
        self._names: dict[str, str] = {}
        self._like: list[int] = []
        for more in added:
            model = rows[more.like]
            for _ in range(more.nodes if model is not None else 0):
                name = f"{view.names[more.like]}-added-{len(self._like) + 1}"
                rows.append(model and model._replace(name=name, labels=_labels(model.labels, more.labels, name)))
                self._like.append(more.like)
                self._names[name] = view.names[more.like]
        keys = view.keys.union(*(row.labels for row in rows[view.size :] if row is not None))
        self._view = NodeView(rows, view.live | ((1 << len(self._like)) - 1) << view.size, keys)

    def view(self) -> NodeView:
        return self._view

    def amounts(self, resource: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        free, allocatable = self._below.amounts(resource)
        more = tuple(allocatable[slot] for slot in self._like)
        return (*free, *more), (*allocatable, *more)

    def short_of(self, amounts: tuple[tuple[str, int], ...]) -> Mapping[str, tuple[int, ...]]:
        return _short_of(amounts, self.amounts)

    def never_enough(self, resource: str, amount: int) -> tuple[int, ...] | None:
        return _if_any_less(self.amounts(resource)[1], amount)

    def attach_limits(self) -> Mapping[str, Mapping[str, int]]:
        limits = self._below.attach_limits()
        return {**limits, **{name: limits[like] for name, like in self._names.items() if like in limits}}

    def nodes_with_driver(self, driver: str) -> Collection[str]:
        there = self._below.nodes_with_driver(driver)
        return there | {name for name, like in self._names.items() if like in there}


def _labels(of_model: Mapping[str, str], others: Mapping[str, str], name: str) -> Mapping[str, str]:
    return {**of_model, **others, **({HOSTNAME: name} if HOSTNAME in of_model else {})}


class _WithRoom(Overlay):
    def __init__(self, below: ReadOnlyIndex, freed: Mapping[int, Mapping[str, int]]) -> None:
        super().__init__(below)
        self._freed = freed

    def amounts(self, resource: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        free, allocatable = self._below.amounts(resource)
        left = list(free)
        for slot, amounts in self._freed.items():
            left[slot] += amounts.get(resource, 0)
        return tuple(left), allocatable

    def short_of(self, amounts: tuple[tuple[str, int], ...]) -> Mapping[str, tuple[int, ...]]:
        return _short_of(amounts, self.amounts)


def _short_of(
    amounts: Iterable[tuple[str, int]], of: Callable[[str], tuple[tuple[int, ...], tuple[int, ...]]]
) -> Mapping[str, tuple[int, ...]]:
    short = ((name, _if_any_less(of(name)[0], amount)) for name, amount in amounts)
    return {name: free for name, free in short if free is not None}


def _if_any_less(amounts: tuple[int, ...], wanted: int) -> tuple[int, ...] | None:
    return amounts if any(each < wanted for each in amounts) else None
