"""Remember the facts behind each scan, and find the workloads with changed facts.

    scan a workload    `Recording` keeps each query of the index with its result.
    an event           `Changes` notes topics: the queries whose result may have changed.
    next scan          `Facts.outdated` repeats these queries, and returns the workloads with a changed result.

The result of a scan depends only on its object, the policy, the date and the query results. So the dependencies of a
scan need no list written by hand. A topic may cover too many queries, but never too few.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import astuple, replace

from webhook.core.api.types import Node, Pod
from webhook.core.index.objects import ApiObject, Autoscaler, Owner, StorageObject, meta_of
from webhook.core.index.pods import PodOnNode
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.index.remote_index import IndexQuestion, RemoteIndex, answer_all
from webhook.core.placement.proofs.workload_problem import is_old
from webhook.core.scan.scan_context import ObjectKey, ScanContext, key_of, within_index

Topic = tuple[str, str]
"""A view of the index, and a namespace. "" for queries about all namespaces."""

_Versioned = TypeVar("_Versioned", Owner, Node)
_NO_NAMES: Mapping[str, object] = {}
_ALWAYS: Topic = ("", "")  # repeated after any event, and after none: time alone can change them
_WAITING, _POLICY, _TODAY = "waiting", "policy", "today"  # facts of the context
# Queries about a namespace, and the position of this argument. Other queries are about all namespaces.
_NAMESPACE_AT: Mapping[str, int] = {
    **dict.fromkeys(("pods.count", "pods.count_unspread", "pods.count_waiting", "pods.matching"), 0),
    **dict.fromkeys(("pods.free_ordinal", "pods.on_node", "pods.claim_users"), 0),
    **dict.fromkeys(("owners.of_namespace", "owners.controlled", "owners.matching"), 0),
    **dict.fromkeys(("owners.get", "owners.autoscaler"), 2),
}


def _topics_of(value: ApiObject) -> tuple[Topic, ...]:
    """Return the topics of index queries whose results an event of this object can change."""
    namespace = meta_of(value).namespace
    match value:
        case Pod():
            return ("pods", namespace), ("pods", ""), ("nodes", "")
        case Node():
            return (("nodes", ""),)
        case Owner() | Autoscaler():
            return (("owners", namespace),)
        case _ if isinstance(value, StorageObject):
            return (("volumes", ""),)
        case _:  # affinity terms read the labels of namespaces
            return ("namespaces", ""), ("pods", "")


class Changes:
    """Records the changed facts of the cluster since the last call of `take`.

    Attributes:
        topics: The topics of index queries with possibly changed results, from all events (`_topics_of`).
        owners: The keys of all workloads with an event.
    """

    def __init__(self) -> None:
        self.topics: set[Topic] = set()
        self.owners: set[ObjectKey] = set()
        self._nodes: dict[str, int] = {}  # hashes: most events of nodes are heartbeats, which change nothing

    def add(self, value: ApiObject, *, deleted: bool = False) -> None:
        """Record the topics of an event's object and, for a workload, its key.

        Skips a node event without a change except the resource version. Most are heartbeats.
        """
        if isinstance(value, Node):
            digest = 0 if deleted else hash(repr(_without_version(value)))
            if self._nodes.get(value.name) == digest:
                return
            self._nodes[value.name] = digest
        self.topics.update(_topics_of(value))
        if isinstance(value, Owner):
            self.owners.add(key_of(value.meta.namespace, value.api_version, value.kind, value.meta.name))

    def take(self) -> tuple[set[Topic], set[ObjectKey]]:
        """Return the changed topics and workload keys, and clear both sets."""
        taken = self.topics, self.owners
        self.topics, self.owners = set(), set()
        return taken


class Outdated(NamedTuple):
    """Workloads whose facts have changed since their last scan.

    Attributes:
        near: A fact of their namespace or of their own Pending pods changed.
        far: Only a fact of the whole cluster changed: its nodes, their free resources, volumes, the policy.
    """

    near: frozenset[ObjectKey]
    far: frozenset[ObjectKey]


class _Client:
    def __init__(self, index: ReadOnlyIndex) -> None:
        self._index = index

    def all(self, questions: Sequence[IndexQuestion]) -> tuple[int, Sequence[object]]:
        return answer_all(self._index, questions)


class _AskedWaiting(Mapping[ObjectKey, tuple[Pod, ...]]):
    """The Pending pods by controller. ``asked`` contains every key looked up so far, to record a scan's inputs."""

    def __init__(self, waiting: Mapping[ObjectKey, tuple[Pod, ...]]) -> None:
        self._waiting = waiting
        self.asked: set[ObjectKey] = set()

    def __getitem__(self, key: ObjectKey) -> tuple[Pod, ...]:
        self.asked.add(key)
        return self._waiting[key]

    def __iter__(self) -> Iterator[ObjectKey]:
        return iter(self._waiting)

    def __len__(self) -> int:
        return len(self._waiting)


class Recording:
    """The scan context for a workload (``within``), with a record of all facts read from it."""

    def __init__(self, within: ScanContext) -> None:
        self._context = within
        self._index = RemoteIndex(_Client(within.context.cluster))
        self._waiting = _AskedWaiting(within.waiting)
        self.within = replace(within_index(within, self._index), waiting=self._waiting)

    def facts(self) -> Iterator[tuple[Hashable, IndexQuestion, object]]:
        """Yield the key, the query and the query's result for each fact read by the scan."""
        for key, question in self._index.questions.items():
            yield key, question, _kept(question[0], self._index.known[key], self._context)
        for key in self._waiting.asked:
            yield (_WAITING, key), (_WAITING, (key,), {}), None
        for name in (_POLICY, _TODAY):
            yield (name,), (name, (), {}), _answer((name, (), {}), self._context)


