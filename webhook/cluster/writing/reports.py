"""Find, list, write and delete evenspread's reports in the cluster.

Server-side apply writes a report, even if another client created it. evenspread's label marks its own reports. Obsolete
reports are deleted by name.

Source: openreports/reports-api v0.2.1 config/crd; kyverno v1.19.1 config/crds/policyreport.
"""

from collections.abc import Iterator
from http import HTTPStatus
from urllib.parse import quote

import msgspec
from msgspec import Raw, Struct

from webhook.cluster.connection import FIELD_MANAGER, ApiServer, JsonObject
from webhook.cluster.discovery import read_plurals
from webhook.cluster.errors import ClusterError, RefusedError
from webhook.cluster.listing import list_labelled
from webhook.cluster.resources import group_path
from webhook.core.api.well_known import APP_MANAGED_BY
from webhook.core.decoders import decoder_of, read_nested

# Refusals of this object alone: a concurrent change, too large for the server, or invalid.
_OF_ONE_OBJECT = (HTTPStatus.CONFLICT, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY)
_NO_NAMESPACE = 'namespaces "'
# The message of status 500 for an object near etcd's size limit.
_FULL = "etcdserver: request is too large"
# Quotas, policies and terminating namespaces refuse with other words. A missing permission blocks all writes.
_NOT_ADMITTED = (HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN)
_NO_PERMISSION = (" cannot patch resource ", " cannot create resource ", " cannot delete resource ")


class ReportStore(Struct, frozen=True):
    """Reads, writes and deletes the cluster's reports of a kind, as JSON objects.

    Attributes:
        plural: The plural resource name in API paths.
    """

    server: ApiServer
    api_version: str
    plural: str

    def ours(self) -> Iterator[JsonObject]:
        """Yield every report with evenspread's label."""
        try:
            yield from self._ours()
        except RefusedError as refusal:
            if refusal.status != HTTPStatus.GONE:
                raise
            # The page's token has expired: restart once.
            yield from self._ours()

    def _ours(self) -> Iterator[JsonObject]:
        for page in list_labelled(self.server, self._path(), f"{APP_MANAGED_BY}={FIELD_MANAGER}"):
            yield from map(_decoded, page.items or ())

    def put(self, document: JsonObject) -> None:
        """Write the report, identified by its namespace and name."""
        meta = document["metadata"]
        self.server.apply(f"{self._path(meta['namespace'])}/{quote(meta['name'])}", document).accepted()

    def remove(self, namespace: str, name: str) -> None:
        """Delete the report, if it exists."""
        answer = self.server.send("DELETE", f"{self._path(namespace)}/{quote(name)}")
        if answer.status != HTTPStatus.NOT_FOUND:
            answer.accepted()

    def _path(self, namespace: str = "") -> str:
        within = f"/namespaces/{quote(namespace)}" if namespace else ""
        return f"{group_path(self.api_version)}{within}/{self.plural}"


def report_store(server: ApiServer, api_version: str, kind: str) -> ReportStore | None:
    """Return the store for reports of this kind. None if the API server lacks the kind."""
    try:
        with server.open(group_path(api_version)) as stream:
            plural = read_plurals(stream.body()).get(kind)
    except RefusedError as refusal:
        if refusal.status == HTTPStatus.NOT_FOUND:
            return None
        raise
    return ReportStore(server, api_version, plural) if plural else None


def is_of_one_object(refusal: RefusedError) -> bool:
    """Whether the refusal concerns only this object or its namespace. Then writes elsewhere can continue.

    Source: apiserver pkg/endpoints/handlers/responsewriters/errors.go ``forbiddenMessage``.
    """
    text = str(refusal)
    if refusal.status in _NOT_ADMITTED:
        return not any(words in text for words in _NO_PERMISSION)
    return refusal.status in _OF_ONE_OBJECT or _NO_NAMESPACE in text or _FULL in text


def _decoded(raw: Raw) -> JsonObject:
    try:
        value = read_nested(decoder_of(object).decode, bytes(raw))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ClusterError("a report cannot be decoded") from error
    return value if isinstance(value, dict) else {}
