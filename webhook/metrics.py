"""What is counted, under the names that are promised; served in Prometheus' text format.

Labels hold nothing that users choose freely: no names, no namespaces.
"""

import collections
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import accumulate
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

import webhook
from webhook.logs import dropped_lines

# From a static review (tens of microseconds) to the longest timeout that users give a webhook.
_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 3.0)

# From a watch that is a moment late to the longest wait that is taken.
_WAIT_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25)


# Counters that `Metrics.count` counts: name, what is counted, labels.
_COUNTERS = {
    "admission_errors": ("Reviews that failed by a bug.",),
    "connections_ended": (
        "Connections ended or refused by the server: made-room, over-share, refused, body-bytes, buffers, late, left.",
        *("port", "reason"),
    ),
    "certificate_faults": ("Certificate files that could not be served; the last good pair stayed.",),
    "fallbacks": ("Pods whose hard constraints gave way, or would have.", "mode"),
    "injections": ("Pods that were given constraints, or would have been.", "mode"),
    "deliveries": (
        "Deployments and StatefulSets of the mutating route, by what came of the plan of their SpreadGroup.",
        "outcome",
    ),
    "feasibility": (
        "Dry runs by what they came to (fits, does-not-fit, unknown) and what was in the way.",
        *("verdict", "cause"),
    ),
    "injections_skipped": ("Pods of the mutating route that got nothing, by the reason.", "reason"),
    "costly_reviews": (
        "Objects that cost much beside the cluster: judged, too-costly (time ran out), busy or crowded (no turn).",
        "outcome",
    ),
    "admission_refusals": ("Requests answered with a 4xx.", "status"),
}


# What is known of one kind of object in the cluster: an attribute of `WatchState`, and the metric that shows it.
_FIGURES = {
    "objects": (GaugeMetricFamily, "objects", "Known objects."),
    "left_out": (
        *(GaugeMetricFamily, "left_out_objects"),
        "Objects of the cluster that evenspread cannot decode or apply, and leaves out.",
    ),
    "events": (CounterMetricFamily, "events", "Events of watches."),
    "age": (
        *(GaugeMetricFamily, "age_seconds"),
        "Seconds since the last complete state of the API server; 0 while a watch is open.",
    ),
    "synced": (GaugeMetricFamily, "synced", "1 once the kind is listed; 0 if evenspread works without it."),
}


class Metrics:
    """The counters and gauges of one process, in a registry of their own.

    What every request counts is kept in plain tables: a counter of the client library costs as much as one rule, and a
    dozen rules may answer a request.
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
            "evenspread_certificate_not_before_timestamp_seconds", "From when on the served certificate is valid."
        )
        self.certificate_expiry = gauge(
            "evenspread_certificate_expiry_timestamp_seconds", "When the served certificate ends."
        )
        self.authority_expiry = gauge(
            "evenspread_ca_expiry_timestamp_seconds", "When the CA ends that signs certificates; 0 if it is not ours."
        )
        self.config_valid = gauge("evenspread_config_valid", "1 if the configuration file as it stands is in use.")
        self.config_valid.set(1)
        self._waits = Histogram(
            "evenspread_arrival_wait_seconds",
            "Reviews that waited for their pod's owner or namespace (arrived, gave-up), or for the first lists of the "
            "cluster (listed, not-listed).",
            ["outcome"],
            buckets=_WAIT_SECONDS,
            registry=registry,
        )
        register_process(registry)
        registry.register(self)

    def count(self, counter: str, *labels: str, by: int = 1) -> None:
        """Count in one of the counters with these values of its labels."""
        found = self._counters[counter]
        (found.labels(*labels) if labels else found).inc(by)

    def collect(self) -> Iterator[Metric]:
        """The plain tables, as the client library asks for them."""
        requests = CounterMetricFamily(
            "evenspread_admission_requests", "Admission requests answered.", labels=["route", "decision", "dry_run"]
        )
        for (route, decision, dry_run), count in list(self._requests.items()):
            requests.add_metric([route, decision, str(dry_run).lower()], count)
        yield requests
        yield self._lasted()
        results = CounterMetricFamily(
            "evenspread_rule_results",
            "Findings by the mode that held, rules that lacked a fact (not-evaluated), and rules that failed (error).",
            labels=["rule", "result", "mode"],
        )
        for labels, count in list(self._results.items()):
            results.add_metric(labels, count)
        for rule, count in list(self._missing.items()):
            results.add_metric([rule, "not-evaluated", ""], count)
        yield results
        yield CounterMetricFamily(
            "evenspread_log_lines_dropped", "Log lines that nobody read in time.", value=dropped_lines()
        )

    def _lasted(self) -> Metric:
        durations = HistogramMetricFamily(
            "evenspread_admission_duration_seconds", "From the head of the request to the answer.", labels=["route"]
        )
        limits = (*map(str, _SECONDS), "+Inf")
        for route, counts in list(self._durations.items()):
            durations.add_metric([route], [*zip(limits, accumulate(counts), strict=True)], self._seconds[route])
        return durations

    def answered(self, route: str, decision: str, *, dry_run: bool, seconds: float) -> None:
        """One admission request: ``decision`` is allow, deny or error."""
        self._requests[route, decision, dry_run] += 1
        self._seconds[route] += seconds
        self._durations[route][bisect_left(_SECONDS, seconds)] += 1

    def rules(self, found: Iterable[tuple[str, str]], missing: Iterable[str]) -> None:
        """Count the findings of one request with their modes, and the rules that lacked a fact."""
        for rule, mode in found:
            self._results[rule, "fail", mode] += 1
        self._missing.update(missing)

    def rule_failed(self, rule: str) -> None:
        """One rule that raised."""
        self._results[rule, "error", ""] += 1

    def waited(self, outcome: str, seconds: float) -> None:
        """One review that waited, by how that ended; ``crowded`` where too many waited already."""
        self._waits.labels(outcome).observe(seconds)

    def follow_cluster(self, watch_states: Callable[[], Iterable[Any]]) -> None:
        """Publish what is known of the cluster."""
        self._registry.register(ClusterFigures(watch_states))

    def text(self) -> bytes:
        """The exposition."""
        return generate_latest(self._registry)


class ClusterFigures(Collector):
    """What is known of the cluster at a scrape. ``watch_states`` returns a `WatchState` of each kind."""

    def __init__(self, watch_states: Callable[[], Iterable[Any]]) -> None:
        self._watch_states = watch_states

    def collect(self) -> Iterator[Metric]:
        """One family for each of its figures."""
        watch_states = [*self._watch_states()]
        for attribute, (family, name, meaning) in _FIGURES.items():
            metric = family(f"evenspread_cluster_{name}", meaning, labels=["resource"])
            for each in watch_states:
                metric.add_metric([each.resource], getattr(each, attribute))
            yield metric


def register_process(registry: CollectorRegistry) -> None:
    """What is known of the process itself: its release, memory, open files and garbage."""
    Gauge("evenspread_build_info", "Always 1.", ["version"], registry=registry).labels(webhook.__version__).set(1)
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
