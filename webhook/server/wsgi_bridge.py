"""Run a WSGI application in threads, as an ASGI application.

Existing adapters use a streaming thread for each request, or a single thread for all. With two slow handlers, liveness
took 5.7 s in such an adapter.
"""

import asyncio
import io
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import unquote_to_bytes
from wsgiref.types import WSGIApplication

from webhook.server.http.request_body import BodyError, read_body, refuse, reserve_memory
from webhook.server.http.response import Application, Receive, Scope, Send, respond

_Response = tuple[int, list[tuple[bytes, bytes]], bytes]

_THREADS = 16  # concurrent requests: health and metrics of several scrapers, without waiting for a slow request
_BODY_BYTES = 64 * 1024  # no route needs a body
_UNPREFIXED = {"CONTENT_TYPE", "CONTENT_LENGTH"}


def bridge(make: Callable[[], WSGIApplication]) -> Application:
    """Return the ASGI application. ``make`` creates the WSGI application at the first request."""
    pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="flask")
    applications: list[WSGIApplication] = []

    def run(environ: dict[str, object]) -> _Response:
        # At the first request: loading Flask is a third of the start.
        from werkzeug.test import run_wsgi_app  # noqa: PLC0415 as above

        if not applications:
            applications.append(make())
        content, status, headers = run_wsgi_app(applications[0], environ, buffered=True)
        named = ((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers)
        kept = [header for header in named if header[0] != b"content-length"]
        return int(status.partition(" ")[0]), kept, b"".join(content)

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with reserve_memory(scope, _BODY_BYTES):
                environ = _environ(scope, await read_body(scope, receive, _BODY_BYTES, bytearray()))
                status, headers, content = await asyncio.get_running_loop().run_in_executor(pool, run, environ)
        except BodyError as error:
            if error.status is not None:
                await refuse(scope, receive, send, error.status, error.message)
            return
        await respond(send, status, content, headers)

    return call


def _environ(scope: Scope, body: bytes) -> dict[str, object]:
    environ: dict[str, object] = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(scope["raw_path"] or b"/").decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "0",
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": scope["connection"].source,
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for name, value in scope["headers"]:
        key = name.decode("latin-1").upper().replace("-", "_")
        key = key if key in _UNPREFIXED else f"HTTP_{key}"
        text = value.decode("latin-1")
        environ[key] = f"{environ[key]},{text}" if key in environ else text
    environ["CONTENT_LENGTH"] = str(len(body))
    return environ
