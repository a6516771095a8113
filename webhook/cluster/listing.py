"""The objects of one kind, listed once: for commands that answer and end.

410, 400 on a page      the kind is listed from the start again
401                     the credentials are read again, once
403, 404                the kind is done without, and why is said
429, 5xx, a connection  waits, as long as the server says, and asks again a few times
"""

import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Generic, TypeVar

from msgspec import Raw, Struct

from webhook.cluster.connection import ApiServer, ClusterError, RefusedError, status_text
from webhook.cluster.paging import Paging
from webhook.cluster.resources import Resource
from webhook.cluster.wire import RawPage, read_raw_page
from webhook.core.api.types import TypeMeta

_Kept = TypeVar("_Kept")

# In a row: with pauses of 0.5, 1, 2 and 4 s they outlast the change of an API server behind a load balancer.
_TRIES = 5
# A person waits here, and gives up sooner than a controller would.
_LONGEST_WAIT = 30.0
# As long as kube-apiserver works on a request (--request-timeout): what has not come by then does not come.
_SILENCE_SECONDS = 60.0
_CREDENTIALS, _FORBIDDEN, _NOT_FOUND = HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND
_OVERLOADED = HTTPStatus.TOO_MANY_REQUESTS


class Listing(Struct, Generic[_Kept], frozen=True, kw_only=True):
    """The objects of one kind, or why there are none.

    Shape: ``refused`` is a short reason ("403 Forbidden") and ``detail`` the server's words; both are empty if the list
    is complete.
    """

    resource: str
    values: tuple[_Kept, ...] = ()
    refused: str = ""
    detail: str = ""


class Pause(Struct, frozen=True):
    """How to wait. Unit: seconds."""

    sleep: Callable[[float], None] = time.sleep
    first: float = 0.5


class ListedPage(Struct, frozen=True):
    """A page of a list; with the ``first`` one the list begins, or begins again.

    Shape: ``items`` are JSON, which does not say what ``of``.
    """

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
    """List a kind; only the result of ``keep`` is held in memory for each object.

    Shape: ``progress`` is called with the number of objects of each page.
    Errors: ClusterError if the API server does not answer, or not with lists.
    """
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
    """The pages of a kind, each as it comes.

    Errors: NotListedError; ClusterError if the API server does not answer, or not with lists.
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


def _read_page(paging: Paging) -> RawPage:
    with paging.open(silence_seconds=_SILENCE_SECONDS) as stream:
        return read_raw_page(paging.body(stream))


def _tried(failures: int, error: ClusterError, *, lasting: bool = False) -> int:
    """Count one more failure. Errors: the error itself, if there were too many or waiting does not help."""
    if lasting or failures + 1 >= _TRIES:
        raise error
    return failures + 1
