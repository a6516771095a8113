"""Requests to an API server, with raw JSON in both directions.

The models of the kubernetes package are not used: they need tens of times the time and memory of their JSON.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec import Struct

from webhook.cluster.credentials import Account, connect
from webhook.cluster.errors import ClusterError, RefusedError, SilenceError, TooLongError
from webhook.core.decoders import decoder_of, read_nested
from webhook.logs import bounded

if TYPE_CHECKING:
    from urllib3 import HTTPResponse

JsonObject: TypeAlias = Mapping[str, Any]  # decoded JSON of any shape

# The API server records it as the manager of fields written by evenspread.
USER_AGENT = FIELD_MANAGER = "evenspread"
# client-go's default is 32 s, but here a person waits.
_SECONDS = 10.0
_CHUNK_BYTES = 64 * 1024  # the most of a single read: four TLS records
# An object has up to 1.5 MiB (etcd's limit), or six times as much with every character escaped. This leaves room for
# one such object.
_LINE_BYTES = 16 * 1024 * 1024
# A page of a hundred objects has a few MiB, and decoding may take twice this size in memory. A longer page is requested
# again with a single object.
_PAGE_BYTES = 32 * 1024 * 1024
# An error is a Status of some hundred bytes, or a proxy's page.
_STATUS_BYTES = 64 * 1024
_FINE = (HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.ACCEPTED)
_BROKEN_OFF = "the connection ended in the middle of the API server's response"


class ApiResponse(Struct, frozen=True, kw_only=True):
    """The API server's response to a request.

    Attributes:
        content: The JSON object in the body. Empty for any other body, and then ``text`` is the body.
        date: The time in the Date header. None without the header.
        retry_after: The seconds in the Retry-After header. 0 without the header.
        warnings: The values of the Warning headers, joined.
    """

    status: int
    content: JsonObject
    date: datetime | None = None
    retry_after: float = 0.0
    text: str = ""
    warnings: str = ""

    def accepted(self, title: str = "") -> ApiResponse:
        """Return the response if it is a success. Raises RefusedError with ``title`` as the object's name."""
        if self.status not in _FINE:
            message = f"{title}: " * bool(title) + str(self.content.get("message", ""))
            raise RefusedError(self.status, message, retry_after=self.retry_after)
        return self


class Stream:
    """The response to a request, read as it arrives. Another thread may call ``end``."""

    def __init__(self, response: HTTPResponse) -> None:
        self._response = response

    def body(self, most: int = _PAGE_BYTES) -> bytes:
        """Return the whole body. Raises TooLongError beyond ``most`` bytes, ClusterError if it is truncated."""
        with _one_line_errors():
            data = self._response.read(most + 1)
        if len(data) > most:
            raise TooLongError(f"the API server's response has more than {most} bytes")
        return data

    def lines(self) -> Iterator[list[bytes]]:
        """Yield the complete lines of each chunk. Raises SilenceError, or ClusterError for an oversized line."""
        parts: list[bytes] = []  # parts of an incomplete line; joined once, since it may have some megabytes
        size = 0
        for chunk in self._chunks():
            end, *more = chunk.split(b"\n")
            parts.append(end)
            size += len(end)
            if size > _LINE_BYTES:
                raise ClusterError(f"a watch event has more than {_LINE_BYTES} bytes")
            if more:
                *whole, rest = more
                yield [b"".join(parts), *whole]
                parts, size = [rest], len(rest)

    def end(self) -> None:
        """Shut down the HTTP response, so a thread reading it reaches the end of the stream."""
        with contextlib.suppress(OSError, RuntimeError, ValueError):  # it has already ended
            self._response.shutdown()

    def _chunks(self) -> Iterator[bytes]:
        with _one_line_errors(silent=SilenceError):
            if self._response.chunked:  # kube-apiserver sends a chunk per event. `read1` takes three times as long
                yield from self._response.read_chunked(_CHUNK_BYTES)
                return
            while chunk := self._response.read1(_CHUNK_BYTES):
                yield chunk


