"""A single HTTP/1.1 connection.

    a complete, plain request   answered inside `Connection.data_received`, without a task, queue or event
    every other request         gunicorn's parser checks each byte; the ASGI callable answers, in a task

Requests are answered in order. Bytes behind a request wait for its response.
"""

import asyncio
import logging
import select
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import unquote_to_bytes

from gunicorn.asgi import parser as http
from msgspec import Struct

from webhook.server.http.connection_table import ConnectionTable
from webhook.server.http.plain_request import FIELD_BYTES, FIELDS, LINE_BYTES, plain_request
from webhook.server.http.response import CLOSE, Application, Scope, encode_response
from webhook.server.state import ServerState

# From acceptance to the end of the first head. kube-apiserver's handshake timeout is the same.
FIRST_REQUEST_SECONDS = 10.0
# Twice the longest timeout of a caller.
_STUCK_SECONDS = 60.0
# Responses have a few KiB. A peer that has not read 64 KiB by then reads nothing.
UNREAD_SECONDS = 5.0
# kube-apiserver's heads have about 500 bytes, or a few thousand with an authentication token.
_HEAD_BYTES = 32 * 1024
# Bytes waiting on each connection, for the application or behind an unread response.
_BUFFER_BYTES = 64 * 1024
# Beyond this many bytes at once, a connection keeps buffers of up to 0.6 MiB for the rest of its life.
_BULKY_BYTES = 16 * 1024
# This many chunks of a body may have any size, and each further chunk needs this many bytes. A chunk takes 5 µs in the
# event loop, and a single read of 256 KiB could hold 43,000 chunks of a byte.
_CHUNKS, _CHUNK_BYTES = 256, 512

_REFUSALS = {http.LimitRequestLine: 414, http.LimitRequestHeaders: 431, http.UnsupportedTransferCoding: 501}

_log = logging.getLogger(__name__)


# Other systems only report a connection closed in both directions.
_HALF_CLOSED: int = getattr(select, "POLLRDHUP", 0)
_polling = select.poll()


def has_left(peer: socket.socket) -> bool:
    """Whether the peer has closed its side, so no caller waits for the response.

    Callers close the connection after their timeout. A busy event loop must not answer such callers. Otherwise it falls
    behind, and the next callers also time out and reconnect with another handshake. The check takes a microsecond.
    """
    _polling.register(peer, _HALF_CLOSED)
    try:
        return bool(_polling.poll(0))
    finally:
        _polling.unregister(peer)


class Port(Struct, frozen=True, kw_only=True):
    """The shared settings of a port's connections.

    Attributes:
        table: The table of these connections.
        app: Answers a request.
        direct: Returns the response to a plain request with this target, headers and body, and a function to call
            afterwards. None leaves the request to ``app``.
        state: Its ``draining`` makes every response close the connection.
        keepalive: Allowed idle seconds after a valid request.
        tls: The TLS context. None for a plain port.
    """

    table: ConnectionTable
    app: Application
    direct: Callable[[bytes, Sequence[tuple[bytes, bytes]], bytes], tuple[bytes, Callable[[], None]] | None] = (
        lambda *_: None
    )
    state: ServerState
    keepalive: float
    tls: ssl.SSLContext | None = None


