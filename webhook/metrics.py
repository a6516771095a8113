"""The metrics under their promised names, in Prometheus' text format.

Labels never have free user input such as names and namespaces.
"""

import collections
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import accumulate
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

import webhook
from webhook.logs import dropped_lines

# From a static review (tens of microseconds) to the longest common timeout of a webhook.
_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 3.0)

# From a slightly late watch to the longest wait of a review.
_WAIT_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25)


# Counters of `Metrics.count`: name, help text, labels.
_COUNTERS = {
    "admission_errors": ("Reviews that failed because of a bug.",),
    "connections_ended": (
        (
            "Connections ended or refused, by reason: made-room (table full, closed for a new one), over-share (source "
            "has half of the table), refused (table full), body-bytes (memory needed for another body), buffers (too "
            "many large buffers), late (slow peer), left (peer disconnected first)."
        ),
        *("port", "reason"),
    ),
    "certificate_faults": ("Certificate files that could not be served. The previous certificate stays in use.",),
    "fallbacks": ("Pods whose hard constraints were softened, or would be.", "mode"),
    "injections": ("Pods that got constraints, or would get them.", "mode"),
    "deliveries": (
        "Deployments and StatefulSets sent to /mutate, by the delivery of their SpreadGroup's plan.",
        "outcome",
    ),
    "feasibility": (
        "Dry runs of pods, by verdict (fits, does-not-fit, unknown) and cause.",
        *("verdict", "cause"),
    ),
    "injections_skipped": ("Pods sent to /mutate that got no patch, by reason.", "reason"),
    "costly_reviews": (
        "Costly objects: judged, too-costly (no time), busy or crowded (others of the same or another namespace).",
        "outcome",
    ),
    "admission_refusals": (
        "Requests refused with a 4xx status, and unread reviews (408, 413, 429), answered according to tooLarge.",
        "status",
    ),
}


# Metrics of each kind of cluster object: the attribute of `WatchState`, type, name and help text.
_FIGURES = {
    "objects": (GaugeMetricFamily, "objects", "Known objects."),
    "left_out": (
        *(GaugeMetricFamily, "left_out_objects"),
        "Objects that evenspread leaves out, because it cannot decode or apply them.",
    ),
    "events": (CounterMetricFamily, "events", "Watch events."),
    "age": (
        *(GaugeMetricFamily, "age_seconds"),
        "Seconds since the index last matched the API server. 0 while a watch is open.",
    ),
    "synced": (GaugeMetricFamily, "synced", "1 after the first complete list of the resource, else 0."),
}


class _Watched(Protocol):
    """The type of a `WatchState`, without an import of its module.

    A watch state has a resource, and an attribute for each key of `_FIGURES`.
    """

    @property
    def resource(self) -> str: ...


