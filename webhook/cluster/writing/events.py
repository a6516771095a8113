"""Our events, for ``kubectl describe`` and collectors of events.

The name of an event follows from its text and its object. So the API server refuses a second one of any replica.

Source: events.k8s.io/v1 Event; kube-apiserver --event-ttl, after which an event is gone (1 h by default).
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from webhook.cluster.connection import ApiServer

EVENTS_API = "events.k8s.io/v1"
_EXISTS = 409


def create_event(server: ApiServer, event: Mapping[str, Any]) -> bool:
    """Create the event; returns False if it exists."""
    answer = server.send("POST", _path(event), event)
    if answer.status == _EXISTS:
        return False
    answer.accepted()
    return True


def count_again(server: ApiServer, event: Mapping[str, Any], count: int, time: str) -> None:
    """Count an event again, ``count`` times in all, at a MicroTime. Its note stays, as all but a series.

    Source: kubernetes 1.31 pkg/apis/core/validation/events.go ``ValidateEventUpdate``.
    """
    path = f"{_path(event)}/{quote(event['metadata']['name'])}"
    series = {"series": {"count": count, "lastObservedTime": time}}
    server.send("PATCH", path, series, media="application/merge-patch+json").accepted()


def _path(event: Mapping[str, Any]) -> str:
    return f"/apis/{EVENTS_API}/namespaces/{quote(event['metadata']['namespace'])}/events"
