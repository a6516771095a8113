"""The HTTP server of the console, with few threads: one for each request, up to a limit."""

import socket
import socketserver
import threading
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer
from wsgiref.types import WSGIApplication

from webhook.bounded_threads import BoundedThreads


class ConsoleServer(BoundedThreads, WSGIServer):
    """The HTTP server of the console. Port 0 selects a free port. Raises OSError if the address cannot be bound."""

    def __init__(self, host: str, port: int, app: WSGIApplication) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _ConsoleHandler)
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
    timeout = 10.0  # seconds for the reader's request, and for the reader to receive the answer

    def log_message(self, *_: object) -> None:
        """Write no access log."""
