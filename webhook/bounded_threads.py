"""A small HTTP server with a thread for each connection, and a maximum number of threads."""

import socketserver
import threading
from typing import Any

# Each connection has a thread. A probe takes milliseconds, and a browser opens six connections.
CONNECTIONS = 32


class BoundedThreads(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """A server with a maximum of threads. While all are busy, it closes new connections."""

    daemon_threads = True
    request_queue_size = CONNECTIONS

    def __init__(self, *given: Any) -> None:  # noqa: ANN401 the arguments of the other base class
        self._free = threading.BoundedSemaphore(CONNECTIONS)
        super().__init__(*given)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 as in socketserver
        """Answer in a new thread, or close the connection if all threads are busy."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 as in socketserver
        """Answer, then release the thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 as in socketserver
        """Do not log callers that hang up."""