def _answer(question: IndexQuestion, within: ScanContext) -> object:
    name = question[0]
    match name:
        case "policy":
            return within.context.policy
        case "today":
            return within.context.today
        case _:
            return _kept(name, answer_all(within.context.cluster, [question])[1][0], within)


def _kept(name: str, answer: object, within: ScanContext) -> object:
    """Convert the result of an index query to a form for later comparison.

    To save memory, frequent results become a hash.
    """
    match answer:
        case PodOnNode():
            return hash(astuple(replace(answer, labels=frozenset(answer.labels.items()))))
        case Mapping() if name == "pods.count":
            return hash(frozenset(answer.items()))
        case Mapping() if name == "nodes.short_of":  # the sum because -1 and -2 have the same hash
            return {resource: (hash(free), sum(free)) for resource, free in answer.items()}
        case Node():
            return _without_version(answer), tuple(is_old(taint, within.context.now) for taint in answer.taints)
        case _:
            return answer


def _differ(one: object, other: object) -> bool:
    """Whether two index query results differ.

    Resource versions of owners are ignored, because every status update changes them.
    """
    if one is other or one == other:
        return False
    owners, others = _owners(one), _owners(other)
    return owners is None or owners != others


def _owners(answer: object) -> list[Owner] | None:
    """Return the owners in a query result, without resource versions. None for a result of another type."""
    owners = [owner for owner in (answer if isinstance(answer, tuple) else (answer,)) if isinstance(owner, Owner)]
    return [_without_version(owner) for owner in owners] or None


def _without_version(value: _Versioned) -> _Versioned:
    if isinstance(value, Owner):
        return replace(value, meta=replace(value.meta, resource_version=""))
    return replace(value, metadata=replace(meta_of(value), resource_version=""))


class _Fact(Struct, eq=False):
    """The result of an index query, and the workloads whose scans used the query.

    To save memory, a single workload is kept without a set.
    """

    key: Hashable
    question: IndexQuestion
    answer: object
    users: tuple[ObjectKey, ...] | set[ObjectKey]

    def add(self, user: ObjectKey) -> None:
        if isinstance(self.users, set):
            self.users.add(user)
        elif user not in self.users:
            self.users = {*self.users, user}

    def remove(self, user: ObjectKey) -> None:
        if isinstance(self.users, tuple):
            self.users = {*self.users}
        self.users.discard(user)


class Facts:
    """The index queries of all scanned workloads with their results, each stored once.

    Callers hold the lock of the index. Before each scan, call `outdated` on the same state of the index. Then all
    stored results belong to the same moment.
    """

    def __init__(self) -> None:
        self._facts: dict[Hashable, _Fact] = {}
        self._topics: dict[Topic, set[_Fact]] = {}
        self._used: dict[ObjectKey, tuple[_Fact, ...]] = {}
        self._waiting: Mapping[ObjectKey, tuple[Pod, ...]] = {}

    def put(self, workload: ObjectKey, recording: Recording) -> frozenset[ObjectKey]:
        """Replace the recorded index queries of a workload.

        Returns:
            The other workloads with an outdated result of the same query. Normally empty. If not, `_topics_of` missed a
                topic of an event.
        """
        before, used, missed = self._used.get(workload, ()), list[_Fact](), set[ObjectKey]()
        for key, question, answer in recording.facts():
            fact = self._facts.get(key)
            if fact is None:
                name, args, named = question
                fact = self._facts[key] = _Fact(key, (name, args, named or _NO_NAMES), answer, (workload,))
                self._topics.setdefault(_topic_of(question), set()).add(fact)
            else:
                if _differ(fact.answer, answer):
                    fact.answer = answer
                    missed.update(fact.users)
                fact.add(workload)
            used.append(fact)
        self._used[workload] = tuple(used)
        self._release(workload, {*before}.difference(used))
        return frozenset(missed - {workload})

    def drop(self, workload: ObjectKey) -> None:
        """Forget a workload."""
        self._release(workload, self._used.pop(workload, ()))

    def outdated(self, topics: Iterable[Topic], within: ScanContext) -> Outdated:
        """Repeat the index queries of these topics. Return the workloads with a changed query result."""
        near, far = self._with_other_waiting(within.waiting), set[ObjectKey]()
        for topic in {*topics, _ALWAYS}:
            for fact in self._topics.get(topic, ()):
                answer = _answer(fact.question, within)
                if _differ(fact.answer, answer):
                    fact.answer = answer
                    (near if topic[1] else far).update(fact.users)
        return Outdated(frozenset(near), frozenset(far - near))

    def _with_other_waiting(self, waiting: Mapping[ObjectKey, tuple[Pod, ...]]) -> set[ObjectKey]:
        before, self._waiting = self._waiting, waiting
        changed = (key for key in before.keys() | waiting.keys() if before.get(key) != waiting.get(key))
        facts = (self._facts.get((_WAITING, key)) for key in changed)
        return {user for fact in facts if fact is not None for user in fact.users}

    def _release(self, workload: ObjectKey, facts: Iterable[_Fact]) -> None:
        for fact in facts:
            fact.remove(workload)
            if not fact.users:
                del self._facts[fact.key]
                self._topics[_topic_of(fact.question)].discard(fact)


def _topic_of(question: IndexQuestion) -> Topic:
    name, args, _ = question
    if name == _WAITING:
        return _WAITING, ""
    view, method, at = *name.partition(".")[::2], _NAMESPACE_AT.get(name)
    if not method or name == "nodes.get":  # a property of the index or the context, or the age of a node's taints
        return _ALWAYS
    return view, "" if at is None else str(args[at])
