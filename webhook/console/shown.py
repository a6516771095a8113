"""The input of all pages: the scan, its time and the state of the installation."""

from collections.abc import Callable
from typing import Annotated

from msgspec import Meta, Struct, field

from webhook.answers.scanned import ScanDocument
from webhook.core.groups.status.forms import GroupWithStatus
from webhook.core.scan.scanned import ClusterScan, Count, Published


class Health(Published, frozen=True, kw_only=True):
    """The state of the installation. Null fields are unknown, as for a snapshot."""

    ceiling: str
    defaults_mode: str = field(name="defaults")
    cluster_age: float | None = field(default=None, name="clusterAgeSeconds")
    certificate_days: Annotated[float | None, Meta(description="Until our own CA ends.")] = None
    fault: Annotated[str, Meta(description="Why the next scan is delayed. Empty if it is not.")] = ""


class Overview(Published, frozen=True):
    """The document of the first screen."""

    source: Annotated[str, Meta(description="A cluster, or a snapshot file.")]
    moment: Annotated[str, Meta(description="The time of the scan.")]
    live: Annotated[bool, Meta(description="Whether later scans will follow.")]
    health: Health
    total: Annotated[Count, Meta(description="All workloads.")]
    above_max_skew: Annotated[Count, Meta(description="Workloads above a maxSkew.")]
    scan: ScanDocument


class Shown(Struct, frozen=True, kw_only=True):
    """The input of a page.

    Attributes:
        scan: None before the first scan ends.
        waiting: The reason for a missing scan.
        moment: The timestamp for ages.
        live: Whether later scans will follow.
        groups: None if unknown, for example for a file without this kind.
    """

    scan: ClusterScan | None
    source: str
    health: Health
    moment: str = ""
    live: bool = False
    waiting: str = ""
    groups: tuple[GroupWithStatus, ...] | None = None


Source = Callable[[], Shown]
