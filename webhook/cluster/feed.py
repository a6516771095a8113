"""Mirror the live cluster: a reflector thread for each kind, all into a single index.

    reflector's thread: decodes events, passes them on, waits   ->   event loop: applies them, a millisecond at a time

In the webhook, the event loop applies changes between reviews. So a review sees a single moment, and needs no lock. The
reflector waits until its batch is applied, so each kind has a single pending batch in memory. If the API server is
lost, the index stays as it is, and its age grows.
"""

import asyncio
import contextlib
import gc
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import chain

from webhook.allocator import give_memory_back
from webhook.cluster.connection import ApiServer
from webhook.cluster.errors import ClusterError
from webhook.cluster.reflector import Pace, Reflector, Timing, WatchState
from webhook.cluster.resources import Resource
from webhook.cluster.wire import LeftOutObject
from webhook.core.api.version import RECORDED, KubernetesVersion, parse_version
from webhook.core.index.cluster_index import ClusterIndex, Event
from webhook.core.index.objects import ApiObject, Namespace, Owner, meta_of
from webhook.core.index.owners import Awaited
from webhook.core.text import one_line
from webhook.core.workloads.kinds import group_kind

_VERSION_SECONDS = 600.0  # interval for reading the API server's release, to detect an upgrade
# The first retry is soon, since the lists wait for the release. The longest pause spares a failing API server.
_FIRST_RETRY_SECONDS, _LONGEST_RETRY_SECONDS = 0.5, 30.0
_LOOK_SECONDS = 0.2  # between two checks for completed lists; only `gc.freeze` depends on it
_STOP_SECONDS = 2.0  # for a thread to end; a hanging thread is a daemon and ends with the process
# After this many objects of the first lists, hide them from the garbage collector. They stay in memory, and scanning
# them repeatedly would take half of the time.
_FREEZE = 2000

# Duration of consecutive steps; the last may end later. With 100,000 pods on 5,000 nodes a step took 6 µs, the longest
# 0.4 ms.
TURN_SECONDS = 0.001

Step = Callable[[], object]
_Key = tuple[tuple[str, str], str, str]  # group and kind, namespace, name

_log = logging.getLogger(__name__)


