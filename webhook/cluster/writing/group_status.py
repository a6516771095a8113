"""The status of SpreadGroups in the cluster: what stands there, and how another one is put there.

It is put by server-side apply to the subresource, for the object that was read: one that was made anew under the same
name has another uid, and the API server refuses.

Source: kubernetes.io/docs/reference/using-api/server-side-apply; apiextensions v1 ``CustomResourceSubresourceStatus``.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from webhook.cluster.connection import ApiServer, TooLongError
from webhook.cluster.resources import Resource, group_path
from webhook.cluster.wire import read_page
from webhook.cluster.writing.reports import FIELD_MANAGER, accepted
from webhook.core.api.spread_group import API_VERSION, KIND, RESOURCE, SpreadGroup
from webhook.core.api.types import Pod
from webhook.core.scan.group_members import MOST_PODS

_PODS = Resource(kind="Pod", name="pods")
_PAGE = 100
_GONE = 404


def read_status_of(server: ApiServer, of: SpreadGroup) -> object | None:
    """The status as it stands, empty where nobody has written one; None where the group is gone.

    Errors: ClusterError; RefusedError where the API server says no.
    """
    answer = server.ask("GET", _path(of))
    if answer.status == _GONE or (answer.content.get("metadata") or {}).get("uid", of.meta.uid) != of.meta.uid:
        return None
    accepted(answer)
    return answer.content.get("status") or {}


def put_status(server: ApiServer, of: SpreadGroup, status: Mapping[str, Any]) -> None:
    """Make the status of the group what is given.

    Errors: as `read_status_of`.
    """
    meta = {"name": of.meta.name, "namespace": of.meta.namespace, "uid": of.meta.uid}
    document = {"apiVersion": API_VERSION, "kind": KIND, "metadata": meta, "status": status}
    query = urlencode({"fieldManager": FIELD_MANAGER, "force": "true"})
    accepted(server.ask("PATCH", f"{_path(of)}/status?{query}", document, media="application/apply-patch+yaml"))


def pods_of(server: ApiServer, namespace: str, selector: str) -> list[Pod] | None:
    """The namespace's pods that a selector matches; None of more than `MOST_PODS`. One that cannot be read is left out.

    Shape: where a page is too long, one pod is requested, and then more again, as lists for watches do.
    Errors: as `read_status_of`.
    """
    found, limit = list[Pod](), _PAGE
    query = {"labelSelector": selector}
    while True:
        asked = urlencode(query | {"limit": str(limit)})
        try:
            with server.open(f"/api/v1/namespaces/{quote(namespace)}/pods?{asked}") as stream:
                page, _ = read_page(stream.body(), _PODS.reader("v1"))
        except TooLongError:
            if limit == 1:
                raise
            limit = 1
            continue
        limit = min(2 * limit, _PAGE)
        found += (each for each in page.values if isinstance(each, Pod))
        if len(found) > MOST_PODS:
            return None
        if not page.more:
            return found
        query["continue"] = page.more


def _path(of: SpreadGroup) -> str:
    return f"{group_path(API_VERSION)}/namespaces/{quote(of.meta.namespace)}/{RESOURCE}/{quote(of.meta.name)}"
