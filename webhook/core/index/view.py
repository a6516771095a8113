"""What the views of the cluster have in common."""

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from webhook.core.budget import check_time

_Of = ParamSpec("_Of")
_Answer = TypeVar("_Answer")
_Method = Callable[..., Any]


class View:
    """Questions about one part of the cluster, and who answers them.

    A table of the index answers all of them. An overlay answers some, and leaves the others to the view below it.

    Args:
        below: Finds the method that answers a question which this view does not answer.
    """

    def __init__(self, below: Callable[[_Method], _Method]) -> None:
        self._find = below

    def answering(self, question: _Method) -> _Method:
        """The method that answers a question: of this view, or of one below."""
        check_time()  # overlays ask the same again and again
        if getattr(type(self), question.__name__) is question:
            return self._find(question)
        method: _Method = getattr(self, question.__name__)
        return method

    def _ask(self, question: Callable[Concatenate[Any, _Of], _Answer], *of: _Of.args, **named: _Of.kwargs) -> _Answer:
        answer: _Answer = self._find(question)(*of, **named)
        return answer
