"""Query the index from outside the event loop, with consistent answers.

Reviews in the event loop read the index directly, since no watch event comes between their queries. A review in another
thread or process sends each query to the event loop. A watch event can come between two of these queries. Then all
queries of the review are repeated at once. If an answer changed, the object is reviewed again. So the decision is the
same as in the event loop.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Protocol, TypeVar, cast

from webhook.core.api.version import KubernetesVersion
from webhook.core.budget import check_time
from webhook.core.index.nodes import Nodes
from webhook.core.index.pods import Pods
from webhook.core.index.read_only import Namespaces, Owners, ReadOnlyIndex, Volumes

_Decision = TypeVar("_Decision")
# Measured at a thousand events per second: 56 of 3,000 reviews needed a second decision, and none a third.
_MAX_DECISIONS = 3
SEVERAL_REVISIONS = -1
"""The revision of answers with events in between."""


class IndexClient(Protocol):
    """Sends queries to the index."""

    def all(self, questions: Sequence["IndexQuestion"]) -> tuple[int, Sequence[object]]:
        """Return the index's revision, and the answers to these queries.

        The revision is `SEVERAL_REVISIONS` if watch events were applied between the queries.
        """


IndexQuestion = tuple[str, tuple[object, ...], Mapping[str, object]]
"""A property of `ReadOnlyIndex`, or a method of a view such as "pods.count", and the call's arguments."""


def answer_all(index: ReadOnlyIndex, questions: Iterable[IndexQuestion]) -> tuple[int, list[object]]:
    """Answer the queries from this index. Return its revision and the answers."""
    members = ((attrgetter(name)(index), args, kwargs) for name, args, kwargs in questions)
    return index.revision, [member(*args, **kwargs) if callable(member) else member for member, args, kwargs in members]


def judge_remotely(judge: Callable[[ReadOnlyIndex], _Decision], client: IndexClient) -> _Decision:
    """Run a review on a consistent view of the cluster, without delaying watch events.

    ``judge`` can run several times, so its result must depend only on the index. If events change the index during
    every run, the queries of the last run can see different revisions of the index.
    """
    index = RemoteIndex(client)
    decision = judge(index)
    for _ in range(_MAX_DECISIONS - 1):
        if index.consistent or not index.refresh():
            break
        decision = judge(index)
    return decision


class RemoteIndex(ReadOnlyIndex):
    """An index that sends each query to an `IndexClient` once.

    Attributes:
        questions: The queries by key.
        known: The answers, by the same keys.
        consistent: Whether all answers have the same revision.
    """

    def __init__(self, client: IndexClient) -> None:
        self._client = client
        self.questions: dict[Hashable, IndexQuestion] = {}
        self.known: dict[Hashable, object] = {}
        self._revision: int | None = None
        self.consistent = True
        self.nodes = Nodes(cast("Nodes", _RemoteView("nodes", self._answer)))
        self.pods = Pods(cast("Pods", _RemoteView("pods", self._answer)))
        self.volumes = Volumes(cast("Volumes", _RemoteView("volumes", self._answer)))
        self.owners = Owners(cast("Owners", _RemoteView("owners", self._answer)))
        self.namespaces = Namespaces(cast("Namespaces", _RemoteView("namespaces", self._answer)))

    @property
    def version(self) -> KubernetesVersion:
        return cast("KubernetesVersion", self._answer("version"))

    @property
    def taken_at(self) -> str:
        return cast("str", self._answer("taken_at"))

    @property
    def revision(self) -> int:
        return cast("int", self._answer("revision"))

    @property
    def lacking(self) -> Mapping[str, str]:
        return cast("Mapping[str, str]", self._answer("lacking"))

    def refresh(self) -> bool:
        """Repeat all queries at once. Return whether the result of any query changed."""
        self._revision, answers = self._client.all([*self.questions.values()])
        before, self.known = self.known, dict(zip(self.questions, answers, strict=True))
        self.consistent = self._revision != SEVERAL_REVISIONS
        return self.known != before

    def _answer(self, name: str, *args: object, **kwargs: object) -> object:
        check_time()  # Also for known answers, because overlays repeat queries many times.
        key: Hashable = (name, args, *kwargs.items())
        try:
            answer = self.known.get(key, self)  # ``self`` marks a missing answer.
        except TypeError:  # Labels and claims are not hashable.
            key = name, repr(args)
            answer = self.known.get(key, self)
        if answer is self:
            revision, [answer] = self._client.all([(name, args, kwargs)])
            self.questions[key], self.known[key] = (name, args, kwargs), answer
            if revision != self._revision:
                self.consistent = self._revision is None
                self._revision = revision
        return answer


class _RemoteView:
    """A view with the name ``view``. Its methods send their queries to ``ask``."""

    def __init__(self, view: str, ask: Callable[..., object]) -> None:
        self._view, self._ask = view, ask

    def __getattr__(self, query: str) -> Callable[..., object]:
        return partial(self._ask, f"{self._view}.{query}")
