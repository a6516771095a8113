"""The settings of a scan, and its context: the cached cluster, unless the cache is too old."""

from msgspec import Struct

from webhook.cluster.errors import ClusterError
from webhook.cluster.feed import Feed
from webhook.core.api.times import api_time
from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.policy.policy import Policy
from webhook.core.scan.scan_context import ScanContext, scan_context


class ScanSettings(Struct, frozen=True, kw_only=True):
    """Settings of the controller's background scan.

    Attributes:
        interval: Seconds between two lists of unwatched kinds. If a change of the whole cluster affects many workloads,
            also the seconds between two updates.
        full_interval: Seconds from the start of a full scan to the start of the next.
        share: The scan's maximum share of a CPU core, 0.25 for a quarter.
        guard: Whether pods of guarded workloads get deletion costs.
        all_workloads: Whether metrics show the skew of all workloads. If not, only of workloads above maxSkew.
        slice_seconds: Seconds of scanning with the index locked, before a rest. Only watch events wait for this lock.
        workload_seconds: Maximum CPU seconds for a workload. An ordinary workload takes some milliseconds.
    """

    interval: float = 300.0
    full_interval: float = 3600.0
    share: float = 0.25
    reports: bool = True
    events: bool = True
    guard: bool = False
    all_workloads: bool = False
    slice_seconds: float = 0.1
    workload_seconds: float = 10.0


def check_age(policy: Policy, feed: Feed) -> None:
    """Raise ClusterError if the cached cluster is older than maxStaleness.

    A scan of an older cache would report outdated facts.
    """
    most = policy.max_staleness_seconds
    if feed.age > most:
        raise ClusterError(f"the copy of the cluster is {feed.age:.0f} s old; maxStaleness is {most:.0f} s")


def cluster_context(policy: Policy, feed: Feed, seconds: float) -> Context:
    """Return the context with the policy, time and cached cluster.

    ``seconds`` is the Unix time. Raises ClusterError if the cache is older than maxStaleness.
    """
    check_age(policy, feed)
    now = api_time(seconds)
    return Context(policy=policy, version=feed.version or RECORDED, index=feed.index, now=now)


def current_context(policy: Policy, feed: Feed, seconds: float) -> ScanContext:
    """Return the scan context of `cluster_context`. Raises ClusterError."""
    context = cluster_context(policy, feed, seconds)
    with feed.lock:
        return scan_context(context)
