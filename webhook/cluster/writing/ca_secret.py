"""The Secret that holds our CA: read it, and change it unless somebody else has done so meanwhile.

The chart renders it empty and it is filled by an update, so that no role may create Secrets. Its times are judged by
the API server's clock, since that one verifies what the CA signs: a clock that is wrong on some node neither ends a CA
nor makes one that nobody accepts.

Source: cert-manager pkg/server/tls/authority/authority.go.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from certs.rotation import Authorities, read, written
from webhook.cluster.connection import Answer, ApiServer, ClusterError, RefusedError

_ABSENT, _CONFLICT = 404, 409
# Two replicas and a controller that start together need three.
_TRIES = 5


class CaSecret:
    """One Secret, by name."""

    def __init__(self, server: ApiServer, namespace: str, name: str) -> None:
        self._server = server
        self._path = f"/api/v1/namespaces/{namespace}/secrets/{name}"
        self.title = f"Secret {namespace}/{name}"

    def settle(self, step: Callable[[Authorities | None, datetime], Authorities]) -> tuple[Authorities, datetime]:
        """Take a step from what it holds to what it shall hold; where somebody is quicker, from what that one wrote.

        Shape: ``step`` returns its argument where nothing is due. Returned is what the Secret holds now, and the time.
        Errors: ClusterError; RefusedError where the API server says no.
        """
        for _ in range(_TRIES):
            answer = self._server.ask("GET", self._path)
            if answer.status == _ABSENT:
                raise RefusedError(_ABSENT, f"{self.title} is not there; the chart renders it")
            self._accepted(answer)
            held, now = read(_decoded(answer.content.get("data"))), answer.date or datetime.now(UTC)
            following = step(held, now)
            if following == held:
                return following, now
            data = {key: base64.b64encode(value).decode() for key, value in written(following).items()}
            # With the version that was read: a change in between is a conflict.
            answer = self._server.ask("PUT", self._path, {**answer.content, "data": data})
            if answer.status != _CONFLICT:
                self._accepted(answer)
                return following, now
        raise ClusterError(f"{self.title}: others change it all the time")

    def _accepted(self, answer: Answer) -> None:
        if answer.status != 200:
            raise RefusedError(answer.status, f"{self.title}: {answer.content.get('message', '')}")


def _decoded(data: object) -> Mapping[str, bytes]:
    """The data of a Secret; empty where it is none."""
    if not isinstance(data, dict):
        return {}
    try:
        return {str(key): base64.b64decode(value, validate=True) for key, value in data.items()}
    except (binascii.Error, TypeError, ValueError):
        return {}
