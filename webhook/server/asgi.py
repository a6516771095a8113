"""The ASGI callables of both ports.

Admission port: this module answers POST /validate and /mutate, and refuses every other request. Most reviews take
microseconds and are answered in the event loop. Exceptions:

 - a long body goes to a pool of two threads,
 - a costly object goes to its own process (`costly`). Without a result, the object then goes to the thread pool,
 - a review waits as a suspended task if its pod arrives before its owner, or before the first lists (`waiting`).

Health port: this module answers liveness and readiness, so slow handlers do not delay these probes.
"""

import asyncio
import contextlib
import re
import time
from collections.abc import Callable, Sequence
from functools import partial

from msgspec.structs import replace

from webhook import admission
from webhook.admission import CALLER_SECONDS, ReviewAnswer, Route
from webhook.admission_request import MAX_REVIEW_BYTES, START_BYTES, ReviewError, decode_review, decode_start
from webhook.core.budget import Budget, Missing, Reason
from webhook.core.index.remote_index import IndexClient
from webhook.core.review.decision import AdmissionRequest, Decision
from webhook.logs import bounded
from webhook.server.costly.job import ReviewJob
from webhook.server.costly.pool import ReviewerPool
from webhook.server.http.connection import Connection
from webhook.server.http.request_body import (
    BodyError,
    discard_body,
    header,
    read_body,
    read_start,
    refuse,
    reserve_memory,
)
from webhook.server.http.response import CLOSE, TEXT, Application, Receive, Scope, Send, date_value, respond
from webhook.server.review_threads import LONGEST_SECONDS, FromThread, ReviewThreads
from webhook.server.state import ServerState
from webhook.server.turns import caller_of
from webhook.server.waiting import FirstLists, OwnerWait

# kube-apiserver sends its remaining time in whole seconds, rounded up, at most 30. Without it, its default applies.
_TIMEOUT = re.compile(rb"(?:^|&)timeout=(\d{1,3})s(?:&|$)")
# For sending the answer, and because the caller's time is rounded up.
_MARGIN_SECONDS = 0.25

# Decoding this many bytes takes up to 5 ms. For shorter bodies a thread costs more than it gains.
LONG_BODY_BYTES = 64 * 1024
# Share of the remaining time for a process. Afterwards only rules without a cluster run, in a thread.
_LOOKED_AT_SHARE = 0.6

# The reason of a denial for an unread review, by HTTP status.
_UNREAD = {
    408: Missing.BUSY.reason,
    413: Reason("a review of more than 7 MiB", Missing.IMMENSE),
    429: Missing.BUSY.reason,
}

_NOBODY = AdmissionRequest(uid="", operation="", group="", version="", kind="")
_ROUTES: dict[str, Route] = {"/validate": "validate", "/mutate": "mutate"}
_DIRECT: dict[bytes, Route] = {b"/validate": "validate", b"/mutate": "mutate"}
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ndate: "
_JSON = (b"content-type", b"application/json")


