"""Liveness, readiness and metrics, on a plain port, for kubelets and scrapers."""

import http.server
import socketserver
import threading
from collections.abc import Callable
from typing import Any

# Each holds a thread; a probe takes milliseconds.
_CONNECTIONS = 32
_PATIENCE_SECONDS = 5.0  # for a caller's request

# Status, media type, text.
Page = Callable[[], tuple[int, str, bytes]]


class HealthServer(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """The pages by their paths; answered by a thread a connection, and by nobody beyond so many."""

    daemon_threads = True
    request_queue_size = _CONNECTIONS

    def __init__(self, host: str, port: int, pages: dict[str, Page]) -> None:
        self._free = threading.BoundedSemaphore(_CONNECTIONS)
        self.pages = pages
        super().__init__((host, port), _Handler)

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


class _Handler(http.server.BaseHTTPRequestHandler):
    server: HealthServer
    timeout = _PATIENCE_SECONDS
    server_version, sys_version = "evenspread", ""

    def do_GET(self) -> None:
        page = self.server.pages.get(self.path.partition("?")[0])
        status, media, body = (404, "text/plain", b"404 Not Found\n") if page is None else page()
        self.send_response(status)
        self.send_header("Content-Type", f"{media}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """No access log."""
