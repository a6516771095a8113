"""The background scan: evaluate every workload of the cluster with the rules of admission.

    elected -> feed -> every kind of workload, page by page -> reports and events -> totals -> next scan

Workloads are not kept in memory. Each scan lists them anew and evaluates them slice by slice. It rests after each slice
to stay within its share of a core. A failed page ends the turn, and the next turn continues with the same kind. A
replica that loses the lease stops at the next slice, writes nothing and drops its copy of the cluster.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial

from msgspec import Struct

from webhook.cluster.connection import ApiServer
from webhook.cluster.errors import ClusterError
from webhook.cluster.feed import Feed
from webhook.cluster.resources import watched
from webhook.cluster.unowned_pods import UnownedPods
from webhook.controller.bounds import Allowance, CpuLimitError, CpuThrottle, Rate, call_within
from webhook.controller.events import EventWriter
from webhook.controller.groups import GroupReconciler
from webhook.controller.reports import ReportWriter
from webhook.controller.workload_lister import ObjectJson, WorkloadLister
from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.policy.policy import Policy
from webhook.core.scan.cluster_scan import cluster_scan
from webhook.core.scan.scan_context import ScanContext, scan_context
from webhook.core.scan.scanned import ClusterScan, ScannedWorkload
from webhook.core.scan.workload_scan import scan_workload
from webhook.core.workloads.kinds import group_kind, group_of
from webhook.core.workloads.reading import read_meta, stated_type
from webhook.logs import bounded, exception_fields
from webhook.report.scanned import notices, report_content

_LOOK_SECONDS = 0.5
_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 2.0, 60.0
# How long the index is locked at once. Only watches wait for it.
_SLICE_SECONDS = 0.1
# CPU limit for a workload. An ordinary workload takes some milliseconds.
_MOST_SECONDS = 10.0
_JOIN_SECONDS = 5.0
# etcd accepts thousands of writes a second. The next scans write the remainder.
_REPORTS, _REPORTS_OF_A_NAMESPACE = Rate(a_minute=600, burst=3000), Rate(a_minute=60, burst=300)
_EVENTS, _EVENTS_OF_A_NAMESPACE = Rate(a_minute=60, burst=300), Rate(a_minute=6, burst=30)

_log = logging.getLogger(__name__)


class ScanSettings(Struct, frozen=True, kw_only=True):
    """Settings of the scan.

    Attributes:
        interval: Seconds from start to start.
        share: The allowed share of a core.
        all_workloads: Whether metrics show the skew of all workloads, or only exceeded limits.
    """

    interval: float = 300.0
    share: float = 0.25
    reports: bool = True
    events: bool = True
    all_workloads: bool = False


class FinishedScan(Struct, frozen=True, kw_only=True):
    """The last finished scan and its cost.

    Attributes:
        ended: Seconds since 1970.
        seconds: Wall-clock time.
        used: CPU time in seconds.
    """

    scan: ClusterScan
    ended: float
    seconds: float
    used: float


class _LostError(Exception):
    """This replica no longer leads."""


class _RunningScan(Struct):
    """A running scan and its results so far."""

    lister: WorkloadLister
    policy: Policy
    began: float
    used: float
    found: dict[tuple[str, str, str, str], ScannedWorkload] = {}


class Scanner:
    """Runs scans in a thread. Any thread may read the attributes.

    Attributes:
        latest: The last finished scan while this replica leads, else None.
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
        self._running: _RunningScan | None = None
        self.reports: ReportWriter | None = None
        self.events: EventWriter | None = None
        writes, tells = Allowance(_REPORTS, _REPORTS_OF_A_NAMESPACE), Allowance(_EVENTS, _EVENTS_OF_A_NAMESPACE)
        if settings.reports:
            self.reports = ReportWriter(server, writes, may_write=self.may_write, pause=self.wait, clock=clock)
        group_events = None
        if settings.events:
            self.events = EventWriter(server, tells, identity, may_write=self.may_write)
            group_events = EventWriter(server, tells, identity, may_write=self.may_write)
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
                self._unowned = UnownedPods()
                self.feed = Feed(self._server, watched(self._policy()), on_changes=self._unowned.apply)
                self.feed.start()
            if self.feed.synced:
                self._reconcile_groups(self.feed)
            if self.feed.synced and self._clock() >= self._due:
                self._scan(self.feed)
        except _LostError:
            self._drop_state()
        except ClusterError as error:
            return self._set_fault(f"waiting: {error}")
        except Exception as error:  # noqa: BLE001 any error: the next scan may succeed
            _log.error("the scan failed because of a bug", extra={"fields": exception_fields(error)})
            self._running = None
            return self._set_fault(f"failed because of a bug: {type(error).__name__}")
        else:
            self._failures, self.fault = 0, ""
        return _LOOK_SECONDS

    def _scan(self, feed: Feed) -> None:
        """Continue the scan, or start a scan.

        Raises:
            ClusterError: The next call continues.
            _LostError: This replica no longer leads.
        """
        round_ = self._running
        if round_ is None or self._clock() > round_.began + 2 * self.settings.interval:
            round_ = self._running = self._start_scan(feed)
        for gathered in round_.lister.objects():
            # A restarted list delivers an object twice.
            for scanned in self._evaluate(gathered, round_, feed):
                round_.found[scanned.namespace, group_of(scanned.api_version), scanned.kind, scanned.name] = scanned
        within = self._context(round_.policy, feed)
        with feed.lock:
            scan = cluster_scan(round_.found.values(), within, started=_iso(round_.began), ended=_iso(self._clock()))
        unread = round_.lister.unread
        if self.reports is not None:
            self.reports.end(unread)
        if self.events is not None:
            self.events.end(unread)
        self._running, now = None, self._clock()
        self.latest = FinishedScan(scan=scan, ended=now, seconds=now - round_.began, used=self.used - round_.used)
        self._due = round_.began + self.settings.interval
        fields = {"workloads": len(scan.workloads), "seconds": round(self.latest.seconds, 1)}
        _log.info("scanned", extra={"fields": fields | {"processorSeconds": round(self.latest.used, 1)}})

    def _start_scan(self, feed: Feed) -> _RunningScan:
        if self.reports is not None:
            self.reports.begin()
        if self.events is not None:
            self.events.begin()
        with feed.lock:
            unowned = self._unowned.listed()
        policy = self._policy()
        lister = WorkloadLister(self._server, policy, unowned, self.wait)
        return _RunningScan(lister=lister, policy=policy, began=self._clock(), used=self.used)

    def _evaluate(self, objects: Iterable[ObjectJson], round_: _RunningScan, feed: Feed) -> list[ScannedWorkload]:
        """Evaluate objects, slice by slice, and publish the results. Raises _LostError."""
        left, results = [*reversed([*objects])], list[ScannedWorkload]()
        while left:
            if not self.may_write():
                raise _LostError
            within = self._context(round_.policy, feed)
            with feed.lock:
                until, slice_ = time.monotonic() + _SLICE_SECONDS, list[ScannedWorkload]()
                while left and time.monotonic() < until:
                    scanned = _scan_object(left.pop(), within, round_)
                    if scanned is not None:
                        slice_.append(scanned)
            for scanned_workload in slice_:
                self._publish(scanned_workload)
            results += slice_
            self._share.rest()
            self._reconcile_groups(feed)
        return results

    def _reconcile_groups(self, feed: Feed) -> None:
        self.groups.turn(feed)
        self._share.rest()

    def _publish(self, scanned: ScannedWorkload) -> None:
        for failure in scanned.failures:
            fields = {"part": failure.part, "workload": scanned.title, **exception_fields(failure.error)}
            _log.error("a bug stopped a part of the scan; the other parts are complete", extra={"fields": fields})
        if self.reports is not None:
            self.reports.take(report_content(scanned))
        if self.events is not None:
            now = datetime.fromtimestamp(self._clock(), UTC)
            workload = group_kind(scanned.api_version, scanned.kind), scanned.namespace, scanned.name
            self.events.take(workload, notices(scanned, now), now)

    def _context(self, policy: Policy, feed: Feed) -> ScanContext:
        """Return the context of the next workloads.

        Raises:
            ClusterError: The copy of the cluster is older than maxStaleness, so a scan would report the past.
        """
        most = policy.max_staleness_seconds
        if feed.age > most:
            raise ClusterError(f"the copy of the cluster is {feed.age:.0f} s old; maxStaleness is {most:.0f} s")
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


def _iso(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _scan_object(one: ObjectJson, within: ScanContext, round_: _RunningScan) -> ScannedWorkload | None:
    """Evaluate an object. None without a result: not a workload, or out of time."""
    try:
        return call_within(_MOST_SECONDS, partial(scan_workload, one, within))
    except CpuLimitError:
        stated, meta = stated_type(one), read_meta(one)
        fields = {"kind": stated.kind, "namespace": meta.namespace, "name": meta.name}
        _log.warning("a workload takes too long to scan; its report stays unchanged", extra={"fields": fields})
        kind = group_kind(stated.api_version or "", stated.kind or "")
        round_.lister.unread.add((kind, meta.namespace, meta.name))
        return None
