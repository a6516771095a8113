"""List and watch a kind, and pass the watch events to a sink.

So the sink mirrors the API server.

    list, page by page -> watch from the list's version -> … -> watch from the last version seen

The reflector sends one request at a time. After a failure it waits half a second, doubled with each failure in a row up
to half a minute. A list or watch that succeeds but ends early counts as a failure, until a watch has lasted a minute.
So no fault causes more than a few requests a minute. Exception: a watch that ends early with new events resumes at
once, since the API server ends the watches of slow readers in a burst of events.

    410                     restart the list, with larger pages if a page's token was refused
    401                     read the credentials again
    403, 404                skip an optional kind and retry every five minutes. A missing extension has no objects
    429                     wait as long as the server requests
    no data, partial lines  resume the watch from the last version
    no data from the start  the API server does not have this version yet: restart the list

A new list updates the sink in place. Listed objects are added or replaced, then objects missing from the list are
deleted.

Source: k8s.io/client-go tools/cache/reflector.go; API concepts, "Efficient detection of changes".
"""

import logging
import random
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from http import HTTPStatus
from math import inf

from msgspec import Struct

from webhook.cluster.connection import ApiServer, Stream
from webhook.cluster.errors import ClusterError, RefusedError, SilenceError
from webhook.cluster.listing import Paging
from webhook.cluster.resources import Resource
from webhook.cluster.wire import LeftOutObject, name_only, read_change, read_page
from webhook.core.api.types import ObjectMeta
from webhook.core.index.cluster_index import Event
from webhook.core.index.objects import ApiObject, meta_of
from webhook.core.index.readers import Reader
from webhook.core.text import plural
from webhook.logs import bounded, exception_fields

# Applies changes in order, and returns the left-out objects.
Sink = Callable[[Sequence[tuple[Event, ApiObject]]], Sequence[LeftOutObject]]

_EVENTS: dict[str, Event] = {"ADDED": "ADDED", "MODIFIED": "MODIFIED", "DELETED": "DELETED"}

_MOST_DOUBLINGS = 16  # bounds the power of two; the longest wait is reached long before

_log = logging.getLogger(__name__)


class Timing(Struct, frozen=True, kw_only=True):
    """Timeouts, durations and waits of a reflector, in seconds.

    For a pair, the reflector draws a random number between the two. A watch without data for ``silence`` ends, and a
    list without data for ``list_silence`` fails. Waits after failures double from ``first_wait`` up to
    ``longest_wait``.
    """

    # Duration of a watch; client-go uses 300 to 600.
    watch: tuple[float, float] = (240.0, 480.0)
    # Bookmarks come every minute.
    silence: float = 90.0
    list_silence: float = 60.0
    first_wait: float = 0.5
    longest_wait: float = 30.0
    # The longest respected Retry-After.
    longest_asked: float = 120.0
    # Retry interval for a forbidden or missing kind.
    off: float = 300.0
    # A watch of this duration resets the count of failures.
    steady: float = 60.0
    # Wait after a short watch with new events.
    resume: tuple[float, float] = (0.05, 0.15)


class Pace:
    """Provides the clock, randomness and the stop signal. Tests replace this class."""

    def __init__(self) -> None:
        self._stop = threading.Event()

    @property
    def stopped(self) -> bool:
        return self._stop.is_set()

    def stop(self) -> None:
        self._stop.set()

    def wait(self, seconds: float) -> None:
        self._stop.wait(seconds)

    def now(self) -> float:
        return time.monotonic()

    def between(self, least: float, most: float) -> float:
        return random.uniform(least, most)  # noqa: S311 spreads load, keeps no secret


