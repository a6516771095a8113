"""A connection to one API server: credentials by the kubernetes package, requests as raw JSON.

The package's models cost tens of times more time and memory than the JSON that they are made from; its loader knows
every way in which a kubeconfig can name credentials.
"""

import json
import logging
from collections.abc import Mapping
from typing import Any

# Go's default for clients of its API server is 32 s; a person waits here.
_SECONDS = 10.0


class ClusterError(Exception):
    """An API server that cannot be reached, or refuses; one line."""


class ApiServer:
    """Requests to the API server that a kubeconfig names."""

    def __init__(self, kubeconfig: str, context: str | None = None) -> None:
        # Imported here: 0.7 s and 67 MB, which only those pay who talk to a cluster.
        from kubernetes.client import ApiClient, Configuration  # noqa: PLC0415
        from kubernetes.config import ConfigException, load_kube_config  # noqa: PLC0415

        configuration = Configuration()
        try:
            load_kube_config(kubeconfig, context, configuration, persist_config=False)  # type: ignore[no-untyped-call]  # untyped there
        except (ConfigException, OSError, ValueError) as error:
            raise ClusterError(f"{kubeconfig}: {str(error).splitlines()[0]}") from error
        logging.getLogger("urllib3").setLevel(logging.ERROR)  # else each attempt is a line; the last one is ours
        self.url: str = configuration.host
        self._configuration = configuration
        self._pool = ApiClient(configuration).rest_client.pool_manager

    def request(
        self, method: str, path: str, body: object = None, *, media: str = "application/json"
    ) -> tuple[int, Mapping[str, Any]]:
        """The status and the object that came back.

        Errors: ClusterError if there was no answer.
        """
        headers = {"Accept": "application/json", "Content-Type": media, "User-Agent": "evenspread"}
        token = self._configuration.get_api_key_with_prefix("BearerToken", "authorization")
        if token:
            headers["Authorization"] = token
        data = None if body is None else json.dumps(body).encode()
        try:
            response = self._pool.request(method, self.url + path, body=data, headers=headers, timeout=_SECONDS)
        except Exception as error:  # urllib3's errors have no common base with anything, and are not ours to import
            raise ClusterError(f"{self.url}: {_cause(error)}") from error
        try:
            answer = json.loads(response.data)
        except ValueError:
            answer = {}
        return response.status, answer if isinstance(answer, dict) else {}


def _cause(error: BaseException) -> str:
    """What the innermost error says: the outer ones are wrappers with addresses of objects in them."""
    inner: object = error
    while isinstance(inner, BaseException):
        error = inner
        inner = error.__cause__ or getattr(error, "reason", None)
    return str(getattr(error, "strerror", None) or error)