class AdmissionApp:
    """The ASGI application of the admission port. It serves two routes."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._pool = ReviewThreads()
        self._index = index = state.engine.index
        self._reviewers = reviewers = None if index is None else ReviewerPool(state.metrics, index)
        if reviewers is not None:
            state.reviewers_ready = lambda: reviewers.ready
        self._owner_wait = OwnerWait(None if state.feed is None else state.feed.arrivals, state.metrics)
        self._first_lists = FirstLists(state.feed, state.metrics)

    def start(self) -> None:
        """Start the watches of the cluster and the worker processes.

        Also start to wait for the first lists. The event loop must be running.
        """
        if self._state.feed is not None:
            self._state.feed.start(asyncio.get_running_loop())
        self._first_lists.start()
        if self._reviewers is not None:
            self._reviewers.start()

    def close(self) -> None:
        self._first_lists.close()
        if self._reviewers is not None:
            self._reviewers.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer an HTTP request."""
        route = _ROUTES.get(scope["path"])
        if route is None:
            await refuse(scope, receive, send, 404, "404 Not Found")
            return
        if scope["method"] != "POST":
            await refuse(scope, receive, send, 405, "405 Method Not Allowed", (b"allow", b"POST"))
            return
        began, start = time.perf_counter(), bytearray()
        answer, refusal = await self._answer_or_refuse(route, scope, receive, start, began)
        if refusal is not None and refusal.status is None:
            return  # the client has left
        seconds = time.perf_counter() - began
        status, body, media = 200, b"", _JSON
        if answer is not None:
            body = answer.body
        elif refusal is not None:
            status, body, media = refusal.status or 400, f"{refusal.message}\n".encode(), TEXT
        unread = isinstance(refusal, BodyError)
        try:
            await respond(send, status, body, (media, CLOSE) if unread else (media,))
        finally:
            if refusal is None:
                scope["connection"].served()
            else:
                self._state.metrics.count("admission_refusals", str(refusal.status))
            if answer is not None:
                self._state.account(route, answer, seconds)
        if unread:
            await discard_body(scope, receive)

    def direct(
        self, target: bytes, headers: Sequence[tuple[bytes, bytes]], body: bytes
    ) -> tuple[bytes, Callable[[], None]] | None:
        """Return the response to a complete, short review, and a function to call after the response.

        The function counts and logs the review. None leaves the request to `__call__`.
        """
        began = time.perf_counter()
        path, _, query = target.partition(b"?")
        route = _DIRECT.get(path)
        if route is None or len(body) > LONG_BODY_BYTES or _JSON not in headers or self._first_lists.awaited:
            return None
        try:
            deadline = began + _caller_seconds(query) - _MARGIN_SECONDS
            answer = self._judge(route, body, deadline, waited=self._state.feed is None, in_line=True)
        # The general path reports the refusal, truncates the body in a thread, or answers in spite of a bug.
        except Exception:  # noqa: BLE001 as above
            return None
        if answer.decision.awaits is not None or answer.decision.costly:
            return None
        response = b"%b%b\r\ncontent-length: %d\r\n\r\n%b" % (_HEAD, date_value(), len(answer.body), answer.body)
        return response, partial(self._state.account, route, answer, time.perf_counter() - began)

    async def _answer_or_refuse(
        self, route: Route, scope: Scope, receive: Receive, start: bytearray, began: float
    ) -> tuple[ReviewAnswer | None, ReviewError | BodyError | None]:
        """Return the response to a review, or the reason to refuse the HTTP request.

        A review with an unread body can have both. After a bug, the response allows the reviewed object. If even the
        review's uid is unreadable, the bug's exception is raised.
        """
        refusal: ReviewError | BodyError | None = None
        try:
            try:
                return await self._answer(route, scope, receive, start, began), None
            except (ReviewError, BodyError) as error:
                refusal = error
                return await self._answer_unread(route, scope, receive, start, error.status), error
        except Exception as error:
            request = await _read_envelope(receive, start)
            if request is None:
                raise
            return admission.answered(route, request, partial(_decision, error)), refusal

    async def _answer(
        self, route: Route, scope: Scope, receive: Receive, start: bytearray, began: float
    ) -> ReviewAnswer:
        """Read the request body, review the request and return the response.

        ``start`` receives the first bytes, even if reading fails.
        """
        media = header(scope, b"content-type").partition(b";")[0].strip().lower()
        if media != b"application/json":
            stated = bounded(media.decode("latin-1"), 64)
            raise BodyError(f"Content-Type is {stated!r}; it must be application/json", 415)
        deadline = began + _caller_seconds(scope["query_string"]) - _MARGIN_SECONDS
        async with reserve_memory(scope, MAX_REVIEW_BYTES, _LOOKED_AT_SHARE * (deadline - began)):
            body = await read_body(scope, receive, MAX_REVIEW_BYTES, start)
            start[:] = body[:START_BYTES]
            connection = scope["connection"]
            judge = partial(self._judge_anywhere, route, body, deadline, connection)
            if self._first_lists.awaited:
                await self._first_lists.wait(deadline - time.perf_counter())
            return await self._owner_wait.answer(judge, lambda: deadline - time.perf_counter(), connection.source)

    async def _answer_unread(
        self, route: Route, scope: Scope, receive: Receive, start: bytearray, status: int | None
    ) -> ReviewAnswer | None:
        """Answer a review whose body was not read: too long, too slow, or no free memory.

        The policy setting ``tooLarge`` decides. An HTTP error is no option: the API server then applies failurePolicy,
        and ``Ignore`` would admit the object. Returns None if the body does not start with an AdmissionReview envelope.
        Then the client is no API server.
        """
        if status not in _UNREAD or header(scope, b"expect"):
            return None
        request = await _read_envelope(receive, start)
        if request is None:
            return None
        state = self._state
        return admission.answer(route, request, state.engine, now=state.now(), unread_for=_UNREAD[status])

    async def _judge_anywhere(
        self, route: Route, body: bytes, deadline: float, connection: Connection, *, waited: bool
    ) -> ReviewAnswer:
        here = partial(self._judge, route, body, deadline, waited=waited)
        in_thread = here if self._index is None else partial(here, asking=FromThread(self._index))
        caller = partial(caller_of, source=connection.source, known=connection.known)
        answer = None
        if len(body) <= LONG_BODY_BYTES:
            with contextlib.suppress(RecursionError):
                answer = here(in_line=True)
        if answer is None:
            answer = await self._pool.run(in_thread, caller(_envelope(body) or _NOBODY), deadline)
        if not answer.decision.costly:
            return answer
        unjudged = None
        if route == "validate" and self._reviewers is not None and self._reviewers.running:
            now = time.perf_counter()
            until = now + (deadline - now) * _LOOKED_AT_SHARE
            decided = await self._reviewers.decide(
                self._job(answer.request, waited=waited), caller(answer.request), until
            )
            if not isinstance(decided, Missing):
                return admission.answered(route, answer.request, partial(_decision, decided))
            unjudged = decided
        in_thread = partial(in_thread, may_search=True, unjudged=unjudged)
        return await self._pool.run(in_thread, caller(answer.request), deadline)

    def _job(self, request: AdmissionRequest, *, waited: bool) -> ReviewJob:
        state, engine = self._state, self._state.engine
        context = engine.context(state.now(), Budget())
        return ReviewJob(request, replace(context, index=None, age=partial(float, engine.age())), waited)

    def _judge(  # noqa: PLR0913 varies by request
        self,
        route: Route,
        body: bytes,
        deadline: float,
        *,
        waited: bool,
        may_search: bool = False,
        unjudged: Missing | None = None,
        in_line: bool = False,
        asking: IndexClient | None = None,
    ) -> ReviewAnswer:
        state = self._state
        return admission.answer(
            route,
            decode_review(body, in_line=in_line),
            state.engine,
            now=state.now(),
            budget=Budget(clock=time.perf_counter, until=deadline, may_search=may_search, unjudged=unjudged),
            waited=waited,
            asking=asking,
        )