class Connection(asyncio.Protocol):
    """A connection from its acceptance to its end."""

    def __init__(self, port: Port, source: str) -> None:
        self.port = port
        self.source = source
        self.loop = asyncio.get_running_loop()
        self.held_bytes = 0
        self.used = time.monotonic()
        # Whether it has sent a valid request for this port.
        self.valid = False
        self.greeting: asyncio.Task[None] | None = None
        self.peer: socket.socket | None = None
        self.transport: Any = None  # a transport of uvloop
        # The timeout of a body's arrival, during its arrival.
        self.reading: asyncio.Timeout | None = None
        self.given_way = False
        self._ended = self._closed = False
        self._parser: Any = None  # gunicorn publishes no types
        self._begun = False  # whether the parser has part of a request
        self._exchange: _Exchange | None = None
        self._behind = bytearray()
        self._paused = self._bulky = False
        self._unread: asyncio.Future[None] | None = None  # set while the peer does not read
        self._head_bytes = self._chunks = self._chunk_bytes = 0  # of the current request

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        uvloop_transport: Any = transport
        if self._ended:
            # uvloop reports a connection after its greeting was cancelled, and never reports its end.
            uvloop_transport.abort()
            return
        self.transport = uvloop_transport
        uvloop_transport.set_write_buffer_limits(high=_BUFFER_BYTES)
        if self.port.tls is not None:
            uvloop_transport.set_read_buffer_limits(high=_BUFFER_BYTES)

    def connection_lost(self, _error: Exception | None) -> None:
        """Remove the connection from the table, and cancel its unfinished request.

        Also drops references to other objects, so that Python frees them without the garbage collector. With a large
        index, the collector rarely runs.
        """
        self.port.table.leave(self)
        self._closed = True
        self.resume_writing()
        self.transport = self.greeting = self.peer = self._parser = None
        if self._exchange is not None:
            # The table no longer counts its body, and no caller waits for the response.
            self._exchange.cancel()

    def pause_writing(self) -> None:
        """Called by asyncio if the client does not read its responses: pause writing."""
        self._unread = self.loop.create_future()
        self._grow()

    def resume_writing(self) -> None:
        """Record that the client has read all responses, and wake the waiting writer."""
        if self._unread is not None:
            self._unread.set_result(None)
            self._unread = None

    def data_received(self, data: bytes) -> None:
        """Read new requests, or the rest of a request."""
        if self._closed:
            return
        if self._exchange is not None and self._exchange.complete:
            self._behind += data
        elif self._begun:
            self._parse(data)
        else:
            self._begin(data)
        if len(data) > _BULKY_BYTES:
            self._grow()
        self.balance()

    @property
    def known(self) -> bool:
        return self.port.table.knows(self.source)

    @property
    def idle(self) -> bool:
        return self._exchange is None or self._closed

    @property
    def busy(self) -> bool:
        """Whether a complete request is being answered, and the peer reads responses."""
        return self._exchange is not None and self._exchange.complete and not self._closed and self._unread is None

    def overdue(self, now: float) -> bool:
        """Whether the client has exceeded a time limit: for the TLS handshake, a request, or reading a response."""
        if self._unread is not None:
            return now - self.used > UNREAD_SECONDS
        allowed = _STUCK_SECONDS if not self.idle else self.port.keepalive if self.valid else FIRST_REQUEST_SECONDS
        return now - self.used > allowed

    def close(self) -> None:
        if self.transport is not None and not self._closed:
            self.transport.close()
        self._closed = True

    def end(self) -> None:
        self._ended = self._closed = True
        if self.transport is not None:
            self.transport.abort()
        # A greeting without a handshake ends soon, and uvloop leaks a cancelled greeting.
        elif self.greeting is not None and self.port.tls is not None:
            self.greeting.cancel()

    def give_way(self) -> None:
        """Stop reading the request body, to free its memory for other connections.

        The server answers the review from the bytes already read.
        """
        self.given_way = True
        if self.reading is None:
            self.end()
        elif not self.reading.expired():
            self.reading.reschedule(self.loop.time())

    def served(self) -> None:
        """Record a valid request on this connection, after the response."""
        self.used = time.monotonic()
        self.valid = True
        self.port.table.served(self)

    async def hold(self, size: int, seconds: float) -> bool:
        """Reserve memory for a body until `release`. Returns False if no memory is free within ``seconds``."""
        return await self.port.table.hold_by(self, size, self.loop.time() + seconds)

    def release(self) -> None:
        self.port.table.release(self)

    async def write(self, data: bytes) -> None:
        """Send data, and wait until the peer takes it."""
        self.used = time.monotonic()
        if not self._closed:
            self.transport.write(data)
            if self._unread is not None:
                # A caller's timeout must not cancel the future: `resume_writing` sets it.
                await asyncio.shield(self._unread)

    def refuse(self, status: int, text: str) -> None:
        """Answer an invalid request, or a failure of evenspread, and close."""
        body = text.encode()
        headers = (b"content-type", b"text/plain"), (b"content-length", b"%d" % len(body)), CLOSE
        if not self._closed and (self._exchange is None or not self._exchange.responded):
            self.transport.write(encode_response(status, headers, body))
        self.close()

    def balance(self) -> None:
        """Pause reading from the peer while more than 64 KiB of its data are buffered."""
        waiting = len(self._behind) + (self._exchange.waiting_bytes if self._exchange is not None else 0)
        if waiting > _BULKY_BYTES:
            self._grow()
        paused = waiting > _BUFFER_BYTES
        if paused != self._paused and not self._closed and not self.transport.is_closing():
            self._paused = paused
            (self.transport.pause_reading if paused else self.transport.resume_reading)()

    def answered(self, *, keep: bool) -> None:
        """Finish a request. Then read the next request, or close the connection."""
        self._exchange = None
        # After a failed write, uvloop has closed the socket.
        if self._closed or not keep or self.transport.is_closing():
            self.close()
            return
        self._parser.reset()
        self._begun = False
        behind = bytes(self._behind)
        self._behind.clear()
        if behind:
            self._begin(behind)
        self.balance()

    def _grow(self) -> None:
        """Count this connection among those with large buffers, until the connection ends."""
        if not self._bulky and not self._closed:
            self._bulky = True
            self.port.table.grown(self)

    def _begin(self, data: bytes) -> None:
        """Start to read a request.

        A complete, simple POST request (`plain_request`) is answered at once. Bytes after such a request, and any other
        request, go to the full HTTP parser.
        """
        request = None if self._unread is not None or self.port.state.draining else plain_request(data)
        if request is not None:
            if self.peer is not None and has_left(self.peer):
                self.port.table.end(self, "left")
                return
            answered = self.port.direct(request.target, request.headers, request.body)
            if answered is not None:
                response, account = answered
                self.transport.write(response)
                self.served()
                self.loop.call_soon(account)
                data = request.behind
        if data:
            self._begun = True
            self._head_bytes = self._chunks = self._chunk_bytes = 0
            self._parse(data)

    def _parse(self, data: bytes) -> None:
        if self._parser is None:
            self._parser = http.PythonProtocol(
                on_header=self._on_header,
                on_headers_complete=self._on_headers_complete,
                on_body=self._on_body,
                on_message_complete=self._on_message_complete,
                limit_request_line=LINE_BYTES,
                limit_request_fields=FIELDS,
                limit_request_field_size=FIELD_BYTES,
            )
        try:
            self._parser.feed(data)
        except http.ParseError as error:
            self.refuse(_REFUSALS.get(type(error), 400), str(error))
        except ValueError:
            # Python does not parse a Content-Length beyond 4,300 digits.
            self.refuse(400, "Invalid header")
        else:
            self._behind += self._parser.remaining()

    def _on_header(self, name: bytes, value: bytes) -> None:
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > _HEAD_BYTES:
            raise http.LimitRequestHeaders("Request headers are too large")

    def _on_headers_complete(self) -> bool:
        self.used = time.monotonic()
        self._exchange = _Exchange(self, self._parser)
        return False  # continue with the body

    def _on_body(self, chunk: bytes) -> None:
        if self._parser.is_chunked:
            self._chunks += 1
            self._chunk_bytes += len(chunk)
            if self._chunks > _CHUNKS + self._chunk_bytes // _CHUNK_BYTES:
                raise http.ParseError("Too many small chunks")
        if self._exchange is not None:
            self._exchange.feed(chunk)

    def _on_message_complete(self) -> None:
        if self._exchange is not None:
            self._exchange.feed(b"", complete=True)


