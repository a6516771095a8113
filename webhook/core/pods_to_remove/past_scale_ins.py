"""Past scale-ins of a Deployment, as the causes of its skews.

Kubernetes promises no event, and deletes events after an hour by default. So a scale-in is a cause only if the events
name the node of every removed pod, no pod was placed since, and the skew would be within maxSkew with these pods.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec import Struct

from webhook.core.api.selectors import Selector
from webhook.core.api.types import ApiType
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.pods_to_remove.running_pod import nanoseconds
from webhook.core.scheduler.plugins.pod_topology_spread import DomainCounts
from webhook.core.workloads.kinds import DEPLOYMENT, POD, REPLICA_SET, native_version
from webhook.core.workloads.workload import Workload, compiled, selector_of

SCALED, DELETED, STOPPED, PLACED = "ScalingReplicaSet", "SuccessfulDelete", "Killing", "Scheduled"
"""The reasons of the events of a scale-in, and of a pod placed since."""

_SCALED_DOWN = re.compile(
    r"Scaled down replica set (\S+) (?:from (\d{1,10}) to (\d{1,10})|to (\d{1,10}) from (\d{1,10}))"
)


class _InvolvedObject(ApiType, frozen=True):
    kind: str = ""
    name: str = ""


class _Source(ApiType, frozen=True):
    host: str = ""


class Event(ApiType, frozen=True):
    """The fields of an Event about a scale-in. kube-scheduler sets only ``event_time``, others the timestamp."""

    reason: str = ""
    message: str = ""
    involved_object: _InvolvedObject = _InvolvedObject()
    source: _Source = _Source()
    last_timestamp: datetime | None = None
    event_time: datetime | None = None

    @property
    def at(self) -> int:
        """When it last happened, in nanoseconds since 1970. 0 if unknown."""
        return nanoseconds(self.last_timestamp or self.event_time) or 0

    def is_of(self, kind: str, name: str) -> bool:
        return (self.involved_object.kind, self.involved_object.name) == (kind, name)


class PastScaleIn(Struct, frozen=True, rename={"before": "from", "after": "to"}):
    """A scale-in, or several in a row: the number of pods before and after."""

    before: int
    after: int

    @property
    def text(self) -> str:
        """The cause in words: ``left by scale-in from 9 to 3``."""
        return f"left by scale-in from {self.before:,} to {self.after:,}"


class ScaleDown(Struct, frozen=True):
    """An event of the Deployment controller. ``at`` is in nanoseconds since 1970."""

    at: int
    replica_set: str
    before: int
    after: int


def scale_downs(events: Iterable[Event], deployment: str) -> Sequence[ScaleDown]:
    """Return the Deployment's last scale-downs, newest first: a series of a single ReplicaSet, without a gap.

    Source: pkg/controller/deployment/sync.go ``scaleReplicaSet``. Kubernetes 1.31 writes ``to 3 from 9``. client-go
    tools/record/events_cache.go ``EventAggregatorByReasonMessageFunc`` adds a prefix.
    """
    downs, series = list[ScaleDown](), list[ScaleDown]()
    for event in events:
        found = _SCALED_DOWN.fullmatch(event.message.removeprefix("(combined from similar events): "))
        if found is not None and event.reason == SCALED and event.is_of(DEPLOYMENT[1], deployment):
            downs.append(ScaleDown(event.at, found[1], int(found[2] or found[5]), int(found[3] or found[4])))
    for down in sorted(downs, key=lambda down: -down.at):
        if series and (series[-1].replica_set, series[-1].before) != (down.replica_set, down.after):
            break
        series.append(down)
    return series


def scale_in_causes(
    constraints: Sequence[DomainCounts],
    deployment: Workload,
    namespace: str,
    events: Sequence[Event],
    index: ReadOnlyIndex,
) -> Sequence[PastScaleIn | None]:
    """Return the causes of skews above maxSkew: for each constraint, the shortest series of scale-ins. None if unknown.

    All pods must be of a single ReplicaSet. Otherwise a rollout could be the cause.
    """
    own, downs, known = selector_of(deployment), scale_downs(events, deployment.meta.name), index.pods
    unknown = [None] * len(constraints)
    if own is None or not downs:
        return unknown
    name, left = downs[0].replica_set, downs[0].after
    replica_set = index.owners.get(native_version(REPLICA_SET), REPLICA_SET[1], namespace, name)
    pods = None if replica_set is None else compiled(replica_set.selector)

    def are(number: int, selector: Selector) -> bool:
        return sum(known.count(namespace, selector).values()) == number

    if pods is None or not (are(left, own) and are(left, pods)):
        return unknown
    if known.count_waiting(namespace, own) != known.count_waiting(namespace, pods):
        return unknown
    slots = index.nodes.view().slots
    series = [
        (PastScaleIn(down.before, left), [slots[node] for node in nodes])
        for down in downs
        # A deleted node could have been in any domain.
        if len(nodes := _nodes_left(events, down)) == down.before - left and all(node in slots for node in nodes)
    ]
    return [
        # The removed pods had the labels of those left.
        _cause(each, series) if are(left, pods.joined(each.constraint.selector.requirements)) else None
        for each in constraints
    ]


def _nodes_left(events: Iterable[Event], down: ScaleDown) -> Sequence[str]:
    """Return the node of each pod removed since. Empty if a node is unknown, or if a pod was placed since.

    Source: pkg/controller/controller_utils.go ``DeletePod``; pkg/scheduler/schedule_one.go ``finishBinding``;
    pkg/kubelet/kuberuntime/kuberuntime_container.go ``killContainer``.
    """
    nodes, removed = dict[str, str](), set[str]()
    for event in events:
        pod, is_since = event.involved_object.name, event.at >= down.at
        if event.reason == DELETED and is_since and event.is_of(REPLICA_SET[1], down.replica_set):
            removed.add(event.message.rpartition(" ")[2])
        if event.involved_object.kind != POD[1] or pod.rpartition("-")[0] != down.replica_set:
            continue
        if event.reason == PLACED:
            if is_since:
                return ()
            nodes[pod] = event.message.rpartition(" ")[2]
        elif event.reason == STOPPED and event.message.startswith("Stopping container "):
            nodes[pod] = event.source.host
            removed |= {pod} if is_since else set()
    return [nodes[pod] for pod in removed] if removed <= nodes.keys() else ()


def _cause(domains: DomainCounts, series: Iterable[tuple[PastScaleIn, Sequence[int]]]) -> PastScaleIn | None:
    if is_above_max_skew(domains):
        for scale_in, slots in series:
            if not is_above_max_skew(domains, slots):
                return scale_in
    return None


def is_above_max_skew(domains: DomainCounts, more: Iterable[int] = ()) -> bool:
    """Whether the skew is above maxSkew, with a further pod on each of these nodes.

    Source: podtopologyspread/filtering.go ``minMatchNum``.
    """
    counts = {number: domains.match_num.get(number, 0) for number in domains.column.domains(domains.counting)}
    for slot in more:
        if domains.counting >> slot & 1:
            counts[domains.column.domain_of[slot]] += 1
    lowest = 0 if domains.too_few else min(counts.values(), default=0)
    return max(counts.values(), default=0) - lowest > domains.constraint.max_skew
