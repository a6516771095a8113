"""The list of workloads: filtered, sorted and paged by the URL."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from webhook.console.pages.first_screen import zone_shorts
from webhook.console.pages.summary import counted_findings, excess, summary, worst_loss
from webhook.console.query import Only, Query, Sort, address
from webhook.console.shown import Shown
from webhook.console.words import instant
from webhook.core.scan.scan_results import ClusterScan, PendingCause, ScannedWorkload
from webhook.core.text import plural

_PAGE = 50  # rows: a screen or two
_Row = TypeVar("_Row")

_CHOICES: Mapping[Only, tuple[str, Callable[[ScannedWorkload], bool]]] = {
    Only.ALL: ("all workloads", lambda _: True),
    Only.PENDING: ("with Pending pods", lambda workload: bool(sum(workload.pending.values()))),
    Only.SKEWED: ("above their maxSkew", lambda workload: any(skew.above for skew in workload.skews)),
    Only.FINDINGS: ("with findings", lambda workload: bool(counted_findings(workload))),
    Only.REFUSED: ("refused under ceiling deny", lambda workload: bool(workload.would_deny)),
}
# The sort keys of the columns. The first keeps the scan's order, worst first.
_ORDERS: Mapping[Sort, Callable[[ScannedWorkload], tuple[object, ...]]] = {
    Sort.NAME: lambda workload: (workload.namespace, workload.name, workload.kind),
    Sort.PODS: lambda workload: (-(workload.pods or 0),),
    Sort.PENDING: lambda workload: (-workload.pending.get(PendingCause.SPREAD, 0), -sum(workload.pending.values())),
    Sort.SKEW: lambda workload: (-max((excess(skew) for skew in workload.skews), default=-(10**9)),),
    Sort.LOSS: lambda workload: (-max((loss.most_pending for loss in workload.losses), default=0),),
}
_COLUMNS = (
    ("Workload", Sort.NAME),
    ("Pods in each zone", None),
    ("Pods", Sort.PODS),
    ("Pending", Sort.PENDING),
    ("Skew", Sort.SKEW),
    ("If a zone fails", Sort.LOSS),
    ("Findings", Sort.WORST),
)
_NUMBERS = frozenset({Sort.PODS, Sort.PENDING, Sort.SKEW, Sort.LOSS})


class PageNumbers(Struct, frozen=True):
    """The position in a list with several pages.

    ``number`` is the shown page, counted from 1. ``pages`` is the number of pages. ``total`` is the number of rows on
    all pages.
    """

    number: int
    pages: int
    total: int


def chosen(scan: ClusterScan, query: Query) -> list[ScannedWorkload]:
    """Return the workloads selected by a query, sorted by its sort key."""
    _, wanted = _CHOICES[query.only]
    text = query.text.casefold()
    workloads = [
        workload
        for workload in scan.workloads
        if wanted(workload) and (not text or text in f"{workload.namespace}/{workload.kind}/{workload.name}".casefold())
    ]
    order = _ORDERS.get(query.sort)
    return workloads if order is None else sorted(workloads, key=order)


def cut(rows: Sequence[_Row], query: Query, size: int = _PAGE) -> tuple[Sequence[_Row], PageNumbers]:
    """Return the rows of the query's page, or of the last page if the query's page is beyond it."""
    pages = max(1, -(-len(rows) // size))
    number = min(query.page, pages)
    return rows[(number - 1) * size : number * size], PageNumbers(number, pages, len(rows))


def pager(path: str, query: Query, page: PageNumbers) -> dict[str, object]:
    """Return the template's values for links to the previous and next page."""
    return {
        "page": page.number,
        "pages": page.pages,
        "before": address(path, query, page=page.number - 1) if page.number > 1 else "",
        "after": address(path, query, page=page.number + 1) if page.number < page.pages else "",
    }


def listing(shown: Shown, scan: ClusterScan, query: Query) -> dict[str, object]:
    """Return the values of the HTML template for the list of workloads."""
    workloads = chosen(scan, query)
    rows, page = cut(workloads, query)
    moment, shorts = instant(shown.moment), zone_shorts(scan)
    counted = plural(len(workloads), "workload")
    if len(workloads) != len(scan.workloads):
        counted = f"{len(workloads):,} of {plural(len(scan.workloads), 'workload')}"
    return {
        **pager("/workloads", query, page),
        "counted": counted,
        "choices": [(str(only), name) for only, (name, _) in _CHOICES.items()],
        "columns": [_column(name, sort, query) for name, sort in _COLUMNS],
        "rows": [{**_numbers(row), "of": summary(row, moment, shorts)} for row in rows],
        "any": bool(scan.workloads),
    }


def _column(name: str, sort: Sort | None, query: Query) -> dict[str, object]:
    sorts = "ascending" if sort is Sort.NAME else "descending"
    return {
        "name": name,
        "number": sort in _NUMBERS,
        "sorted": sorts if sort is query.sort else "",
        "address": "" if sort is None else address("/workloads", query, sort=sort, page=1),
    }


def _numbers(workload: ScannedWorkload) -> dict[str, object]:
    waiting, spread = sum(workload.pending.values()), workload.pending.get(PendingCause.SPREAD, 0)
    skew = max(workload.skews, key=excess, default=None)
    loss = worst_loss(workload.losses)
    lost = 0 if loss is None else loss.most_pending
    findings = counted_findings(workload)
    return {
        "pods": pods_of(workload),
        "pending": f"{waiting:,}" if waiting else "",
        "pending_bad": bool(spread),
        "skew": "" if skew is None or skew.skew is None else f"{skew.skew} of {skew.max_skew}",
        "skew_bad": skew is not None and skew.above,
        "loss": f"{lost:,} Pending" if lost else "",
        "findings": f"{len(findings):,}, {findings[0].severity}" if findings else "",
    }


def pods_of(workload: ScannedWorkload) -> str:
    """Return the number of pods: ``5 of 7`` replicas, or ``7`` if all exist. Empty if the number is unknown."""
    if workload.pods is None:
        return ""
    return (
        f"{workload.pods:,}"
        if workload.wanted in {None, workload.pods}
        else f"{workload.pods:,} of {workload.wanted:,}"
    )
