"""What a review asked of the cluster from beside the event loop, and the answers: facts of one moment.

Reviews in the loop ask the index itself, which changes between them. One in a thread or a process asks the loop, where
events are applied between two of its questions. If one was, its facts are of several moments: all its questions are
asked again at once, and if one has another answer now, the object is judged anew. The same facts give the same
decision, here and elsewhere.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar, cast

from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.time_limit import check_time

_Decision = TypeVar("_Decision")
# Measured beside a thousand events a second: of 3,000 reviews 56 would have been judged twice, and none a third time.
_MAX_DECISIONS = 3
OF_SEVERAL_MOMENTS = -1
"""The revision of answers between which events came in."""


class Asking(Protocol):
    """Asks the index; says at which revision of the index it was answered."""

    def all(self, questions: Sequence["IndexQuestion"]) -> tuple[int, Sequence[object]]:
        """The answers to some questions, of the same moment, or at the revision `OF_SEVERAL_MOMENTS`."""


IndexQuestion = tuple[str, tuple[object, ...], Mapping[str, object]]
"""A method or property of `ReadOnlyIndex`, and what it is called with."""


_QUESTIONS = {
    name: member for name, member in vars(ReadOnlyIndex).items() if not name.startswith("_") and name != "lacks"
}
_PROPERTIES = frozenset(name for name, member in _QUESTIONS.items() if isinstance(member, property))


def answered(index: ReadOnlyIndex, questions: Iterable[IndexQuestion]) -> tuple[int, list[object]]:
    """The answers of this index at this moment, as `Asking` has them."""
    found = ((getattr(index, name), name, of, named) for name, of, named in questions)
    return index.revision, [asked if name in _PROPERTIES else asked(*of, **named) for asked, name, of, named in found]


def judged_afar(judge: Callable[[ReadOnlyIndex], _Decision], asking: Asking) -> _Decision:
    """What the function makes of the cluster at one moment, without keeping events waiting.

    Shape: the function may be called several times, and must depend on nothing else that changes. If events come in
    each time, what only the last call asked for is of a later moment than the rest.
    """
    facts = Facts(asking)
    decision = judge(cast(ReadOnlyIndex, facts))
    for _ in range(_MAX_DECISIONS - 1):
        if facts.of_one_moment or not facts.ask_again():
            break
        decision = judge(cast(ReadOnlyIndex, facts))
    return decision


class Facts:
    """Answers as a `ReadOnlyIndex` does, and asks each question once."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._questions: dict[Hashable, IndexQuestion] = {}
        self.known: dict[Hashable, object] = {}
        self._revision: int | None = None
        self.of_one_moment = True  # whether nothing changed between the questions

    lacks = ReadOnlyIndex.lacks  # follows from `lacking`, which is asked once

    def ask_again(self) -> bool:
        """Replace all answers by those of this moment, and say whether one of them is another than before."""
        self._revision, answers = self._asking.all([*self._questions.values()])
        before, self.known = self.known, dict(zip(self._questions, answers, strict=True))
        self.of_one_moment = self._revision != OF_SEVERAL_MOMENTS
        return self.known != before

    def ask(self, key: Hashable, name: str, of: tuple[object, ...], named: Mapping[str, object]) -> object:
        """The answer to a new question, which is known by this key from now on."""
        revision, [answer] = self._asking.all([(name, of, named)])
        self._questions[key], self.known[key] = (name, of, named), answer
        if revision != self._revision:
            self.of_one_moment = self._revision is None
            self._revision = revision
        return answer


def _property(name: str) -> object:
    """The property of `Facts` that asks this question."""

    def ask(facts: Facts) -> object:
        return facts.known[name] if name in facts.known else facts.ask(name, name, (), {})

    return property(ask)


def _question(name: str) -> object:
    """The method of `Facts` that asks this question."""

    def ask(facts: Facts, *of: object, **named: object) -> object:
        check_time()  # for answers that are known too: overlays ask for them again and again
        key: Hashable = (name, of, *named.items()) if named else (name, of)
        try:
            answer = facts.known.get(key, facts)  # which is no answer to anything
        except TypeError:  # labels and claims are no keys of a dict
            key = name, repr(of)
            answer = facts.known.get(key, facts)
        return facts.ask(key, name, of, named) if answer is facts else answer

    return ask


for _name in _QUESTIONS:
    setattr(Facts, _name, _property(_name) if _name in _PROPERTIES else _question(_name))
