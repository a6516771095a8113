"""The base class of the five views of the cluster, such as nodes or pods.

Views can be layered. A view without its own method for a query passes the query to the view below.
"""

from collections.abc import Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from webhook.core.budget import check_time

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")
ViewType = TypeVar("ViewType")


class Finder(Protocol):
    """A function that returns the method answering an index query. The query is a method such as ``Pods.count``."""

    def __call__(
        self, question: Callable[Concatenate[ViewType, Arguments], Answer], /
    ) -> Callable[Arguments, Answer]: ...


class View:
    """Queries on one part of the cluster, such as its nodes or pods.

    A table of the index answers all queries. An overlay answers some queries, and passes all others to the view below.

    Args:
        below: Finds the method of the view below.
    """

    def __init__(self, below: Finder) -> None:
        self._find = below

    def answering(self, question: Callable[Concatenate[ViewType, Arguments], Answer], /) -> Callable[Arguments, Answer]:
        """Return the method that answers an index query.

        If this overlay's class overrides the query's method, return the overlay's method. Otherwise return the method
        of the view below.

        Args:
            question: The query, as a method of the base class: ``Pods.count``.
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
