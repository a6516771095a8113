"""The data of the console's pages: a scan, the scan's time, and the health of the installation."""

from collections.abc import Callable
from typing import Annotated

from msgspec import Meta, Struct, field

from webhook.answers.scanned import ScanDocument
from webhook.core.groups.status.forms import GroupWithStatus
from webhook.core.scan.scan_results import ClusterScan, Count, Published


class Health(Published, frozen=True, kw_only=True):
    """The health of an evenspread installation. Null fields are unknown, for example for a snapshot file."""

    ceiling: str
    defaults_mode: str = field(name="defaults")
    cluster_age: float | None = field(default=None, name="clusterAgeSeconds")
    certificate_days: Annotated[float | None, Meta(description="Days until evenspread's CA expires.")] = None
    fault: Annotated[str, Meta(description="Why the next scan is delayed. Empty if it is not.")] = ""


class Overview(Published, frozen=True):
    """JSON document of the console's start page: source, time and totals of a scan."""

    source: Annotated[str, Meta(description="A cluster, or a snapshot file.")]
    moment: Annotated[str, Meta(description="The time of the scan.")]
    live: Annotated[bool, Meta(description="Whether later scans update these numbers.")]
    health: Health
    total: Annotated[Count, Meta(description="All workloads.")]
    above_max_skew: Annotated[Count, Meta(description="Workloads above a maxSkew.")]
    scan: ScanDocument


class Shown(Struct, frozen=True, kw_only=True):
    """The data shown by every page of the console.

    Attributes:
        scan: The latest scan. None before the first scan ends.
        waiting: The reason for a missing scan.
        moment: The time of the scan, for computing ages.
        live: Whether later scans will follow.
        groups: The SpreadGroups. None if unknown, for example for a file without this kind.
    """

    scan: ClusterScan | None
    source: str
    health: Health
    moment: str = ""
    live: bool = False
    waiting: str = ""
    groups: tuple[GroupWithStatus, ...] | None = None


Source = Callable[[], Shown]
