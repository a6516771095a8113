"""The documents of the API; `api.schema.json` promises their shape. How a scanned value is written says the scan."""

from collections.abc import Sequence

from msgspec.structs import replace

from webhook.console.pages.first_screen import MOST_WORST
from webhook.console.pages.listing import Page
from webhook.console.shown import Shown
from webhook.core.groups.status.forms import Found
from webhook.core.groups.status.forms import as_json as status_json
from webhook.core.scan.as_values import Json, cluster_values, workload_values
from webhook.core.scan.scanned import ClusterScan, ScannedWorkload


def overview(shown: Shown, scan: ClusterScan) -> Json:
    """The first screen; of the workloads the worst."""
    health = shown.health
    return {
        "source": shown.source,
        "moment": shown.moment,
        "live": shown.live,
        "health": {
            "ceiling": health.ceiling,
            "defaults": health.defaults_mode,
            "clusterAgeSeconds": health.cluster_age,
            "certificateDays": health.certificate_days,
            "fault": health.fault,
        },
        "total": len(scan.workloads),
        "aboveMaxSkew": sum(any(skew.above for skew in each.skews) for each in scan.workloads),
        "scan": cluster_values(replace(scan, workloads=scan.workloads[:MOST_WORST])),
    }


def groups(found: Sequence[Found]) -> Json:
    """All SpreadGroups; the status is that of the object."""
    return {
        "groups": [
            {"namespace": each.group.meta.namespace, "name": each.group.meta.name, "status": status_json(each.status)}
            for each in found
        ]
    }


def workloads(found: Sequence[ScannedWorkload], page: Page) -> Json:
    """A page of the list."""
    return {
        "page": page.number,
        "pages": page.pages,
        "total": page.total,
        "workloads": [workload_values(each) for each in found],
    }
