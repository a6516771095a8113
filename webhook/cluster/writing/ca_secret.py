"""The Secret that holds our CA: read it, and change it unless somebody else has done so meanwhile.

The chart renders it empty and the controller fills it by an update, so that no role may create Secrets. Its times are
judged by the API server's clock, since that one verifies what the CA signs: a clock that is wrong on some node neither
ends a CA nor makes one that no client accepts.

Source: cert-manager pkg/server/tls/authority/authority.go.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from certs.rotation import Authorities, read_secret_data, secret_data
from webhook.cluster.connection import ApiServer, ClusterError, RefusedError
from webhook.cluster.named_watch import watch_named

_ABSENT, _CONFLICT = 404, 409
# Two controllers that start together need two.
_TRIES = 5


class CaSecret:
    """One Secret, by name."""

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
        """What it holds, and the time; None where it holds no CA."""
        _, held, now = self._read()
        return held, now

    def update(self, step: Callable[[Authorities | None, datetime], Authorities]) -> tuple[Authorities, datetime]:
        """Replace what it holds by the result of ``step``, again if another writer is quicker; result and time."""
        for _ in range(_TRIES):
            content, held, now = self._read()
            following = step(held, now)
            if following == held:
                return following, now
            data = {key: base64.b64encode(value).decode() for key, value in secret_data(following).items()}
            # With the version that was read: a change in between is a conflict.
            answer = self._server.send("PUT", self._path, {**content, "data": data})
            if answer.status != _CONFLICT:
                answer.accepted(self.title)
                return following, now
        raise ClusterError(f"{self.title}: others change it all the time")

    def _read(self) -> tuple[Mapping[str, Any], Authorities | None, datetime]:
        answer = self._server.send("GET", self._path)
        if answer.status == _ABSENT:
            raise RefusedError(_ABSENT, f"{self.title} is not there; the chart renders it")
        content = answer.accepted(self.title).content
        return content, read_secret_data(_decoded(content.get("data"))), answer.date or datetime.now(UTC)


def _decoded(data: object) -> Mapping[str, bytes]:
    """The data of a Secret; empty where it is none."""
    if not isinstance(data, dict):
        return {}
    try:
        return {str(key): base64.b64decode(value, validate=True) for key, value in data.items()}
    except (binascii.Error, TypeError, ValueError):
        return {}
