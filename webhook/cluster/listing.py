"""List the objects of a kind: pages for reflectors, and complete lists for commands.

The API server respects ``limit`` only for lists without ``resourceVersion``, so requests omit it. A failed page is
requested again by its token, and an oversized page with a limit of a single object. After an expired token, the list
restarts with larger pages.

    410, 400 on a page      restart the list
    401                     read the credentials again, once
    403, 404                continue without the kind, and report the reason
    429, 5xx, a connection  wait as long as the server requests, and retry a few times
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from http import HTTPStatus
from typing import Generic, TypeVar
from urllib.parse import quote, urlencode

from msgspec import Raw, Struct

from webhook.cluster.connection import ApiServer, Stream
from webhook.cluster.discovery import read_plural
from webhook.cluster.errors import ClusterError, RefusedError, TooLongError, status_text
from webhook.cluster.resources import Resource, group_path
from webhook.cluster.wire import RawPage, decoded
from webhook.core.api.types import TypeMeta
from webhook.core.index.readers import Reader

_Kept = TypeVar("_Kept")

# Attempts in a row. Their pauses of 0.5, 1, 2 and 4 s outlast the change of an API server behind a load balancer.
_TRIES = 5
_FIRST_WAIT = 0.5
# A person waits here, and gives up sooner than a controller.
_LONGEST_WAIT = 30.0
# kube-apiserver works on a request for this long (--request-timeout). No answer arrives later.
_SILENCE_SECONDS = 60.0
_LABELLED_SILENCE_SECONDS = 30.0
_PAGE = 100  # objects. Decoding holds the interpreter's lock; a hundred pods take half a millisecond
_LARGEST_PAGE = 10_000  # kube-apiserver's own limit for requests to etcd (etcd3/store.go maxLimit)
_SHORT_BYTES = 4 * 1024 * 1024  # a page below this size may double its objects


class Paging:
    """The pages of a list request for a kind.

    ``plural`` is the plural resource name in the URL. For an unknown name or an optional kind, it is empty until
    `discover`.
    """

    def __init__(self, server: ApiServer, resource: Resource) -> None:
        self.plural = _known_plural(resource)
        self._server = server
        self._resource = resource
        self._attempt = 0  # index into the resource's versions, modulo their number
        self._more = ""  # the token of the next page
        self._limit = _PAGE

    @property
    def api_version(self) -> str:
        return self._resource.api_versions[self._attempt % len(self._resource.api_versions)]

    @property
    def title(self) -> str:
        return self.plural or self._resource.title

    @property
    def first(self) -> bool:
        return not self._more

    def reader(self) -> Reader:
        """Return the function that reads this kind's objects in the current API version."""
        return self._resource.reader(self.api_version)

    def discover(self) -> None:
        """Read the plural name of the resource from the API server. For a kind configured without a plural."""
        with self._server.open(group_path(self.api_version)) as stream:
            self.plural = read_plural(stream.body(), self._resource.kind)

    def path(self, **query: str) -> str:
        """Return the path to list or watch the kind, with this query."""
        if self._resource.field_selector:
            query["fieldSelector"] = self._resource.field_selector
        return f"{group_path(self.api_version)}/{self.plural}?{urlencode(query)}"

    def open(self, *, silence_seconds: float) -> AbstractContextManager[Stream]:
        """Request the next page."""
        query = {"limit": str(self._limit)} | ({"continue": self._more} if self._more else {})
        return self._server.open(self.path(**query), silence_seconds=silence_seconds)

    def body(self, stream: Stream) -> bytes:
        """Return the page in the stream. If it is too long, limit the next request to a single object, and raise."""
        try:
            body = stream.body()
        except TooLongError:
            self._limit = 1
            raise
        if self._limit < _PAGE and len(body) < _SHORT_BYTES:
            self._limit = min(self._limit * 2, _PAGE)
        return body

    def turn_to(self, more: str) -> bool:
        """Continue with the page of this token. Returns False for an empty token: the list is complete."""
        self._more = more
        if not more:
            self._limit = _PAGE
        return bool(more)

    def begin_anew(self) -> None:
        self._more = ""

    def is_outdated(self, refusal: RefusedError) -> bool:
        """Whether the refusal requires a restart of the list. If so, the next page is the first."""
        gone = refusal.status == HTTPStatus.GONE or "too large resource version" in str(refusal).lower()
        if not gone and (self.first or refusal.status != HTTPStatus.BAD_REQUEST):
            return False
        if gone and not self.first:
            # The list takes longer than a token's lifetime: use fewer, larger pages.
            self._limit = min(self._limit * 5, _LARGEST_PAGE)
        self.begin_anew()
        return True

    def try_next_version(self) -> bool:
        """Switch to the kind's next API version after a 404. Returns False after the last version."""
        self._attempt += 1
        self.plural = _known_plural(self._resource)
        self.begin_anew()
        return self._attempt % len(self._resource.api_versions) != 0


