"""The SpreadGroups of the cluster, looked after: each is planned and measured, and its status written.

A group is looked at when its spec, its workloads, its pods or the nodes have changed, and now and then anyway; in a
turn one of each namespace, the one that was not looked at for longest. So a tenant with many groups waits for its own.
A turn ends after a second, and those that were not looked at for longest come first in the next one. What looking
takes is made up for by a pause of nine times as long, whoever asked for it. A group that takes longer than others can
wait is given up, and its namespace with it, for an hour.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

from webhook.cluster.connection import ApiServer, ClusterError, RefusedError
from webhook.cluster.feed import Feed
from webhook.cluster.writing.group_status import pods_of, put_status, read_status_of
from webhook.cluster.writing.reports import is_of_one_object
from webhook.controller.bounds import Allowance, OutOfTimeError, call_within
from webhook.controller.events import EventWriter
from webhook.core.api.selectors import compile_selector
from webhook.core.api.spread_group import API_VERSION, KIND, MOST_GROUPS, SpreadGroup
from webhook.core.api.types import Pod
from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.groups.group import Group
from webhook.core.groups.status.assess import not_evaluated
from webhook.core.groups.status.forms import Found, Status, as_json, read_status
from webhook.core.index.pods import Counts
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.policy.policy import Policy
from webhook.core.scan.group_members import group_status, is_counted, readable_group, workloads_of
from webhook.core.workloads.kinds import group_kind
from webhook.logs import bounded, exception_fields
from webhook.report.scanned import group_notices

_LOOK_SECONDS = 5.0  # between two looks at one group whose spec stays
_ANYWAY_SECONDS = 60.0
_PAUSE = 9  # times what was used
_TURN_SECONDS = 1.0  # then scans and reports go on
# For one group: the index is held meanwhile. A group of 400 pods beside 5,000 nodes takes a few seconds.
_MOST_SECONDS, _GIVEN_UP_SECONDS = 20.0, 3600.0
_OF = group_kind(API_VERSION, KIND)

_log = logging.getLogger(__name__)

_Name = tuple[str, str]  # namespace, name


class _Looked(NamedTuple):
    at: float = 0.0
    generation: int = -1
    mark: object = None  # of what was seen; another one is looked at again


class GroupReconciler:
    """See the module; for one thread, any thread may read the rest.

    Shape: ``found`` are the groups that were looked at while this replica leads. ``writes`` counts statuses by what
    became of them, as reports. ``fault`` says why not all could be looked at or written.
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
    ) -> None:
        self._server = server
        self._policy = policy
        self._allowance = allowance
        self._events = events
        self._may_write = may_write
        self._clock = clock
        self.writes: Counter[str] = Counter(written=0, postponed=0, refused=0, failed=0)
        self.forget()

    def forget(self) -> None:
        """Begin anew: another replica may have led meanwhile."""
        self._looked: dict[_Name, _Looked] = {}
        self._due = 0.0
        self._given_up: dict[str, float] = {}  # namespaces, and until when
        self.found: dict[_Name, Found] = {}
        self.fault = ""
        if self._events is not None:
            self._events.forget()

    def turn(self, feed: Feed) -> None:
        """Look at what is due. Never raises for what the API server says, nor for what a group says."""
        if self._clock() < self._due:
            return
        used, until = time.thread_time(), time.monotonic() + _TURN_SECONDS
        with feed.lock:
            known = feed.index.namespaces.all_groups()
            due = sorted(self._chosen(known, feed.index), key=lambda each: self._before(each[0]).at)
        names = {_name(each) for of in known.values() for each in of}
        self.found = {name: found for name, found in self.found.items() if name in names}
        self._looked = {name: looked for name, looked in self._looked.items() if name in names}
        fault = ""
        for number, (group, older, mark) in enumerate(due):
            if not self._may_write():
                return
            if number and time.monotonic() >= until:
                break
            self._looked[_name(group)] = _Looked(self._clock(), group.generation, mark)
            fault = self._look(group, older, feed) or fault
        self._say(fault)
        self._tell(every=names <= self._looked.keys())
        self._due = self._clock() + max(1.0, _PAUSE * (time.thread_time() - used))

    def _chosen(
        self, known: Mapping[str, tuple[SpreadGroup, ...]], index: ReadOnlyIndex
    ) -> Iterator[tuple[SpreadGroup, tuple[SpreadGroup, ...], object]]:
        """Of each namespace the group that is due for longest, those that are older, and a mark of what there is."""
        now = self._clock()
        self._given_up = {name: until for name, until in self._given_up.items() if until > now}
        for namespace, groups in known.items():
            if namespace in self._given_up:
                continue
            before = [self._before(each) for each in groups]
            for number in sorted(range(len(groups)), key=lambda each: before[each].at):
                group, last = groups[number], before[number]
                if now - last.at < _LOOK_SECONDS and group.generation == last.generation:
                    continue
                # Of those that are not planned nothing new is looked for: a tenant may make thousands.
                mark = _mark(group, index) if number < MOST_GROUPS else None
                if now - last.at >= _ANYWAY_SECONDS or (group.generation, mark) != (last.generation, last.mark):
                    yield group, groups[:number], mark
                    break

    def _before(self, of: SpreadGroup) -> _Looked:
        return self._looked.get(_name(of), _Looked())

    def _look(self, of: SpreadGroup, older: tuple[SpreadGroup, ...], feed: Feed) -> str:
        """Look at one group, and write what differs; returns what is in the way."""
        name = _name(of)
        try:
            written = read_status_of(self._server, of)
            if written is None:
                return ""
            before = read_status(written)
            status = self._assessed(of, older, before, feed)
            self.found[name] = Found(of, status)
            if as_json(status) != as_json(before):
                self._write(of, status)
        except ClusterError as error:
            return f"groups: {error}"
        except Exception as error:  # noqa: BLE001 whatever one group does to us, the others are looked at
            fields = {"group": "/".join(name), **exception_fields(error)}
            _log.error("a group could not be looked at by a bug; the others are", extra={"fields": fields})
            return f"groups: failed by a bug: {type(error).__name__}"
        return ""

    def _assessed(self, of: SpreadGroup, older: tuple[SpreadGroup, ...], before: Status, feed: Feed) -> Status:
        now = datetime.fromtimestamp(self._clock(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        try:
            return self._in_time(of, older, before, now, feed)
        except OutOfTimeError:
            self._given_up[of.meta.namespace] = self._clock() + _GIVEN_UP_SECONDS
            _log.warning("a group takes too long to look at", extra={"fields": {"group": "/".join(_name(of))}})
            # What is planned stays as it is: others may have it by now.
            why = f"it takes more than {_MOST_SECONDS:.0f} s of the processor to look at"
            return before if before.workloads else not_evaluated(why, of.generation, before, now)

    def _in_time(self, of: SpreadGroup, older: tuple[SpreadGroup, ...], before: Status, now: str, feed: Feed) -> Status:
        """Errors: ClusterError; OutOfTimeError."""
        group = readable_group(of)
        asked = None if group is None else compile_selector(group.selector).text
        pods = [] if asked is None else pods_of(self._server, of.meta.namespace, asked)
        policy = self._policy()
        with feed.lock:
            if group is not None and pods is not None and _by_node(pods, feed.index) != _counted(group, feed.index):
                # The pods that were asked for and those that watches told of are not of one moment: soon again.
                self._looked[_name(of)] = _Looked(self._clock(), of.generation)
            within = Context(policy=policy, version=feed.version or RECORDED, index=feed.index, now=now)
            return call_within(_MOST_SECONDS, partial(group_status, of, older, pods, before, within))

    def _write(self, of: SpreadGroup, status: Status) -> None:
        """Errors: ClusterError, but for a refusal of that one object."""
        if not self._allowance.take(of.meta.namespace):
            self.writes["postponed"] += 1
            return
        try:
            put_status(self._server, of, as_json(status))
        except RefusedError as error:
            if not is_of_one_object(error):
                self.writes["failed"] += 1
                raise
            self.writes["refused"] += 1
            _log.info("a status is refused: %s", error, extra={"fields": {"group": of.meta.name}})
        except ClusterError:
            self.writes["failed"] += 1
            raise
        else:
            self.writes["written"] += 1

    def _tell(self, *, every: bool) -> None:
        """Tell of caps that begin to be broken; ``every`` says that all groups were looked at."""
        if self._events is None:
            return
        now = datetime.fromtimestamp(self._clock(), UTC)
        self._events.begin()
        for found in self.found.values():
            self._events.take((_OF, *_name(found.group)), group_notices(found.group, found.status), now)
        self._events.end(() if every else (_OF,))

    def _say(self, fault: str) -> None:
        told = bounded(fault)
        if told and told != self.fault:
            _log.warning("%s", told)
        self.fault = told


def _name(of: SpreadGroup) -> _Name:
    return of.meta.namespace, of.meta.name


def _mark(of: SpreadGroup, index: ReadOnlyIndex) -> object:
    """Another one when the group's workloads or pods, or the nodes, are others."""
    group = readable_group(of)
    if group is None:
        return None
    view, selector = index.nodes.view(), compile_selector(group.selector)
    counts = index.pods.count(group.namespace, selector)
    waiting = index.pods.count_waiting(group.namespace, selector)
    workloads = tuple((each.meta.uid, each.meta.resource_version) for each in workloads_of(group, index))
    return tuple(sorted(counts.items())), waiting, workloads, view.live


def _by_node(pods: Iterable[Pod], index: ReadOnlyIndex) -> Counts:
    slots = index.nodes.view().slots
    return Counter(slots[node] for each in filter(is_counted, pods) if (node := each.pod_spec.node_name or "") in slots)


def _counted(group: Group, index: ReadOnlyIndex) -> Counts:
    """What watches told of; pods of a node that is gone are no news."""
    live = {*index.nodes.view().slots.values()}
    counts = index.pods.count(group.namespace, compile_selector(group.selector))
    return {slot: pods for slot, pods in counts.items() if slot in live}
