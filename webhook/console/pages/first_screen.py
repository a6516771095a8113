"""The first screen and the health page: worst zone loss, pending pods, uneven workloads and the installation."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from msgspec import Struct

from webhook.console.pages.summary import above_text, excess, summary, worst_loss, wrongs
from webhook.console.shown import Health, Shown
from webhook.console.words import age, duration, instant, short_names, written
from webhook.core.scan.scan_results import ClusterScan, PendingCause, ZoneLoss
from webhook.core.text import agree, one_line, plural

MOST_WORST = 10  # as many as fit on a screen
_MOST_ZONES = 4  # in the tile
_LOSS = "If one zone fails"
_SOON_DAYS = 2  # the CA lives a year and is renewed after two thirds of it, so the renewal has failed
_OLD_SECONDS = 120  # a quiet watch has a bookmark every minute


class _Tile(Struct, frozen=True, kw_only=True):
    """A figure on the console's start page, with its title and unit.

    Attributes:
        bad: Whether the number needs attention.
        rows: Zones by short name.
    """

    id: str
    title: str
    figure: str
    unit: str
    text: str
    bad: bool
    rows: tuple[tuple[str, ZoneLoss], ...] = ()


class Fact(Struct, frozen=True):
    """A line of the console's first page: a name and its value. ``bad`` marks a value that needs action."""

    name: str
    text: str
    bad: bool = False


def first_screen(shown: Shown, scan: ClusterScan) -> dict[str, object]:
    """Return the template's values for the first screen."""
    moment, shorts = instant(shown.moment), zone_shorts(scan)
    bad = [workload for workload in scan.workloads if any(True for _ in wrongs(workload, moment))]
    return {
        "tiles": (_loss_tile(scan, shorts), _pending_tile(scan, moment), _above_tile(scan)),
        "health": tuple(_health_line(shown.health, scan)),
        "worst": tuple(summary(workload, moment, shorts) for workload in bad[:MOST_WORST]),
        "total": plural(len(scan.workloads), "workload"),
        "any": bool(scan.workloads),
    }


def zone_shorts(scan: ClusterScan) -> Mapping[str, str]:
    """Return a short name for each zone of the cluster."""
    named = {loss.zone for loss in scan.zones} | {zone for workload in scan.workloads for zone in workload.zones}
    return short_names(sorted(named))


def _loss_tile(scan: ClusterScan, shorts: Mapping[str, str]) -> _Tile:
    """Return the tile of the worst zone: the number of Pending pods if it fails, for all workloads."""
    worst = worst_loss(scan.zones)
    if worst is None:
        why = "; ".join(f"{name}: {text}" for name, text in scan.lacks.items() if name in {"nodes", "pods"})
        text = (
            one_line(why)
            or "fewer than two zones: no node has the label topology.kubernetes.io/zone, or all have the same value"
        )
        return _Tile(id="zone-loss", title=_LOSS, figure="?", unit="not known", text=text, bad=False)
    lost = worst.most_pending
    costly = sorted(scan.zones, key=lambda loss: loss.most_pending, reverse=True)[:_MOST_ZONES]
    return _Tile(
        id="zone-loss",
        title=_LOSS,
        figure=f"{lost:,}",
        unit=("pod stays" if lost == 1 else "pods stay") + " Pending",
        text=f"if {one_line(worst.zone)} fails" if lost else "whichever zone fails",
        bad=lost > 0,
        rows=tuple(
            (one_line(shorts.get(zone_loss.zone, zone_loss.zone), 32), zone_loss)
            for zone_loss in sorted(costly, key=lambda loss: loss.zone)
        ),
    )


def _pending_tile(scan: ClusterScan, moment: datetime | None) -> _Tile:
    """Return the tile of pods Pending because of spread, with the longest waiting pod."""
    waiting = scan.pending.get(PendingCause.SPREAD, 0)
    oldest = min(
        (
            (pod.since, pod.name, workload.namespace)
            for workload in scan.workloads
            if (pod := workload.oldest_for_spread) is not None
        ),
        default=None,
    )
    others = sum(scan.pending.values()) - waiting
    parts = []
    if oldest is not None and age(oldest[0], moment):
        parts.append(f"the oldest for {age(oldest[0], moment)}: {one_line(oldest[2])}/{one_line(oldest[1])}")
    if others:
        parts.append(f"{others:,} more {agree(others, 'have')} another cause")
    return _Tile(
        id="pending",
        title="Pending because of spread",
        figure=f"{waiting:,}",
        unit="pod" if waiting == 1 else "pods",
        text="; ".join(parts) or ("" if waiting else "no pod is Pending"),
        bad=waiting > 0,
    )


def _above_tile(scan: ClusterScan) -> _Tile:
    """Return the tile of workloads with a skew above their maxSkew."""
    above = [workload for workload in scan.workloads if any(skew.above for skew in workload.skews)]
    text = "every workload is within its maxSkew"
    if above:
        worst, skew = max(
            ((workload, skew) for workload in above for skew in workload.skews if skew.above),
            key=lambda pair: excess(pair[1]),
        )
        text = f"the worst is {one_line(worst.namespace)}/{one_line(worst.name)}, {above_text(skew)}"
    return _Tile(
        id="above",
        title="Above their maxSkew",
        figure=f"{len(above):,}",
        unit=f"of {plural(len(scan.workloads), 'workload')}",
        text=text,
        bad=bool(above),
    )


def _health_line(health: Health, scan: ClusterScan) -> Iterator[Fact]:
    """Yield the facts about the installation, without unknown facts."""
    yield Fact("Ceiling", health.ceiling)
    yield Fact("Defaults", health.defaults_mode)
    if health.fault:
        yield Fact("Next scan", one_line(health.fault), bad=True)
    if health.cluster_age is not None:
        yield Fact(
            "Last contact with the cluster",
            f"{duration(health.cluster_age)} ago",
            bad=health.cluster_age > _OLD_SECONDS,
        )
    if health.certificate_days is not None:
        days = int(health.certificate_days)
        yield Fact("Our CA", f"{plural(days, 'day')} left", bad=health.certificate_days < _SOON_DAYS)
    rules = {gap.rule for gap in scan.gaps}
    yield Fact("Rules not evaluated", f"{len(rules):,}" if rules else "none")
    failed = sum(bool(workload.failures) for workload in scan.workloads)
    if failed:
        yield Fact("Failed on", plural(failed, "workload"), bad=True)


def health_page(shown: Shown, scan: ClusterScan) -> dict[str, object]:
    """Return the template's values for the health page."""
    return {"facts": [*_facts(shown, scan)], "lacks": scan.lacks, "gaps": scan.gaps}


def _facts(shown: Shown, scan: ClusterScan) -> Iterator[Fact]:
    yield from _health_line(shown.health, scan)
    began, ended = instant(scan.started), instant(scan.ended)
    if ended is not None:
        took = f", which took {duration((ended - began).total_seconds())}" if began is not None else ""
        yield Fact("Last scan", f"{written(ended)}{took}")
    yield Fact("Nodes", f"{scan.nodes:,}")
    yield Fact("Pods", f"{scan.pods:,}")
    yield Fact("Workloads", f"{len(scan.workloads):,}")
