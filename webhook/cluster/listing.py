"""The objects of one kind: its pages, one request each, and lists for commands that answer and end.

Lists are requested without ``resourceVersion``, since only then the API server respects ``limit``. A page that fails is
requested again by its token, for one object if it was too long; if the token has expired, the list starts again
with larger pages.

410, 400 on a page      the kind is listed from the start again
401                     the credentials are read again, once
403, 404                the kind is done without, and why is said
429, 5xx, a connection  waits, as long as the server says, and asks again a few times
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from http import HTTPStatus
from typing import Generic, TypeVar
from urllib.parse import urlencode

from msgspec import Raw, Struct

from webhook.cluster.connection import ApiServer, ClusterError, RefusedError, Stream, TooLongError, status_text
from webhook.cluster.resources import Resource, group_path
from webhook.cluster.wire import RawPage, read_plural, read_raw_page
from webhook.core.api.types import TypeMeta
from webhook.core.index.readers import Reader

_Kept = TypeVar("_Kept")

# In a row: with pauses of 0.5, 1, 2 and 4 s they outlast the change of an API server behind a load balancer.
_TRIES = 5
# A person waits here, and gives up sooner than a controller would.
_LONGEST_WAIT = 30.0
# As long as kube-apiserver works on a request (--request-timeout): what has not come by then does not come.
_SILENCE_SECONDS = 60.0
_LABELLED_SILENCE_SECONDS = 30.0
_CREDENTIALS, _FORBIDDEN, _NOT_FOUND = HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND
_OVERLOADED = HTTPStatus.TOO_MANY_REQUESTS
_PAGE = 100  # objects. Decoding holds the interpreter's lock; a hundred pods take half a millisecond
_LARGEST_PAGE = 10_000  # as many as kube-apiserver itself requests of etcd at once (etcd3/store.go maxLimit)
_SHORT_BYTES = 4 * 1024 * 1024  # twice as many objects as in such a page are not too long
_BAD_REQUEST, _GONE = HTTPStatus.BAD_REQUEST, HTTPStatus.GONE


class Paging:
    """The pages of one list request.

    ``plural`` is empty until `discover` if it is unknown, or if the kind may not exist.
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
        """Request the plural of a kind of which only the name is configured."""
        with self._server.open(group_path(self.api_version)) as stream:
            self.plural = read_plural(stream.body(), self._resource.kind)

    def path(self, **query: str) -> str:
        """The path to list or watch the kind, with this query."""
        if self._resource.field_selector:
            query["fieldSelector"] = self._resource.field_selector
        return f"{group_path(self.api_version)}/{self.plural}?{urlencode(query)}"

    def open(self, *, silence_seconds: float) -> AbstractContextManager[Stream]:
        """Request the next page."""
        query = {"limit": str(self._limit)} | ({"continue": self._more} if self._more else {})
        return self._server.open(self.path(**query), silence_seconds=silence_seconds)

    def body(self, stream: Stream) -> bytes:
        """The page that the stream brings; if it is too long, one object is requested next."""
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


class Listing(Struct, Generic[_Kept], frozen=True, kw_only=True):
    """The objects of one kind, or why there are none: in short ("403 Forbidden"), and in the server's words."""

    resource: str
    values: tuple[_Kept, ...] = ()
    refused: str = ""
    detail: str = ""


class Pause(Struct, frozen=True):
    """How to wait. Unit: seconds."""

    sleep: Callable[[float], None] = time.sleep
    first: float = 0.5


class ListedPage(Struct, frozen=True):
    """A page of a list, in JSON, and the type of its items. With the ``first`` page the list begins (again)."""

    resource: str
    items: tuple[Raw, ...]
    of: TypeMeta
    first: bool


class NotListedError(ClusterError):
    """A kind that the API server does not list for us; ``refused`` is a short reason, the text the server's words."""

    def __init__(self, resource: str, refusal: RefusedError) -> None:
        super().__init__(str(refusal))
        self.resource = resource
        self.refused = status_text(refusal.status)


def list_objects(
    server: ApiServer,
    resource: Resource,
    keep: Callable[[Raw, TypeMeta], _Kept],
    *,
    progress: Callable[[int], None] = lambda _objects: None,
    pause: Pause = Pause(),  # noqa: B008 a value that never changes
) -> Listing[_Kept]:
    """List a kind, and keep only the result of ``keep``. ``progress`` gets the number of objects of each page."""
    values, title = list[_Kept](), resource.title
    try:
        for page in list_pages(server, resource, pause=pause):
            if page.first:
                values.clear()
            values += [keep(item, page.of) for item in page.items]
            title = page.resource
            progress(len(page.items))
    except NotListedError as error:
        return Listing(resource=error.resource, refused=error.refused, detail=str(error))
    return Listing(resource=title, values=tuple(values))


def list_pages(
    server: ApiServer,
    resource: Resource,
    *,
    pause: Pause = Pause(),  # noqa: B008 a value that never changes
) -> Iterator[ListedPage]:
    """The pages of a kind. Raises NotListedError."""
    paging = Paging(server, resource)
    failures, renewed, more = 0, False, True
    while more:
        renewals = server.renewals
        try:
            if not paging.plural:
                paging.discover()
                continue
            first = paging.first
            page = _read_page(paging)
            failures = 0
        except RefusedError as refusal:
            status = refusal.status
            if status == _CREDENTIALS and not renewed:
                server.renew(renewals)
                renewed = True
            elif status == _NOT_FOUND and paging.try_next_version():
                continue
            elif status == _NOT_FOUND and resource.extension:
                return
            elif status in {_CREDENTIALS, _FORBIDDEN, _NOT_FOUND}:
                raise NotListedError(paging.title, refusal) from refusal
            else:
                lasting = status < _OVERLOADED and not paging.is_outdated(refusal)
                failures = _tried(failures, refusal, lasting=lasting)
                pause.sleep(min(max(refusal.retry_after, pause.first * 2 ** (failures - 1)), _LONGEST_WAIT))
        except ClusterError as error:
            failures = _tried(failures, error)
            pause.sleep(pause.first * 2 ** (failures - 1))
        else:
            more = paging.turn_to(page.metadata.continue_)
            of = TypeMeta(api_version=paging.api_version, kind=resource.kind)
            yield ListedPage(paging.title, page.items or (), of, first)


def list_labelled(server: ApiServer, path: str, selector: str) -> Iterator[RawPage]:
    """The pages of the objects at a path that a selector of labels matches."""
    limit, query = _PAGE, {"labelSelector": selector}
    while True:
        try:
            asked = urlencode(query | {"limit": str(limit)})
            with server.open(f"{path}?{asked}", silence_seconds=_LABELLED_SILENCE_SECONDS) as stream:
                page = read_raw_page(stream.body())
        except TooLongError:
            # Anybody may put a label on objects, each as large as etcd takes.
            if limit == 1:
                raise
            limit = 1
            continue
        limit = min(2 * limit, _PAGE)
        yield page
        if not page.metadata.continue_:
            return
        query["continue"] = page.metadata.continue_


def _read_page(paging: Paging) -> RawPage:
    with paging.open(silence_seconds=_SILENCE_SECONDS) as stream:
        return read_raw_page(paging.body(stream))


def _tried(failures: int, error: ClusterError, *, lasting: bool = False) -> int:
    """Count one more failure. Errors: the error itself, if there were too many or waiting does not help."""
    if lasting or failures + 1 >= _TRIES:
        raise error
    return failures + 1


def _known_plural(resource: Resource) -> str:
    return "" if resource.extension else resource.name
