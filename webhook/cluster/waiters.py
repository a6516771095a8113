"""Callers that wait for an object to arrive by a watch, and are woken when it does.

A caller registers first and looks at the index afterwards, so that it cannot miss an object that arrives in between.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence

from webhook.core.index.cluster_index import Event
from webhook.core.index.objects import ApiObject, Namespace, Owner
from webhook.core.index.owners import Awaited
from webhook.core.workloads.kinds import group_kind

_Key = tuple[tuple[str, str], str, str]  # group and kind, namespace, name


class Waiters:
    """Waiters by the object that they wait for.

    Shape: for the event loop, which applies the events.
    """

    def __init__(self) -> None:
        self._waiters: dict[_Key, list[Callable[[], None]]] = {}

    @contextlib.contextmanager
    def expecting(self, awaited: Awaited, wake: Callable[[], None]) -> Iterator[None]:
        """Within the block, have ``wake`` called after every event of this object.

        Shape: ``wake`` must neither block nor raise.
        """
        key = (group_kind(awaited.api_version, awaited.kind), awaited.namespace, awaited.name)
        self._waiters.setdefault(key, []).append(wake)
        try:
            yield
        finally:
            self._waiters[key].remove(wake)
            if not self._waiters[key]:
                del self._waiters[key]

    def told(self, changes: Sequence[tuple[Event, ApiObject]]) -> None:
        """Wake the waiters of these objects; each looks itself whether it has what it needs."""
        if not self._waiters:
            return
        keys = {key for event, value in changes if event != "DELETED" and (key := _key(value)) is not None}
        for wake in [wake for key in keys for wake in self._waiters.get(key, ())]:
            wake()


def _key(value: ApiObject) -> _Key | None:
    match value:
        case Owner():
            return group_kind(value.api_version, value.kind), value.meta.namespace, value.meta.name
        case Namespace():
            return ("", "Namespace"), "", value.meta.name
        case _:
            return None
