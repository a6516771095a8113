"""Keep the results of scans, and yield the objects to scan again between two full scans.

After an event of a workload, its object is read and scanned again. After a change of another fact, such as a node, the
objects with results based on this fact are scanned again from memory. Kinds without a watch, and pods without a
workload, are listed at intervals.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter

from webhook.cluster.unowned_pods import UnownedPod
from webhook.controller.bounds import CpuLimitError, call_within
from webhook.controller.workload_lister import ObjectJson, ObjectName, WorkloadLister
from webhook.core.index.objects import ApiObject
from webhook.core.scan.facts import Changes
from webhook.core.scan.known_workloads import KnownWorkloads, key_of_object
from webhook.core.scan.scan_context import ObjectKey, ScanContext
from webhook.core.scan.scan_results import ScannedWorkload

# An update writes events at its end. One busy namespace must not delay them.
_READ_SECONDS = 3.0

Evaluate = Callable[[ObjectJson, ScanContext], ScannedWorkload | None]

_log = logging.getLogger(__name__)


class Updates:
    """The scan results of all workloads, kept while this replica leads.

    Callers of `apply` and `note` hold the feed's lock. Only `apply` may run in other threads than the scan's thread.

    Attributes:
        known: The results by workload.
        lister: The lister of the last full scan. None before the end of the first full scan, when results are
            incomplete.
        read: Objects read since the start of a full scan. The full scan's list pages may have older versions of them.
        gone: Deleted workloads. The caller clears the set.
        moved: Whether a pod has changed. The caller resets the flag.
    """

    def __init__(
        self, evaluate: Evaluate, workload_seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._evaluate = evaluate
        self._workload_seconds = workload_seconds
        self._clock = clock
        self.known = KnownWorkloads()
        self.lister: WorkloadLister | None = None
        self.read: set[ObjectKey] = set()
        self.gone: set[ObjectName] = set()
        self.moved = False
        self._changes = Changes()
        self._owners: set[ObjectKey] = set()

    def apply(self, changes: Sequence[tuple[str, ApiObject]]) -> None:
        """Record the objects changed by these watch events, for the next scan."""
        for event, value in changes:
            self._changes.add(value, deleted=event == "DELETED")

    def note(self, within: ScanContext) -> None:
        """Mark the workloads to scan again because a fact in their results has changed.

        `objects` yields these workloads.
        """
        topics, owners = self._changes.take()
        self.known.note(topics, within)
        self.moved |= any(view == "pods" and namespace for view, namespace in topics)
        self._owners |= owners

    def begin(self) -> None:
        """Start a full scan. It reads all objects."""
        self._owners.clear()
        self.read.clear()

    def objects(self, unowned: tuple[UnownedPod, ...] | None) -> Iterator[list[ObjectJson]]:
        """Yield the objects to scan again.

        Args:
            unowned: The pods without a workload, or None. With pods, also list them and all kinds without a watch, and
                yield the many workloads affected by a change of the whole cluster.

        Raises:
            ClusterError: The API server does not answer. The next call continues.
        """
        due = self.known.due(every=unowned is not None)
        yield [raw for key in sorted(due) if (raw := self.known.raw(key)) is not None]
        lister = self.lister
        if lister is None:
            return
        read = self._read(lister)
        self._owners -= read.keys()
        self.read |= read.keys()
        self._drop({key for key, raw in read.items() if raw is None})
        yield [raw for raw in read.values() if raw is not None and not self.known.is_current(raw)]
        if unowned is not None:
            yield from self._list_unwatched(lister, unowned)

    def scan(self, raw: ObjectJson, within: ScanContext, lister: WorkloadLister) -> ScannedWorkload | None:
        """Scan an object, and keep the result. None without a result: not a workload, or out of time."""

        def evaluate(raw: ObjectJson, recorded: ScanContext) -> ScannedWorkload | None:
            return call_within(self._workload_seconds, partial(self._evaluate, raw, recorded))

        try:
            return self.known.scan(raw, within, evaluate)
        except CpuLimitError:
            key = key_of_object(raw)
            fields = {"kind": key.kind, "namespace": key.namespace, "name": key.name}
            _log.warning("a workload takes too long to scan; its report stays unchanged", extra={"fields": fields})
            lister.unread.add(((key.group, key.kind), key.namespace, key.name))
            self.known.drop([key])
            return None

    def _read(self, lister: WorkloadLister) -> dict[ObjectKey, ObjectJson | None]:
        """Read the workloads with new watch events, for three seconds.

        One workload of each namespace is read in turn. The next update reads the remaining workloads.
        """
        of_namespaces = groupby(sorted(self._owners), attrgetter("namespace"))
        turns = sorted((turn, key) for _, keys in of_namespaces for turn, key in enumerate(keys))
        read, until = dict[ObjectKey, ObjectJson | None](), self._clock() + _READ_SECONDS
        for _, key in turns:
            read[key] = lister.read(key) if lister.is_watched((key.group, key.kind)) else None
            if self._clock() >= until:
                break
        return read

    def _list_unwatched(self, lister: WorkloadLister, unowned: tuple[UnownedPod, ...]) -> Iterator[list[ObjectJson]]:
        seen = set[ObjectKey]()
        lister.list_unwatched(unowned)
        for listed in lister.objects():
            seen |= {key_of_object(raw) for raw in listed}
            yield [raw for raw in listed if not self.known.is_current(raw)]
        self._drop({key for key in self.known.keys() - seen if not lister.is_watched((key.group, key.kind))})

    def _drop(self, keys: set[ObjectKey]) -> None:
        dropped = keys & self.known.keys()
        self.known.drop(dropped)
        self.gone |= {((key.group, key.kind), key.namespace, key.name) for key in dropped}
