"""Measure scale-ins of workloads, and write pod deletion costs to keep the pods of guarded workloads spread.

Only ReplicaSets use the costs, so the guard reads only workloads with ReplicaSets: Deployments, Rollouts, ReplicaSets.
A workload is due after each new scan: its pods, its constraints or the policy may have changed. A workload with several
ReplicaSets waits for the end of its rollout. If another program writes the costs of a workload, the guard stops for
this workload and removes its own.
"""

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus

from msgspec import Raw, Struct
from msgspec.structs import replace

from webhook.cluster.connection import ApiServer
from webhook.cluster.errors import ClusterError, RefusedError
from webhook.cluster.feed import Feed
from webhook.cluster.writing.deletion_costs import CostedPod, costed_pods, put_cost
from webhook.cluster.writing.reports import is_of_one_object
from webhook.controller.bounds import Allowance, CpuLimitError, call_within
from webhook.controller.events import EventWriter
from webhook.controller.scan_inputs import cluster_context
from webhook.controller.workload_lister import ObjectJson
from webhook.core.api.selectors import Selector
from webhook.core.context import Context
from webhook.core.explain.explanation import balances_of
from webhook.core.pods_to_create.next_pod import next_pod_of
from webhook.core.pods_to_remove.deletion_costs import (
    RemovalPlan,
    SpreadLimit,
    deletion_costs,
    removal_plan,
    spread_limits,
)
from webhook.core.pods_to_remove.running_pod import RunningPod
from webhook.core.policy.policy import Policy
from webhook.core.scan.known_workloads import key_of_object
from webhook.core.scan.scan_context import ObjectKey
from webhook.core.scan.scan_results import GuardState, ScaleInState, ScannedWorkload
from webhook.core.scheduler.cycle import Cycle
from webhook.core.what_if.sources import ReplicatedSource, sources_in_cluster
from webhook.core.workloads.kinds import are_removed_by_replica_sets, group_kind
from webhook.core.workloads.reading import stated_type
from webhook.logs import exception_fields, log_change
from webhook.report.scanned import guard_notice

_MOST_PODS = 500  # a ReplicaSet removes at most this many pods in a step (replica_set.go BurstReplicas)
_PLAN_SECONDS = 3.0  # for an order of removal: 500 pods on 500 hosts take a second
_TURN_SECONDS = 1.0  # then the scan continues
_PATIENCE_SECONDS = 60.0  # for the limit of writes, before a report has it
_AGAIN_SECONDS = 5.0  # until the next attempt after a conflict or the limit of writes
_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 2.0, 60.0  # after failures
# Why a requested guard is not active.
_SWITCHED_OFF = "controller.scaleIn.guard is false in the chart's values"
_TOO_LARGE = f"it has more than {_MOST_PODS} pods"
_ROLLOUT = "its pods have several ReplicaSets, as in a rollout"
_UNCOUNTED = "no constraint counts its ready pods"
_TOO_LONG = "the order of removal takes too long to compute"
_REFUSED = "the API server refuses deletion costs"
_FAILED = "the last attempt failed (see the controller's log)"

_log = logging.getLogger(__name__)


class _Due(Struct, frozen=True):
    """A workload waiting for `ScaleInGuard.turn`. ``since`` is the time of its first scan in the queue."""

    raw: ObjectJson
    state: ScaleInState | None
    since: float


class _Task(Struct, frozen=True):
    """A scanned workload. ``own`` selects its pods."""

    source: ReplicatedSource
    own: Selector