class LoopWriter:
    """Applies changes of the index in the event loop. Call it from any thread except the loop's own."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._batches: deque[tuple[Iterator[Step], Future[None]]] = deque()

    def __call__(self, steps: Iterable[Step]) -> None:
        """Run the changes of the index in order in the event loop. Return after the last change.

        Raises the error of a failing change.
        """
        done = Future[None]()
        try:
            self._loop.call_soon_threadsafe(self._begin, iter(steps), done)
        except RuntimeError:  # the loop has ended, so no review reads the index
            return
        done.result()

    def _begin(self, steps: Iterator[Step], done: Future[None]) -> None:
        self._batches.append((steps, done))
        if len(self._batches) == 1:
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        until = time.perf_counter() + TURN_SECONDS
        while self._batches:
            steps, done = self._batches[0]
            try:
                for step in steps:
                    step()
                    if time.perf_counter() > until:
                        self._loop.call_soon(self._turn)
                        return
            except Exception as error:  # noqa: BLE001 the waiting thread logs it
                done.set_exception(error)
            else:
                done.set_result(None)
            self._batches.popleft()


class Waiters:
    """Callers waiting for a watch event of an object. Only the event loop uses this class."""

    def __init__(self) -> None:
        self._waiters: dict[_Key, list[Callable[[], None]]] = {}

    @contextlib.contextmanager
    def expecting(self, awaited: Awaited, wake: Callable[[], None]) -> Iterator[None]:
        """Call ``wake`` after every event of this object, within the block. ``wake`` must neither block nor raise."""
        key = (group_kind(awaited.api_version, awaited.kind), awaited.namespace, awaited.name)
        self._waiters.setdefault(key, []).append(wake)
        try:
            yield
        finally:
            self._waiters[key].remove(wake)
            if not self._waiters[key]:
                del self._waiters[key]

    def wake(self, changes: Sequence[tuple[Event, ApiObject]]) -> None:
        """Wake the waiters of these objects. Each waiter then checks its own condition."""
        if not self._waiters:
            return
        keys = {key for event, value in changes if event != "DELETED" and (key := _key(value)) is not None}
        for wake in [wake for key in keys for wake in self._waiters.get(key, ())]:
            wake()


class Feed:
    """The live cluster. Readers of ``index`` hold ``lock``, or run in the event loop passed to `start`.

    No thread runs before `start`, so the process can fork before it.

        feed = Feed(server, watched(policy))
        feed.start()

    Args:
        as_version: Fixes the index to this release. Otherwise it uses the API server's release.
        on_changes: Gets the changes of the index before any reader sees them.
    """

    def __init__(
        self,
        server: ApiServer,
        resources: Sequence[Resource],
        *,
        timing: Timing | None = None,
        as_version: KubernetesVersion | None = None,
        on_changes: Callable[[Sequence[tuple[Event, ApiObject]]], None] = lambda _changes: None,
    ) -> None:
        self.index = ClusterIndex(as_version or RECORDED)
        for resource in resources:
            self.index.mark_missing(resource.title, "not listed")
        self.lock = threading.Lock()
        self.arrivals = Waiters()
        self.version: KubernetesVersion | None = None
        self._follows_version = as_version is None
        self._on_changes = on_changes
        self._unsupported = ""  # the last unsupported release in the log
        self._version_asked = threading.Event()
        self._server = server
        self._pace = Pace()
        self._reflectors = tuple(
            Reflector(
                *(server, resource, self._apply),
                on_listed=partial(self._listed, resource.title),
                timing=timing,
                pace=self._pace,
            )
            for resource in resources
        )
        self._write: Callable[[Iterable[Step]], None] = self._write_locked
        self._threads: list[threading.Thread] = []
        self._fresh = 0
        self._settled = False

    def start(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """List and watch until `stop`. With a ``loop``, the event loop applies the changes to the index."""
        if loop is not None:
            self._write = LoopWriter(loop)
        work = [("version", self._follow_version), ("sync", self._settle)]
        work += [(reflector.state().resource, partial(self._run, reflector)) for reflector in self._reflectors]
        for name, run in work:
            thread = threading.Thread(target=run, name=f"cluster-{name}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """End every watch. The index stays."""
        self._version_asked.set()
        for reflector in self._reflectors:
            reflector.stop()
        for thread in self._threads:
            thread.join(_STOP_SECONDS)
        self._threads.clear()

    @property
    def synced(self) -> bool:
        """Whether every required kind is listed, and every other kind was tried."""
        return all(watch.synced or (watch.tried and not watch.required) for watch in self.watch_states())

    @property
    def age(self) -> float:
        """Seconds since the copies of all required kinds were last known to be current.

        0 while all their watches are open. Infinite before all their first lists.
        """
        return max((reflector.age for reflector in self._reflectors if reflector.required), default=0.0)

    def watch_states(self) -> tuple[WatchState, ...]:
        return tuple(reflector.state() for reflector in self._reflectors)

    def _run(self, reflector: Reflector) -> None:
        # The index computes a pod's requests by the rules of the release, so the release must be known first.
        self._version_asked.wait()
        reflector.run()

    def _listed(self, resource: str) -> None:
        self._write([partial(self.index.mark_known, resource)])

    def _write_locked(self, steps: Iterable[Step]) -> None:
        with self.lock:
            for step in steps:
                step()

    def _apply(self, changes: Sequence[tuple[Event, ApiObject]]) -> Sequence[LeftOutObject]:
        left_out: list[LeftOutObject] = []

        def apply(event: Event, value: ApiObject) -> None:
            why = self.index.apply(event, value)
            if why:
                left_out.append((meta_of(value), why))

        self._write(chain((partial(apply, *change) for change in changes), [partial(self._applied, changes)]))
        return left_out

    def _applied(self, changes: Sequence[tuple[Event, ApiObject]]) -> None:
        self._on_changes(changes)
        self._fresh += len(changes)
        if self._fresh >= _FREEZE and not self._settled:
            gc.freeze()
            self._fresh = 0
        self.arrivals.wake(changes)

    def _settle(self) -> None:
        """Hide the objects of the first lists from the garbage collector."""
        while not self.synced:
            self._pace.wait(_LOOK_SECONDS)
            if self._pace.stopped:
                return
        self._settled = True
        gc.freeze()
        give_memory_back()
        counts = {watch.resource: watch.objects for watch in self.watch_states()}
        _log.info("the cluster is known", extra={"fields": counts})

    def _follow_version(self) -> None:
        seconds = 0.0
        while not self._pace.stopped:
            seconds = self._read_version() or min(_LONGEST_RETRY_SECONDS, seconds * 2 or _FIRST_RETRY_SECONDS)
            self._version_asked.set()
            self._pace.wait(seconds)

    def _read_version(self) -> float:
        """Request the API server's release. Returns the seconds until the next request, or 0 for a retry soon."""
        try:
            release = str(self._server.send("GET", "/version").accepted().content.get("gitVersion", ""))
        except ClusterError:
            return 0.0
        try:
            self.version = parse_version(release)
        except ValueError as error:
            if release != self._unsupported:
                self._unsupported = release
                judged = {"release": one_line(release, 64), "judged_as": str(self.index.version)}
                _log.warning("the API server's release: %s", error, extra={"fields": judged})
            return 0.0
        if self._follows_version:
            # The requests of known pods keep the old release's rules until their next event.
            self._write([partial(setattr, self.index, "version", self.version)])
        return _VERSION_SECONDS


def _key(value: ApiObject) -> _Key | None:
    match value:
        case Owner():
            return group_kind(value.api_version, value.kind), value.meta.namespace, value.meta.name
        case Namespace():
            return ("", "Namespace"), "", value.meta.name
        case _:
            return None
