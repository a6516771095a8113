"""The status of SpreadGroups in the cluster: what stands there, and how another one is put there.

It is put by server-side apply to the subresource, for the object that was read: one that was made anew under the same
name has another uid, and the API server refuses.

Source: kubernetes.io/docs/reference/using-api/server-side-apply; apiextensions v1 ``CustomResourceSubresourceStatus``.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from webhook.cluster.connection import ApiServer
from webhook.cluster.listing import list_labelled
from webhook.cluster.resources import Resource, group_path
from webhook.cluster.wire import read_items
from webhook.core.api.spread_group import API_VERSION, KIND, RESOURCE, SpreadGroup
from webhook.core.api.types import Pod
from webhook.core.scan.group_members import MOST_PODS

_PODS = Resource(kind="Pod", name="pods").reader("v1")
_GONE = 404


def read_status_of(server: ApiServer, of: SpreadGroup) -> object | None:
    """The present status, empty if it was never written; None if the group is gone."""
    answer = server.send("GET", _path(of))
    if answer.status == _GONE or (answer.content.get("metadata") or {}).get("uid", of.meta.uid) != of.meta.uid:
        return None
    return answer.accepted().content.get("status") or {}


def put_status(server: ApiServer, of: SpreadGroup, status: Mapping[str, Any]) -> None:
    """Make the status of the group what is given."""
    meta = {"name": of.meta.name, "namespace": of.meta.namespace, "uid": of.meta.uid}
    document = {"apiVersion": API_VERSION, "kind": KIND, "metadata": meta, "status": status}
    server.apply(f"{_path(of)}/status", document).accepted()


def pods_of(server: ApiServer, namespace: str, selector: str) -> list[Pod] | None:
    """The namespace's pods that a selector matches, without unreadable ones; None of more than `MOST_PODS`."""
    pods = list[Pod]()
    for page in list_labelled(server, f"/api/v1/namespaces/{quote(namespace)}/pods", selector):
        values, _ = read_items(page, _PODS)
        pods += (each for each in values if isinstance(each, Pod))
        if len(pods) > MOST_PODS:
            return None
    return pods


def _path(of: SpreadGroup) -> str:
    return f"{group_path(API_VERSION)}/namespaces/{quote(of.meta.namespace)}/{RESOURCE}/{quote(of.meta.name)}"