class ApiServer:
    """Sends requests to an API server, from any thread.

    server = ApiServer(Account(kubeconfig="prod.yaml"))
    pods = server.send("GET", "/api/v1/pods?limit=1").accepted("pods").content
    """

    def __init__(self, account: Account) -> None:
        self._account = account
        self._lock = threading.Lock()
        self._configuration, self._pool = connect(account)
        self.url: str = self._configuration.host
        self.renewals = 0

    def send(self, method: str, path: str, body: object = None, *, media: str = "application/json") -> ApiResponse:
        """Send a request. JSON nested too deeply for a decoder is dropped, as `read_nested` does."""
        data = None if body is None else json.dumps(body).encode()
        with (
            self._exchange(method, path, data, {"Content-Type": media}, _SECONDS) as response,
            _one_line_errors(self.url),
        ):
            received = response.read(_PAGE_BYTES)
        try:
            answer = read_nested(decoder_of(object).decode, received)
        except (msgspec.DecodeError, UnicodeDecodeError):
            answer = None
        is_object = isinstance(answer, dict)
        return ApiResponse(
            status=response.status,
            content=answer if isinstance(answer, dict) else {},
            date=_date(response.headers.get("Date", "")),
            retry_after=_retry_after(response),
            text="" if is_object else received.decode(errors="replace"),
            warnings=response.headers.get("Warning", ""),
        )

    def apply(self, path: str, document: Mapping[str, object], *, rehearsed: bool = False) -> ApiResponse:
        """Write the document by server-side apply, overriding other field managers. ``rehearsed`` is a dry run."""
        query = f"fieldManager={FIELD_MANAGER}&force=true{'&dryRun=All' * rehearsed}"
        return self.send("PATCH", f"{path}?{query}", document, media="application/apply-patch+yaml")

    @contextlib.contextmanager
    def open(self, path: str, *, silence_seconds: float = _SECONDS) -> Iterator[Stream]:
        """Request a list or a watch, to be read within a ``with`` block. Raises RefusedError."""
        with self._exchange("GET", path, None, {}, silence_seconds) as response:
            if response.status != HTTPStatus.OK:
                raise _refused(response)
            yield Stream(response)

    def renew(self, seen: int) -> None:
        """Read the credentials again after a response with status 401.

        ``seen`` is the value of `renewals` before the refused request. If another thread has renewed the credentials
        since, do nothing.
        """
        with self._lock:
            if seen != self.renewals:
                return  # another thread has renewed them
            self._configuration, self._pool = connect(self._account)
            self.renewals += 1

    @contextlib.contextmanager
    def _exchange(
        self, method: str, path: str, data: bytes | None, headers: dict[str, str], silence_seconds: float
    ) -> Iterator[HTTPResponse]:
        import urllib3  # noqa: PLC0415 part of the kubernetes package: see `credentials.connect`

        with self._lock:
            configuration, pool = self._configuration, self._pool
        timeout = urllib3.Timeout(connect=_SECONDS, read=silence_seconds)
        url = configuration.host + path
        with _one_line_errors(self.url):
            # This calls the package's hook, which rereads the token file once a minute.
            token = configuration.get_api_key_with_prefix("BearerToken", "authorization")
            sent = self._headers(token) | headers
            response = pool.request(
                method, url, body=data, headers=sent, timeout=timeout, preload_content=False, retries=False
            )
        try:
            yield response
        except BaseException:
            response.close()  # unread bytes must not become part of the next response
            raise
        if response.closed:  # read to its end
            response.release_conn()
        else:
            response.close()

    def _headers(self, token: str | None) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": USER_AGENT}
        if token:
            headers["Authorization"] = token
        if self._account.impersonate:
            headers["Impersonate-User"] = self._account.impersonate
        return headers


def _refused(response: HTTPResponse) -> RefusedError:
    """Return the error of a response: the message of its Status, else the HTTP reason."""
    with _one_line_errors():
        content = response.read(_STATUS_BYTES)
    try:
        message = str(json.loads(content).get("message", ""))
    except (ValueError, AttributeError):
        message = str(response.reason or "")
    return RefusedError(response.status, message, retry_after=_retry_after(response))


def _retry_after(response: HTTPResponse) -> float:
    after = response.headers.get("Retry-After", "")
    return float(after) if after.isdecimal() else 0.0


def _date(text: str) -> datetime | None:
    try:
        return parsedate_to_datetime(text)
    except ValueError:
        return None


@contextlib.contextmanager
def _one_line_errors(place: str = "", silent: type[ClusterError] = ClusterError) -> Iterator[None]:
    """Turn connection errors into a ClusterError of a single line. A read timeout raises ``silent``."""
    from kubernetes.config import ConfigException  # noqa: PLC0415 as in `credentials.connect`
    from urllib3.exceptions import HTTPError, ReadTimeoutError  # noqa: PLC0415 as in `credentials.connect`

    prefix = f"{place}: " if place else ""
    try:
        yield
    except (TimeoutError, ReadTimeoutError) as error:
        raise silent(f"{prefix}no answer in time") from error
    except (HTTPError, ConfigException, OSError, ValueError, AttributeError) as error:
        # http.client raises AttributeError if another thread ends the connection meanwhile.
        raise ClusterError(f"{prefix}{bounded(_cause(error))}") from error


def _cause(error: BaseException) -> str:
    """Return the text of the innermost error. The outer errors are wrappers with object addresses."""
    from http.client import IncompleteRead  # noqa: PLC0415 as in `credentials.connect`

    from urllib3.exceptions import ProtocolError  # noqa: PLC0415 as in credentials.connect

    inner: object = error
    while isinstance(inner, BaseException):
        if isinstance(error, (IncompleteRead, ProtocolError)) and isinstance(inner, ValueError):
            return _BROKEN_OFF  # http.client or urllib3 expected the next chunk's length
        error = inner
        inner = error.__cause__ or error.__context__ or getattr(error, "reason", None)
    return str(getattr(error, "strerror", None) or error) or type(error).__name__
