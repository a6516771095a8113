"""Elect the acting replica by a Lease, as client-go does.

The chart creates the Lease. The acting replica renews the Lease every 2 s. Another replica takes over if the Lease did
not change for 15 s by its own monotonic clock. The times in the Lease are for readers, and no replica compares them. A
replica stops acting after 10 s without a renewal, so two replicas never act together. Exception: a request of the
former replica may still be on its way. Writers handle this case by object versions.

Source: client-go tools/leaderelection/leaderelection.go, with the durations of kube-controller-manager's defaults
    (component-base config/v1alpha1/defaults.go).
"""

import logging
import random
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from http import HTTPStatus

from webhook.cluster.connection import ApiServer, JsonObject
from webhook.cluster.errors import ClusterError
from webhook.core.api.times import micro_time
from webhook.logs import log_change

_LEASE_SECONDS = 15
_RENEW_DEADLINE_SECONDS = 10.0
RETRY_SECONDS = 2.0
_JITTER = 1.2  # randomises waiting replicas, so that they do not retry together
_RELEASES = 3  # attempts; without a release, another replica takes over 15 s later

_log = logging.getLogger(__name__)


class Elector:
    """Acquires a Lease. `run` needs its own thread, and any thread may read ``holder`` and ``fault``."""

    def __init__(
        self, server: ApiServer, lease: tuple[str, str], identity: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._server = server
        namespace, name = lease
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"
        self._title = f"Lease {namespace}/{name}"
        self._identity = identity
        self._clock = clock
        self._observed: JsonObject | None = None
        self._observed_at = clock()
        self._renewed_at: float | None = None
        self.holder = ""
        self.fault = ""

    @property
    def leading(self) -> bool:
        """Whether this replica may act now."""
        renewed = self._renewed_at
        return renewed is not None and self._clock() < renewed + _RENEW_DEADLINE_SECONDS

    def run(self, stop: threading.Event) -> None:
        """Acquire and renew the Lease until stopped, then release it."""
        while not stop.is_set():
            led = self.leading
            self.turn()
            if self.leading != led:
                _log.info("leading" if self.leading else "no longer leading", extra={"fields": {"lease": self._title}})
            # As in client-go, a waiting replica is late by up to 1.2 times the period. The holder is on time.
            late = 0.0 if self.leading else random.uniform(0.0, _JITTER)  # noqa: S311 spreads load, keeps no secret
            stop.wait(RETRY_SECONDS * (1 + late))
        self.release()

    def turn(self) -> None:
        """Try once to acquire or renew the Lease. Never raises."""
        try:
            self._turn()
        except ClusterError as error:
            self._failed(str(error))

    def release(self) -> None:
        """Release the Lease, so no replica waits for its end. Never raises."""
        for _ in range(_RELEASES if self._renewed_at is not None else 0):
            try:
                lease = self._read()
                held = lease.get("spec") or {}
                if held.get("holderIdentity") != self._identity:
                    break
                now = micro_time(datetime.now(UTC))
                given_back = {"leaseDurationSeconds": 1, "renewTime": now, "acquireTime": now}
                given_back["leaseTransitions"] = held.get("leaseTransitions", 0)
                if self._write(lease, given_back) != HTTPStatus.CONFLICT:
                    break
            except ClusterError as error:
                self._failed(str(error))
                break
        self._renewed_at = None

    def _turn(self) -> None:
        lease = self._read()
        now = self._clock()
        held = lease.get("spec") or {}
        if held != self._observed:
            self._observed, self._observed_at = held, now
        self.holder = held.get("holderIdentity") or ""
        mine = self.holder == self._identity
        if self.holder and not mine and now < self._observed_at + (held.get("leaseDurationSeconds") or 0):
            self._renewed_at, self.fault = None, ""
            return
        written = micro_time(datetime.now(UTC))
        wanted = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": _LEASE_SECONDS,
            "renewTime": written,
            "acquireTime": held.get("acquireTime", written) if mine else written,
            "leaseTransitions": held.get("leaseTransitions", 0) + (not mine),
        }
        status = self._write(lease, wanted)
        if status == HTTPStatus.OK:
            self._observed, self._observed_at, self.holder = wanted, now, self._identity
            # Counted from before the request: other replicas count from its arrival or later.
            self._renewed_at, self.fault = now, ""
        elif status != HTTPStatus.CONFLICT:
            self._failed(f"{self._title} cannot be written: {status}")

    def _read(self) -> JsonObject:
        answer = self._server.send("GET", self._path)
        if answer.status != HTTPStatus.OK:
            raise ClusterError(f"{self._title}: {answer.status} {answer.content.get('message', '')}")
        return answer.content

    def _write(self, lease: JsonObject, spec: JsonObject) -> int:
        """Replace the spec, unless the Lease has changed since reading. Returns the HTTP status."""
        return self._server.send("PUT", self._path, {**lease, "spec": spec}).status

    def _failed(self, text: str) -> None:
        self.fault = log_change(_log, "the lease cannot be acquired or renewed: %s", text, self.fault)
