"""Times as the Kubernetes API writes them.

Source: k8s.io/apimachinery pkg/apis/meta/v1 ``Time.MarshalJSON``, ``MicroTime.MarshalJSON``.
"""

from datetime import UTC, datetime


def api_time(seconds: float) -> str:
    """Format seconds since 1970 as a Time, without the fraction: ``2026-11-29T12:00:00Z``."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_time(moment: datetime) -> str:
    """Format a time as a MicroTime, as in Leases and Events: ``2026-11-29T12:00:00.250000Z``."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