class _Exchange:
    """A request for the ASGI callable, and its response. The body may still arrive."""

    def __init__(self, connection: Connection, parser: Any) -> None:  # noqa: ANN401 gunicorn publishes no types
        self._connection = connection
        self._method = parser.method
        self._keep = parser.should_keep_alive and parser.method != b"CONNECT"
        expected = dict(parser.headers).get(b"expect", b"").lower()
        self._awaits_continue = expected == b"100-continue" and parser.http_version >= (1, 1)
        self._chunks: deque[bytes] = deque()
        self._arrived = asyncio.Event()
        self._start: Scope = {}
        self.responded = False
        self.waiting_bytes = 0
        self.complete = False
        path, _, query = parser.path.partition(b"?")
        scope = {
            "type": "http",
            "http_version": "{}.{}".format(*parser.http_version),
            "method": parser.method.decode(),
            "scheme": "http" if connection.port.tls is None else "https",
            "path": unquote_to_bytes(path).decode(errors="replace"),
            "raw_path": path,
            "query_string": query,
            # In a WSGI environment, names with an underscore look like names with a dash.
            "headers": [field for field in parser.headers if b"_" not in field[0]],
            "connection": connection,
        }
        self._task: asyncio.Task[None] | None = connection.loop.create_task(self._run(scope))

    def feed(self, chunk: bytes, *, complete: bool = False) -> None:
        if chunk:
            self._chunks.append(chunk)
            self.waiting_bytes += len(chunk)
        self.complete = complete
        self._arrived.set()

    def cancel(self) -> None:
        """Cancel the request's task, and drop the reference to it.

        A cancelled task keeps its traceback, and with the traceback this object.
        """
        task, self._task = self._task, None
        if task is not None:
            task.cancel()

    async def _run(self, scope: Scope) -> None:
        try:
            await self._connection.port.app(scope, self._receive, self._send)
        except Exception:  # noqa: BLE001 a bug must not keep the connection
            _log.exception("Error in ASGI application")
            if not self.responded:
                self._connection.refuse(500, "Internal Server Error")
            self._keep = False
        finally:
            self._connection.answered(keep=self._keep and self.responded and self.complete)

    async def _receive(self) -> Scope:
        if self._awaits_continue and not self._arrived.is_set():
            await self._connection.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._awaits_continue = False
        while not self._chunks and not self.complete:
            self._arrived.clear()
            await self._arrived.wait()
        chunk = self._chunks.popleft() if self._chunks else b""
        self.waiting_bytes -= len(chunk)
        self._connection.balance()
        return {"type": "http.request", "body": chunk, "more_body": bool(self._chunks) or not self.complete}

    async def _send(self, message: Scope) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            self._awaits_continue = False
            return
        headers = [*self._start["headers"]]
        if self._connection.port.state.draining or CLOSE in headers:
            self._keep = False
        if not self._keep and CLOSE not in headers:
            headers.append(CLOSE)
        self.responded = True
        body = b"" if self._method == b"HEAD" else message["body"]
        await self._connection.write(encode_response(self._start["status"], headers, body))
