"""Reconcile the SpreadGroups of the cluster: plan, measure, and write the status.

A group is due when its spec, its workloads, its pods or the nodes have changed, and at intervals. Each run takes one
group of each namespace, starting with the longest waiting. So a tenant with many groups delays only its own. A run ends
after a second, and the next run continues with the remaining groups. A pause of nine times the used CPU time follows. A
group beyond the CPU limit suspends its namespace for an hour.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

from webhook.cluster.connection import ApiServer
from webhook.cluster.errors import ClusterError, RefusedError
from webhook.cluster.feed import Feed
from webhook.cluster.writing.group_status import pods_of, put_status, read_status_of
from webhook.cluster.writing.reports import is_of_one_object
from webhook.controller.bounds import Allowance, CpuLimitError, call_within
from webhook.controller.events import EventWriter
from webhook.core.api.selectors import compile_selector
from webhook.core.api.spread_group import API_VERSION, KIND, MOST_GROUPS, SpreadGroup
from webhook.core.api.times import api_time
from webhook.core.api.types import Pod
from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.groups.group import Group
from webhook.core.groups.status.assess import unevaluated_status
from webhook.core.groups.status.forms import GroupWithStatus, SpreadGroupStatus, read_status, status_json
from webhook.core.index.pods import Counts
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.policy.policy import Policy
from webhook.core.scan.group_members import MOST_PODS, group_status, is_counted, readable_group, workloads_of
from webhook.core.workloads.kinds import group_kind
from webhook.logs import exception_fields, log_change
from webhook.report.scanned import group_notices

_TURN_SECONDS = 1.0  # then scans and reports continue
# CPU time for a group, with the index locked. A group of 400 pods among 5,000 nodes takes a few seconds.
_CPU_SECONDS = 20.0
_LOOK_SECONDS = 5.0  # between two checks of a group with an unchanged spec
_ANYWAY_SECONDS = 60.0  # between two checks of an unchanged group: others may have changed its status
_PAUSE = 9  # times the used CPU time: a tenth of a core for groups
_GIVEN_UP_SECONDS = 3600.0  # for a namespace: its next group beyond the CPU limit costs 20 s of CPU time an hour
_OF = group_kind(API_VERSION, KIND)

_log = logging.getLogger(__name__)

_Name = tuple[str, str]  # namespace, name


class _LastCheck(NamedTuple):
    at: float = 0.0
    generation: int = -1
    fingerprint: object = None  # of the observed state; a new value makes the group due


class GroupReconciler:
    """Reconcile SpreadGroups.

    Each call of `turn` reconciles the due groups, within a time limit. A single thread calls `turn`. Any thread may
    read the attributes.

    Attributes:
        found: The groups reconciled while this replica leads.
        writes: The number of group statuses by outcome: written, postponed, refused or failed.
        fault: The reason why groups were not checked or written. Empty without a problem.
    """

    def __init__(  # noqa: PLR0913 by keyword
        self,
        server: ApiServer,
        *,
        policy: Callable[[], Policy],
        allowance: Allowance,
        events: EventWriter | None,
        may_write: Callable[[], bool],
        clock: Callable[[], float] = time.time,
        evaluate: Callable[..., SpreadGroupStatus] = group_status,
    ) -> None:
        self._server = server
        self._policy = policy
        self._allowance = allowance
        self._events = events
        self._may_write = may_write
        self._clock = clock
        self._evaluate = evaluate
        self.writes: Counter[str] = Counter(written=0, postponed=0, refused=0, failed=0)
        self.forget()

    def forget(self) -> None:
        """Forget all groups and their checks. Another replica may have led meanwhile."""
        self._last_checks: dict[_Name, _LastCheck] = {}
        self._due = 0.0
        self._given_up: dict[str, float] = {}  # suspended namespaces, and the end of their suspension
        self.found: dict[_Name, GroupWithStatus] = {}
        self.fault = ""
        if self._events is not None:
            self._events.forget()

    def turn(self, feed: Feed) -> None:
        """Reconcile the due groups. Never raises, for any answer of the API server or any group."""
        if self._clock() < self._due:
            return
        used, until = time.thread_time(), time.monotonic() + _TURN_SECONDS
        with feed.lock:
            known = feed.index.namespaces.all_groups()
            due = sorted(self._due_groups(known, feed.index), key=lambda candidate: self._last_check(candidate[0]).at)
        names = {_name(group) for groups in known.values() for group in groups}
        self.found = {name: known_group for name, known_group in self.found.items() if name in names}
        self._last_checks = {name: check for name, check in self._last_checks.items() if name in names}
        fault = ""
        for number, (group, older, fingerprint) in enumerate(due):
            if not self._may_write():
                return
            if number and time.monotonic() >= until:
                break
            self._last_checks[_name(group)] = _LastCheck(self._clock(), group.generation, fingerprint)
            fault = self._reconcile(group, older, feed) or fault
        self.fault = log_change(_log, "%s", fault, self.fault) if fault else ""
        self._write_events(every=names <= self._last_checks.keys())
        self._due = self._clock() + max(1.0, _PAUSE * (time.thread_time() - used))

    def _due_groups(
        self, known: Mapping[str, tuple[SpreadGroup, ...]], index: ReadOnlyIndex
    ) -> Iterator[tuple[SpreadGroup, tuple[SpreadGroup, ...], object]]:
        """Yield at most one group per namespace: the due group with the oldest check.

        Each item is the group, the older groups of its namespace, and the group's fingerprint.
        """
        now = self._clock()
        self._given_up = {name: until for name, until in self._given_up.items() if until > now}
        for namespace, groups in known.items():
            if namespace in self._given_up:
                continue
            before = [self._last_check(group) for group in groups]
            for number in sorted(range(len(groups)), key=lambda position: before[position].at):
                group, last = groups[number], before[number]
                if now - last.at < _LOOK_SECONDS and group.generation == last.generation:
                    continue
                # A tenant may create thousands of groups, so groups beyond the limit have no fingerprint.
                fingerprint = _fingerprint(group, index) if number < MOST_GROUPS else None
                changed = (group.generation, fingerprint) != (last.generation, last.fingerprint)
                if changed or now - last.at >= _ANYWAY_SECONDS:
                    yield group, groups[:number], fingerprint
                    break

    def _last_check(self, spread_group: SpreadGroup) -> _LastCheck:
        return self._last_checks.get(_name(spread_group), _LastCheck())

    def _reconcile(self, spread_group: SpreadGroup, older: tuple[SpreadGroup, ...], feed: Feed) -> str:
        """Compute the plan and the status of a SpreadGroup, and write a changed status.

        Return an error message, empty if nothing failed. ``older`` are the older SpreadGroups of the namespace.
        """
        name = _name(spread_group)
        try:
            written = read_status_of(self._server, spread_group)
            if written is None:
                return ""
            before = read_status(written)
            status = self._assess(spread_group, older, before, feed)
            self.found[name] = GroupWithStatus(spread_group, status)
            if status_json(status) != status_json(before):
                self._write(spread_group, status)
        except ClusterError as error:
            return f"groups: {error}"
        except Exception as error:  # noqa: BLE001 a group must never stop the others
            fields = {"group": "/".join(name), **exception_fields(error)}
            _log.error("a bug stopped the evaluation of a SpreadGroup; other groups continue", extra={"fields": fields})
            return f"groups: failed because of a bug: {type(error).__name__}"
        return ""

    def _assess(
        self, spread_group: SpreadGroup, older: tuple[SpreadGroup, ...], before: SpreadGroupStatus, feed: Feed
    ) -> SpreadGroupStatus:
        now = api_time(self._clock())
        try:
            return self._compute_status(spread_group, older, before, now, feed)
        except CpuLimitError:
            self._given_up[spread_group.meta.namespace] = self._clock() + _GIVEN_UP_SECONDS
            fields = {"group": "/".join(_name(spread_group))}
            _log.warning("a SpreadGroup takes too long: skipping its namespace for an hour", extra={"fields": fields})
            # Keep the existing plan, since other clients may already use it.
            why = f"its evaluation takes more than {_CPU_SECONDS:.0f} s of CPU time"
            return before if before.workloads else unevaluated_status(why, spread_group.generation, before, now)

    def _compute_status(
        self, spread_group: SpreadGroup, older: tuple[SpreadGroup, ...], before: SpreadGroupStatus, now: str, feed: Feed
    ) -> SpreadGroupStatus:
        """Compute the status within the CPU limit. Raises ClusterError or CpuLimitError."""
        group = readable_group(spread_group)
        selector = None if group is None else compile_selector(group.selector).text
        pods = [] if selector is None else pods_of(self._server, spread_group.meta.namespace, selector, MOST_PODS)
        policy = self._policy()
        with feed.lock:
            if group is not None and pods is not None and _by_node(pods, feed.index) != _counted(group, feed.index):
                # The listed pods and the watched pods are from different moments, so the group is due again soon.
                self._last_checks[_name(spread_group)] = _LastCheck(self._clock(), spread_group.generation)
            context = Context(policy=policy, version=feed.version or RECORDED, index=feed.index, now=now)
            evaluate = partial(self._evaluate, spread_group, older, pods, before, context)
            return call_within(_CPU_SECONDS, evaluate)

    def _write(self, spread_group: SpreadGroup, status: SpreadGroupStatus) -> None:
        """Write the status. Raises ClusterError, but not if the API server refuses only this object."""
        if not self._allowance.take(spread_group.meta.namespace):
            self.writes["postponed"] += 1
            return
        try:
            put_status(self._server, spread_group, status_json(status))
        except RefusedError as error:
            if not is_of_one_object(error):
                self.writes["failed"] += 1
                raise
            self.writes["refused"] += 1
            fields = {"group": spread_group.meta.name}
            _log.info("a SpreadGroup's status is refused: %s", error, extra={"fields": fields})
        except ClusterError:
            self.writes["failed"] += 1
            raise
        else:
            self.writes["written"] += 1

    def _write_events(self, *, every: bool) -> None:
        """Write events about newly broken caps. ``every`` means that all groups were reconciled."""
        if self._events is None:
            return
        now = datetime.fromtimestamp(self._clock(), UTC)
        self._events.begin()
        for observed in self.found.values():
            self._events.take((_OF, *_name(observed.group)), group_notices(observed.group, observed.status), now)
        self._events.end(() if every else (_OF,))


def _name(spread_group: SpreadGroup) -> _Name:
    return spread_group.meta.namespace, spread_group.meta.name


def _fingerprint(spread_group: SpreadGroup, index: ReadOnlyIndex) -> object:
    """Return a value that changes with the group's workloads, the group's pods or the nodes."""
    group = readable_group(spread_group)
    if group is None:
        return None
    view, selector = index.nodes.view(), compile_selector(group.selector)
    counts = index.pods.count(group.namespace, selector)
    waiting = index.pods.count_waiting(group.namespace, selector)
    workloads = tuple((workload.meta.uid, workload.meta.resource_version) for workload in workloads_of(group, index))
    return tuple(sorted(counts.items())), waiting, workloads, view.live


def _by_node(pods: Iterable[Pod], index: ReadOnlyIndex) -> Counts:
    slots = index.nodes.view().slots
    return Counter(slots[node] for pod in filter(is_counted, pods) if (node := pod.pod_spec.node_name or "") in slots)


def _counted(group: Group, index: ReadOnlyIndex) -> Counts:
    """Return the number of the group's pods in the index by node slot, without pods of deleted nodes."""
    live = {*index.nodes.view().slots.values()}
    counts = index.pods.count(group.namespace, compile_selector(group.selector))
    return {slot: pods for slot, pods in counts.items() if slot in live}
