"""The settings of the background scan, from the command line and from tests."""

from msgspec import Struct


class ScanSettings(Struct, frozen=True, kw_only=True):
    """Settings of the scan.

    Attributes:
        interval: Seconds between two lists of unwatched kinds. Also between two updates after a change of the whole
            cluster, if it concerns many workloads.
        full_interval: Seconds from start to start of full scans.
        share: The allowed share of a core.
        all_workloads: Whether metrics show the skew of all workloads, or only exceeded limits.
        slice_seconds: How long a slice of the scan locks the index. Only watches wait for it.
        workload_seconds: CPU time for a workload. An ordinary workload takes some milliseconds.
    """

    interval: float = 300.0
    full_interval: float = 3600.0
    share: float = 0.25
    reports: bool = True
    events: bool = True
    all_workloads: bool = False
    slice_seconds: float = 0.1
    workload_seconds: float = 10.0
