"""How the installation stands: what it does, how old its knowledge is, what it could not read or evaluate."""

from collections.abc import Iterator

from webhook.console.pages.first_screen import Fact, health_line
from webhook.console.shown import Shown
from webhook.console.words import duration, instant, written
from webhook.core.scan.scanned import ClusterScan
from webhook.core.text import one_line

_LONGEST = 500


def health_page(shown: Shown, scan: ClusterScan) -> dict[str, object]:
    """The page's values."""
    return {
        "facts": [*_facts(shown, scan)],
        "lacks": [Fact(one_line(name), one_line(why, _LONGEST)) for name, why in scan.lacks.items()],
        "gaps": [
            {"rule": gap.rule, "missing": one_line(gap.missing, _LONGEST), "objects": gap.objects} for gap in scan.gaps
        ],
    }


def _facts(shown: Shown, scan: ClusterScan) -> Iterator[Fact]:
    yield from health_line(shown.health, scan)
    began, ended = instant(scan.started), instant(scan.ended)
    if ended is not None:
        took = f", which took {duration((ended - began).total_seconds())}" if began is not None else ""
        yield Fact("Last scan", f"{written(ended)}{took}")
    yield Fact("Nodes", f"{scan.nodes:,}")
    yield Fact("Pods", f"{scan.pods:,}")
    yield Fact("Workloads", f"{len(scan.workloads):,}")