class Metrics:
    """The counters and gauges of a process, in their own registry.

    Per-request counts are in plain dictionaries. Incrementing a counter of the client library takes as long as
    evaluating one rule, and a request can count a dozen rule results.
    """

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        self._requests: defaultdict[tuple[str, str, bool], int] = defaultdict(int)
        self._results: defaultdict[tuple[str, str, str], int] = defaultdict(int)
        self._missing: collections.Counter[str] = collections.Counter()
        self._durations: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(_SECONDS) + 1))
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._counters = {
            name: Counter(f"evenspread_{name}", title, labels, registry=registry)
            for name, (title, *labels) in _COUNTERS.items()
        }
        gauge = partial(Gauge, registry=registry)
        self.open_connections = gauge("evenspread_open_connections", "Connections on the admission port.")
        self.certificate_begin = gauge(
            "evenspread_certificate_not_before_timestamp_seconds", "When the served certificate becomes valid."
        )
        self.certificate_expiry = gauge(
            "evenspread_certificate_expiry_timestamp_seconds", "When the served certificate expires."
        )
        self.authority_expiry = gauge(
            "evenspread_ca_expiry_timestamp_seconds", "When evenspread's own CA expires. 0 without such a CA."
        )
        self.config_valid = gauge(
            "evenspread_config_valid",
            "1 if the current configuration file is in use. 0 if it has a fault and the last good one stays in use.",
        )
        self.config_valid.set(1)
        self._waits = Histogram(
            "evenspread_arrival_wait_seconds",
            "Seconds that reviews wait for the pod's owner or namespace (arrived, gave-up), or for the first lists of "
            "the cluster (listed, not-listed).",
            ["outcome"],
            buckets=_WAIT_SECONDS,
            registry=registry,
        )
        register_process(registry)
        registry.register(self)

    def count(self, counter: str, *labels: str, by: int = 1) -> None:
        """Add to a counter with these label values."""
        metric = self._counters[counter]
        (metric.labels(*labels) if labels else metric).inc(by)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics for the Prometheus client library: requests, durations and results."""
        requests = CounterMetricFamily(
            "evenspread_admission_requests", "Admission requests answered.", labels=["route", "decision", "dry_run"]
        )
        for (route, decision, dry_run), count in list(self._requests.items()):
            requests.add_metric([route, decision, str(dry_run).lower()], count)
        yield requests
        yield self._request_durations()
        results = CounterMetricFamily(
            "evenspread_rule_results",
            "Findings by mode, rules with a missing fact (not-evaluated), and rules that failed (error).",
            labels=["rule", "result", "mode"],
        )
        for labels, count in list(self._results.items()):
            results.add_metric(labels, count)
        for rule, count in list(self._missing.items()):
            results.add_metric([rule, "not-evaluated", ""], count)
        yield results
        yield CounterMetricFamily(
            "evenspread_log_lines_dropped",
            "Log lines dropped because standard error was not read in time.",
            value=dropped_lines(),
        )

    def _request_durations(self) -> Metric:
        durations = HistogramMetricFamily(
            "evenspread_admission_duration_seconds",
            "Time from the request's headers to the response.",
            labels=["route"],
        )
        limits = (*map(str, _SECONDS), "+Inf")
        for route, counts in list(self._durations.items()):
            durations.add_metric([route], [*zip(limits, accumulate(counts), strict=True)], self._seconds[route])
        return durations

    def answered(self, route: str, decision: str, *, dry_run: bool, seconds: float) -> None:
        """Count an admission request. ``decision`` is allow, deny or error."""
        self._requests[route, decision, dry_run] += 1
        self._seconds[route] += seconds
        self._durations[route][bisect_left(_SECONDS, seconds)] += 1

    def rules(self, findings: Iterable[tuple[str, str]], missing: Iterable[str]) -> None:
        """Count the findings of a request with their modes, and the rules with a missing fact."""
        for rule, mode in findings:
            self._results[rule, "fail", mode] += 1
        self._missing.update(missing)

    def rule_failed(self, rule: str) -> None:
        """Count a rule that raised."""
        self._results[rule, "error", ""] += 1

    def waited(self, outcome: str, seconds: float) -> None:
        """Count a wait of a review by its outcome. ``crowded`` means that too many reviews were waiting already."""
        self._waits.labels(outcome).observe(seconds)

    def follow_cluster(self, watch_states: Callable[[], Iterable[_Watched]]) -> None:
        """Publish the metrics of the cluster's objects."""
        self._registry.register(ClusterFigures(watch_states))

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self._registry)


class ClusterFigures(Collector):
    """Prometheus metrics of the watched objects, collected at each scrape.

    ``watch_states`` returns one `WatchState` for each kind.
    """

    def __init__(self, watch_states: Callable[[], Iterable[_Watched]]) -> None:
        self._watch_states = watch_states

    def collect(self) -> Iterator[Metric]:
        """Yield a metric for each row of `_FIGURES`."""
        watch_states = [*self._watch_states()]
        for attribute, (family, name, meaning) in _FIGURES.items():
            metric = family(f"evenspread_cluster_{name}", meaning, labels=["resource"])
            for watch_state in watch_states:
                metric.add_metric([watch_state.resource], getattr(watch_state, attribute))
            yield metric


def register_process(registry: CollectorRegistry) -> None:
    """Publish the metrics of the process: release, memory, open files and garbage collection."""
    Gauge("evenspread_build_info", "Always 1.", ["version"], registry=registry).labels(webhook.__version__).set(1)
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
