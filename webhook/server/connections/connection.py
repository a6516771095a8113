"""One connection on gunicorn's asgi protocol, with its defects fixed and a fast path for complete reviews.

If the whole body has arrived with the head, the review is answered right where it was parsed. gunicorn's parser has
still checked every byte; this saves a task, a queue and an event for each request (40 of 135 µs). Every other request
(a body still arriving, a closing connection, a refusal, another route) goes gunicorn's own way to the ASGI callable.

Source: gunicorn 27.0.1 asgi/protocol.py, asgi/parser.py.
"""

import asyncio
import re
import select
import socket
import time
from typing import Any

from gunicorn.asgi import protocol
from gunicorn.asgi.parser import LimitRequestHeaders, ParseError, PythonProtocol

from webhook.server.connections.connection_table import ConnectionTable

# From being accepted to the end of the first head; kube-apiserver gives up a handshake after as long.
FIRST_REQUEST_SECONDS = 10.0
# Twice what any caller waits for an answer.
STUCK_SECONDS = 60.0
# Answers are a few KiB: whoever has not taken 64 of them by then reads none.
UNREAD_SECONDS = 5.0
# kube-apiserver's heads have some 500 bytes, with a token to authenticate itself a few thousand.
_HEAD_BYTES = 32 * 1024
# What waits for the application, or for its turn behind an answer that is not read, on each connection.
_BUFFER_BYTES = 64 * 1024
# So many chunks of a body may be of any size, and one more for each of these bytes: 5 µs each, in the event loop. What
# is read at once, 256 KiB, has 43,000 chunks of one byte.
_CHUNKS, _CHUNK_BYTES = 256, 512

# RFC 9110 sections 5.1 and 5.5: a token, a colon, and no control character but a tab. Nothing is given back: to try
# each way to share blanks between space and value took 0.6 s for a field of 8 KiB.
_PLAIN_FIELD = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]++):[ \t]*+([^\x00-\x08\x0a-\x1f\x7f]*+)\r\n")
_PLAIN_HEAD = re.compile(rb"(?:%b)++" % _PLAIN_FIELD.pattern)