class Listing(Struct, Generic[_Kept], frozen=True, kw_only=True):
    """The listed objects of a kind, or the API server's refusal.

    Attributes:
        refused: The refusal in short: ``403 Forbidden``. Empty if listed.
        detail: The refusal in the API server's words.
    """

    resource: str
    values: tuple[_Kept, ...] = ()
    refused: str = ""
    detail: str = ""


class ListedPage(Struct, frozen=True):
    """A page of a list. ``of`` is the type of its JSON items. ``first`` marks the start or restart of the list."""

    resource: str
    items: tuple[Raw, ...]
    of: TypeMeta
    first: bool


class NotListedError(ClusterError):
    """The API server refuses to list a kind.

    ``resource`` is the kind's resource. ``refused`` is the HTTP status in words. The error's text is the API server's
    message.
    """

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
    sleep: Callable[[float], object] = time.sleep,
) -> Listing[_Kept]:
    """List a kind. Returns the kept values. For a refused list, returns the refusal instead.

    Args:
        server: The API server.
        resource: The kind.
        keep: Converts each listed object, as JSON text, to the kept value.
        progress: Called with the number of objects of each page.
        sleep: Waits between attempts.
    """
    values, title = list[_Kept](), resource.title
    try:
        for page in list_pages(server, resource, sleep=sleep):
            if page.first:
                values.clear()
            values += [keep(item, page.of) for item in page.items]
            title = page.resource
            progress(len(page.items))
    except NotListedError as error:
        return Listing(resource=error.resource, refused=error.refused, detail=str(error))
    return Listing(resource=title, values=tuple(values))


def list_pages(
    server: ApiServer, resource: Resource, *, sleep: Callable[[float], object] = time.sleep
) -> Iterator[ListedPage]:
    """Yield the pages of a list of all objects of a kind. Retries failed requests.

    Raises:
        NotListedError: The API server refuses to list the kind.
    """
    paging = Paging(server, resource)
    failures, renewed, more = 0, False, True
    while more:
        renewals = server.renewals
        try:
            if not paging.plural:
                paging.discover()
                continue
            first = paging.first
            with paging.open(silence_seconds=_SILENCE_SECONDS) as stream:
                page = decoded(paging.body(stream), RawPage)
            failures = 0
        except RefusedError as refusal:
            status = refusal.status
            if status == HTTPStatus.UNAUTHORIZED and not renewed:
                server.renew(renewals)
                renewed = True
            elif status == HTTPStatus.NOT_FOUND and paging.try_next_version():
                continue
            elif status == HTTPStatus.NOT_FOUND and resource.extension:
                return
            elif status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND}:
                raise NotListedError(paging.title, refusal) from refusal
            else:
                lasting = status < HTTPStatus.TOO_MANY_REQUESTS and not paging.is_outdated(refusal)
                failures = _count_failure(failures, refusal, lasting=lasting)
                sleep(min(max(refusal.retry_after, _FIRST_WAIT * 2 ** (failures - 1)), _LONGEST_WAIT))
        except ClusterError as error:
            failures = _count_failure(failures, error)
            sleep(_FIRST_WAIT * 2 ** (failures - 1))
        else:
            more = paging.turn_to(page.metadata.continue_)
            of = TypeMeta(api_version=paging.api_version, kind=resource.kind)
            yield ListedPage(paging.title, page.items or (), of, first)


def list_labelled(server: ApiServer, path: str, selector: str) -> Iterator[RawPage]:
    """Yield the pages of objects at a path, filtered by a label selector."""
    limit, query = _PAGE, {"labelSelector": selector}
    while True:
        try:
            asked = urlencode(query | {"limit": str(limit)})
            with server.open(f"{path}?{asked}", silence_seconds=_LABELLED_SILENCE_SECONDS) as stream:
                page = decoded(stream.body(), RawPage)
        except TooLongError:
            # Users can label objects near etcd's size limit, so a page can be too large.
            if limit == 1:
                raise
            limit = 1
            continue
        limit = min(2 * limit, _PAGE)
        yield page
        if not page.metadata.continue_:
            return
        query["continue"] = page.metadata.continue_


def list_events(server: ApiServer, namespace: str, reason: str, most: int) -> Sequence[Raw]:
    """Return the namespace's events with this reason.

    Raises:
        ClusterError: The API server refuses, does not answer, or has more than ``most`` events.
    """
    query = urlencode({"fieldSelector": f"reason={reason}", "limit": str(most)})
    with server.open(f"{group_path('v1')}/namespaces/{quote(namespace)}/events?{query}") as stream:
        page = decoded(stream.body(), RawPage)
    if page.metadata.continue_:
        raise ClusterError(f"more than {most} events")
    return page.items or ()


def _count_failure(failures: int, error: ClusterError, *, lasting: bool = False) -> int:
    """Count a failure. Raises the error after too many failures, or if waiting cannot help."""
    if lasting or failures + 1 >= _TRIES:
        raise error
    return failures + 1


def _known_plural(resource: Resource) -> str:
    return "" if resource.extension else resource.name
