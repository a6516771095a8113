"""The base class of the five views of the cluster, such as nodes or pods.

Views can be layered. A view without its own method for a query passes the query to the view below.
"""

from typing import Generic, TypeVar

from webhook.core.budget import check_time

_View = TypeVar("_View")


class View(Generic[_View]):
    """Queries on one part of the cluster, such as its nodes or pods.

    A table of the index answers all queries. An overlay answers some queries, and passes all others to the view below.

    Args:
        below: The view below.
    """

    def __init__(self, below: _View) -> None:
        self._answering = below

    @property
    def _below(self) -> _View:
        """The view below, for each query passed to it."""
        check_time()  # Overlays repeat queries many times.
        return self._answering
