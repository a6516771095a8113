"""The Kubernetes API over one kept connection, thin: what was answered, and what the answer warned of."""

import http.client
import json
import re
import ssl
import time
import urllib.parse
from typing import NamedTuple

from webhook.core.decoders import read_nested

MOST_IDLE = 60  # seconds; the API server ends a connection that is idle for 90
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


class Answer(NamedTuple):
    status: int
    body: dict
    warnings: tuple[str, ...]

    @property
    def message(self) -> str:
        """What the API server says of a request that it refuses."""
        return self.body.get("message", "")


class ApiError(Exception):
    """An answer of 400 or above."""

    def __init__(self, method: str, path: str, answer: Answer) -> None:
        super().__init__(f"{method} {path}: {answer.status} {answer.message or answer.body}")
        self.answer = answer


class Api:
    """Not for two threads at once: each takes its own."""

    def __init__(self, url: str, context: ssl.SSLContext) -> None:
        where = urllib.parse.urlsplit(url)
        self._connection = http.client.HTTPSConnection(where.hostname, where.port, context=context, timeout=30)
        self._used = 0.0

    def send(self, method: str, path: str, body: object = None, content_type: str = "application/json") -> Answer:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content-Type": content_type, "Accept": "application/json"}
        if time.monotonic() - self._used > MOST_IDLE:
            self._connection.close()
        try:
            self._connection.request(method, path, data, headers)
            answer = self._connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            raise
        self._used = time.monotonic()
        decoded = (
            read_nested(json.loads, content) if content[:1] == b"{" else {"text": content.decode(errors="replace")}
        )
        warnings = tuple(
            text.replace('\\"', '"').replace("\\\\", "\\")
            for header in answer.headers.get_all("Warning", ())
            for text in _WARNING.findall(header)
        )
        return Answer(answer.status, decoded, warnings)

    def request(self, method: str, path: str, body: object = None, content_type: str = "application/json") -> dict:
        """Errors: ApiError for an answer of 400 or above."""
        answer = self.send(method, path, body, content_type)
        if answer.status >= 400:
            raise ApiError(method, path, answer)
        return answer.body

    def close(self) -> None:
        self._connection.close()
