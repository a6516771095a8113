"""The background scan: evaluate the cluster's workloads with the admission rules.

    elected -> watches -> full scan: every kind of workload, page by page -> reports, totals, events
                       -> every 10 s: the workloads whose facts changed   -> reports, totals, events

`KnownWorkloads` keeps the results, and finds the workloads with changed facts. A full scan detects missed changes: it
counts results that differ although no fact changed. The scan evaluates workloads in slices. It rests after each slice
to stay within its share of a core. Updates continue during a full scan. After a failed page, the next run continues
with the same kind. A replica without the lease stops at the next slice, writes nothing and drops its copy of the
cluster. After a bug, the next full scan evaluates everything again.
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
from webhook.controller.bounds import COST_RATES, EVENT_RATES, REPORT_RATES, Allowance, CpuThrottle
from webhook.controller.events import EventWriter
from webhook.controller.groups import GroupReconciler
from webhook.controller.guard import ScaleInGuard
from webhook.controller.publisher import FinishedScan, Publisher
from webhook.controller.reports import ReportWriter
from webhook.controller.scan_inputs import ScanSettings, check_age, current_context
from webhook.controller.updates import Evaluate, Updates
from webhook.controller.workload_lister import ObjectJson, WorkloadLister
from webhook.core.index.objects import ApiObject
from webhook.core.policy.policy import Policy
from webhook.core.scan.known_workloads import key_of_object
from webhook.core.scan.scan_context import ObjectKey
from webhook.core.scan.scan_results import ScannedWorkload
from webhook.core.scan.workload_scan import scan_workload
from webhook.core.text import plural
from webhook.logs import exception_fields, log_change

_LOOK_SECONDS = 0.5  # between two checks of the Lease, of the first lists and of due work
# Between two updates. With the time of a slice and a write, a new finding appears within 15 s.
_UPDATE_SECONDS = 10.0
# Waits after a failed scan, doubled with each failure in a row, to spare a failing API server.
_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 2.0, 60.0
_JOIN_SECONDS = 5.0  # for the thread to end: longer than a slice, less than a pod's grace period
_MOST_LOGGED = 10  # differing workloads of a full scan: a bug could concern thousands

_log = logging.getLogger(__name__)


class _LostError(Exception):
    """This replica no longer leads."""


class _RunningScan(Struct):
    """The state of a running full scan. ``seen`` has the keys of the objects listed so far."""

    lister: WorkloadLister
    policy: Policy
    began: float
    used: float
    seen: set[ObjectKey] = field(default_factory=set)


class Scanner:
    """Runs scans in a thread. Any thread may read the attributes.

    Attributes:
        latest: The current results while this replica leads, else None. None before the end of the first scan.
        differences: The number of results that differ between full scans although no fact changed. Must stay 0.
        feed: The copy of the cluster while this replica leads, else None.
        fault: The reason for a delayed scan. Empty if there is none.
        reports: The writer of reports. None if disabled.
        events: The writer of events. None if disabled.
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
        evaluate: Evaluate = scan_workload,
    ) -> None:
        self._server = server
        self.settings = settings
        self._leading = leading
        self._policy = policy
        self._clock = clock
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._share = CpuThrottle(settings.share, self._stop.wait)
        self._unowned = UnownedPods()
        self._due = self._listing_due = self._update_due = 0.0
        self._running: _RunningScan | None = None
        self._new_updates = partial(Updates, evaluate, settings.workload_seconds)
        self._updates, self._updating = self._new_updates(), False
        self._policy_scanned = Policy()
        self.differences = 0
        writes, may_write = Allowance(*REPORT_RATES), self.may_write
        new_reports = partial(ReportWriter, server, writes, may_write=may_write, pause=self._stop.wait, clock=clock)
        new_events = partial(EventWriter, server, Allowance(*EVENT_RATES), identity, may_write=may_write)
        self.reports = new_reports() if settings.reports else None
        self.events: EventWriter | None = new_events() if settings.events else None
        group_events = new_events() if settings.events else None
        self.groups = GroupReconciler(
            server, policy=policy, allowance=writes, events=group_events, may_write=may_write, clock=clock
        )
        guard_events = new_events() if settings.events else None
        self.guard = ScaleInGuard(
            server, Allowance(*COST_RATES), guard_events, enabled=settings.guard, may_write=may_write, clock=clock
        )
        self._publisher = Publisher(self.reports, self.events, self.guard, clock)
        self.feed: Feed | None = None
        self.latest: FinishedScan | None = None
        self._failures, self.fault = 0, ""

    @property
    def used(self) -> float:
        return self._share.used

    def may_write(self) -> bool:
        """Whether this replica leads and is not stopping."""
        return not self._stop.is_set() and self._leading()

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
            self._stop.wait(self.turn())
        self._drop_state()

    def turn(self) -> float:
        """Do the due work. Returns the seconds until the next turn. Never raises."""
        if not self._leading():
            self._drop_state()
            return _LOOK_SECONDS
        try:
            if self.feed is None:
                self._unowned, self._updates = UnownedPods(), self._new_updates()
                self.feed = Feed(self._server, watched(self._policy()), on_changes=self._apply)
                self.feed.start()
            if self.feed.synced:
                self.groups.turn(self.feed)
                self._turn_guard(self._policy_scanned, self.feed)
                self._share.rest()
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
        """Start the full scan or continue it.

        Raises _LostError or ClusterError. The next call then continues the scan.
        """
        running, known = self._running, self._updates.known
        if running is None or self._clock() > running.began + 2 * self.settings.full_interval:
            running = self._running = self._start_scan(feed)
        for listed in running.lister.objects():
            running.seen |= {key_of_object(raw) for raw in listed}
            self._evaluate(listed, running.lister, running.policy, feed)
        check_age(running.policy, feed)
        with feed.lock:
            known.drop(known.keys() - running.seen - self._updates.read)
            self.guard.keep(known.keys())
            differing = known.take_differing()
        self.differences += len(differing)
        for key in differing[:_MOST_LOGGED]:
            _log.error("a bug: two scans of an unchanged workload differ", extra={"fields": key._asdict()})
        self._running, self._updates.lister, now = None, running.lister, self._clock()
        self._due, self._listing_due = running.began + self.settings.full_interval, now + self.settings.interval
        self._update_due = now + _UPDATE_SECONDS
        seconds, used = now - running.began, self.used - running.used
        cost = FinishedScan(ended=now, seconds=seconds, used=used)
        self.latest = self._publisher.publish(cost, self._updates, running.policy, feed, full=True)
        fields = {"workloads": len(known.scans()), "seconds": round(seconds, 1), "processorSeconds": round(used, 1)}
        _log.info("scanned", extra={"fields": fields})

    def _start_scan(self, feed: Feed) -> _RunningScan:
        self._publisher.begin()
        self.guard.begin()
        policy = self._policy_scanned = self._policy()
        with feed.lock:
            unowned = self._unowned.listed()
            self._updates.begin()
        lister = WorkloadLister(self._server, policy, unowned, self._stop.wait)
        return _RunningScan(lister=lister, policy=policy, began=self._clock(), used=self.used)

    def _update(self, feed: Feed) -> None:
        """Scan the workloads with changed facts again. Raises the errors of `_scan`.

        Does nothing before the update is due, or before the first full scan has results.
        """
        now, updates, latest = self._clock(), self._updates, self.latest
        if self._updating or latest is None or updates.lister is None or now < self._update_due:
            return
        self._updating, self._update_due = True, now + _UPDATE_SECONDS
        try:
            policy, every = self._policy_scanned, self._running is None and now >= self._listing_due
            within = current_context(policy, feed, now)
            with feed.lock:
                updates.note(within)
                unowned = self._unowned.listed() if every else None
            for objects in updates.objects(unowned):
                self._evaluate(objects, updates.lister, policy, feed)
            if every:
                self._listing_due = now + self.settings.interval
            latest = replace(latest, ended=self._clock())
            self.latest = self._publisher.publish(latest, updates, policy, feed, every=every)
        finally:
            self._updating = False

    def _evaluate(self, objects: Iterable[ObjectJson], lister: WorkloadLister, policy: Policy, feed: Feed) -> None:
        """Evaluate objects in time slices, and publish the results. Raises _LostError, if another replica leads."""
        left = [*reversed([*objects])]
        while left:
            if not self.may_write():
                raise _LostError
            within = current_context(policy, feed, self._clock())
            with feed.lock:
                self._updates.note(within)
                until = time.monotonic() + self.settings.slice_seconds
                slice_ = list[tuple[ObjectJson, ScannedWorkload]]()
                while left and time.monotonic() < until:
                    raw = left.pop()
                    # A page has an older state of an object read meanwhile.
                    older = not self._updating and key_of_object(raw) in self._updates.read
                    scanned = None if older else self._updates.scan(raw, within, lister)
                    if scanned is not None:
                        slice_.append((raw, scanned))
            for raw, scanned_workload in slice_:
                self.guard.take(raw, scanned_workload)
            # Before the reports, for a new leader to write the same reports as the last.
            self._turn_guard(policy, feed)
            for _, scanned_workload in slice_:
                self._publisher.take(scanned_workload, update=self._updating)
            self._share.rest()
            self.groups.turn(feed)
            self._share.rest()
            self._update(feed)

    def _turn_guard(self, policy: Policy, feed: Feed) -> None:
        """Let the guard write, and publish the changed states of its workloads."""
        self.guard.turn(policy, feed)
        with feed.lock:
            changed = [self._updates.known.scan_of(key) for key in self.guard.take_changed()]
        for scanned in changed:
            if scanned is not None:
                self._publisher.take(scanned, update=True)

    def lines(self) -> dict[str, str]:
        """Return the lines of /readyz about the scan: the text of each line by its name."""
        if self.latest is not None:
            age = self._clock() - self.latest.ended
            state = f"{plural(len(self.latest.scan.workloads), 'workload')} scanned {age:.0f} s ago"
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
        if self.guard.fault:
            lines["scale-in guard"] = self.guard.fault
        return lines

    def _set_fault(self, text: str) -> float:
        self.fault = log_change(_log, "the scan: %s", text, self.fault)
        self._failures += 1
        return min(_FIRST_WAIT_SECONDS * 2.0 ** (self._failures - 1), _LONGEST_WAIT_SECONDS)

    def _drop_state(self) -> None:
        """Drop the copy of the cluster and all results, because this replica no longer leads."""
        if self.feed is not None:
            self.feed.stop()
        if self.events is not None:
            self.events.forget()
        self.groups.forget()
        self.guard.forget()
        self.feed, self.latest, self._running = None, None, None
        self._due, self._failures, self.fault = 0.0, 0, ""
        self._forget_results()

    def _forget_results(self) -> None:
        """Drop the results, for the next full scan to recompute. `latest` stays until the end of the scan."""
        self._updates = self._new_updates()
        self._publisher.forget()
