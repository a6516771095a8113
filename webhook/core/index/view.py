"""The base of the five views of the cluster: it passes unanswered queries to the view below."""

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from webhook.core.budget import check_time

_Of = ParamSpec("_Of")
_Answer = TypeVar("_Answer")
_Method = Callable[..., Any]


class View:
    """Queries about one part of the cluster.

    A table of the index answers all queries. An overlay answers some, and passes the others to the view below it.

    Args:
        below: Finds the method for a query that this view does not answer.
    """

    def __init__(self, below: Callable[[_Method], _Method]) -> None:
        self._find = below

    def answering(self, question: _Method) -> _Method:
        """Find the method to answer a query, in this view or below.

        Overlays override queries by name. If this class does not override ``question``, the view below answers.
        """
        check_time()  # Overlays repeat queries many times.
        if getattr(type(self), question.__name__) is question:
            return self._find(question)
        method: _Method = getattr(self, question.__name__)
        return method

    def _ask(self, question: Callable[Concatenate[Any, _Of], _Answer], *of: _Of.args, **named: _Of.kwargs) -> _Answer:
        answer: _Answer = self._find(question)(*of, **named)
        return answer
