"""The background scan: what runs in the cluster, workload by workload, by the rules of admission.

    elected -> feed -> every kind of workload, page by page -> reports and events -> the whole -> again, by and by

Workloads are not kept in memory: each scan lists them anew and looks at them slice by slice, and rests after each, so
that it takes its share of a core and no more. A page that cannot be had ends the turn; the next one goes on with that
kind. Whoever does not lead any more stops at the next slice, writes nothing, and gives up its copy of the cluster.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial

from msgspec import Struct

from webhook.cluster.connection import ApiServer, ClusterError
from webhook.cluster.feed import Feed
from webhook.cluster.resources import watched
from webhook.cluster.unowned_pods import UnownedPods
from webhook.controller.bounds import Allowance, CpuThrottle, OutOfTimeError, Rate, call_within
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
from webhook.logs import bounded, described
from webhook.report.scanned import notices, report_content

_LOOK_SECONDS = 0.5
_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 2.0, 60.0
# How long the index is held at once; watches wait for it, and nobody else.
_SLICE_SECONDS = 0.1
# For one workload; ordinary ones take some milliseconds.
_MOST_SECONDS = 10.0
_JOIN_SECONDS = 5.0
# etcd takes thousands of writes a second. What is more than this is written by the next scans.
_REPORTS, _REPORTS_OF_A_NAMESPACE = Rate(a_minute=600, burst=3000), Rate(a_minute=60, burst=300)
_EVENTS, _EVENTS_OF_A_NAMESPACE = Rate(a_minute=60, burst=300), Rate(a_minute=6, burst=30)

_log = logging.getLogger(__name__)


class ScanSettings(Struct, frozen=True, kw_only=True):
    """How to scan, and what to write of it; ``all_workloads`` have their skew in metrics, not the worst alone.

    Unit: ``interval`` is in seconds, from begin to begin; ``share`` of one core.
    """

    interval: float = 300.0
    share: float = 0.25
    reports: bool = True
    events: bool = True
    all_workloads: bool = False


class FinishedScan(Struct, frozen=True, kw_only=True):
    """The last scan that came to its end, and what it took.

    Unit: ``ended`` is in seconds since 1970, ``seconds`` on the clock, ``used`` of the processor.
    """

    scan: ClusterScan
    ended: float
    seconds: float
    used: float


class _LostError(Exception):
    """This replica does not lead any more."""


class _Round(Struct):
    """A scan that has begun, and what it found so far."""

    lister: WorkloadLister
    policy: Policy
    began: float
    used: float
    found: dict[tuple[str, str, str, str], ScannedWorkload] = {}


class Scanner:
    """See the module. Any thread may ask.

    Shape: ``latest`` is the last scan that came to its end while this replica leads, ``feed`` its copy of the cluster,
    both None while it does not lead; ``fault`` is why the present scan does not get on, empty if it does. ``reports``
    and ``events`` are None where none are written. ``groups`` are looked after between the slices of a scan.
    Unit: ``used`` is the processor's time of all scans, in seconds.
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
        self._round: _Round | None = None
        self.reports: ReportWriter | None = None
        self.events: EventWriter | None = None
        writes, tells = Allowance(_REPORTS, _REPORTS_OF_A_NAMESPACE), Allowance(_EVENTS, _EVENTS_OF_A_NAMESPACE)
        if settings.reports:
            self.reports = ReportWriter(server, writes, may_write=self.may_write, pause=self.wait, clock=clock)
        of_groups = None
        if settings.events:
            self.events = EventWriter(server, tells, identity, may_write=self.may_write)
            of_groups = EventWriter(server, tells, identity, may_write=self.may_write)
        self.groups = GroupReconciler(
            server, policy=policy, allowance=writes, events=of_groups, may_write=self.may_write, clock=clock
        )
        self.feed: Feed | None = None
        self.latest: FinishedScan | None = None
        self.fault = ""

    @property
    def used(self) -> float:
        return self._share.used

    def may_write(self) -> bool:
        """Whether this replica leads and goes on."""
        return not self._stop.is_set() and self._leading()

    def wait(self, seconds: float) -> None:
        """Wait, or less if it is stopped."""
        self._stop.wait(seconds)

    def start(self) -> None:
        """Scan in a thread, until `stop`."""
        self._thread = threading.Thread(target=self._run, name="scan", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it; when this returns, nothing more is written, unless a request of it hangs."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(_JOIN_SECONDS)

    def _run(self) -> None:
        self._share.rest()  # starts the clock of this thread
        while not self._stop.is_set():
            self.wait(self.turn())
        self._give_up()

    def turn(self) -> float:
        """Do what is due; returns the seconds until the next turn. Never raises."""
        if not self._leading():
            self._give_up()
            return _LOOK_SECONDS
        try:
            if self.feed is None:
                self._unowned = UnownedPods()
                self.feed = Feed(self._server, watched(self._policy()), on_changes=self._unowned.apply)
                self.feed.start()
            if self.feed.synced:
                self._look_at_groups(self.feed)
            if self.feed.synced and self._clock() >= self._due:
                self._scan(self.feed)
        except _LostError:
            self._give_up()
        except ClusterError as error:
            return self._failed(f"it waits: {error}")
        except Exception as error:  # noqa: BLE001 whatever it is: the next scan may come to an end
            _log.error("the scan failed by a bug", extra={"fields": exception_fields(error)})
            self._round = None
            return self._failed(f"failed by a bug: {type(error).__name__}")
        else:
            self._failures, self.fault = 0, ""
        return _LOOK_SECONDS

    def _scan(self, feed: Feed) -> None:
        """Go on with the scan, or begin one.

        Errors: ClusterError, after which it can be gone on with; _LostError.
        """
        round_ = self._round
        if round_ is None or self._clock() > round_.began + 2 * self.settings.interval:
            round_ = self._round = self._begun(feed)
        for gathered in round_.lister.objects():
            # Where a list has begun again, the same object comes twice.
            for each in self._looked_at(gathered, round_, feed):
                round_.found[each.namespace, group_of(each.api_version), each.kind, each.name] = each
        within = self._context(round_.policy, feed)
        with feed.lock:
            scan = cluster_scan(round_.found.values(), within, started=_iso(round_.began), ended=_iso(self._clock()))
        unread = round_.lister.unread
        if self.reports is not None:
            self.reports.end(unread)
        if self.events is not None:
            self.events.end(unread)
        self._round, now = None, self._clock()
        self.latest = FinishedScan(scan=scan, ended=now, seconds=now - round_.began, used=self.used - round_.used)
        self._due = round_.began + self.settings.interval
        fields = {"workloads": len(scan.workloads), "seconds": round(self.latest.seconds, 1)}
        _log.info("scanned", extra={"fields": fields | {"processorSeconds": round(self.latest.used, 1)}})

    def _begun(self, feed: Feed) -> _Round:
        if self.reports is not None:
            self.reports.begin()
        if self.events is not None:
            self.events.begin()
        with feed.lock:
            unowned = self._unowned.listed()
        policy = self._policy()
        lister = WorkloadLister(self._server, policy, unowned, self.wait)
        return _Round(lister=lister, policy=policy, began=self._clock(), used=self.used)

    def _looked_at(self, objects: Iterable[ObjectJson], round_: _Round, feed: Feed) -> list[ScannedWorkload]:
        """Look at some objects, slice by slice, and write what is to be written of each.

        Errors: _LostError.
        """
        left, found = [*reversed([*objects])], list[ScannedWorkload]()
        while left:
            if not self.may_write():
                raise _LostError
            within = self._context(round_.policy, feed)
            with feed.lock:
                until, slice_ = time.monotonic() + _SLICE_SECONDS, list[ScannedWorkload]()
                while left and time.monotonic() < until:
                    scanned = _scanned(left.pop(), within, round_)
                    if scanned is not None:
                        slice_.append(scanned)
            for each in slice_:
                self._publish(each)
            found += slice_
            self._share.rest()
            self._look_at_groups(feed)
        return found

    def _look_at_groups(self, feed: Feed) -> None:
        self.groups.turn(feed)
        self._share.rest()

    def _publish(self, scanned: ScannedWorkload) -> None:
        for failure in scanned.failures:
            fields = {"part": failure.part, "workload": scanned.title, **exception_fields(failure.error)}
            _log.error("a part of the scan failed; the others answered", extra={"fields": fields})
        if self.reports is not None:
            self.reports.take(report_content(scanned))
        if self.events is not None:
            now = datetime.fromtimestamp(self._clock(), UTC)
            of = group_kind(scanned.api_version, scanned.kind), scanned.namespace, scanned.name
            self.events.take(of, notices(scanned, now), now)

    def _context(self, policy: Policy, feed: Feed) -> ScanContext:
        """The context of the next workloads.

        Raises:
            ClusterError: The watches are older than maxStaleness, so that a scan would report the past.
        """
        most = policy.max_staleness_seconds
        if feed.age > most:
            raise ClusterError(f"the watches are {feed.age:.0f} s old, and maxStaleness is {most:.0f} s")
        now = _iso(self._clock())
        context = Context(policy=policy, version=feed.version or RECORDED, index=feed.index, today=now[:10], now=now)
        with feed.lock:
            return scan_context(context)

    def lines(self) -> dict[str, str]:
        """How it stands, line by line, for readiness."""
        if self.latest is not None:
            told = f"{len(self.latest.scan.workloads):,} workloads {self._clock() - self.latest.ended:.0f} s ago"
        else:
            told = "the first one" if self.feed is not None and self.feed.synced else "waiting for the cluster"
        lines = {"scan": self.fault or told}
        for each in self.feed.watch_states() if self.feed is not None else ():
            if each.line:
                lines[f"cluster {each.resource}"] = each.line
        if self.reports is not None:
            lines["reports"] = self.reports.fault or str(self.reports.api or "not looked at")
        if self.events is not None and self.events.fault:
            lines["events"] = self.events.fault
        if self.groups.fault:
            lines["groups"] = self.groups.fault
        return lines

    def _failed(self, text: str) -> float:
        told = bounded(text)
        if told != self.fault:
            _log.warning("the scan: %s", told)
        self.fault = told
        self._failures += 1
        return min(_FIRST_WAIT_SECONDS * 2.0 ** (self._failures - 1), _LONGEST_WAIT_SECONDS)

    def _give_up(self) -> None:
        """Forget everything: whoever leads next begins anew."""
        if self.feed is not None:
            self.feed.stop()
        if self.events is not None:
            self.events.forget()
        self.groups.forget()
        self.feed, self.latest, self._round = None, None, None
        self._due, self._failures, self.fault = 0.0, 0, ""


def _iso(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _scanned(one: ObjectJson, within: ScanContext, round_: _Round) -> ScannedWorkload | None:
    """What there is to say of it; None for no workload, and for one that takes longer than others can wait."""
    try:
        return call_within(_MOST_SECONDS, partial(scan_workload, one, within))
    except OutOfTimeError:
        stated, meta = stated_type(one), read_meta(one)
        fields = {"kind": stated.kind, "namespace": meta.namespace, "name": meta.name}
        _log.warning("a workload takes too long to look at; its report stays as it is", extra={"fields": fields})
        kind = group_kind(stated.api_version or "", stated.kind or "")
        round_.lister.unread.add((kind, meta.namespace, meta.name))
        return None
