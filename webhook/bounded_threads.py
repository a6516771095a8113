"""A thread for each connection of a small server beside something more important, and so many of them at most."""

import socketserver
import threading
from typing import Any

# Each holds a thread. A probe takes milliseconds; a browser opens six.
CONNECTIONS = 32


class BoundedThreads(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """Whoever comes while all threads are busy is hung up on."""

    daemon_threads = True
    request_queue_size = CONNECTIONS

    def __init__(self, *given: Any) -> None:  # noqa: ANN401 what the server beside it takes
        self._free = threading.BoundedSemaphore(CONNECTIONS)
        super().__init__(*given)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 as in socketserver
        """Answer in a thread of its own; hang up where all are busy."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 as in socketserver
        """As there; then the place is free."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 as in socketserver
        """Say nothing of callers that hang up."""
