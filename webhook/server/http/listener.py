"""Accept connections, and refuse client addresses before the costly TLS handshake.

The connection table decides on each client address. asyncio's own server is not used, because it creates a protocol
without the client's address and does not count unfinished handshakes.
"""

import asyncio
import contextlib
import socket

from webhook.server.http.connection import FIRST_REQUEST_SECONDS, Connection, Port, has_left
from webhook.server.http.connection_table import source_of

# After this many connections, other work gets a turn.
_AT_ONCE = 64
# The kernel's descriptors or memory are used up: an immediate retry would be a busy loop.
_PAUSE_SECONDS = 0.1
_GOODBYE_SECONDS = 2.0  # for the peer's confirmation of the end of TLS; until then its descriptor is in use


class Listener:
    """The listening socket of a port."""

    def __init__(self, listening: socket.socket, port: Port) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = listening
        self._port = port
        self._open = True
        listening.setblocking(False)
        self._listen()

    def close(self) -> None:
        if self._open:
            self._open = False
            self._loop.remove_reader(self._socket)

    def _listen(self) -> None:
        if self._open:
            self._loop.add_reader(self._socket, self._accept)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                accepted, address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:
                self._loop.remove_reader(self._socket)
                self._loop.call_later(_PAUSE_SECONDS, self._listen)
                return
            accepted.setblocking(False)
            connection = Connection(self._port, source_of(address[0]))
            if self._port.table.admit(connection):
                connection.greeting = self._loop.create_task(self._greet(accepted, connection))
            else:
                accepted.close()

    async def _greet(self, accepted: socket.socket, connection: Connection) -> None:
        """Pass the connection to its protocol, after the handshake on a TLS port."""
        seconds = {}
        connection.peer = accepted
        if self._port.tls is not None:
            seconds = {"ssl_handshake_timeout": FIRST_REQUEST_SECONDS, "ssl_shutdown_timeout": _GOODBYE_SECONDS}
        try:
            with contextlib.suppress(OSError):
                if has_left(accepted):
                    self._port.table.end(connection, "left")
                    return
                tls = self._port.tls
                await self._loop.connect_accepted_socket(lambda: connection, accepted, ssl=tls, **seconds)
        finally:
            if connection.transport is None:
                self._port.table.leave(connection)
                accepted.close()
                # A cancelled task keeps its traceback, and so the connection, which would keep the task.
                connection.greeting = connection.peer = None
