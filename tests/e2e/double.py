"""Servers that stand in for a webhook and answer what no webhook should."""

import contextlib
import json
import pathlib
import socket
import socketserver
import ssl
import threading
from collections.abc import Callable

from e2e.controlplane.authority import Authority
from e2e.registration import Server

Answer = Callable[[bytes], bytes | None]  # from the body of a request to all bytes of the answer; None: never


def http(body: bytes, status: str = "200 OK") -> bytes:
    """Head and body in one piece: two writes would cost a delayed acknowledgement, 40 ms."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def review(response: dict | None, version: str = "admission.k8s.io/v1") -> bytes:
    content = {"apiVersion": version, "kind": "AdmissionReview"}
    return http(json.dumps(content if response is None else {**content, "response": response}).encode())


def uid(body: bytes) -> str:
    return json.loads(body)["request"]["uid"]


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        with contextlib.suppress(OSError, ValueError):  # the caller gave up, or is not a caller of HTTP
            while head := self._head():
                length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                answer = self.server.answer(self.rfile.read(length))
                if answer is None:
                    self.server.ended.wait()
                    return
                self.wfile.write(answer)

    def _head(self) -> bytes:
        lines = []
        while (line := self.rfile.readline()) not in {b"", b"\r\n"}:
            lines.append(line)
        return b"".join(lines)


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], context: ssl.SSLContext | None, answer: Answer) -> None:
        super().__init__(address, _Handler)
        self.context = context
        self.answer = answer
        self.ended = threading.Event()
        self.connections: list[socket.socket] = []

    def finish_request(self, request, client_address) -> None:  # in the connection's thread: a handshake may hang
        if self.context is None:
            self.ended.wait()
            return
        with contextlib.suppress(OSError), self.context.wrap_socket(request, server_side=True) as connection:
            self.connections.append(connection)
            super().finish_request(connection, client_address)

    def end(self) -> None:
        self.ended.set()
        self.shutdown()
        for connection in self.connections:
            with contextlib.suppress(OSError):  # closed already
                connection.shutdown(socket.SHUT_RDWR)
        self.server_close()


@contextlib.contextmanager
def answering(
    folder: pathlib.Path,
    answer: Answer,
    *,
    address: tuple[str, int] = ("127.0.0.1", 0),
    names: tuple[str, ...] = ("127.0.0.1",),
):
    """A server for the length of a test. Without any name it takes connections and never says a word."""
    authority = Authority("double-ca")
    context = None
    if names:
        certificate, key = authority.issue("double", names=names)
        pair = folder / "double.pem"
        pair.write_bytes(certificate + key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair)
    server = _Server(address, context, answer)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield Server(f"https://127.0.0.1:{server.server_address[1]}", authority.pem)
    finally:
        server.end()
        thread.join()
