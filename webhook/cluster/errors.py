"""The errors of requests to an API server, each with a text of a single line."""

from http import HTTPStatus

from webhook.logs import bounded

# The same as http.client.responses. Importing http.client would also import ssl.
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


class ClusterError(Exception):
    """The API server is unreachable or refuses. The text is a single line."""


class RefusedError(ClusterError):
    """The API server answers with an error. Do not retry within ``retry_after`` seconds."""

    def __init__(self, status: int, message: str, *, retry_after: float = 0.0) -> None:
        super().__init__(f"{status} {bounded(message)}".rstrip())
        self.status = status
        self.retry_after = retry_after


class TooLongError(ClusterError):
    """A response of the API server exceeds the memory limit."""


class SilenceError(ClusterError):
    """A watch received nothing for too long."""


def status_text(status: int) -> str:
    """Return the status and its phrase: ``404 Not Found``. Unknown statuses have no phrase."""
    return f"{status} {_PHRASES.get(status, '')}".rstrip()