def health_app(state: ServerState, other: Application) -> Application:
    """Return the ASGI application of the plain HTTP port.

    It serves liveness and readiness. ``other`` serves every other request.
    """

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        match scope["path"]:
            case "/healthz":
                scope["connection"].served()
                await respond(send, 200, b"ok\n")
            case "/readyz":
                ready, text = state.readiness()
                scope["connection"].served()
                await respond(send, 200 if ready else 503, text.encode())
            case path:
                if path == "/metrics":
                    scope["connection"].served()
                await other(scope, receive, send)

    return call


def _envelope(body: bytes | bytearray) -> AdmissionRequest | None:
    """Decode the request without its objects. None if the start of the body is incomplete."""
    try:
        return decode_start(bytes(body[:START_BYTES]))
    except ReviewError:
        return None


async def _read_envelope(receive: Receive, start: bytearray) -> AdmissionRequest | None:
    """Decode the request from the start of its body. If ``start`` is incomplete, read more of the body."""
    del start[START_BYTES:]
    request = _envelope(start)
    if request is None:
        await read_start(receive, start, START_BYTES)
        request = _envelope(start)
    return request


def _decision(outcome: Decision | Exception) -> Decision:
    """Return the decision, or raise the error of the review."""
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _caller_seconds(query: bytes) -> float:
    match = _TIMEOUT.search(query)
    return min(float(match[1]), LONGEST_SECONDS) if match else CALLER_SECONDS
