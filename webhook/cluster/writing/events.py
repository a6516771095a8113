"""Write events, for ``kubectl describe`` and event collectors.

An event's name depends on its text and its object. So the API server rejects duplicates from any replica.

Source: events.k8s.io/v1 Event; kube-apiserver --event-ttl, after which an event is gone (1 h by default).
"""

from http import HTTPStatus
from urllib.parse import quote

from webhook.cluster.connection import ApiServer, JsonObject

_EVENTS_API = "events.k8s.io/v1"


def create_event(server: ApiServer, event: JsonObject) -> bool:
    """Create the event. Returns False if it exists."""
    answer = server.send("POST", _path(event), event)
    if answer.status == HTTPStatus.CONFLICT:
        return False
    answer.accepted()
    return True


def count_again(server: ApiServer, event: JsonObject, count: int, time: str) -> None:
    """Update an existing Event after another occurrence.

    The new values are in the Event's ``series``. The API does not allow changes of ``note``.

    ``count`` is the number of occurrences, and ``time`` the MicroTime of the last occurrence.

    Source: kubernetes 1.31 pkg/apis/core/validation/events.go ``ValidateEventUpdate``.
    """
    path = f"{_path(event)}/{quote(event['metadata']['name'])}"
    series = {"series": {"count": count, "lastObservedTime": time}}
    server.send("PATCH", path, series, media="application/merge-patch+json").accepted()


def _path(event: JsonObject) -> str:
    return f"/apis/{_EVENTS_API}/namespaces/{quote(event['metadata']['namespace'])}/events"
