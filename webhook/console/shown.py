"""What a process hands to the pages: what a scan found, when that was so, and how the installation stands."""

from collections.abc import Callable
from typing import Annotated

from msgspec import Meta, Struct, field

from webhook.answers.scanned import ScanDocument
from webhook.core.groups.status.forms import Found
from webhook.core.scan.scanned import ClusterScan, Count, Published


class Health(Published, frozen=True, kw_only=True):
    """The installation; null for what the process does not know."""

    ceiling: str
    defaults_mode: str = field(name="defaults")
    cluster_age: float | None = field(default=None, name="clusterAgeSeconds")
    certificate_days: Annotated[float | None, Meta(description="Until our own CA ends.")] = None
    fault: Annotated[str, Meta(description="Why the next scan does not get on; empty if it does.")] = ""


class Overview(Published, frozen=True):
    """The first screen."""

    source: Annotated[str, Meta(description="A cluster, or a snapshot file.")]
    moment: Annotated[str, Meta(description="The time of the scan.")]
    live: Annotated[bool, Meta(description="Whether later scans will follow.")]
    health: Health
    total: Annotated[Count, Meta(description="All workloads.")]
    above_max_skew: Annotated[Count, Meta(description="Workloads above a maxSkew.")]
    scan: ScanDocument


class Shown(Struct, frozen=True, kw_only=True):
    """Everything that a page is made of.

    Shape: ``scan`` is None until the first one has ended, or where it waits for something else, which ``waiting`` says.
    ``moment`` is the timestamp to which ages are counted. ``live`` says that later scans will follow. ``groups`` are
    None where nothing is known of them, as over a file without that kind.
    """

    scan: ClusterScan | None
    source: str
    health: Health
    moment: str = ""
    live: bool = False
    waiting: str = ""
    groups: tuple[Found, ...] | None = None


Source = Callable[[], Shown]
