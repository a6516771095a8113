"""The live cluster: one reflector for each kind, each in its own thread, all into one index.

If the API server is lost, the index stays as it is, and its age grows.
"""

import asyncio
import ctypes
import gc
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain

from webhook.cluster.connection import ApiServer, ClusterError
from webhook.cluster.loop_writer import LoopWriter, Step
from webhook.cluster.reflector import Pace, Reflector, Standing, Timing
from webhook.cluster.resources import Resource
from webhook.cluster.waiters import Waiters
from webhook.cluster.wire import Unread
from webhook.core.api.version import RECORDED, KubernetesVersion, parse_version
from webhook.core.index.cluster_index import ClusterIndex, Event
from webhook.core.index.objects import ApiObject, meta_of
from webhook.core.text import one_line

_VERSION_SECONDS = 600.0  # how often the API server's release is requested, to notice an upgrade
_LOOK_SECONDS = 0.2  # until it is looked again whether all is listed; only `gc.freeze` waits for that
_STOP_SECONDS = 2.0  # for a thread to end; one that hangs in a read is a daemon, and ends with the process
# After this many objects of the first lists, they are hidden from the garbage collector: they stay, and its repeated
# walks would take half of the time.
_FREEZE = 2000

_log = logging.getLogger(__name__)


class Feed:
    """See the module. Who reads ``index`` holds ``lock``, or is in the event loop that `start` was given.

    Shape: no thread runs before `start`, so that the process can fork before it. Without ``as_version`` the index takes
    the API server's release. ``on_changes`` is called with what the index took, before anybody can read it.
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
            self.index.lack(resource.title, "not listed")
        self.lock = threading.Lock()
        self.arrivals = Waiters()
        self.version: KubernetesVersion | None = None
        self._follows_version = as_version is None
        self._on_changes = on_changes
        self._unsupported = ""  # the release that the log has told of
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
        """List and watch, until `stop`. With a loop the index is its own: what comes is applied there."""
        if loop is not None:
            self._write = LoopWriter(loop)
        work = [("version", self._follow_version), ("sync", self._settle)]
        work += [(each.standing().resource, partial(self._run, each)) for each in self._reflectors]
        for name, run in work:
            thread = threading.Thread(target=run, name=f"cluster-{name}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """End every watch; the index stays."""
        self._version_asked.set()
        for reflector in self._reflectors:
            reflector.stop()
        for thread in self._threads:
            thread.join(_STOP_SECONDS)
        self._threads.clear()

    @property
    def synced(self) -> bool:
        """Whether every required kind was listed, and every other one was tried."""
        return all(each.synced or (each.tried and not each.required) for each in self.standings())

    @property
    def age(self) -> float:
        """The age of the stalest required kind, in seconds; infinite before all were listed."""
        return max((each.age for each in self._reflectors if each.required), default=0.0)

    def standings(self) -> tuple[Standing, ...]:
        """The present state of each kind."""
        return tuple(reflector.standing() for reflector in self._reflectors)

    def _run(self, reflector: Reflector) -> None:
        # The release decides how pods' requests are computed when they are put into the index.
        self._version_asked.wait()
        reflector.run()

    def _listed(self, resource: str) -> None:
        self._write([partial(self.index.has, resource)])

    def _write_locked(self, steps: Iterable[Step]) -> None:
        with self.lock:
            for step in steps:
                step()

    def _apply(self, changes: Sequence[tuple[Event, ApiObject]]) -> Sequence[Unread]:
        left_out: list[Unread] = []

        def apply(event: Event, value: ApiObject) -> None:
            why = self.index.apply(event, value)
            if why:
                left_out.append((meta_of(value), why))

        self._write(chain((partial(apply, *each) for each in changes), [partial(self._applied, changes)]))
        return left_out

    def _applied(self, changes: Sequence[tuple[Event, ApiObject]]) -> None:
        self._on_changes(changes)
        self._fresh += len(changes)
        if self._fresh >= _FREEZE and not self._settled:
            gc.freeze()
            self._fresh = 0
        self.arrivals.told(changes)

    def _settle(self) -> None:
        """After the first lists, hide their objects from the garbage collector."""
        while not self.synced:
            self._pace.wait(_LOOK_SECONDS)
            if self._pace.stopped:
                return
        self._settled = True
        gc.freeze()
        _hand_back()
        counts = {each.resource: each.objects for each in self.standings()}
        _log.info("the cluster is known", extra={"fields": counts})

    def _follow_version(self) -> None:
        seconds = 0.0
        while not self._pace.stopped:
            # Half a second first, since the lists wait for it; then as long as watches pause at most, so that a dead
            # API server is not pressed.
            seconds = self._read_version() or min(30.0, seconds * 2 or 0.5)
            self._version_asked.set()
            self._pace.wait(seconds)

    def _read_version(self) -> float:
        """Request the API server's release; returns the seconds until the next time, 0 if there was no answer."""
        try:
            status, answer = self._server.request("GET", "/version")
        except ClusterError:
            return 0.0
        if status != 200:
            return 0.0
        release = str(answer.get("gitVersion", ""))
        try:
            self.version = parse_version(release)
        except ValueError as error:
            if release != self._unsupported:
                self._unsupported = release
                judged = {"release": one_line(release, 64), "judged_as": str(self.index.version)}
                _log.warning("the API server's release: %s", error, extra={"fields": judged})
            return 0.0
        if self._follows_version:
            # Requests of known pods stay computed for the old release until their next event.
            self._write([partial(setattr, self.index, "version", self.version)])
        return _VERSION_SECONDS


def _hand_back() -> None:
    """Return memory that the first lists have freed to the system, if the C library can do so."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
