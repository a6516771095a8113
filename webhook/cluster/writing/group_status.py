"""Read and write the status of a SpreadGroup.

Server-side apply writes the status subresource, with the group's uid. So the API server refuses the status of a deleted
group for a new group of the same name.

Source: kubernetes.io/docs/reference/using-api/server-side-apply; apiextensions v1 ``CustomResourceSubresourceStatus``.
"""

from http import HTTPStatus
from urllib.parse import quote

from webhook.cluster.connection import ApiServer, JsonObject
from webhook.cluster.listing import list_labelled
from webhook.cluster.resources import Resource, group_path
from webhook.cluster.wire import read_items
from webhook.core.api.spread_group import API_VERSION, KIND, RESOURCE, SpreadGroup
from webhook.core.api.types import Pod

_PODS = Resource(kind="Pod", name="pods").reader("v1")


def read_status_of(server: ApiServer, group: SpreadGroup) -> object | None:
    """Return the present status, or {} without a status. None if the group is gone."""
    answer = server.send("GET", _path(group))
    meta = answer.content.get("metadata") or {}
    if answer.status == HTTPStatus.NOT_FOUND or meta.get("uid", group.meta.uid) != group.meta.uid:
        return None
    return answer.accepted().content.get("status") or {}


def put_status(server: ApiServer, group: SpreadGroup, status: JsonObject) -> None:
    """Write the status of the group."""
    meta = {"name": group.meta.name, "namespace": group.meta.namespace, "uid": group.meta.uid}
    document = {"apiVersion": API_VERSION, "kind": KIND, "metadata": meta, "status": status}
    server.apply(f"{_path(group)}/status", document).accepted()


def pods_of(server: ApiServer, namespace: str, selector: str, most: int) -> list[Pod] | None:
    """Return the pods matched by a selector, without undecodable pods. None for more than ``most`` pods."""
    pods = list[Pod]()
    for page in list_labelled(server, f"/api/v1/namespaces/{quote(namespace)}/pods", selector):
        values, _ = read_items(page, _PODS)
        pods += (pod for pod in values if isinstance(pod, Pod))
        if len(pods) > most:
            return None
    return pods


def _path(group: SpreadGroup) -> str:
    return f"{group_path(API_VERSION)}/namespaces/{quote(group.meta.namespace)}/{RESOURCE}/{quote(group.meta.name)}"