class ScaleInGuard:
    """Writes the deletion costs of guarded workloads. A single thread calls the methods.

    Args:
        enabled: Whether pods may be written. If not, guarded workloads are only measured.

    Attributes:
        states: The worst scale-ins of reported and guarded workloads. A workload without a state waits for the guard.
        writes: The number of writes by outcome: written, removed, postponed (rate limit), conflict, refused, failed.
        fault: The reason for missing costs. Empty without a problem.
    """

    def __init__(  # noqa: PLR0913 the last three by keyword
        self,
        server: ApiServer,
        allowance: Allowance,
        events: EventWriter | None,
        *,
        enabled: bool,
        may_write: Callable[[], bool],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._server = server
        self.enabled = enabled
        self._allowance = allowance
        self._events = events
        self._may_write = may_write
        self._clock = clock
        self.writes: Counter[str] = Counter(written=0, removed=0, postponed=0, conflict=0, refused=0, failed=0)
        self.forget()

    def forget(self) -> None:
        """Forget all workloads. Another replica may have led meanwhile."""
        self._due: dict[ObjectKey, _Due] = {}
        self.states: dict[ObjectKey, ScaleInState] = {}
        self._changed: set[ObjectKey] = set()
        self.begin()
        self._failures, self._wait_until, self.fault = 0, 0.0, ""
        self._allowance.empty()
        if self._events is not None:
            self._events.forget()

    def begin(self) -> None:
        """Start a full scan. Pods with costs of evenspread are listed again."""
        self._costed: dict[str, dict[str, CostedPod]] | None = None  # by namespace and name
        self._released: list[CostedPod] = []

    def take(self, raw: ObjectJson, scanned: ScannedWorkload) -> None:
        """Make a scanned workload due. With the guard requested, its state waits for the guard."""
        if not are_removed_by_replica_sets(group_kind(scanned.api_version, scanned.kind)):
            return
        key, state = key_of_object(raw), scanned.scale_in
        if self.enabled:
            self._due[key] = _Due(raw, state, self._due[key].since if key in self._due else self._clock())
        if state is None:
            self.states.pop(key, None)
        elif not (self.enabled and state.guard is GuardState.REQUESTED):
            switched_off = state.guard is GuardState.REQUESTED
            self.states[key] = replace(state, inactive=_SWITCHED_OFF) if switched_off else state

    def take_changed(self) -> set[ObjectKey]:
        """Return and clear the workloads with another state since the last call."""
        taken, self._changed = self._changed, set()
        return taken

    def keep(self, known: Collection[ObjectKey]) -> None:
        """Forget deleted workloads."""
        self._due = {key: due for key, due in self._due.items() if key in known}
        self.states = {key: state for key, state in self.states.items() if key in known}

    def turn(self, policy: Policy, feed: Feed) -> None:
        """Write the costs of due workloads, for a second. Never raises, for any workload or answer."""
        if not (self._due or self._released) or self._clock() < self._wait_until:
            return
        until = time.monotonic() + _TURN_SECONDS
        try:
            within = cluster_context(policy, feed, self._clock())
            for key, due in [*self._due.items()]:
                if not self._may_write() or time.monotonic() >= until:
                    break
                if not self._allowance.allows(key.namespace):
                    if key not in self.states:
                        self._note_waiting(key)
                    continue
                self._due[key] = self._due.pop(key)  # behind the others, whatever happens
                if self._reconcile(key, due, within, feed):
                    del self._due[key]
                    continue
                self._wait_until = self._clock() + _AGAIN_SECONDS
                if not self._allowance.allows(key.namespace):
                    self._due = {key: self._due.pop(key), **self._due}  # it comes first, to be complete soon
            self._clear_released()
        except ClusterError as error:
            self._wait(error)
        else:
            self._failures, self.fault = 0, ""
            self._allowance.forget_idle()

    def _reconcile(self, key: ObjectKey, due: _Due, context: Context, feed: Feed) -> bool:
        """Bring the costs of a workload up to date. Returns False to try again later. Raises ClusterError."""
        try:
            with feed.lock:
                task = _task(due.raw, context)
            if task is None:
                return True
            state = due.state
            if state is not None and state.guard is GuardState.REQUESTED:
                return self._guard(key, task, state, context, feed)
            return self._clear(self._costed_of(task))
        except ClusterError:
            self._note_failure(key, due.state)
            raise
        except Exception as error:  # noqa: BLE001 a workload must never stop the others
            fields = {"workload": key._asdict(), **exception_fields(error)}
            _log.error("a bug stopped the scale-in guard of a workload; others continue", extra={"fields": fields})
            self._note_failure(key, due.state)
            return True

    def _guard(self, key: ObjectKey, task: _Task, unguarded: ScaleInState, context: Context, feed: Feed) -> bool:
        with feed.lock:
            number = sum(feed.index.pods.count(task.source.namespace, task.own).values())
        if number > _MOST_PODS:
            return self._give_up(key, task, unguarded, _TOO_LARGE)
        pods = [*costed_pods(self._server, task.source.namespace, task.own.text)]
        active = [pod for pod in pods if pod.active is not None and pod.replica_set]
        if any(pod.foreign for pod in active):
            self._stop(key, task, unguarded)
            return self._clear(pod for pod in pods if pod.ours and not pod.foreign)
        if len({pod.replica_set for pod in active}) > 1:
            self._note(key, replace(unguarded, inactive=_ROLLOUT))
            return True  # each event of its pods makes it due again
        running = [pod.active for pod in active if pod.active is not None]
        with feed.lock:
            balances = balances_of(Cycle(next_pod_of(task.source, context).problem), soft_defaults=True)
            limits = spread_limits(balances, running, feed.index.nodes.view().slots)
        if limits is None:
            return False  # The list and the watch are from different moments.
        plan = _plan(running, limits) if limits else None
        if plan is None:
            return self._give_up(key, task, unguarded, _TOO_LONG if limits else _UNCOUNTED)
        return self._write(key, active, plan, unguarded)

    def _write(self, key: ObjectKey, active: Iterable[CostedPod], plan: RemovalPlan, unguarded: ScaleInState) -> bool:
        costs, refused = deletion_costs(plan.order), self.writes["refused"]
        for pod in active:
            cost = costs.get(pod.name)
            is_current = cost is None or pod.active is None or cost == pod.active.deletion_cost
            if not is_current and not self._put(pod, cost):
                if not self._allowance.allows(key.namespace):
                    self._note_waiting(key)
                return False
        guarded = ScaleInState(worst_skew=plan.worst_skew, above=plan.above, guard=GuardState.GUARDED)
        self._note(key, replace(unguarded, inactive=_REFUSED) if self.writes["refused"] > refused else guarded)
        return True

    def _note(self, key: ObjectKey, state: ScaleInState) -> None:
        if self.states.get(key) != state:
            self.states[key] = state
            self._changed.add(key)

    def _note_waiting(self, key: ObjectKey) -> None:
        """Report a workload that has waited for a minute. A new leader's short waits change no report."""
        due = self._due[key]
        is_requested = due.state is not None and due.state.guard is GuardState.REQUESTED
        if due.state is not None and is_requested and self._clock() - due.since >= _PATIENCE_SECONDS:
            self._note(key, replace(due.state, guard=GuardState.WAITING))

    def _note_failure(self, key: ObjectKey, state: ScaleInState | None) -> None:
        if state is not None and key not in self.states:
            self._note(key, replace(state, inactive=_FAILED) if state.guard is GuardState.REQUESTED else state)

    def _give_up(self, key: ObjectKey, task: _Task, unguarded: ScaleInState, why: str) -> bool:
        """Leave the order to the ReplicaSet controller. Old costs would remove new pods first."""
        self._note(key, replace(unguarded, inactive=why))
        return self._clear(self._costed_of(task))

    def _costed_of(self, task: _Task) -> list[CostedPod]:
        if self._costed is None:
            found = defaultdict[str, dict[str, CostedPod]](dict)
            for pod in costed_pods(self._server):
                if pod.ours:
                    found[pod.namespace][pod.name] = pod
            self._costed = found
            self._released = [pod for pods in found.values() for pod in pods.values() if not pod.replica_set]
        return [pod for pod in self._costed[task.source.namespace].values() if task.own.matches(pod.labels)]

    def _clear_released(self) -> None:
        """Remove the costs of pods that left their ReplicaSet, for example by a change of their labels."""
        while self._released and self._put(self._released[-1], None):
            self._released.pop()

    def _clear(self, pods: Iterable[CostedPod]) -> bool:
        done = [self._put(pod, None) for pod in pods]
        return all(done)

    def _put(self, pod: CostedPod, cost: int | None) -> bool:
        """Write or remove a cost. Returns False if it must be tried again. Raises ClusterError if writing is futile."""
        if not self._may_write():
            return False
        if not self._allowance.take(pod.namespace):
            self.writes["postponed"] += 1
            return False
        try:
            put_cost(self._server, pod, cost)
        except RefusedError as error:
            # A removal conflicts with no field manager, so the pod is gone.
            if error.status == HTTPStatus.CONFLICT and cost is None:
                self._forget_pod(pod)
                return True
            if error.status == HTTPStatus.CONFLICT:
                self.writes["conflict"] += 1
                return False
            if is_of_one_object(error):
                self.writes["refused"] += 1
                return True
            self.writes["failed"] += 1
            raise
        except ClusterError:
            self.writes["failed"] += 1
            raise
        self.writes["removed" if cost is None else "written"] += 1
        if cost is None:
            self._forget_pod(pod)
        elif self._costed is not None:
            self._costed[pod.namespace][pod.name] = pod
        return True

    def _forget_pod(self, pod: CostedPod) -> None:
        if self._costed is not None:
            self._costed[pod.namespace].pop(pod.name, None)

    def _stop(self, key: ObjectKey, task: _Task, unguarded: ScaleInState) -> None:
        before = self.states.get(key)
        self._note(key, replace(unguarded, guard=GuardState.STOPPED))
        if before is not None and before.guard is GuardState.STOPPED:
            return
        fields = {"workload": task.source.title}
        _log.warning("another program writes pod deletion costs: scale-ins are not guarded", extra={"fields": fields})
        if self._events is not None:
            notice = guard_notice(task.source.workload, task.source.namespace)
            now = datetime.fromtimestamp(self._clock(), UTC)
            self._events.begin()
            self._events.take(((key.group, key.kind), key.namespace, key.name), [notice], now)
            self._events.end()

    def _wait(self, error: ClusterError) -> None:
        self.fault = log_change(_log, "%s", f"scale-in guard: {error}", self.fault)
        self._failures += 1
        asked = error.retry_after if isinstance(error, RefusedError) else 0.0
        backoff = min(_WAIT_SECONDS * 2.0 ** (self._failures - 1), _LONGEST_WAIT_SECONDS)
        self._wait_until = self._clock() + max(asked, backoff)


def _plan(running: Iterable[RunningPod], limits: Sequence[SpreadLimit]) -> RemovalPlan | None:
    """Return the order of removal. None out of time."""
    try:
        return call_within(_PLAN_SECONDS, partial(removal_plan, [pod for pod in running if pod.ready], limits))
    except CpuLimitError:
        _log.warning("an order of removal takes too long, so its pods get no deletion costs")
        return None


def _task(raw: ObjectJson, context: Context) -> _Task | None:
    """Read a scanned workload. None if its pods are unknown."""
    sources = [*sources_in_cluster(stated_type(raw), Raw(raw), context)]
    if len(sources) != 1:
        return None
    (source,) = sources
    return None if source.own is None else _Task(source, source.own)
