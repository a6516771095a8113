"""One connection on gunicorn's asgi protocol, with its defects fixed and a fast path for complete reviews.

If the whole body has arrived with the head, the review is answered right where it was parsed. gunicorn's parser has
still checked every byte; this saves a task, a queue and an event for each request (40 of 135 µs). Every other request
(a body still arriving, a closing connection, a refusal, another route) goes gunicorn's own way to the ASGI callable.

Source: gunicorn 27.0.1 asgi/protocol.py, asgi/parser.py.
"""

import asyncio
import re
import time
from typing import Any

from gunicorn.asgi import protocol
from gunicorn.asgi.parser import PythonProtocol

# RFC 9110 sections 5.1 and 5.5: a token, a colon, and no control character but a tab.
_PLAIN_FIELD = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")

PRIVATE_NAMES = (
    (protocol, ("PythonProtocol", "ASGIProtocol")),
    (
        PythonProtocol,
        (
            "_parse_headers",
            "_finalize_headers",
            "_buffer",
            "_headers_list",
            "_header_count",
            "_scan_from",
            "_limit_request_fields",
            "_limit_request_field_size",
            "feed",
            "remaining",
            "reset",
        ),
    ),
    (
        protocol.ASGIProtocol,
        (
            "_will_close",
            "_is_websocket_upgrade",
            "_feed_callback_parser",
            "_send_error_response",
            "_close_transport",
            "_cancel_keepalive_timer",
            "_on_headers_complete",
            "_on_body",
            "_on_message_complete",
            "connection_made",
            "connection_lost",
        ),
    ),
)
# Set by gunicorn's constructor and read here.
PRIVATE_ATTRIBUTES = frozenset(
    {
        "app",
        "cfg",
        "req_count",
        "transport",
        "worker",
        "_awaiting_request",
        "_callback_parser",
        "_closed",
        "_conn_lost_handled",
        "_current_request",
        "_flow_control",
        "_keepalive",
    }
)


class Parser(PythonProtocol):  # type: ignore[misc]  # gunicorn publishes no types
    """gunicorn's parser, but a complete head with ordinary fields is parsed by a regular expression, not byte by byte.

    Every other head is left to gunicorn, which finds the fault and words it.
    """

    _headers_list: list[tuple[bytes, bytes]]

    def _parse_headers(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0 or self._headers_list:
            return bool(super()._parse_headers())
        lines = bytes(self._buffer[:end]).split(b"\r\n")
        if len(lines) > self._limit_request_fields or max(map(len, lines)) + 2 > self._limit_request_field_size:
            return bool(super()._parse_headers())
        fields = []
        for line in lines:
            field = _PLAIN_FIELD.fullmatch(line)
            if field is None:
                return bool(super()._parse_headers())
            fields.append((field[1].lower(), field[2].rstrip(b" \t")))
        del self._buffer[: end + 4]
        self._headers_list = fields
        self._header_count = len(fields)
        self._scan_from = 0
        self._finalize_headers()
        return True


class Connection(protocol.ASGIProtocol):  # type: ignore[misc]  # gunicorn publishes no types
    """One connection to the admission port."""

    def __init__(self, worker: Any) -> None:  # noqa: ANN401 gunicorn publishes no types
        super().__init__(worker)
        self._direct = worker.direct
        # The body so far of a review whose head was parsed in the current call; None on gunicorn's own way.
        self._held: list[bytes] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Accept the connection, or abort it if there are too many."""
        self.used = time.monotonic()
        super().connection_made(transport)
        self.worker.connections.add(self)
        self._admit(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self.worker.connections.discard(self)
        super().connection_lost(exc)

    @property
    def idle(self) -> bool:
        """Whether no request is in progress: the next head is incomplete, or the connection is closing."""
        return self._current_request is None or self._closed

    def overdue(self, now: float, first_request_seconds: float) -> bool:
        """Whether it has been idle for too long: before its first request, or since its last."""
        allowed = first_request_seconds if self.req_count < 2 else self._keepalive
        return self.idle and now - self.used > allowed

    def _admit(self, transport: asyncio.Transport) -> None:
        if self.worker.nr_conns > self.cfg.worker_connections:
            transport.abort()

    def _will_close(self, request: object, response_requires_close: bool) -> bool:
        self.used = time.monotonic()
        return bool(self.worker.draining or super()._will_close(request, response_requires_close))

    def _is_websocket_upgrade(self, _request: object) -> bool:
        return False

    def _feed_callback_parser(self, data: bytes) -> bool:
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
        if (
            self._awaiting_request
            and parser.method == b"POST"
            and not parser.is_chunked
            and parser.should_keep_alive
            and parser.http_version == (1, 1)
            and not self.worker.draining
            and not self._flow_control.write_paused
        ):
            self._held = []
            return False
        return bool(super()._on_headers_complete())

    def _on_body(self, chunk: bytes) -> None:
        if self._held is None:
            super()._on_body(chunk)
        else:
            self._held.append(chunk)

    def _on_message_complete(self) -> None:
        if self._held is None:
            super()._on_message_complete()

    def _answer(self, body: bytes) -> bytes:
        """Answer a complete review, and return the bytes that follow it."""
        parser = self._callback_parser
        response = self._direct(parser.path, parser.headers, body)
        if response is None:
            return self._hand_over([body])
        self.transport.write(response)
        self.used = time.monotonic()
        self.req_count += 1
        # gunicorn's timer runs from when its own task began to wait; `overdue` takes its place.
        self._cancel_keepalive_timer()
        behind: bytes = parser.remaining()
        parser.reset()
        return behind

    def _hand_over(self, held: list[bytes]) -> bytes:
        """Let gunicorn handle the request as usual, with the held body."""
        super()._on_headers_complete()
        for chunk in held:
            super()._on_body(chunk)
        if self._callback_parser.is_complete:
            super()._on_message_complete()
        return b""


class HealthConnection(Connection):
    """One connection to the plain port; it does not count, so that probes work when the admission port is full."""

    def __init__(self, worker: Any) -> None:  # noqa: ANN401 gunicorn publishes no types
        super().__init__(worker)
        self.app = worker.health
        self._direct = _never

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        if not self._conn_lost_handled:
            self.worker.nr_conns += 1
        super().connection_lost(exc)

    def _admit(self, _transport: asyncio.Transport) -> None:
        self.worker.nr_conns -= 1


def _never(_target: bytes, _headers: object, _body: bytes) -> None:
    return None
