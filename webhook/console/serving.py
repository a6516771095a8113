"""The HTTP server of the console, with few threads: one for each request, up to a limit."""

import socket
import socketserver
import threading
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer
from wsgiref.types import WSGIApplication

from webhook.bounded_threads import CONNECTIONS, BoundedThreads

_PATIENCE_SECONDS = 10.0


class ConsoleServer(BoundedThreads, WSGIServer):
    """The HTTP server of the console. Port 0 selects a free port. Raises OSError if the address cannot be bound.

    It has up to ``threads`` connections at once. It waits ``patience_seconds`` for a reader's request, and for the
    reader to receive the answer.
    """

    def __init__(
        self,
        host: str,
        port: int,
        app: WSGIApplication,
        *,
        threads: int = CONNECTIONS,
        patience_seconds: float = _PATIENCE_SECONDS,
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _ConsoleHandler, threads)
        self.patience_seconds = patience_seconds
        self.set_app(app)

    @property
    def url(self) -> str:
        """The URL for a browser on this machine."""
        host, port = self.server_address[:2]
        return f"http://{f'[{host!s}]' if ':' in str(host) else host!s}:{port}/"

    def start(self) -> None:
        """Serve in a thread until the process ends or `shutdown`."""
        threading.Thread(target=self.serve_forever, name="console", daemon=True).start()

    def server_bind(self) -> None:
        """Bind without the base class's DNS lookup."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()


class _ConsoleHandler(WSGIRequestHandler):
    server: ConsoleServer

    def setup(self) -> None:
        """Set the socket timeout for reads and writes of this connection."""
        self.request.settimeout(self.server.patience_seconds)
        super().setup()

    def log_message(self, *_: object) -> None:
        """Write no access log."""
