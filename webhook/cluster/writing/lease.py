"""Which replica of a role acts, by a Lease: client-go's leader election, over a Lease that the chart has made.

The holder renews it every 2 s. Another one takes it when it has not changed for 15 s, measured on that one's own
monotonic clock: the times in the Lease are for people. A holder that could not renew for 10 s does not act any more, so
that two never do, unless a request of the former one is still on its way; whatever acts must bear that, by versions.

Source: client-go tools/leaderelection/leaderelection.go, with the durations of kube-controller-manager's defaults
(component-base config/v1alpha1/defaults.go).
"""

import logging
import random
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from webhook.cluster.connection import ApiServer, ClusterError
from webhook.logs import bounded

LEASE_SECONDS = 15
RENEW_DEADLINE_SECONDS = 10.0
RETRY_SECONDS = 2.0
_JITTER = 1.2  # of waiting replicas, so that several do not ask at once
_CONFLICT = 409
_RELEASES = 3  # attempts; another one takes over 15 s later in any case

_log = logging.getLogger(__name__)


class Elector:
    """Acquires one Lease. `run` needs a thread of its own; any thread may read ``holder`` and ``fault``."""

    def __init__(
        self,
        server: ApiServer,
        lease: tuple[str, str],
        identity: str,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._server = server
        namespace, name = lease
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"
        self._title = f"Lease {namespace}/{name}"
        self._identity = identity
        self._clock = clock
        self._observed: Mapping[str, Any] | None = None
        self._observed_at = clock()
        self._renewed_at: float | None = None
        self.holder = ""
        self.fault = ""

    @property
    def leading(self) -> bool:
        """Whether this replica may act now."""
        renewed = self._renewed_at
        return renewed is not None and self._clock() < renewed + RENEW_DEADLINE_SECONDS

    def run(self, stop: threading.Event) -> None:
        """Acquire and renew until it is stopped; then give it back."""
        while not stop.is_set():
            led = self.leading
            self.turn()
            if self.leading != led:
                _log.info(
                    "leading" if self.leading else "not leading any more", extra={"fields": {"lease": self._title}}
                )
            # As in client-go: a waiting replica is late by up to 1.2 times the period, the holder is not.
            late = 0.0 if self.leading else random.uniform(0.0, _JITTER)  # noqa: S311 spreads load, keeps no secret
            stop.wait(RETRY_SECONDS * (1 + late))
        self.release()

    def turn(self) -> None:
        """Try once to acquire or renew it. Never raises."""
        try:
            self._turn()
        except ClusterError as error:
            self._failed(str(error))

    def release(self) -> None:
        """Give it back, so that no replica waits for its end. Never raises."""
        for _ in range(_RELEASES if self._renewed_at is not None else 0):
            try:
                lease = self._read()
                held = lease.get("spec") or {}
                if held.get("holderIdentity") != self._identity:
                    break
                now = _now()
                given_back = {"leaseDurationSeconds": 1, "renewTime": now, "acquireTime": now}
                given_back["leaseTransitions"] = held.get("leaseTransitions", 0)
                if self._write(lease, given_back) != _CONFLICT:
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
        written = _now()
        wanted = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": written,
            "acquireTime": held.get("acquireTime", written) if mine else written,
            "leaseTransitions": held.get("leaseTransitions", 0) + (not mine),
        }
        status = self._write(lease, wanted)
        if status == 200:
            self._observed, self._observed_at, self.holder = wanted, now, self._identity
            # From before the request: no other replica counts from later than when it was written.
            self._renewed_at, self.fault = now, ""
        elif status != _CONFLICT:
            self._failed(f"{self._title} cannot be written: {status}")

    def _read(self) -> Mapping[str, Any]:
        """The Lease."""
        answer = self._server.send("GET", self._path)
        if answer.status != 200:
            raise ClusterError(f"{self._title}: {answer.status} {answer.content.get('message', '')}")
        return answer.content

    def _write(self, lease: Mapping[str, Any], spec: Mapping[str, Any]) -> int:
        """Replace its spec unless it has changed since it was read; returns the status."""
        return self._server.send("PUT", self._path, {**lease, "spec": spec}).status

    def _failed(self, text: str) -> None:
        told = bounded(text)
        if told != self.fault:
            _log.warning("the lease has a fault: %s", told)
        self.fault = told


def _now() -> str:
    """MicroTime, as Leases have it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
