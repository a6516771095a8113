"""The controller's process: election, scan, webhook configurations and health port.

The elector and the scan have their own threads. The health port serves liveness, readiness and metrics in plain HTTP,
for kubelets and scrapers.
"""

import http.server
import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from webhook.bounded_threads import BoundedThreads
from webhook.cluster.writing.lease import RETRY_SECONDS, Elector
from webhook.controller.admission_policies import PolicyUpkeep
from webhook.controller.authority import AuthorityUpkeep
from webhook.controller.figures import ScanFigures
from webhook.controller.scan import Scanner
from webhook.logs import bounded, exception_fields
from webhook.metrics import register_process

_JOIN_SECONDS = 5.0  # for releasing the lease
_LEAST_SECONDS = 0.1  # between two checks, for any rate of changes

_log = logging.getLogger(__name__)

_PATIENCE_SECONDS = 5.0  # for receiving a request

# Status, media type, text.
Page = Callable[[], tuple[int, str, bytes]]


class Controller(Collector):
    """Runs the controller's tasks and reports their state. One thread calls ``turn``.

    Any thread may call the other methods.

    Args:
        authority: Completes the webhook configurations. None leaves them alone.
        scanner: Scans the cluster. None disables scans.
        policies: Writes the admission policies while this replica leads. None without them.
    """

    def __init__(
        self,
        elector: Elector,
        authority: AuthorityUpkeep | None = None,
        scanner: Scanner | None = None,
        policies: PolicyUpkeep | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._elector = elector
        self._authority = authority
        self._scanner = scanner
        self._policies = policies
        self._clock = clock
        self._due = clock()
        self._looked = False
        self._fault = ""
        self.changed = threading.Event()  # set on changes of the Secret or the configurations
        self._registry = CollectorRegistry()
        register_process(self._registry)
        self._registry.register(self)
        if scanner is not None:
            self._registry.register(ScanFigures(scanner))

    def turn(self) -> None:
        """Reconcile the CA, the webhook configurations and the admission policies, if due. Never raises."""
        self._turn_authority()
        if self._policies is not None:
            if self._elector.leading:
                self._policies.turn()
            else:
                self._policies.forget()

    def _turn_authority(self) -> None:
        if self._authority is None or (not self.changed.is_set() and self._clock() < self._due):
            return
        self.changed.clear()
        try:
            self._authority.reconcile()
        except Exception as error:  # noqa: BLE001 any error: without another attempt the CA would expire
            fault = bounded(str(error))
            if fault != self._fault:
                _log.warning("the CA cannot be maintained: %s", fault, extra={"fields": exception_fields(error)})
            self._fault = fault
        else:
            self._fault, self._looked = "", self._looked or not self._authority.waiting
        self._due = self._clock() + self._authority.seconds

    def follow(self) -> None:
        """Watch the CA's Secret and the webhook configurations, to reconcile changes at once."""
        if self._authority is not None:
            self._authority.follow(self.changed.set)

    def readiness(self) -> tuple[bool, str]:
        """Return whether this replica is ready, and the text of /readyz.

        A replica is ready once the API server trusts the webhook, so `helm --wait` ends with a working webhook. A
        standby replica must also know the leader. Readiness does not wait for a scan.
        """
        elector, leading = self._elector, self._elector.leading
        held = "yes" if leading else f"no; the leader is {elector.holder or 'not elected yet'}"
        lines = {"leading": elector.fault or held}
        if self._authority is not None:
            lines["webhook configurations"] = self._fault or self._authority.waiting or "ok"
        if self._policies is not None and leading:
            lines["admission policies"] = self._policies.fault or "ok"
        if self._scanner is not None and leading:
            lines.update(self._scanner.lines())
        standing_by = bool(elector.holder) and not elector.fault
        ready = (leading or standing_by) and (self._looked or self._authority is None)
        return ready, "".join(f"{name}: {text}\n" for name, text in lines.items())

    def pages(self) -> dict[str, Page]:

        def ready() -> tuple[int, str, bytes]:
            fine, text = self.readiness()
            return 200 if fine else 503, "text/plain", text.encode()

        return {
            "/healthz": lambda: (200, "text/plain", b"ok\n"),
            "/readyz": ready,
            "/metrics": lambda: (200, "text/plain; version=0.0.4", generate_latest(self._registry)),
        }

    def collect(self) -> Iterator[Metric]:
        leading, authority, policies = self._elector.leading, self._authority, self._policies
        yield GaugeMetricFamily("evenspread_leader", "1 if this replica leads.", value=leading)
        if policies is not None and leading:
            yield GaugeMetricFamily(
                "evenspread_admission_policies_valid",
                "1 if the admission policies were those of the policy file at the last check.",
                value=not policies.fault,
            )
        if authority is None:
            return
        yield GaugeMetricFamily(
            "evenspread_ca_bundle_valid",
            "1 if the API server trusted the CA at the last check.",
            value=self._looked and not self._fault,
        )
        if authority.expires is not None:
            yield GaugeMetricFamily(
                "evenspread_ca_expiry_timestamp_seconds", "End of the CA.", value=authority.expires.timestamp()
            )
        yield CounterMetricFamily(
            "evenspread_ca_bundle_writes", "Webhook configurations whose caBundle was written.", value=authority.writes
        )


def run(controller: Controller, elector: Elector, scanner: Scanner | None, bind: tuple[str, int]) -> None:
    """Run the controller until a signal ends it.

    Raises:
        OSError: The health port is not available.
    """
    stop, give_back = threading.Event(), threading.Event()
    with HealthServer(*bind, controller.pages()) as health:

        def end() -> None:
            stop.set()
            controller.changed.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            # The main thread may hold the lock of the event when the signal arrives.
            signal.signal(number, lambda *_: threading.Thread(target=end).start())
        threading.Thread(target=health.serve_forever, name="health", daemon=True).start()
        electing = threading.Thread(target=elector.run, args=(give_back,), name="lease", daemon=True)
        electing.start()
        if scanner is not None:
            scanner.start()
        fields = {"health": health.server_address[1], "scans": scanner is not None}
        _log.info("the controller has started", extra={"fields": fields})
        controller.follow()
        while not stop.is_set() and electing.is_alive():
            controller.turn()
            stop.wait(_LEAST_SECONDS)
            controller.changed.wait(RETRY_SECONDS / 4)
        if scanner is not None:
            scanner.stop()  # before the lease is released: two replicas must not write
        give_back.set()
        electing.join(_JOIN_SECONDS)
        health.shutdown()


class HealthServer(BoundedThreads, http.server.HTTPServer):
    """An HTTP server with a page for each path in ``pages``.

    Any other path returns 404. Each connection has a thread of its own, up to a maximum number of threads.
    """

    def __init__(self, host: str, port: int, pages: dict[str, Page]) -> None:
        self.pages = pages
        super().__init__((host, port), _Handler)


class _Handler(http.server.BaseHTTPRequestHandler):
    server: HealthServer
    timeout = _PATIENCE_SECONDS
    server_version, sys_version = "evenspread", ""

    def do_GET(self) -> None:
        page = self.server.pages.get(self.path.partition("?")[0])
        status, media, body = (404, "text/plain", b"404 Not Found\n") if page is None else page()
        self.send_response(status)
        self.send_header("Content-Type", f"{media}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write no access log."""
