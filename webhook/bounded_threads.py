"""A small HTTP server with a thread for each connection, and a maximum number of threads."""

import socket
import socketserver
import threading
from collections.abc import Callable
from typing import TypeAlias

# Each connection has a thread. A probe takes milliseconds, and a browser opens six connections.
CONNECTIONS = 32
_Request: TypeAlias = socket.socket | tuple[bytes, socket.socket]


class BoundedThreads(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """A server with a maximum of threads. While all are busy, it closes new connections."""

    daemon_threads = True
    request_queue_size = CONNECTIONS

    def __init__(self, address: tuple[str, int], handler: Callable[..., socketserver.BaseRequestHandler]) -> None:
        self._free = threading.BoundedSemaphore(CONNECTIONS)
        super().__init__(address, handler)

    def process_request(self, request: _Request, client_address: object) -> None:
        """Answer in a new thread, or close the connection if all threads are busy."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: _Request, client_address: object) -> None:
        """Answer, then release the thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: _Request, client_address: object) -> None:
        """Do not log callers that hang up."""
