"""Our reports in the cluster: whether there is an API for them, which ones are there, and how one is put or taken away.

Server-side apply writes a report, whether or not it exists, and whichever client made it. A report with our label is
ours: one that is not wanted any more is deleted by name.

Source: openreports/reports-api v0.2.1 config/crd; kyverno v1.19.1 config/crds/policyreport.
"""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Raw, Struct

from webhook.cluster.connection import FIELD_MANAGER, ApiServer, ClusterError, RefusedError
from webhook.cluster.listing import list_labelled
from webhook.cluster.resources import group_path
from webhook.cluster.wire import read_plurals
from webhook.core.api.well_known import APP_MANAGED_BY
from webhook.core.decoders import decoder_of, read_nested

_ABSENT, _GONE = 404, 410
# About the one object: it was changed at the same time (409), is not valid (422) or too large (413) for the server.
_OF_ONE_OBJECT = (409, 413, 422)
_NO_NAMESPACE = 'namespaces "'
# With status 500, of an object that its namespace's users have made nearly as large as etcd takes.
_FULL = "etcdserver: request is too large"
# Quotas, policies, and namespaces that are being deleted have words of their own; without a permission nothing at all
# can be written.
_NOT_ADMITTED = (400, 403)
_NO_PERMISSION = (" cannot patch resource ", " cannot create resource ", " cannot delete resource ")


class ReportStore(Struct, frozen=True):
    """The reports of one kind in the cluster, as JSON objects; ``plural`` is the API's name for them."""

    server: ApiServer
    api_version: str
    plural: str

    def ours(self) -> Iterator[Mapping[str, Any]]:
        """Every report that carries our label, page by page."""
        try:
            yield from self._ours()
        except RefusedError as refusal:
            if refusal.status != _GONE:
                raise
            # The token of a page is too old: from the start, once.
            yield from self._ours()

    def _ours(self) -> Iterator[Mapping[str, Any]]:
        for page in list_labelled(self.server, self._path(), f"{APP_MANAGED_BY}={FIELD_MANAGER}"):
            yield from map(_decoded, page.items or ())

    def put(self, document: Mapping[str, Any]) -> None:
        """Make the report of this name in this namespace what the document says."""
        meta = document["metadata"]
        self.server.apply(f"{self._path(meta['namespace'])}/{quote(meta['name'])}", document).accepted()

    def remove(self, namespace: str, name: str) -> None:
        """Take it away, unless somebody else has."""
        answer = self.server.send("DELETE", f"{self._path(namespace)}/{quote(name)}")
        if answer.status != _ABSENT:
            answer.accepted()

    def _path(self, namespace: str = "") -> str:
        within = f"/namespaces/{quote(namespace)}" if namespace else ""
        return f"{group_path(self.api_version)}{within}/{self.plural}"


def report_store(server: ApiServer, api_version: str, kind: str) -> ReportStore | None:
    """Where reports of this kind are kept; None if the API server does not have it."""
    try:
        with server.open(group_path(api_version)) as stream:
            plural = read_plurals(stream.body()).get(kind)
    except RefusedError as refusal:
        if refusal.status == _ABSENT:
            return None
        raise
    return ReportStore(server, api_version, plural) if plural else None


def is_of_one_object(refusal: RefusedError) -> bool:
    """Whether the refusal is about that one object, or its namespace, so that others may be written all the same.

    Source: apiserver pkg/endpoints/handlers/responsewriters/errors.go ``forbiddenMessage``.
    """
    text = str(refusal)
    if refusal.status in _NOT_ADMITTED:
        return not any(words in text for words in _NO_PERMISSION)
    return refusal.status in _OF_ONE_OBJECT or _NO_NAMESPACE in text or _FULL in text


def _decoded(raw: Raw) -> Mapping[str, Any]:
    try:
        value = read_nested(decoder_of(object).decode, bytes(raw))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ClusterError("a report that cannot be read") from error
    return value if isinstance(value, dict) else {}
