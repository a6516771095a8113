"""The heat map: a row for each workload, a column for each domain of a topology key, numbers of pods in the cells."""

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from webhook.console.pages.listing import chosen, cut, pager
from webhook.console.pages.summary import summary
from webhook.console.query import Query
from webhook.console.shown import Shown
from webhook.console.words import instant, short_names
from webhook.core.api.well_known import ZONE
from webhook.core.scan.scan_results import ActualSkew, ClusterScan, ScannedWorkload
from webhook.core.text import one_line, plural

# Limits for a readable, small page in a cluster with thousands of workloads and domains.
_ROWS = 40
_MOST_COLUMNS = 20
_MOST_KEYS = 20
_LEVELS = 4  # The shades of the style sheet.


class _HeatCell(Struct, frozen=True):
    """A workload in a domain."""

    pods: int | None  # its own; None where the domain does not count for it and has none of them
    others: int  # pods of other workloads that its selector counts too
    level: int  # how dark, by its own pods
    high: bool  # the counted pods are more than maxSkew allows


def heat_map(shown: Shown, scan: ClusterScan, query: Query) -> dict[str, object]:
    """Return the values of the heat map's HTML template.

    Each row is a workload, each column a domain. Only the fullest domains have their own columns. A last column sums up
    the rest.
    """
    keys = [
        key
        for key, _ in Counter(skew.topology_key for workload in scan.workloads for skew in workload.skews).most_common()
    ]
    key = query.key if query.key in keys else (ZONE if ZONE in keys else next(iter(keys), ""))
    entries = [(workload, skew) for workload in chosen(scan, query) if (skew := _of_key(workload, key)) is not None]
    totals = Counter[str]()
    for _, skew in entries:
        totals.update(dict.fromkeys(skew.domains, 0))
        for pods in (_own(skew), skew.others):
            totals.update(pods)
    unlabelled = totals.pop("", 0)
    columns = sorted(name for name, _ in totals.most_common(_MOST_COLUMNS))
    # Host names make many domains. A workload lists only the hosts with its pods.
    domains = max([len(totals), *(skew.eligible for _, skew in entries)])
    rest = domains - len(columns)
    rows, page = cut(entries, query, _ROWS)
    shorts, moment = short_names(columns), instant(shown.moment)
    return {
        **pager("/domains", query, page),
        "key": one_line(key),
        "choices": [one_line(name) for name in keys[:_MOST_KEYS]],
        "counted": f"{plural(len(entries), 'workload')} in {plural(domains, 'domain')}" if entries else "",
        "columns": [one_line(name if rest else shorts[name], 40) for name in columns],
        "rest": f"{rest:,} more" if rest else "no label" if unlabelled else "",
        "rows": [
            {
                "of": summary(each, moment, {}),
                "unknown": skew.own is None,
                "cells": _cells(skew, columns),
                "rest": _beside(skew, columns),
            }
            for each, skew in rows
        ],
    }


def _of_key(workload: ScannedWorkload, key: str) -> ActualSkew | None:
    """Return the workload's constraint for a topology key: the first above its maxSkew, else the first."""
    mine = [skew for skew in workload.skews if skew.topology_key == key]
    return next((skew for skew in mine if skew.above), mine[0] if mine else None)


def limit_of(skew: ActualSkew) -> int | None:
    """Return the most pods allowed in a domain now by maxSkew. None if the global minimum is unknown."""
    return None if skew.global_minimum is None else skew.global_minimum + skew.max_skew


def _own(skew: ActualSkew) -> Mapping[str, int]:
    """Return the workload's own pods by domain, or all counted pods if its own cannot be distinguished."""
    return skew.domains if skew.own is None else skew.own


def _cells(skew: ActualSkew, columns: Sequence[str]) -> list[_HeatCell]:
    own, limit = _own(skew), limit_of(skew)
    full, cells = max(own.values(), default=0), list[_HeatCell]()
    for name in columns:
        counts = name in skew.domains or bool(skew.empty)
        pods = own.get(name, 0 if counts else None)
        level = 0 if not pods else max(1, round(pods / full * _LEVELS))
        high = skew.above and limit is not None and skew.domains.get(name, 0) > limit
        cells.append(_HeatCell(pods, skew.others.get(name, 0), level, high))
    return cells


def _beside(skew: ActualSkew, columns: Sequence[str]) -> _HeatCell:
    """Return the heat map cell for the pods outside the columns' domains.

    Nodes without the topology label also count.
    """
    own, others = ({**pods} for pods in (_own(skew), skew.others))
    for name in columns:
        own.pop(name, None)
        others.pop(name, None)
    return _HeatCell(sum(own.values()), sum(others.values()), 0, high=False)
