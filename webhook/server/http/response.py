"""The ASGI types of both ports, and HTTP responses."""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Any

Scope = Mapping[str, Any]  # also the messages, whose fields depend on their type
Receive = Callable[[], Awaitable[Scope]]
Send = Callable[[Scope], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

TEXT = (b"content-type", b"text/plain; charset=utf-8")
CLOSE = (b"connection", b"close")


def encode_response(status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> bytes:
    """Return an HTTP/1.1 response with its Date."""
    line = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode()
    return b"%b%bdate: %b\r\n\r\n%b" % (line, b"".join(b"%b: %b\r\n" % pair for pair in headers), date_value(), body)


def date_value() -> bytes:
    """Return the Date header's value."""
    return _dated(int(time.time()))


@lru_cache(1)
def _dated(second: int) -> bytes:
    return formatdate(second, usegmt=True).encode()


async def respond(send: Send, status: int, body: bytes, headers: Iterable[tuple[bytes, bytes]] = (TEXT,)) -> None:
    """Send a whole response."""
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": body})
