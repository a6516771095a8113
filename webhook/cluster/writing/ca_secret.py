"""Read and update the Secret of the CA, without overwriting other writers.

The chart renders it empty and the controller fills it by an update, so no role needs permission to create Secrets. All
times come from the API server's clock, since the API server verifies the certificates. A wrong clock on a node can
neither end a CA early nor create a CA with a later start.

Source: cert-manager pkg/server/tls/authority/authority.go.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus

from certs.rotation import Authorities, read_secret_data, secret_data
from webhook.cluster.connection import ApiServer, JsonObject
from webhook.cluster.errors import ClusterError, RefusedError
from webhook.cluster.named_watch import watch_named

# Two controllers starting together need two attempts.
_TRIES = 5


class CaSecret:
    """The Secret of this name."""

    def __init__(self, server: ApiServer, namespace: str, name: str) -> None:
        self._server = server
        self._name = name
        self._collection = f"/api/v1/namespaces/{namespace}/secrets"
        self._path = f"{self._collection}/{name}"
        self.title = f"Secret {namespace}/{name}"

    def follow(self, changed: Callable[[], None]) -> None:
        """Call ``changed`` when the Secret changes, from another thread."""
        watch_named(self._server, self._collection, self._name, changed)

    def read(self) -> tuple[Authorities | None, datetime]:
        """Return the stored CA, if any, and the API server's time."""
        _, held, now = self._read()
        return held, now

    def update(self, step: Callable[[Authorities | None, datetime], Authorities]) -> tuple[Authorities, datetime]:
        """Store the result of ``step(stored CA, time)``. Retries after a conflict. Returns the new CA and the time."""
        for _ in range(_TRIES):
            content, held, now = self._read()
            following = step(held, now)
            if following == held:
                return following, now
            data = {key: base64.b64encode(value).decode() for key, value in secret_data(following).items()}
            # The request has the version from reading, so a concurrent change is a conflict.
            answer = self._server.send("PUT", self._path, {**content, "data": data})
            if answer.status != HTTPStatus.CONFLICT:
                answer.accepted(self.title)
                return following, now
        raise ClusterError(f"{self.title}: every update conflicts with another writer")

    def _read(self) -> tuple[JsonObject, Authorities | None, datetime]:
        answer = self._server.send("GET", self._path)
        if answer.status == HTTPStatus.NOT_FOUND:
            raise RefusedError(HTTPStatus.NOT_FOUND, f"{self.title} does not exist; the chart creates it")
        content = answer.accepted(self.title).content
        return content, read_secret_data(_decoded(content.get("data"))), answer.date or datetime.now(UTC)


def _decoded(data: object) -> Mapping[str, bytes]:
    """Decode the data of a Secret. Empty for invalid data."""
    if not isinstance(data, dict):
        return {}
    try:
        return {str(key): base64.b64decode(value, validate=True) for key, value in data.items()}
    except (binascii.Error, TypeError, ValueError):
        return {}
