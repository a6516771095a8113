"""What a review asked of the cluster, and the answers: facts of one moment, which need no lock any more.

Events are applied between two questions of a review. If one was, its facts are of several moments: all its questions
are asked again at once, and the object is judged anew. The same facts give the same decision, here and elsewhere.
"""

from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import NamedTuple, TypeVar, cast

from webhook.core.index.read_only import ReadOnlyIndex

_Decision = TypeVar("_Decision")
# Of reviews beside a thousand events a second, few are judged twice and hardly one three times.
_MOST_TIMES = 3


# A method or property of `ReadOnlyIndex`, and what it is called with by place and by name.
Question = tuple[str, tuple[object, ...], dict[str, object]]


class Answers(NamedTuple):
    """One answer a question, all of the moment at which the index had this revision."""

    revision: int
    answers: Sequence[object]


Ask = Callable[[Sequence[Question]], Answers]


def answered(index: ReadOnlyIndex, lock: AbstractContextManager[object], questions: Sequence[Question]) -> Answers:
    """The answers to these questions; ``lock`` keeps events from the index meanwhile."""
    with lock:
        return Answers(index.revision, [_answer(index, each) for each in questions])


def _answer(index: ReadOnlyIndex, question: Question) -> object:
    name, of, named = question
    asked = getattr(index, name)
    return asked(*of, **named) if callable(asked) else asked


def judged(
    judge: Callable[[ReadOnlyIndex], _Decision], index: ReadOnlyIndex, lock: AbstractContextManager[object]
) -> _Decision:
    """What the function makes of the cluster at one moment; ``lock`` keeps events from the index.

    Shape: the function may be called several times, and must depend on nothing else that changes. If events come in
    each time, the last call keeps them waiting.
    """
    facts = Facts(partial(answered, index, lock))
    for _ in range(_MOST_TIMES):
        decision = judge(cast(ReadOnlyIndex, facts))
        if facts.of_one_moment:
            return decision
        facts.ask_again()
    with lock:
        return judge(index)


class Facts:
    """Answers as a `ReadOnlyIndex` does, and asks each question once."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._questions: dict[Hashable, Question] = {}
        self._known: dict[Hashable, object] = {}
        self._revisions: set[int] = set()

    def __getattr__(self, name: str) -> object:
        if isinstance(getattr(ReadOnlyIndex, name), property):
            return self._answer(name)
        self.__dict__[name] = asked = partial(self._answer, name)  # from now on without this detour
        return asked

    @property
    def of_one_moment(self) -> bool:
        """Whether nothing changed between the questions."""
        return len(self._revisions) < 2

    def ask_again(self) -> None:
        """Replace all answers by those of this moment."""
        self._revisions.clear()
        answers = self._asked(list(self._questions.values()))
        self._known = dict(zip(self._questions, answers, strict=True))

    def _answer(self, name: str, *of: object, **named: object) -> object:
        key: Hashable = (name, of) if not named else (name, of, *named.items())
        try:
            return self._known[key]
        except KeyError:
            pass
        except TypeError:  # labels and claims are no keys of a dict
            key = name, repr(of)
        if key not in self._known:
            self._questions[key] = question = name, of, named
            self._known[key] = self._asked([question])[0]
        return self._known[key]

    def _asked(self, questions: Sequence[Question]) -> Sequence[object]:
        revision, answers = self._ask(questions)
        self._revisions.add(revision)
        return answers
