"""The state of listing one kind: the API version, its plural name, the next page.

Lists are requested without ``resourceVersion``, since only then the API server respects ``limit``. A page that fails is
requested again by its token, for one object if it was too long; if the token has expired, the list starts again
with larger pages.
"""

from contextlib import AbstractContextManager
from urllib.parse import urlencode

from webhook.cluster.connection import ApiServer, RefusedError, Stream, TooLongError
from webhook.cluster.resources import Resource, group_path
from webhook.cluster.wire import read_plural
from webhook.core.index.readers import Reader

_PAGE = 100  # objects. Decoding holds the interpreter's lock; a hundred pods take half a millisecond
_LARGEST_PAGE = 10_000  # as many as kube-apiserver itself requests of etcd at once (etcd3/store.go maxLimit)
_SHORT_BYTES = 4 * 1024 * 1024  # twice as many objects as in such a page are not too long
_BAD_REQUEST, _GONE = 400, 410


class Paging:
    """The pages of one list request.

    Shape: ``plural`` is empty until `discover`, if the resource does not have it, or may not be there: whoever may not
    list it would not be told so.
    """

    def __init__(self, server: ApiServer, resource: Resource) -> None:
        self.plural = _known_plural(resource)
        self._server = server
        self._resource = resource
        self._attempt = 0  # index, modulo their number, into the resource's versions
        self._more = ""  # the token of the next page
        self._limit = _PAGE

    @property
    def api_version(self) -> str:
        """The API version that is requested."""
        return self._resource.api_versions[self._attempt % len(self._resource.api_versions)]

    @property
    def title(self) -> str:
        """The name of the kind in messages."""
        return self.plural or self._resource.title

    @property
    def first(self) -> bool:
        """Whether the next page is the first."""
        return not self._more

    def reader(self) -> Reader:
        """The reader of the kind's objects in this version."""
        return self._resource.reader(self.api_version)

    def discover(self) -> None:
        """Request the plural of a kind of which only the name is configured.

        Errors: ClusterError; RefusedError 404 for a kind that the API server does not have.
        """
        with self._server.open(group_path(self.api_version)) as stream:
            self.plural = read_plural(stream.body(), self._resource.kind)

    def path(self, **query: str) -> str:
        """The path to list or watch the kind, with this query."""
        if self._resource.field_selector:
            query["fieldSelector"] = self._resource.field_selector
        return f"{group_path(self.api_version)}/{self.plural}?{urlencode(query)}"

    def open(self, *, silence_seconds: float) -> AbstractContextManager[Stream]:
        """Request the next page.

        Errors: as `ApiServer.open`.
        """
        query = {"limit": str(self._limit)} | ({"continue": self._more} if self._more else {})
        return self._server.open(self.path(**query), silence_seconds=silence_seconds)

    def body(self, stream: Stream) -> bytes:
        """The page that the stream brings; if it is too long, one object is requested next.

        Errors: as `Stream.body`.
        """
        try:
            body = stream.body()
        except TooLongError:
            self._limit = 1
            raise
        if self._limit < _PAGE and len(body) < _SHORT_BYTES:
            self._limit = min(self._limit * 2, _PAGE)
        return body

    def turn_to(self, more: str) -> bool:
        """Continue with the page of this token; returns False for no token: the list is complete."""
        self._more = more
        if not more:
            self._limit = _PAGE
        return bool(more)

    def begin_anew(self) -> None:
        """Go back to the first page."""
        self._more = ""

    def is_outdated(self, refusal: RefusedError) -> bool:
        """Whether the refusal means that the list has to start again; if so, the next page is the first one."""
        gone = refusal.status == _GONE or "too large resource version" in str(refusal).lower()
        if not gone and (self.first or refusal.status != _BAD_REQUEST):
            return False
        if gone and not self.first:
            # The list takes longer than tokens are valid: use fewer, larger pages.
            self._limit = min(self._limit * 5, _LARGEST_PAGE)
        self.begin_anew()
        return True

    def try_next_version(self) -> bool:
        """After a 404: use the kind's next API version; returns False if that is the first one again."""
        self._attempt += 1
        self.plural = _known_plural(self._resource)
        self.begin_anew()
        return self._attempt % len(self._resource.api_versions) != 0


def _known_plural(resource: Resource) -> str:
    return "" if resource.extension else resource.name
