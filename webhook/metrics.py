"""What is counted, under the names that are promised; served in Prometheus' text format.

Labels hold nothing that users choose freely: no names, no namespaces.
"""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

import webhook

# From a static review (tens of microseconds) to the longest timeout that users give a webhook.
_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 3.0)


class Metrics:
    """The counters and gauges of one process, in a registry of their own.

    ``labels()`` of the client library costs more than the count itself, so children are kept by label values.
    """

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        self._requests = Counter(
            "evenspread_admission_requests",
            "Admission requests answered.",
            ["route", "decision", "dry_run"],
            registry=registry,
        )
        self._duration = Histogram(
            "evenspread_admission_duration_seconds",
            "From the head of the request to the answer.",
            ["route"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._results = Counter(
            "evenspread_rule_results",
            "Findings by the mode that held, and rules that lacked a fact (not-evaluated).",
            ["rule", "result", "mode"],
            registry=registry,
        )
        self._injections = Counter(
            "evenspread_injections",
            "Pods that were given constraints, or would have been.",
            ["mode"],
            registry=registry,
        )
        self._refusals = Counter(
            "evenspread_admission_refusals", "Requests answered with a 4xx.", ["status"], registry=registry
        )
        self.errors = Counter(
            "evenspread_admission_errors", "Reviews that failed by a bug and were allowed.", registry=registry
        )
        self.open_connections = Gauge(
            "evenspread_open_connections", "Connections on the admission port.", registry=registry
        )
        self.certificate_expiry = Gauge(
            "evenspread_certificate_expiry_timestamp_seconds", "When the served certificate ends.", registry=registry
        )
        self.certificate_faults = Counter(
            "evenspread_certificate_faults",
            "Certificate files that could not be served; the last good pair stayed.",
            registry=registry,
        )
        self.config_valid = Gauge(
            "evenspread_config_valid", "1 if the configuration file as it stands is in use.", registry=registry
        )
        self.config_valid.set(1)
        Gauge("evenspread_build_info", "Always 1.", ["version"], registry=registry).labels(webhook.__version__).set(1)
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)
        self._counters: dict[tuple[str, ...], Callable[[], None]] = {}
        self._observers: dict[str, Callable[[float], None]] = {}

    def answered(self, route: str, decision: str, *, dry_run: bool, seconds: float) -> None:
        """One admission request: ``decision`` is allow, deny or error."""
        key = (route, decision, "true" if dry_run else "false")
        count = self._counters.get(key)
        if count is None:
            count = self._counters[key] = self._requests.labels(*key).inc
        count()
        observe = self._observers.get(route)
        if observe is None:
            observe = self._observers[route] = self._duration.labels(route).observe
        observe(seconds)

    def rule(self, rule: str, result: str, mode: str) -> None:
        """One rule's answer about one request: ``result`` is fail or not-evaluated."""
        key = ("rule", rule, result, mode)
        count = self._counters.get(key)
        if count is None:
            count = self._counters[key] = self._results.labels(rule, result, mode).inc
        count()

    def injected(self, mode: str) -> None:
        """One pod that was patched (``inject``) or would have been (``observe``)."""
        self._injections.labels(mode).inc()

    def refused(self, status: int) -> None:
        """One request answered with a 4xx."""
        self._refusals.labels(str(status)).inc()

    def text(self) -> bytes:
        """The exposition."""
        return generate_latest(self._registry)
