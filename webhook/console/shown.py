"""What a process hands to the pages: what a scan found, when that was so, and how the installation stands."""

from collections.abc import Callable

from msgspec import Struct

from webhook.core.groups.status.forms import Found
from webhook.core.scan.scanned import ClusterScan


class Health(Struct, frozen=True, kw_only=True):
    """How the installation stands.

    Shape: None and empty for what the process does not know; ``fault`` is why there is no later scan.
    ``certificate_days`` are those of our own CA.
    Unit: ``cluster_age`` is in seconds.
    """

    ceiling: str
    defaults_mode: str
    fault: str = ""
    cluster_age: float | None = None
    certificate_days: float | None = None


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
