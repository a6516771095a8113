"""Liveness, readiness and metrics, on a plain port, for kubelets and scrapers."""

import http.server
from collections.abc import Callable

from webhook.bounded_threads import BoundedThreads

_PATIENCE_SECONDS = 5.0  # for a caller's request

# Status, media type, text.
Page = Callable[[], tuple[int, str, bytes]]


class HealthServer(BoundedThreads, http.server.HTTPServer):
    """The pages by their paths; answered by a thread a connection, and by nobody beyond so many."""

    def __init__(self, host: str, port: int, pages: dict[str, Page]) -> None:
        self.pages = pages
        super().__init__((host, port), _Handler)


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
