"""Read a request's body within limits of size and time, or refuse it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from webhook.server.http.response import CLOSE, TEXT, Receive, Scope, Send, respond

# Time from the head to the last byte.
_BODY_SECONDS = 10.0
# Limits of time and size for reading and discarding a refused body. Closing at once would reset the connection, and the
# client would lose the response.
_LINGER_SECONDS = 2.0
_LINGER_BYTES = 40 * 1024 * 1024
_START_SECONDS = 0.5  # for the start of an unread body; it has usually arrived with the head

TOO_MANY = "too many large reviews at once"


class BodyError(Exception):
    """A refused body. ``status`` is the HTTP status, or None if the client has gone."""

    def __init__(self, message: str, status: int | None) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


def header(scope: Scope, name: bytes) -> bytes:
    """Return the header with this lower-case name, or an empty value."""
    return dict[bytes, bytes](scope["headers"]).get(name, b"")


@contextlib.asynccontextmanager
async def reserve_memory(scope: Scope, limit: int, seconds: float = 0.0) -> AsyncIterator[None]:
    """Reserve memory for the request body until the end of the ``async with`` block.

    Raises:
        BodyError: 429 if the memory is not free within ``seconds``.
    """
    stated = header(scope, b"content-length")
    most = limit if header(scope, b"transfer-encoding") else min(int(stated or 0), limit)
    connection = scope["connection"]
    connection.given_way = False
    if not await connection.hold(most, seconds):
        raise BodyError(TOO_MANY, 429)
    try:
        yield
    finally:
        connection.release()


async def read_body(scope: Scope, receive: Receive, limit: int, body: bytearray) -> bytes:
    """Return the whole body. ``body`` collects the parts of a body in several parts.

    Raises:
        BodyError: 413 for an oversized body, before reading if its length is stated; 408 after 10 s.
    """
    stated = header(scope, b"content-length")
    if stated and int(stated) > limit:
        raise BodyError(f"the body has {int(stated)} bytes; the limit is {limit}", 413)
    connection = scope["connection"]
    try:
        async with asyncio.timeout(_BODY_SECONDS) as connection.reading:
            message = await receive()
            if message["type"] == "http.request" and not message["more_body"]:
                return bytes(message["body"])
            return await _rest(message, receive, limit, body)
    except TimeoutError:
        if connection.given_way:
            raise BodyError(TOO_MANY, 429) from None
        raise BodyError(f"the body did not end within {_BODY_SECONDS:.0f} s", 408) from None
    finally:
        connection.reading = None


async def read_start(receive: Receive, body: bytearray, size: int) -> None:
    """Read until ``body`` has ``size`` bytes, the body ends, or nothing arrives for half a second."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_START_SECONDS):
            while len(body) < size:
                message = await receive()
                body += message.get("body", b"")
                if not message.get("more_body"):
                    return


async def _rest(message: Scope, receive: Receive, limit: int, body: bytearray) -> bytes:
    # A single growing block can return its memory. 100 parts of a large body would stay in the C library's heap.
    while True:
        if message["type"] != "http.request":
            raise BodyError("the client left", None)
        body += message["body"]
        if len(body) > limit:
            raise BodyError(f"the body has more than {limit} bytes", 413)
        if not message["more_body"]:
            return bytes(body)
        message = await receive()


async def refuse(
    scope: Scope, receive: Receive, send: Send, status: int, text: str, *headers: tuple[bytes, bytes]
) -> None:
    """Respond without reading the body, then close the connection."""
    await respond(send, status, f"{text}\n".encode(), (TEXT, CLOSE, *headers))
    await discard_body(scope, receive)


async def discard_body(scope: Scope, receive: Receive) -> None:
    """Read and discard an unread body for a short time, so that the client gets the response before the close."""
    if header(scope, b"expect"):
        return  # the client has not sent the body
    size = 0
    try:
        async with asyncio.timeout(_LINGER_SECONDS):
            while size < _LINGER_BYTES:
                part = await receive()
                if part["type"] != "http.request" or not part["more_body"]:
                    return
                size += len(part["body"])
    except TimeoutError:
        return
