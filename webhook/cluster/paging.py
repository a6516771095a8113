"""Where the list of one kind stands: the version of its API, its plural, the next page.

Lists have no ``resourceVersion``, so that the API server honours ``limit``; a page that fails is asked for again by its
token, and one whose token has expired begins the list anew with larger pages.
"""

from contextlib import AbstractContextManager
from urllib.parse import urlencode

from webhook.cluster.connection import ApiServer, RefusedError, Stream
from webhook.cluster.resources import Resource, group_path
from webhook.cluster.wire import read_plural
from webhook.core.index.readers import Reader

_PAGE = 100  # objects: a decode holds the interpreter's lock, and a hundred pods take half a millisecond
_LARGEST_PAGE = 10_000
_BAD_REQUEST, _GONE = 400, 410


class Paging:
    """See the module.

    Shape: ``plural`` is empty until `discover` has asked for it, where the resource itself does not know.
    """

    def __init__(self, server: ApiServer, resource: Resource) -> None:
        self.plural = resource.name
        self._server = server
        self._resource = resource
        self._attempt = 0  # of the resource's versions
        self._more = ""  # the token of the next page
        self._limit = _PAGE

    @property
    def api_version(self) -> str:
        """The version that is asked for."""
        return self._resource.api_versions[self._attempt % len(self._resource.api_versions)]

    @property
    def title(self) -> str:
        """What the kind is called in messages."""
        return self.plural or self._resource.title

    @property
    def first(self) -> bool:
        """Whether the next page is the first."""
        return not self._more

    def reader(self) -> Reader:
        """What reads the kind's objects in this version."""
        return self._resource.reader(self.api_version)

    def discover(self) -> None:
        """Ask for the plural of a kind of which only the name was configured.

        Errors: ClusterError; RefusedError 404 for a kind that the API server does not have.
        """
        with self._server.open(group_path(self.api_version)) as stream:
            self.plural = read_plural(stream.body(), self._resource.kind)

    def path(self, **query: str) -> str:
        """Where the kind is listed and watched."""
        if self._resource.field_selector:
            query["fieldSelector"] = self._resource.field_selector
        return f"{group_path(self.api_version)}/{self.plural}?{urlencode(query)}"

    def open(self, *, silence_seconds: float) -> AbstractContextManager[Stream]:
        """Ask for the next page.

        Errors: as `ApiServer.open`.
        """
        query = {"limit": str(self._limit)} | ({"continue": self._more} if self._more else {})
        return self._server.open(self.path(**query), silence_seconds=silence_seconds)

    def turn_to(self, more: str) -> bool:
        """Go on to the page of that token; False where there is none, and the list is whole."""
        self._more = more
        if not more:
            self._limit = _PAGE
        return bool(more)

    def begin_anew(self) -> None:
        """Go back to the first page."""
        self._more = ""

    def is_outdated(self, refusal: RefusedError) -> bool:
        """Whether the refusal means that the list has to begin anew; then it does."""
        gone = refusal.status == _GONE or "too large resource version" in str(refusal).lower()
        if not gone and (self.first or refusal.status != _BAD_REQUEST):
            return False
        if gone and not self.first:
            # The list takes longer than tokens live: fewer, larger pages.
            self._limit = min(self._limit * 5, _LARGEST_PAGE)
        self.begin_anew()
        return True

    def try_next_version(self) -> bool:
        """After a 404: ask for the kind in its next version; False where that is the first one again."""
        self._attempt += 1
        self.plural = self._resource.name
        self.begin_anew()
        return self._attempt % len(self._resource.api_versions) != 0
