"""The map of a cluster: workloads down, domains of a topology key across, and where pods stand."""

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from webhook.console.pages.listing import chosen, cut, pager
from webhook.console.pages.summary import summary
from webhook.console.query import Query
from webhook.console.shown import Shown
from webhook.console.words import instant, short_names
from webhook.core.api.well_known import ZONE
from webhook.core.scan.scanned import ActualSkew, ClusterScan, ScannedWorkload
from webhook.core.text import one_line, plural

_ROWS = 40
_MOST_COLUMNS = 20
_MOST_KEYS = 20
_LEVELS = 4
_EMPTY = "A constraint of a workload, a default that is injected, or one of the scheduler's own brings it here."


class Cell(Struct, frozen=True):
    """The pods of a workload in a domain. Shape: ``pods`` is None where the domain does not count for it."""

    pods: int | None
    level: int
    high: bool


def heat_map(shown: Shown, scan: ClusterScan, query: Query) -> dict[str, object]:
    """The page's values. Shape: more domains than fit are summed up, those with most pods are shown."""
    keys = [
        key for key, _ in Counter(skew.topology_key for each in scan.workloads for skew in each.skews).most_common()
    ]
    key = query.key if query.key in keys else (ZONE if ZONE in keys else next(iter(keys), ""))
    found = [(each, skew) for each in chosen(scan, query) if (skew := _of_key(each, key)) is not None]
    totals = Counter[str]()
    for _, skew in found:
        totals.update(dict.fromkeys(skew.domains, 0) | dict(skew.domains))
    columns = sorted(name for name, _ in totals.most_common(_MOST_COLUMNS))
    # Very many domains are hosts, of which a workload lists those alone where it has pods.
    domains = max([len(totals), *(skew.eligible for _, skew in found)])
    rest = domains - len(columns)
    rows, page = cut(found, query, _ROWS)
    shorts, moment = short_names(columns), instant(shown.moment)
    return {
        **pager("/domains", query, page),
        "key": one_line(key),
        "choices": [one_line(each) for each in keys[:_MOST_KEYS]],
        "counted": f"{plural(len(found), 'workload')} in {plural(domains, 'domain')}" if found else "",
        "columns": [one_line(name if rest else shorts[name], 40) for name in columns],
        "rest": f"{rest:,} more" if rest else "",
        "rows": [
            {"of": summary(each, moment, {}), "cells": _cells(skew, columns), "rest": _beside(skew, columns)}
            for each, skew in rows
        ],
        "nothing": "No workload is like that." if keys else "No workload is spread over domains.",
        "nothing_next": "Ask for another part of the name." if keys else _EMPTY,
    }


def _of_key(of: ScannedWorkload, key: str) -> ActualSkew | None:
    """The constraint over the key that is broken, else the first."""
    mine = [each for each in of.skews if each.topology_key == key]
    return next((each for each in mine if each.above), mine[0] if mine else None)


def limit_of(skew: ActualSkew) -> int | None:
    """The most pods that a domain may have now. Unit: pods; None where the global minimum is not known."""
    return None if skew.global_minimum is None else skew.global_minimum + skew.max_skew


def _cells(skew: ActualSkew, columns: Sequence[str]) -> list[Cell]:
    full, limit = skew.most, limit_of(skew)
    cells = []
    for name in columns:
        pods = skew.domains.get(name, 0 if skew.empty else None)
        level = 0 if not pods else max(1, round(pods / full * _LEVELS))
        cells.append(Cell(pods, level, pods is not None and limit is not None and skew.above and pods > limit))
    return cells


def _beside(skew: ActualSkew, columns: Sequence[str]) -> int:
    """The pods in domains that have no column."""
    return sum(skew.domains.values()) - sum(skew.domains.get(name, 0) for name in columns)