class WatchState(Struct, frozen=True, kw_only=True):
    """The state of the index's copy of a kind of cluster objects.

    Attributes:
        objects: Number of copied objects.
        events: Number of watch events so far.
        left_out: Number of objects that cannot be decoded or applied. ``left_out_example`` names such an object and the
            reason.
        age: Seconds since the copy was last known to be complete. 0 while a watch is open.
        off: Whether evenspread works without the kind, because the API server lacks or refuses it.
        fault: The error of the last list or watch. Empty without an error.
    """

    resource: str
    required: bool
    objects: int
    left_out: int
    events: int
    age: float
    synced: bool
    tried: bool
    off: bool
    fault: str
    left_out_example: str

    @property
    def line(self) -> str:
        """The problem with the watched copy of this kind, in a single line. Empty without a problem."""
        parts = []
        if self.fault:
            parts.append(f"{'off' if self.off else f'{self.age:.0f} s old'}: {bounded(self.fault)}")
        if self.left_out:
            parts.append(f"{plural(self.left_out, 'object')} left out: {self.left_out_example}")
        return "; ".join(parts)


class Reflector:
    """Lists and watches all objects of a kind, and passes each change to ``sink``.

    `run` needs its own thread. Any thread may call the other methods. ``sink`` gets changes in order, several at once.
    ``on_listed`` runs after the first list. Neither callback may raise an exception.
    """

    def __init__(  # noqa: PLR0913 the last three by keyword, for tests and for the feed
        self,
        server: ApiServer,
        resource: Resource,
        sink: Sink,
        *,
        on_listed: Callable[[], None] = lambda: None,
        timing: Timing | None = None,
        pace: Pace | None = None,
    ) -> None:
        self._server = server
        self._resource = resource
        self._sink = sink
        self._on_listed = on_listed
        self._timing = timing or Timing()
        self._pace = pace or Pace()
        self._paging = Paging(server, resource)
        self._version = ""  # version of the next watch; empty before a list
        self._seen: dict[str, dict[str, str]] = {}  # objects of the current list: namespace -> name -> uid
        self._known: dict[str, dict[str, str]] = {}
        self._unanswered = 0  # failures since the last answer
        self._short = 0  # restarted lists and short watches since the last steady watch
        self._contact = self._pace.now()
        self._stream: Stream | None = None
        self._watching = False
        self._synced = False
        self._tried = False
        self._off = False
        self._fault = ""
        self._left_out: dict[tuple[str, str], str] = {}  # reasons by namespace and name
        self._events = 0

    def run(self) -> None:
        """Follow the API server until stopped. Never raises."""
        while not self._pace.stopped:
            seconds = self.turn()
            if seconds:
                self._pace.wait(seconds)

    def stop(self) -> None:
        """End `run` soon."""
        self._pace.stop()
        stream = self._stream
        if stream is not None:
            stream.end()

    @property
    def required(self) -> bool:
        return self._resource.required

    @property
    def age(self) -> float:
        """Seconds since the cached objects were last known to be complete. Infinite before the first list."""
        if not self._synced:
            return inf
        return 0.0 if self._watching else self._pace.now() - self._contact

    def state(self) -> WatchState:
        return WatchState(
            resource=self._paging.title,
            required=self.required,
            objects=sum(len(names) for names in tuple(self._known.values())) - len(self._left_out),
            left_out=len(self._left_out),
            events=self._events,
            # An extension that is not installed has no objects, so it is never stale.
            age=0.0 if self._watching or (self._off and not self._fault) else self._pace.now() - self._contact,
            synced=self._synced,
            tried=self._tried,
            off=self._off,
            fault="" if self._watching else self._fault,
            left_out_example=next((_described(*item) for item in tuple(self._left_out.items())), ""),
        )

    def turn(self) -> float:
        """Send one list, watch or discovery request. Never raises.

        Returns:
            The seconds until the next request.
        """
        renewals = self._server.renewals
        try:
            if self._version:
                return self._watch()
            if not self._paging.plural:
                self._paging.discover()
                return 0.0
            self._list()
        except RefusedError as refusal:
            return self._handle_refusal(refusal, renewals)
        except ClusterError as error:
            return self._failed(str(error))
        except Exception as error:  # noqa: BLE001 without the thread, the index would become stale unnoticed
            _log.error(
                "the watch failed because of a bug", extra={"fields": {**self._fields(), **exception_fields(error)}}
            )
            self._begin_anew()
            return self._failed(type(error).__name__)
        finally:
            self._watching = False
            self._stream = None
        return 0.0

    # -- requests

    def _list(self) -> None:
        first = self._paging.first
        with self._paging.open(silence_seconds=self._timing.list_silence) as stream:
            self._stream = stream
            body = self._paging.body(stream)
        if first:
            # The first list has no predecessor, so a single table suffices.
            self._seen = {} if self._known else self._known
        page, unread = read_page(body, self._paging.reader())
        self._unanswered = 0
        self._pass_on([("ADDED", value) for value in page.values], unread)
        if self._seen is not self._known:
            for meta in (*map(meta_of, page.values), *(meta for meta, _ in unread)):
                self._seen.setdefault(meta.namespace, {})[meta.name] = meta.uid
        self._contact = self._pace.now()
        if self._paging.turn_to(page.more):
            return
        if not page.version:
            raise ClusterError("the list has no resourceVersion")
        self._reconcile()
        self._version = page.version
        self._mark_recovered()

    def _watch(self) -> float:
        began, opened, heard = self._pace.now(), False, False
        version = self._version
        timing, read = self._timing, self._paging.reader()
        path = self._paging.path(
            watch="1",
            allowWatchBookmarks="true",
            resourceVersion=self._version,
            timeoutSeconds=str(int(self._pace.between(*timing.watch))),
        )
        try:
            with self._server.open(path, silence_seconds=timing.silence) as stream:
                self._stream = stream
                # The response has begun, so the API server answers.
                self._unanswered, opened = 0, True
                self._watching = not self._pace.stopped
                for lines in stream.lines() if self._watching else ():
                    if self._pace.stopped:
                        return 0.0
                    heard = True
                    self._read(lines, read)
                    self._mark_recovered()
        except SilenceError:
            if heard:
                raise
        finally:
            self._watching = False
            steady = self._pace.now() - began >= timing.steady
            if steady and heard:
                self._short = 0
            elif opened and self._version == version:
                self._short += 1
        if not heard:
            # Without even a bookmark: the API server does not have this version yet.
            self._begin_anew()
            return self._failed("the watch received no event")
        if steady:
            return 0.0
        return self._failed("the watch ended early") if self._version == version else self._pace.between(*timing.resume)

    def _read(self, lines: Iterable[bytes], read: Reader) -> None:
        """Apply the lines of a watch. For an ERROR event or invalid JSON, apply the lines before it, then raise."""
        changes: list[tuple[Event, ApiObject]] = []
        unread: dict[tuple[str, str], LeftOutObject] = {}
        version = self._version
        try:
            for line in filter(None, lines):
                change, fault = read_change(line, read)
                meta = meta_of(change.value)
                at = (meta.namespace, meta.name)
                unread.pop(at, None)
                if fault:
                    unread[at] = (meta, fault)
                version = meta.resource_version or version
                event = _EVENTS.get(change.type)
                if event is not None:
                    changes.append((event, change.value))
        finally:
            self._pass_on(changes, tuple(unread.values()))
            self._events += len(changes)
            self._version = version
            self._contact = self._pace.now()

    # -- known objects

    def _pass_on(self, changes: Sequence[tuple[Event, ApiObject]], unread: Sequence[LeftOutObject] = ()) -> None:
        """Pass changed objects to the sink, the receiver of the watch's events.

        Objects rejected by the sink and undecodable objects (``unread``) are recorded as left out.
        """
        if unread:
            read = self._paging.reader()
            changes = [*changes, *(("DELETED", name_only(meta, read, uid=False)) for meta, _ in unread)]
        for event, value in changes:
            meta = meta_of(value)
            if self._left_out:
                self._left_out.pop((meta.namespace, meta.name), None)
            if event == "DELETED":
                self._known.get(meta.namespace, {}).pop(meta.name, None)
            else:
                self._known.setdefault(meta.namespace, {})[meta.name] = meta.uid
        if changes:
            for meta, why in (*self._sink(changes), *unread):
                self._leave_out(meta, why)

    def _reconcile(self) -> None:
        """Delete the objects missing from the list."""
        if self._seen is self._known:
            return
        seen, read = self._seen, self._paging.reader()
        for namespace, names in tuple(self._known.items()):
            gone = [
                ObjectMeta(name=name, namespace=namespace, uid=uid)
                for name, uid in names.items()
                if name not in seen.get(namespace, {})
            ]
            self._pass_on([("DELETED", name_only(meta, read)) for meta in gone])
        self._known, self._seen = seen, {}

    def _leave_out(self, meta: ObjectMeta, why: str) -> None:
        """Record an object left out of the index. Log the first of a kind."""
        at = (meta.namespace, meta.name)
        if not self._left_out:
            _log.warning("an object is left out: %s", _described(at, why), extra={"fields": self._fields()})
        self._known.setdefault(meta.namespace, {})[meta.name] = meta.uid
        self._left_out[at] = bounded(why)

    def _begin_anew(self) -> None:
        self._paging.begin_anew()
        self._version, self._seen = "", {}
        self._short += 1

    # -- state and failures

    def _mark_recovered(self) -> None:
        if self._fault:
            _log.info("the watch has recovered", extra={"fields": self._fields()})
        if not self._synced:
            self._on_listed()
        self._synced, self._tried, self._off, self._fault = True, True, False, ""

    def _handle_refusal(self, refusal: RefusedError, renewals: int) -> float:
        if self._paging.is_outdated(refusal):
            self._begin_anew()
        elif refusal.status == HTTPStatus.UNAUTHORIZED:
            try:
                self._server.renew(renewals)
            except ClusterError as error:
                return self._failed(str(error))
            return self._failed(str(refusal))
        elif refusal.status == HTTPStatus.FORBIDDEN:
            return self._turn_off(refusal, f"{refusal}; grant list and watch of {self._paging.title}")
        elif refusal.status == HTTPStatus.NOT_FOUND:
            return self._handle_missing(refusal)
        return max(self._failed(str(refusal)), min(refusal.retry_after, self._timing.longest_asked))

    def _handle_missing(self, refusal: RefusedError) -> float:
        """Handle a 404: try the next API version. After the last version, the kind has no objects."""
        another = self._paging.try_next_version()
        self._begin_anew()
        if another:
            return self._failed(str(refusal))
        if not self._resource.required:
            self._reconcile()
        if self._resource.extension:
            self._on_listed()
            self._contact = self._pace.now()  # the kind is known to be absent
            self._off, self._tried, self._fault = True, True, ""
            return self._timing.off
        return self._turn_off(refusal, str(refusal))

    def _turn_off(self, refusal: RefusedError, text: str) -> float:
        seconds = max(self._failed(text), refusal.retry_after)
        if self._resource.required:
            return max(seconds, self._timing.longest_wait)
        self._off = True
        return self._timing.off

    def _failed(self, text: str) -> float:
        """Log a new fault, and return the seconds to wait.

        Half of the wait is random, so replicas do not retry at the same moment.
        """
        if text != self._fault and not self._pace.stopped:
            _log.warning("the watch failed: %s", text, extra={"fields": self._fields()})
        self._fault, self._tried = text, True
        self._unanswered += 1
        doubled = min(max(self._unanswered, self._short) - 1, _MOST_DOUBLINGS)
        most = min(self._timing.longest_wait, self._timing.first_wait * 2**doubled)
        return self._pace.between(most / 2, most)

    def _fields(self) -> dict[str, object]:
        return {"resource": self._paging.title}


def _described(at: tuple[str, str], why: str) -> str:
    """Return the namespace and name of a left-out object, and the reason, as text."""
    return f"{'/'.join(filter(None, at)) or 'without a name'}: {bounded(why)}"