class Parser(PythonProtocol):  # type: ignore[misc]  # gunicorn publishes no types
    """gunicorn's parser, but a complete head with ordinary fields is parsed by a regular expression, not byte by byte.

    Every other head is left to gunicorn, which finds the fault and words it.
    """

    _headers_list: list[tuple[bytes, bytes]]

    def _parse_headers(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0 or self._headers_list:
            whole = bool(super()._parse_headers())
            if not whole and len(self._buffer) + sum(map(_length, self._headers_list)) > _HEAD_BYTES:
                raise LimitRequestHeaders("Request headers are too large")
            return whole
        head = bytes(self._buffer[: end + 2])
        # If all of it is no longer than a field may be, none is too long.
        if len(head) > self._limit_request_field_size or not _PLAIN_HEAD.fullmatch(head):
            return bool(super()._parse_headers())
        fields = [(name.lower(), value.rstrip(b" \t")) for name, value in _PLAIN_FIELD.findall(head)]
        if len(fields) > self._limit_request_fields:
            return bool(super()._parse_headers())
        del self._buffer[: end + 4]
        self._headers_list = fields
        self._header_count = len(fields)
        self._scan_from = 0
        self._finalize_headers()
        return True


# Of the systems that have no such event, only a connection that is shut in both directions is told.
_HALF_CLOSED: int = getattr(select, "POLLRDHUP", 0)
_polling = select.poll()


def has_left(peer: socket.socket) -> bool:
    """Whether nobody waits for an answer any more: the other side has shut the connection, whatever it sent before.

    A caller gives up after its timeout. Where the loop is behind, to greet and answer those who have left would keep it
    behind: whoever comes next waits as long, leaves too, and comes back with another handshake. Takes one microsecond.
    """
    _polling.register(peer, _HALF_CLOSED)
    try:
        return bool(_polling.poll(0))
    finally:
        _polling.unregister(peer)


def _length(field: tuple[bytes, bytes]) -> int:
    return len(field[0]) + len(field[1])


class Connection(protocol.ASGIProtocol):  # type: ignore[misc]  # gunicorn publishes no types
    """One connection to the admission port, from when it is accepted until nothing of it is left."""

    _task: asyncio.Task[None] | None

    def __init__(self, worker: Any, source: str) -> None:  # noqa: ANN401 gunicorn publishes no types
        super().__init__(worker)
        self._table: ConnectionTable = worker.admission_table
        self._direct = worker.direct
        self.source = source
        self.held_bytes = 0
        self.used = time.monotonic()
        # Whether it has sent a request that this port is for.
        self.valid = False
        self.greeting: asyncio.Task[None] | None = None
        self.peer: socket.socket | None = None
        self.ended = False
        # The time that a body has to arrive, while one does.
        self.reading: asyncio.Timeout | None = None
        self.given_way = False
        self._max_buffer_size = _BUFFER_BYTES
        # The body so far of a review whose head was parsed in the current call; None on gunicorn's own way.
        self._held: list[bytes] | None = None
        # Whether a review was answered in the current call. What was sent behind it waits for its turn in the loop.
        self._answered = False
        self._chunks = self._chunk_bytes = 0  # of the current body

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin to read, as much as is needed to have the next record whole."""
        if self.ended:
            # uvloop tells of a connection whose greeting was cancelled just before, and never of its end.
            self._conn_lost_handled = True
            transport.abort()
            return
        super().connection_made(transport)
        if self._is_ssl:
            transport.set_read_buffer_limits(high=_BUFFER_BYTES)  # type: ignore[attr-defined]  # uvloop's

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection, and leave nothing for the collector: it hardly ever runs over a large index."""
        self._table.leave(self)
        # gunicorn would keep the connection for three seconds, in case the application wants to know.
        task, self._task = self._task, None
        super().connection_lost(exc)
        if self._flow_control is not None:
            self._flow_control.resume_writing()
        if task is None or task.done():
            self._dissolve()
            return
        if self._awaiting_request:
            self._request_ready.set()
        # Its body is not counted any more, and nobody waits for the answer.
        task.cancel()
        task.add_done_callback(self._dissolve)

    def _dissolve(self, _task: object = None) -> None:
        """Let go of what points back to here."""
        for name in ("_callback_parser", "_body_receiver", "_flow_control", "transport", "writer", "greeting", "peer"):
            setattr(self, name, None)

    def close(self) -> None:
        """Send what is to be sent, then end."""
        self._close_transport()

    def end(self) -> None:
        """End at once, in the middle of a handshake too."""
        self.ended = True
        if self.transport is not None:
            self.transport.abort()
        elif self.greeting is not None:
            self.greeting.cancel()

    def give_way(self) -> None:
        """Read no more of a body, whose memory others need: its start is answered."""
        self.given_way = True
        if self.reading is None:
            self.end()
        elif not self.reading.expired():
            self.reading.reschedule(self.worker.loop.time())

    @property
    def known(self) -> bool:
        """Whether its source has sent a valid request."""
        return self._table.knows(self.source)

    @property
    def idle(self) -> bool:
        """Whether no request is in progress: the next head is incomplete, or the connection is closing."""
        return self._current_request is None or self._closed

    @property
    def busy(self) -> bool:
        """Whether a whole request is being answered, to somebody who reads answers."""
        if self.idle or self._flow_control is None or self._flow_control.write_paused:
            return False
        receiver = self._body_receiver
        return receiver is None or bool(receiver._complete)  # noqa: SLF001 gunicorn's own

    def overdue(self, now: float) -> bool:
        """Whether it has been waited for too long: its handshake and first request, its next, its reading."""
        if self._flow_control is not None and self._flow_control.write_paused:
            return now - self.used > UNREAD_SECONDS
        allowed = STUCK_SECONDS if not self.idle else self._keepalive if self.valid else FIRST_REQUEST_SECONDS
        return now - self.used > allowed

    def served(self) -> None:
        """A valid request has been answered."""
        self.used = time.monotonic()
        self.valid = True
        self._table.served(self)

    async def hold(self, size: int, seconds: float) -> bool:
        """Whether so many bytes of a body may be held in memory, until `release`; that is waited for if need be."""
        return await self._table.hold_by(self, size, self.worker.loop.time() + seconds)

    def release(self) -> None:
        """The body is gone."""
        self._table.release(self)

    def _build_http_scope(self, request: object, sockname: object, peername: object) -> dict[str, Any]:
        scope: dict[str, Any] = super()._build_http_scope(request, sockname, peername)
        scope["connection"] = self
        return scope

    def _will_close(self, request: object, response_requires_close: bool) -> bool:
        self.used = time.monotonic()
        return bool(self.worker.draining or super()._will_close(request, response_requires_close))

    def _resume_reading(self) -> None:
        """Read on once what is pipelined is answered: gunicorn would read more after each answer, without end."""
        if self._http1_buffered() <= _BUFFER_BYTES:
            super()._resume_reading()

    def _is_websocket_upgrade(self, _request: object) -> bool:
        return False

    def _feed_callback_parser(self, data: bytes) -> bool:
        self._answered = False
        while data:
            try:
                going_on = bool(super()._feed_callback_parser(data))
            except ValueError:
                # A Content-Length beyond 4,300 digits, which Python refuses to read as a number.
                self._send_error_response(400, "Invalid header")
                self._close_transport()
                return False
            if self._held is None or not going_on:
                return going_on
            held, self._held = self._held, None
            data = self._answer(b"".join(held)) if self._callback_parser.is_complete else self._hand_over(held)
        return True

    def _on_headers_complete(self) -> bool:
        parser = self._callback_parser
        self._chunks = self._chunk_bytes = 0
        if (
            self._awaiting_request
            and not self._answered
            and parser.method == b"POST"
            and not parser.is_chunked
            and parser.should_keep_alive
            and parser.http_version == (1, 1)
            and not self.worker.draining
            and not self._flow_control.write_paused
        ):
            self._held = []
            return False
        self.used = time.monotonic()
        return bool(super()._on_headers_complete())

    def _on_body(self, chunk: bytes) -> None:
        if self._callback_parser.is_chunked:
            self._chunks += 1
            self._chunk_bytes += len(chunk)
            if self._chunks > _CHUNKS + self._chunk_bytes // _CHUNK_BYTES:
                raise ParseError("Too many small chunks")
        if self._held is None:
            super()._on_body(chunk)
        else:
            self._held.append(chunk)

    def _on_message_complete(self) -> None:
        if self._held is None:
            super()._on_message_complete()

    def _answer(self, body: bytes) -> bytes:
        """Answer a complete review, and return the bytes that follow it."""
        if self.peer is not None and has_left(self.peer):
            self._table.end(self, "left")
            return b""
        parser = self._callback_parser
        response = self._direct(parser.path, parser.headers, body)
        if response is None:
            return self._hand_over([body])
        self.transport.write(response)
        self._answered = True
        self.served()
        self.req_count += 1
        # gunicorn's timer runs from when its own task began to wait; `overdue` takes its place.
        self._cancel_keepalive_timer()
        behind: bytes = parser.remaining()
        parser.reset()
        return behind

    def _hand_over(self, held: list[bytes]) -> bytes:
        """Let gunicorn handle the request as usual, with the held body."""
        self.used = time.monotonic()
        super()._on_headers_complete()
        for chunk in held:
            super()._on_body(chunk)
        if self._callback_parser.is_complete:
            super()._on_message_complete()
        return b""


class HealthConnection(Connection):
    """One connection to the plain port, of which gunicorn counts none: an idle one does not hold up a stop."""

    def __init__(self, worker: Any, source: str) -> None:  # noqa: ANN401 gunicorn publishes no types
        super().__init__(worker, source)
        self._table = worker.health_table
        self.app = worker.health
        self._direct = _never

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin to read."""
        super().connection_made(transport)
        if not self.ended:
            self.worker.nr_conns -= 1

    def end(self) -> None:
        """End at once. Without a handshake the greeting is over in a moment; uvloop leaks one that is cancelled."""
        self.ended = True
        if self.transport is not None:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        if not self._conn_lost_handled:
            self.worker.nr_conns += 1
        super().connection_lost(exc)


def _never(_target: bytes, _headers: object, _body: bytes) -> None:
    return None
