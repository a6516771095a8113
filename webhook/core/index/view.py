"""The base of the five views of the cluster: it passes unanswered queries to the view below."""

from collections.abc import Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from webhook.core.budget import check_time

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")
ViewType = TypeVar("ViewType")


class Finder(Protocol):
    """Finds the method that answers a query. The query is a method of a view's class, such as ``Pods.count``."""

    def __call__(
        self, question: Callable[Concatenate[ViewType, Arguments], Answer], /
    ) -> Callable[Arguments, Answer]: ...


class View:
    """Queries about one part of the cluster.

    A table of the index answers all queries. An overlay answers some, and passes the others to the view below it.

    Args:
        below: Finds the method for a query that this view does not answer.
    """

    def __init__(self, below: Finder) -> None:
        self._find = below

    def answering(self, question: Callable[Concatenate[ViewType, Arguments], Answer], /) -> Callable[Arguments, Answer]:
        """Find the method to answer a query, in this view or below.

        Overlays override queries by name. If this class does not override ``question``, the view below answers.
        """
        check_time()  # Overlays repeat queries many times.
        if getattr(type(self), question.__name__) is question:
            return self._find(question)
        method: Callable[Arguments, Answer] = getattr(self, question.__name__)
        return method

    def _ask(
        self,
        question: Callable[Concatenate[ViewType, Arguments], Answer],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        return self._find(question)(*args, **kwargs)
