"""What a review asked of the cluster from beside the event loop, and the answers: facts of one moment.

Reviews in the loop ask the index itself, which changes between them. One in a thread or a process asks the loop, where
events are applied between two of its questions. If one was, its facts are of several moments: all its questions are
asked again at once, and if one has another answer now, the object is judged anew. The same facts give the same
decision, here and elsewhere.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Protocol, TypeVar

from webhook.core.api.version import KubernetesVersion
from webhook.core.budget import check_time
from webhook.core.index.nodes import Nodes
from webhook.core.index.pods import Pods
from webhook.core.index.read_only import Namespaces, Owners, ReadOnlyIndex, Volumes

_Decision = TypeVar("_Decision")
# Measured beside a thousand events a second: of 3,000 reviews 56 would have been judged twice, and none a third time.
_MAX_DECISIONS = 3
SEVERAL_REVISIONS = -1
"""The revision of answers between which events came in."""


class IndexClient(Protocol):
    """Asks the index; says at which revision of the index it was answered."""

    def all(self, questions: Sequence["IndexQuestion"]) -> tuple[int, Sequence[object]]:
        """The answers to some questions, of the same moment, or at the revision `SEVERAL_REVISIONS`."""


IndexQuestion = tuple[str, tuple[object, ...], Mapping[str, object]]
"""A property of `ReadOnlyIndex`, or a view and its method, as in "pods.count"; and what it is called with."""


def answer_all(index: ReadOnlyIndex, questions: Iterable[IndexQuestion]) -> tuple[int, list[object]]:
    """The answers of this index at this moment, as `IndexClient` has them."""
    found = ((attrgetter(name)(index), of, named) for name, of, named in questions)
    return index.revision, [asked(*of, **named) if callable(asked) else asked for asked, of, named in found]


def judge_remotely(judge: Callable[[ReadOnlyIndex], _Decision], asking: IndexClient) -> _Decision:
    """The function's decision on the cluster at one moment. Events do not wait for it.

    The function can run several times, and must depend on nothing else that changes. If events come in each time, the
    questions of only the last run are answered at a later moment than the rest.
    """
    facts = RemoteIndex(asking)
    decision = judge(facts)
    for _ in range(_MAX_DECISIONS - 1):
        if facts.consistent or not facts.refresh():
            break
        decision = judge(facts)
    return decision


class RemoteIndex(ReadOnlyIndex):
    """Answers as the index does, and asks each question once."""

    def __init__(self, asking: IndexClient) -> None:
        self._asking = asking
        self._questions: dict[Hashable, IndexQuestion] = {}
        self.known: dict[Hashable, object] = {}
        self._revision: int | None = None
        self.consistent = True  # whether nothing changed between the questions
        self.nodes, self.pods = Nodes(self._of("nodes")), Pods(self._of("pods"))
        self.volumes, self.owners = Volumes(self._of("volumes")), Owners(self._of("owners"))
        self.namespaces = Namespaces(self._of("namespaces"))

    @property
    def version(self) -> KubernetesVersion:
        version: KubernetesVersion = self._answer("version")
        return version

    @property
    def taken_at(self) -> str:
        taken_at: str = self._answer("taken_at")
        return taken_at

    @property
    def revision(self) -> int:
        revision: int = self._answer("revision")
        return revision

    @property
    def lacking(self) -> Mapping[str, str]:
        lacking: Mapping[str, str] = self._answer("lacking")
        return lacking

    def refresh(self) -> bool:
        """Replace all answers by those of this moment, and say whether one of them is another than before."""
        self._revision, answers = self._asking.all([*self._questions.values()])
        before, self.known = self.known, dict(zip(self._questions, answers, strict=True))
        self.consistent = self._revision != SEVERAL_REVISIONS
        return self.known != before

    def _of(self, view: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """What finds the answers to questions of this view."""
        return lambda question: partial(self._answer, f"{view}.{question.__name__}")

    def _answer(self, name: str, *of: object, **named: object) -> Any:  # noqa: ANN401 as the question's signature says
        check_time()  # for answers that are known too: overlays ask for them again and again
        key: Hashable = (name, of, *named.items())
        try:
            answer = self.known.get(key, self)  # which is no answer to anything
        except TypeError:  # labels and claims are no keys of a dict
            key = name, repr(of)
            answer = self.known.get(key, self)
        if answer is self:
            revision, [answer] = self._asking.all([(name, of, named)])
            self._questions[key], self.known[key] = (name, of, named), answer
            if revision != self._revision:
                self.consistent = self._revision is None
                self._revision = revision
        return answer
