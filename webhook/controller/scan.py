"""The background scan: evaluate the workloads of the cluster with the rules of admission.

    elected -> feed -> full scan: every kind of workload, page by page -> reports, totals, events
                    -> every 10 s: the workloads whose facts changed   -> reports, totals, events

`KnownWorkloads` keeps the results, and finds the workloads with changed facts. A full scan is the safety net: it counts
results that differ although no fact changed. Each scan evaluates slice by slice. It rests after each slice to stay
within its share of a core. Updates continue during a full scan. A failed page ends the turn, and the next turn
continues with the same kind. A replica that loses the lease stops at the next slice, writes nothing and drops its copy
of the cluster. After a bug, the next full scan builds the results anew.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from webhook.cluster.connection import ApiServer
from webhook.cluster.errors import ClusterError
from webhook.cluster.feed import Feed
from webhook.cluster.resources import watched
from webhook.cluster.unowned_pods import UnownedPods
from webhook.controller.bounds import Allowance, CpuLimitError, CpuThrottle, Rate, call_within
from webhook.controller.events import EventWriter
from webhook.controller.groups import GroupReconciler
from webhook.controller.publisher import Publisher, results_by_name
from webhook.controller.reports import ReportWriter
from webhook.controller.updates import Updates
from webhook.controller.workload_lister import ObjectJson, WorkloadLister
from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.index.objects import ApiObject
from webhook.core.policy.policy import Policy
from webhook.core.scan.cluster_scan import cluster_scan
from webhook.core.scan.known_workloads import KnownWorkloads, key_of_object
from webhook.core.scan.scan_context import ObjectKey, ScanContext, scan_context
from webhook.core.scan.scanned import ClusterScan, ScannedWorkload
from webhook.core.scan.workload_scan import scan_workload
from webhook.logs import bounded, exception_fields

_LOOK_SECONDS = 0.5
# Between two updates. With the time of a slice and a write, a new finding appears within 15 s.
_UPDATE_SECONDS = 10.0
_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 2.0, 60.0
# How long the index is locked at once. Only watches wait for it.
_SLICE_SECONDS = 0.1
# CPU limit for a workload. An ordinary workload takes some milliseconds.
_MOST_SECONDS = 10.0
_JOIN_SECONDS = 5.0
_MOST_LOGGED = 10  # workloads of one scan
# etcd accepts thousands of writes a second. The next scans write the remainder.
_REPORTS, _REPORTS_OF_A_NAMESPACE = Rate(a_minute=600, burst=3000), Rate(a_minute=60, burst=300)
_EVENTS, _EVENTS_OF_A_NAMESPACE = Rate(a_minute=60, burst=300), Rate(a_minute=6, burst=30)

_log = logging.getLogger(__name__)


class ScanSettings(Struct, frozen=True, kw_only=True):
    """Settings of the scan.

    Attributes:
        interval: Seconds between two lists of unwatched kinds. Also between two updates after a change of the whole
            cluster, if it concerns many workloads.
        full_interval: Seconds from start to start of full scans.
        share: The allowed share of a core.
        all_workloads: Whether metrics show the skew of all workloads, or only exceeded limits.
    """

    interval: float = 300.0
    full_interval: float = 3600.0
    share: float = 0.25
    reports: bool = True
    events: bool = True
    all_workloads: bool = False


class FinishedScan(Struct, frozen=True, kw_only=True):
    """The current results, and the cost of the last full scan.

    Attributes:
        ended: When the results were last brought up to date, in seconds since 1970.
        seconds: Wall-clock time of the full scan.
        used: Its CPU time in seconds.
    """

    ended: float
    seconds: float
    used: float
    scan: ClusterScan = ClusterScan()


class _LostError(Exception):
    """This replica no longer leads."""


class _RunningScan(Struct):
    """A running full scan, and the objects seen so far."""

    lister: WorkloadLister
    policy: Policy
    began: float
    used: float
    seen: set[ObjectKey] = field(default_factory=set)


class Scanner:
    """Runs scans in a thread. Any thread may read the attributes.

    Attributes:
        latest: The current results while this replica leads, else None. None before the end of the first scan.
        differences: Results of full scans that differ although no fact changed. Must stay 0.
        feed: The copy of the cluster while this replica leads, else None.
        fault: The reason for a delayed scan. Empty if there is none.
        reports, events: The writers. None if disabled.
        used: CPU time of all scans, in seconds.
    """

    def __init__(  # noqa: PLR0913 the last three by keyword, for tests and for the process
        self,
        server: ApiServer,
        settings: ScanSettings,
        identity: str,
        *,
        leading: Callable[[], bool],
        policy: Callable[[], Policy] = Policy,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._server = server
        self.settings = settings
        self._leading = leading
        self._policy = policy
        self._clock = clock
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._share = CpuThrottle(settings.share, self.wait)
        self._unowned = UnownedPods()
        self._due = 0.0
        self._failures = 0
        self._listing_due = self._update_due = 0.0
        self._running: _RunningScan | None = None
        self._updates, self._updating = Updates(), False
        self._policy_scanned = Policy()
        self.differences = 0
        self.reports: ReportWriter | None = None
        self.events: EventWriter | None = None
        writes, tells = Allowance(_REPORTS, _REPORTS_OF_A_NAMESPACE), Allowance(_EVENTS, _EVENTS_OF_A_NAMESPACE)
        if settings.reports:
            self.reports = ReportWriter(server, writes, may_write=self.may_write, pause=self.wait, clock=clock)
        group_events = None
        if settings.events:
            self.events = EventWriter(server, tells, identity, may_write=self.may_write)
            group_events = EventWriter(server, tells, identity, may_write=self.may_write)
        self._publisher = Publisher(self.reports, self.events, clock)
        self.groups = GroupReconciler(
            server, policy=policy, allowance=writes, events=group_events, may_write=self.may_write, clock=clock
        )
        self.feed: Feed | None = None
        self.latest: FinishedScan | None = None
        self.fault = ""

    @property
    def used(self) -> float:
        return self._share.used

    def may_write(self) -> bool:
        """Whether this replica leads and is not stopping."""
        return not self._stop.is_set() and self._leading()

    def wait(self, seconds: float) -> None:
        self._stop.wait(seconds)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="scan", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the scan. Afterwards nothing is written, unless a request hangs."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(_JOIN_SECONDS)

    def _run(self) -> None:
        self._share.rest()  # starts this thread's clock
        while not self._stop.is_set():
            self.wait(self.turn())
        self._drop_state()

    def turn(self) -> float:
        """Do the due work. Returns the seconds until the next turn. Never raises."""
        if not self._leading():
            self._drop_state()
            return _LOOK_SECONDS
        try:
            if self.feed is None:
                self._unowned, self._updates = UnownedPods(), Updates()
                self.feed = Feed(self._server, watched(self._policy()), on_changes=self._apply)
                self.feed.start()
            if self.feed.synced:
                self._reconcile_groups(self.feed)
                if self._running is not None or self._clock() >= self._due or self._policy() != self._policy_scanned:
                    self._scan(self.feed)
                else:
                    self._update(self.feed)
        except _LostError:
            self._drop_state()
        except ClusterError as error:
            return self._set_fault(f"waiting: {error}")
        except Exception as error:  # noqa: BLE001 any error: the next scan may succeed
            _log.error("the scan failed because of a bug", extra={"fields": exception_fields(error)})
            self._running, self._due = None, 0.0
            self._forget_results()
            return self._set_fault(f"failed because of a bug: {type(error).__name__}")
        else:
            self._failures, self.fault = 0, ""
        return _LOOK_SECONDS

    def _apply(self, changes: Sequence[tuple[str, ApiObject]]) -> None:
        self._unowned.apply(changes)
        self._updates.apply(changes)

    def _scan(self, feed: Feed) -> None:
        """Continue the full scan, or start one.

        Raises:
            ClusterError: The next call continues.
            _LostError: This replica no longer leads.
        """
        running, known = self._running, self._updates.known
        if running is None or self._clock() > running.began + 2 * self.settings.full_interval:
            running = self._running = self._start_scan(feed)
        for listed in running.lister.objects():
            running.seen |= {key_of_object(raw) for raw in listed}
            self._evaluate(listed, running.lister, running.policy, feed)
        self._check_age(running.policy, feed)
        with feed.lock:
            known.drop(known.keys() - running.seen - self._updates.read)
            self._count_differences(known.take_differing())
        self._running, self._updates.lister, now = None, running.lister, self._clock()
        self._due, self._listing_due = running.began + self.settings.full_interval, now + self.settings.interval
        self._update_due = now + _UPDATE_SECONDS
        seconds, used = now - running.began, self.used - running.used
        self._publish(running.policy, feed, FinishedScan(ended=now, seconds=seconds, used=used), full=True)
        fields = {"workloads": len(known.scans()), "seconds": round(seconds, 1), "processorSeconds": round(used, 1)}
        _log.info("scanned", extra={"fields": fields})

    def _start_scan(self, feed: Feed) -> _RunningScan:
        self._publisher.begin()
        policy = self._policy_scanned = self._policy()
        with feed.lock:
            unowned = self._unowned.listed()
            self._updates.begin()
        lister = WorkloadLister(self._server, policy, unowned, self.wait)
        return _RunningScan(lister=lister, policy=policy, began=self._clock(), used=self.used)

    def _count_differences(self, keys: Sequence[ObjectKey]) -> None:
        self.differences += len(keys)
        for key in keys[:_MOST_LOGGED]:
            _log.error("a bug: a scan differs, but no fact of the workload changed", extra={"fields": key._asdict()})

    def _update(self, feed: Feed) -> None:
        """Scan the workloads with changed facts, if due and if there are results. Raises as `_scan`."""
        now, updates, latest = self._clock(), self._updates, self.latest
        if self._updating or latest is None or updates.lister is None or now < self._update_due:
            return
        self._updating, self._update_due = True, now + _UPDATE_SECONDS
        try:
            policy, every = self._policy_scanned, self._running is None and now >= self._listing_due
            within = self._context(policy, feed)
            with feed.lock:
                updates.note(within)
                unowned = self._unowned.listed() if every else None
            for objects in updates.objects(unowned):
                self._evaluate(objects, updates.lister, policy, feed)
            if every:
                self._listing_due = now + self.settings.interval
            self._publish(policy, feed, replace(latest, ended=self._clock()), full=False, every=every)
        finally:
            self._updating = False

    def _evaluate(self, objects: Iterable[ObjectJson], lister: WorkloadLister, policy: Policy, feed: Feed) -> None:
        """Evaluate objects, slice by slice, and report the results. Raises _LostError."""
        left = [*reversed([*objects])]
        while left:
            if not self.may_write():
                raise _LostError
            within = self._context(policy, feed)
            with feed.lock:
                self._updates.note(within)
                until, slice_ = time.monotonic() + _SLICE_SECONDS, list[ScannedWorkload]()
                while left and time.monotonic() < until:
                    raw = left.pop()
                    # A page has an older state of an object read meanwhile.
                    older = not self._updating and key_of_object(raw) in self._updates.read
                    scanned = None if older else _scan_object(raw, within, self._updates.known, lister)
                    if scanned is not None:
                        slice_.append(scanned)
            for scanned_workload in slice_:
                self._publisher.take(scanned_workload, update=self._updating)
            self._share.rest()
            self._reconcile_groups(feed)
            self._update(feed)

    def _reconcile_groups(self, feed: Feed) -> None:
        self.groups.turn(feed)
        self._share.rest()

    def _publish(self, policy: Policy, feed: Feed, cost: FinishedScan, *, full: bool, every: bool = False) -> None:
        """Publish totals and events, of all workloads with ``every``."""
        updates, publisher, ended = self._updates, self._publisher, _iso(cost.ended)
        unread = set() if updates.lister is None else updates.lister.unread
        if not (full or every or publisher.fresh or publisher.waiting or updates.gone or updates.moved):
            self.latest = replace(cost, scan=replace(cost.scan, ended=ended))
            return
        within = self._context(policy, feed)
        with feed.lock:
            results = results_by_name(updates.known.scans())
            scan = cluster_scan(results.values(), within, started=_iso(cost.ended - cost.seconds), ended=ended)
            updates.moved = False
        if full:
            publisher.end(results, unread)
        else:
            publisher.update(results, updates.gone, unread, every=every)
        self.latest = replace(cost, scan=scan)
        updates.gone.clear()

    def _check_age(self, policy: Policy, feed: Feed) -> None:
        """Raise ClusterError if the copy of the cluster is older than maxStaleness: a scan would report the past."""
        most = policy.max_staleness_seconds
        if feed.age > most:
            raise ClusterError(f"the copy of the cluster is {feed.age:.0f} s old; maxStaleness is {most:.0f} s")

    def _context(self, policy: Policy, feed: Feed) -> ScanContext:
        """Return the context of the next workloads. Raises as `_check_age`."""
        self._check_age(policy, feed)
        now = _iso(self._clock())
        context = Context(policy=policy, version=feed.version or RECORDED, index=feed.index, today=now[:10], now=now)
        with feed.lock:
            return scan_context(context)

    def lines(self) -> dict[str, str]:
        """Return the scan's lines of /readyz."""
        if self.latest is not None:
            state = f"{len(self.latest.scan.workloads):,} workloads {self._clock() - self.latest.ended:.0f} s ago"
        else:
            state = "the first scan runs" if self.feed is not None and self.feed.synced else "waiting for the cluster"
        lines = {"scan": self.fault or state}
        for watch in self.feed.watch_states() if self.feed is not None else ():
            if watch.line:
                lines[f"cluster {watch.resource}"] = watch.line
        if self.reports is not None:
            lines["reports"] = self.reports.fault or str(self.reports.api or "not checked yet")
        if self.events is not None and self.events.fault:
            lines["events"] = self.events.fault
        if self.groups.fault:
            lines["groups"] = self.groups.fault
        return lines

    def _set_fault(self, text: str) -> float:
        fault = bounded(text)
        if fault != self.fault:
            _log.warning("the scan: %s", fault)
        self.fault = fault
        self._failures += 1
        return min(_FIRST_WAIT_SECONDS * 2.0 ** (self._failures - 1), _LONGEST_WAIT_SECONDS)

    def _drop_state(self) -> None:
        """Drop the state of this leadership. The next leader starts anew."""
        if self.feed is not None:
            self.feed.stop()
        if self.events is not None:
            self.events.forget()
        self.groups.forget()
        self.feed, self.latest, self._running = None, None, None
        self._due, self._failures, self.fault = 0.0, 0, ""
        self._forget_results()

    def _forget_results(self) -> None:
        """Drop the results. The next full scan builds them anew, and `latest` stays until its end."""
        self._updates = Updates()
        self._publisher.forget()


def _iso(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _scan_object(
    raw: ObjectJson, within: ScanContext, known: KnownWorkloads, lister: WorkloadLister
) -> ScannedWorkload | None:
    """Evaluate an object. None without a result: not a workload, or out of time."""

    def within_time(raw: ObjectJson, recorded: ScanContext) -> ScannedWorkload | None:
        return call_within(_MOST_SECONDS, partial(scan_workload, raw, recorded))

    try:
        return known.scan(raw, within, within_time)
    except CpuLimitError:
        key = key_of_object(raw)
        fields = {"kind": key.kind, "namespace": key.namespace, "name": key.name}
        _log.warning("a workload takes too long to scan; its report stays unchanged", extra={"fields": fields})
        lister.unread.add(((key.group, key.kind), key.namespace, key.name))
        known.drop([key])
        return None
