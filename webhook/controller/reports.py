"""Write the reports of a scan: new and changed reports are written, obsolete reports deleted.

    begin    find the report API, and read the existing reports.
    take     write the report of a scanned workload.
    end      delete the reports of workloads without results.
    update   write or delete the report of a workload after another scan.

The next leader finds the same reports and writes only the differences. So a change of leaders neither loses nor repeats
a report. A report changed or deleted by others is repaired by the next full scan.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any

from msgspec import Struct

from webhook.cluster.connection import ApiServer
from webhook.cluster.errors import ClusterError, RefusedError
from webhook.cluster.writing.reports import ReportStore, is_of_one_object, report_store
from webhook.controller.bounds import Allowance
from webhook.controller.workload_lister import ObjectName, UnreadNames, is_among
from webhook.core.workloads.kinds import GroupKind, group_kind
from webhook.logs import bounded
from webhook.report.documents import KINDS, ReportApi, ReportContent, content_hash, report

_FAILURES = 4  # in a row, within about 7 s; then the writer stops until the next scan
# Doubled after each failure. A longer wait requested by the API server is cut, since the next scan writes again.
_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 0.5, 10.0
NO_API = "no API for reports in this cluster: install openreports.io/v1alpha1 or wgpolicyk8s.io/v1alpha2"

_log = logging.getLogger(__name__)


class _ExistingReport(Struct, frozen=True):
    content_hash: str
    kind: GroupKind
    name: str  # of the workload


class ReportWriter:
    """Writes the reports of a scan. For a single thread.

    Args:
        may_write: Called before each write. If false, nothing is written.
        pause: Sleeps for a number of seconds.

    Attributes:
        api: The Kubernetes API that stores the reports. None if the cluster has none, or before the first scan.
        fault: The reason for missing reports in the last scan. Empty if all were written.
        behind: Whether a write or deletion of a report was postponed, or failed, since the scan began.
        writes: The number of writes by outcome: written, removed, postponed (rate limit), refused (the API server
            rejects this report, or every report in its namespace), failed.
    """

    def __init__(
        self,
        server: ApiServer,
        allowance: Allowance,
        *,
        may_write: Callable[[], bool],
        pause: Callable[[float], object],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._server = server
        self._allowance = allowance
        self._may_write = may_write
        self._pause = pause
        self._clock = clock
        self._stores: Mapping[ReportApi, ReportStore] = {}
        self._there: dict[tuple[ReportApi, str, str], _ExistingReport] = {}
        self._wanted: set[tuple[str, str]] = set()
        self._failures = 0
        self._stopped = True
        self._logged_fault = ""
        self.api: ReportApi | None = None
        self.fault, self.behind = "", False
        self.writes: Counter[str] = Counter(written=0, removed=0, postponed=0, refused=0, failed=0)

    def begin(self) -> None:
        """Read the existing reports. Never raises if the API server cannot be read: the error becomes ``fault``."""
        self._there, self._wanted, self._failures, self._stopped, self.behind = {}, set(), 0, True, False
        try:
            stores = {api: report_store(self._server, str(api), KINDS[api]) for api in ReportApi}
            self._stores = {api: store for api, store in stores.items() if store is not None}
            self.api = next(iter(self._stores), None)
            for api, store in self._stores.items():
                for document in store.ours():
                    self._note(api, document)
        except ClusterError as error:
            self._set_fault(f"reports cannot be read: {error}")
            return
        self._stopped = self.api is None
        self._set_fault(NO_API if self.api is None else "")

    def take(self, wanted: ReportContent | None) -> None:
        """Write the report of a workload, if its content has changed."""
        if wanted is None or self.api is None:
            return
        document: Mapping[str, Any] = report(wanted, self.api, int(self._clock()))
        name = document["metadata"]["name"]
        self._wanted.add((wanted.namespace, name))
        there = self._there.get((self.api, wanted.namespace, name))
        if not wanted.namespace or (there is not None and there.content_hash == content_hash(document)):
            return
        if self._write(wanted.namespace, "written", partial(self._stores[self.api].put, document)):
            self._note(self.api, document)

    def update(self, workload: ObjectName, wanted: ReportContent | None) -> None:
        """Write the report of a workload. Without ``wanted`` content, delete it."""
        self.take(wanted)
        for (api, namespace, name), existing in list(self._there.items()) if wanted is None else ():
            if (existing.kind, namespace, existing.name) == workload:
                self._remove(api, namespace, name)

    def end(self, unread: UnreadNames = ()) -> None:
        """Delete the reports of workloads without a report in this scan.

        Reports of ``unread`` kinds and objects stay.
        """
        for (api, namespace, name), existing in list(self._there.items()):
            wanted = api is self.api and (namespace, name) in self._wanted
            if not wanted and not is_among(unread, (existing.kind, namespace, existing.name)):
                self._remove(api, namespace, name)
        self._allowance.forget_idle()

    def _note(self, api: ReportApi, document: Mapping[str, Any]) -> None:
        meta, scope = document.get("metadata") or {}, document.get("scope") or {}
        kind = group_kind(str(scope.get("apiVersion", "")), str(scope.get("kind", "")))
        at = (api, str(meta.get("namespace", "")), str(meta.get("name", "")))
        self._there[at] = _ExistingReport(content_hash(document), kind, str(scope.get("name", "")))

    def _remove(self, api: ReportApi, namespace: str, name: str) -> None:
        if self._write(namespace, "removed", partial(self._stores[api].remove, namespace, name)):
            del self._there[api, namespace, name]

    def _write(self, namespace: str, outcome: str, act: Callable[[], None]) -> bool:
        """Call ``act`` to write or delete a report. Returns False if a limit, a refusal or a failure prevents it."""
        if self._stopped or not self._may_write():
            self.behind = True
            return False
        if not self._allowance.take(namespace):
            self.writes["postponed"] += 1
            self.behind = True
            return False
        try:
            act()
        except ClusterError as error:
            refusal = error if isinstance(error, RefusedError) else None
            if refusal is not None and is_of_one_object(refusal):
                self.writes["refused"] += 1
                _log.debug("a report cannot be written: %s", error)
            else:
                self._failed(error, refusal)
            self.behind = True
            return False
        self.writes[outcome] += 1
        self._failures = 0
        return True

    def _failed(self, error: ClusterError, refusal: RefusedError | None) -> None:
        self.writes["failed"] += 1
        self._failures += 1
        forbidden = refusal is not None and refusal.status == HTTPStatus.FORBIDDEN
        hint = "; grant patch and delete of reports" if forbidden else ""
        if hint or self._failures >= _FAILURES:
            self._stopped = True
            self._set_fault(f"reports cannot be written: {error}{hint}")
            return
        asked = refusal.retry_after if refusal is not None else 0.0
        self._pause(min(max(asked, _WAIT_SECONDS * 2**self._failures), _LONGEST_WAIT_SECONDS))

    def _set_fault(self, fault: str) -> None:
        self.fault = bounded(fault)
        if self.fault != self._logged_fault:
            if self.fault:
                _log.warning("%s", self.fault)
            else:
                _log.info("reports are written", extra={"fields": {"api": str(self.api)}})
            self._logged_fault = self.fault
