"""The table of pods by node, like kube-scheduler's cache, with their resources.

Finished pods are left out. Pods without a node are only kept as waiting. A terminating pod still holds its resources,
ports, volumes and affinity terms. Only spread constraints ignore terminating pods.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import TypeVar

from msgspec import Struct

from webhook.core.api.pod_requests import PodRequest, existing_request
from webhook.core.api.selectors import Selector
from webhook.core.api.types import Pod, named_claims
from webhook.core.api.version import KubernetesVersion
from webhook.core.budget import check_time
from webhook.core.index.affinity_terms import Term
from webhook.core.index.pod_extras import NO_EXTRAS, Extras, HostPort, Mounted, extras_of
from webhook.core.index.pods import FINISHED, Counts, PodOnNode, Pods, ScoreFacts
from webhook.core.index.read_only import Namespaces
from webhook.core.index.tables.node_table import NodeTable
from webhook.core.index.tables.pod_groups import NamespacePods, PodRecord, bump
from webhook.core.index.tables.score_table import ScoreTable
from webhook.core.index.tables.shrinking import discard, drop, drop_under, put_under

# A term gets an entry for each namespace and label value, up to this many entries. Their product can be very large.
_MAX_ENTRIES_OF_A_TERM = 16
# The limit of different terms of one namespace's pods to compare with an incoming pod, 3 µs each. Above it, none is
# compared, so this namespace cannot slow down the pods of others.
MOST_TERMS_COMPARED = 100
_ANY = ""  # replaces the namespace in a key

_Outer = TypeVar("_Outer")
_Key = TypeVar("_Key")
_TermKey = tuple[str, ...]  # namespace, label and value; only the namespace if the term requires no label


class _TermUse(Struct, eq=False):
    """An anti-affinity term, and the number of a namespace's pods declaring the term.

    ``counts`` maps a node's slot to the number of these pods on the node.
    """

    namespace: str
    term: Term
    counts: dict[int, int] = {}


class PodTable(Pods):
    """The pods by namespace, with the resources, ports, volumes and anti-affinity terms of the pods on each node."""

    def __init__(self, nodes: NodeTable, namespaces: Namespaces, *, scoring: bool, learn_at: int) -> None:
        self._nodes = nodes
        self._labels_of = namespaces.raw_labels
        self._learn_at = learn_at
        self._namespaces: dict[str, NamespacePods] = {}
        self._scores = ScoreTable() if scoring else None
        self._waiting: dict[str, dict[str, Pod]] = {}
        self._nominated: dict[str, dict[tuple[str, str], Pod]] = {}
        # By slot.
        self._ports: dict[int, dict[HostPort, int]] = {}
        self._mounted: dict[int, dict[tuple[str, str], Mounted]] = {}
        self._mounts: dict[int, int] = {}
        self._claim_users: dict[tuple[str, str], dict[int, int]] = {}
        self._terms: dict[tuple[str, Term], _TermUse] = {}
        self._terms_by_key: dict[_TermKey, dict[str, set[_TermUse]]] = {}  # then by the namespace of the term's pods

    def put(self, pod: Pod, key: str, version: KubernetesVersion) -> None:
        """Add or replace a pod. ``key`` is its name, or any other unique text in its namespace."""
        namespace, node_name, status = pod.meta.namespace, pod.pod_spec.node_name, pod.status
        finished = status is not None and status.phase in FINISHED
        if not node_name or finished:
            self._take_off(namespace, key)
            if self._scores is not None:
                self._scores.remove_pod(namespace, key)
        else:
            self._place(pod, key, version, self._nodes.slot(node_name))
            if self._scores is not None:
                self._scores.put_pod(pod, key, version)
        if namespace in self._waiting:
            self._stop_waiting(namespace, key)
        # Waiting pods take no resources, but can have a nominated node, and commands show them.
        if not node_name and not finished:
            put_under(self._waiting, namespace, key, pod)
            node = status.nominated_node_name if status is not None else None
            if node:
                put_under(self._nominated, node, (namespace, key), pod)

    def remove(self, namespace: str, key: str, uid: str = "") -> None:
        """Remove a pod. With a uid, keep a later pod of the same name."""
        if self._take_off(namespace, key, uid) and self._scores is not None:
            self._scores.remove_pod(namespace, key)
        known = self._waiting.get(namespace, {}).get(key)
        if known is not None and (not uid or known.meta.uid in {"", uid}):
            self._stop_waiting(namespace, key)

    def _stop_waiting(self, namespace: str, key: str) -> None:
        pod = drop_under(self._waiting, namespace, key)
        node = pod.status.nominated_node_name if pod is not None and pod.status is not None else None
        if node:
            drop_under(self._nominated, node, (namespace, key))

    def _place(self, pod: Pod, key: str, version: KubernetesVersion, slot: int) -> None:
        meta, spec = pod.meta, pod.pod_spec
        namespace, terminating = meta.namespace, meta.deletion_timestamp is not None
        request, extras = existing_request(pod, version), extras_of(meta, spec, version)
        old = self.record(namespace, key)
        # Most events of a running pod only change its status. Comparing is cheaper than removing and adding.
        if old is not None:
            group, aside = self._namespaces[namespace].group(meta.labels or {})
            if (
                old.group is group
                and old.slot == slot
                and old.terminating is terminating
                and old.uid == meta.uid
                and old.request == request
                and old.aside == aside
                and old.extras == extras
            ):
                return
            self._take_off(namespace, key)  # This can drop the namespace, the group and the slot.
            slot = self._nodes.slot(spec.node_name or "")
        space = self._namespaces.get(namespace)
        if space is None:
            space = self._namespaces[namespace] = NamespacePods(self._learn_at)
        group, aside = space.group(meta.labels or {})
        record = PodRecord(
            uid=meta.uid,
            slot=slot,
            group=group,
            aside=aside,
            request=request,
            terminating=terminating,
            priority=spec.priority or 0,
            spread=bool(spec.topology_spread_constraints),
            extras=extras,
        )
        space.add(key, record)
        self._nodes.use(slot, request, 1)
        if extras is not NO_EXTRAS:
            self._take_extras(namespace, key, slot, extras)

    def _take_off(self, namespace: str, key: str, uid: str = "") -> bool:
        """Remove a pod from its node. Return whether there was such a pod."""
        space = self._namespaces.get(namespace)
        record = None if space is None else space.records.get(key)
        if space is None or record is None or (uid and record.uid and record.uid != uid):
            return False
        space.remove(key)
        self._nodes.use(record.slot, record.request, -1)
        if record.extras is not NO_EXTRAS:
            self._drop_extras(namespace, key, record.slot, record.extras)
        self._nodes.release(record.slot)
        if not space.records:
            drop(self._namespaces, namespace)
        return True

    def record(self, namespace: str, key: str) -> PodRecord | None:
        """One pod on a node."""
        space = self._namespaces.get(namespace)
        return None if space is None else space.records.get(key)

    def free_ordinal(self, namespace: str, stem: str, first: int) -> int:
        space, waiting = self._namespaces.get(namespace), self._waiting.get(namespace, {})
        records = space.records if space is not None else {}
        names = ((number, f"{stem}-{number}") for number in count(first))
        return next(number for number, name in names if name not in records and name not in waiting)

    def namespaces(self) -> tuple[str, ...]:
        return tuple(self._namespaces)

    def on_node(self, namespace: str, name: str) -> PodOnNode | None:
        check_time()
        record = self.record(namespace, name)
        if record is None:
            return None
        labels, extras = {**record.group.labels, **record.aside}, record.extras
        return PodOnNode(record.slot, record.terminating, labels, record.request, extras.ports, extras.terms)

    def count(self, namespace: str, selector: Selector, *, terminating: bool = False) -> Counts:
        check_time()
        space = self._namespaces.get(namespace)
        return {} if space is None or selector.nothing else space.count(selector.requirements, terminating=terminating)

    def count_unspread(self, namespace: str, selector: Selector) -> int:
        space = self._namespaces.get(namespace)
        return 0 if space is None or selector.nothing else space.count_unspread(selector.requirements)

    def waiting(self, namespace: str | None = None) -> tuple[Pod, ...]:
        wanted = self._waiting.values() if namespace is None else (self._waiting.get(namespace, {}),)
        return tuple(pod for pods in wanted for pod in pods.values())

    def count_waiting(self, namespace: str, selector: Selector) -> int:
        return sum(selector.matches(pod.labels) for pod in self._waiting.get(namespace, {}).values())

    def nominated(self) -> Mapping[str, tuple[Pod, ...]]:
        return {node: tuple(pods.values()) for node, pods in self._nominated.items()}

    def lower(self, priority: int) -> Mapping[int, Sequence[tuple[int, PodRequest]]]:
        lower: dict[int, list[tuple[int, PodRequest]]] = {}
        for space in self._namespaces.values():
            for record in space.records.values():
                check_time()
                if record.priority < priority:
                    lower.setdefault(record.slot, []).append((record.priority, record.request))
        return lower

    def host_ports(self) -> Mapping[int, tuple[HostPort, ...]]:
        check_time()
        return {slot: tuple(used) for slot, used in self._ports.items()}

    def claim_users(self, namespace: str, name: str) -> Counts:
        check_time()
        return dict(self._claim_users.get((namespace, name), {}))

    def mounts(self) -> Mapping[int, int]:
        check_time()
        return dict(self._mounts)

    def mounting(self, slots: Sequence[int] | None = None) -> Mapping[int, tuple[Mounted, ...]]:
        check_time()
        mounted = self._mounted
        wanted = mounted if slots is None else [slot for slot in slots if slot in mounted]
        return {slot: tuple(mounted[slot].values()) for slot in wanted}

    def terms_matching(self, namespace: str, labels: Mapping[str, str]) -> Sequence[tuple[str, Counts]]:
        check_time()
        # A term is found by a label that it requires. A cluster has thousands of terms, but a pod only a few labels.
        if not self._terms_by_key:
            return []
        candidates: set[_TermUse] = set()
        for space in {_ANY, namespace}:
            for term_key in ((space,), *((space, key, value) for key, value in labels.items())):
                for uses in self._terms_by_key.get(term_key, {}).values():
                    if len(uses) <= MOST_TERMS_COMPARED:
                        candidates |= uses
        of_namespace = self._labels_of(namespace)
        return [
            (use.term.topology_key, dict(use.counts))
            for use in candidates
            if use.term.in_namespace(namespace, of_namespace) and use.term.selector.matches(labels)
        ]

    def matching(self, namespace: str, selector: Selector) -> Sequence[tuple[str, int]]:
        space = self._namespaces.get(namespace)
        return () if space is None or selector.nothing else tuple(space.pods_matching(selector.requirements))

    def objecting(self, namespace: str, labels: Mapping[str, str]) -> Sequence[tuple[str, str, int]]:
        objecting, of_namespace = list[tuple[str, str, int]](), self._labels_of(namespace)
        for its_namespace, space in self._namespaces.items():
            for key, record in space.records.items():
                check_time()
                terms = record.extras.terms
                if any(term.in_namespace(namespace, of_namespace) and term.selector.matches(labels) for term in terms):
                    objecting.append((its_namespace, key, record.slot))
        return objecting

    def score_facts(self, namespace: str, labels: Mapping[str, str]) -> ScoreFacts | None:
        if self._scores is None:
            return None
        return self._scores.facts(self._nodes.view(), namespace, self._labels_of(namespace), labels)

    def _take_extras(self, namespace: str, key: str, slot: int, extras: Extras) -> None:
        for port in extras.ports:
            bump(self._ports.setdefault(slot, {}), port, 1)
        if extras.mounted is not None:
            put_under(self._mounted, slot, (namespace, key), extras.mounted)
            bump(self._mounts, slot, extras.mounted.weight)
            for claim in named_claims(extras.mounted.volumes):
                bump(self._claim_users.setdefault((namespace, claim), {}), slot, 1)
        for term in extras.terms:
            use = self._terms.get((namespace, term))
            if use is None:
                use = self._terms[namespace, term] = _TermUse(namespace, term)
                self._index_term(use)
            bump(use.counts, slot, 1)

    def _drop_extras(self, namespace: str, key: str, slot: int, extras: Extras) -> None:
        for port in extras.ports:
            _drop_one(self._ports, slot, port)
        if extras.mounted is not None:
            drop_under(self._mounted, slot, (namespace, key))
            bump(self._mounts, slot, -extras.mounted.weight)
            for claim in named_claims(extras.mounted.volumes):
                _drop_one(self._claim_users, (namespace, claim), slot)
        for term in extras.terms:
            use = self._terms[namespace, term]
            bump(use.counts, slot, -1)
            if not use.counts:
                drop(self._terms, (namespace, term))
                self._drop_term(use)

    def _index_term(self, use: _TermUse) -> None:
        """Index an anti-affinity term by namespace and required labels, for `terms_matching`."""
        for key in _term_keys(use.term):
            self._terms_by_key.setdefault(key, {}).setdefault(use.namespace, set()).add(use)

    def _drop_term(self, use: _TermUse) -> None:
        for key in _term_keys(use.term):
            uses = self._terms_by_key[key][use.namespace]
            discard(uses, use)
            if not uses:
                drop_under(self._terms_by_key, key, use.namespace)


def _term_keys(term: Term) -> Iterable[_TermKey]:
    """Return the keys under which to index an affinity term.

    There is one key for each of the term's namespaces (or `_ANY`). If the term requires a label, each namespace has one
    key for each value of the label.
    """
    if term.selector.nothing:
        return ()
    narrow = term.namespace_selector.nothing and len(term.namespaces) <= _MAX_ENTRIES_OF_A_TERM
    spaces = term.namespaces if narrow else (_ANY,)
    positive = (requirement for requirement in term.selector.requirements if requirement.operator in ("=", "In"))
    # A term needs a key per value and namespace. Users can write many, so skip requirements with too many values.
    few = (required for required in positive if len(set(required.values)) * len(spaces) <= _MAX_ENTRIES_OF_A_TERM)
    label = next(few, None)
    if label is None:
        return [(space,) for space in spaces]
    return [(space, label.key, value) for space in spaces for value in set(label.values)]


def _drop_one(tables: dict[_Outer, dict[_Key, int]], outer: _Outer, key: _Key) -> None:
    bump(tables[outer], key, -1)
    if not tables[outer]:
        drop(tables, outer)
