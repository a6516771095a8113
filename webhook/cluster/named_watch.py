"""Watch a single object, and call back on each event.

The callback reads the object itself; the event's content is unused. A watch without a version starts with the current
object, so no change between two watches is missed. Without permission to watch, no event arrives. So callers also read
the object at intervals.
"""

import threading
import urllib.parse
from collections.abc import Callable

from webhook.cluster.connection import ApiServer
from webhook.cluster.errors import ClusterError

_WATCH_SECONDS = 300  # the shortest watch of client-go
_SILENCE_SECONDS = 90.0  # bookmarks come every minute
# As in `reflector`.
_FIRST_WAIT_SECONDS = 0.5
_LONGEST_WAIT_SECONDS = 30.0


def watch_named(server: ApiServer, collection: str, name: str, changed: Callable[[], None]) -> None:
    """Watch a single object in a daemon thread, and call ``changed`` after each event.

    ``collection`` is the API path of its list. The watch never ends.
    """
    threading.Thread(
        target=_follow, args=(server, collection, name, changed), name=f"watch {name}", daemon=True
    ).start()


def _follow(server: ApiServer, collection: str, name: str, changed: Callable[[], None]) -> None:
    query = urllib.parse.urlencode(
        {
            "watch": "true",
            "fieldSelector": f"metadata.name={name}",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": _WATCH_SECONDS,
        }
    )
    pause, wait = threading.Event(), _FIRST_WAIT_SECONDS
    while True:
        try:
            with server.open(f"{collection}?{query}", silence_seconds=_SILENCE_SECONDS) as stream:
                for _ in stream.lines():
                    changed()
                    wait = _FIRST_WAIT_SECONDS
        except ClusterError:
            pass  # the reader of the object sees the same fault, and reports it
        pause.wait(wait)
        wait = min(2 * wait, _LONGEST_WAIT_SECONDS)
