"""One workload in a line: its name and address, its pods in each zone, what is wrong with it, and how bad that is."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from markupsafe import Markup
from msgspec import Struct

from webhook.console.pages import pictures
from webhook.console.query import link
from webhook.console.words import age
from webhook.core.api.well_known import ZONE
from webhook.core.policy.policy import Mode
from webhook.core.review.judging import Judged
from webhook.core.scan.actual_skew import whose_text
from webhook.core.scan.scanned import ActualSkew, PendingCause, ScannedWorkload, SmallestFix, ZoneLoss
from webhook.core.text import constraint_name, one_line, plural

_TOLD = frozenset({Mode.WARN, Mode.DENY})
_NO_FIX = SmallestFix(of="", text="")
_LONGEST = 400  # characters of a sentence with names from outside


class ZoneCell(Struct, frozen=True):
    """The pods in one zone. Shape: ``high`` says that they are more than maxSkew allows."""

    name: str
    short: str
    pods: int
    high: bool
    picture: Markup


class Summary(Struct, frozen=True, kw_only=True):
    """A workload as lists name it. Shape: ``identity`` are the parameters of its address."""

    name: str
    kind: str
    namespace: str
    identity: tuple[tuple[str, str], ...]
    zones: tuple[ZoneCell, ...]
    why: str
    more: str
    fix: str
    yaml: str

    @property
    def address(self) -> str:
        """Its page."""
        return link("/workload", dict(self.identity))

    @property
    def anchor(self) -> str:
        """Its name in this document."""
        return link("", dict(self.identity)).removeprefix("?")


def summary(of: ScannedWorkload, moment: datetime | None, shorts: Mapping[str, str]) -> Summary:
    """Shape: ``shorts`` are the short names of the cluster's zones."""
    reasons = [*wrongs(of, moment)]
    rest, fix = len(reasons) - 1, of.fix or _NO_FIX
    return Summary(
        name=one_line(of.name),
        kind=one_line(of.kind),
        namespace=one_line(of.namespace),
        identity=(("apiVersion", of.api_version), ("kind", of.kind), ("namespace", of.namespace), ("name", of.name)),
        zones=zone_cells(of, shorts),
        why=reasons[0] if reasons else "",
        more=f"and {rest:,} more" if rest > 0 else "",
        fix=fix.text,
        yaml=fix.yaml,
    )


def wrongs(of: ScannedWorkload, moment: datetime | None) -> Iterator[str]:
    """Everything that is wrong with it, the worst first, each in a sentence."""
    for failure in of.failures:
        yield one_line(f"evenspread failed on it, in {failure.part}: {failure.error}", _LONGEST)
    waiting = of.pending.get(PendingCause.SPREAD, 0)
    if waiting:
        oldest = of.oldest_for_spread
        since = age(oldest.since, moment) if oldest is not None else ""
        told = f", the oldest for {since}" if since else ""
        yield f"{plural(waiting, 'pod')} Pending because of spread{told}"
    for each in sorted(of.skews, key=lambda skew: -excess(skew)):
        if each.above:
            yield above_text(each)
    for judged in counted_findings(of):
        yield one_line(judged.finding.summary, _LONGEST)
    worst = worst_loss(of.losses)
    if worst is not None and worst.most_pending:
        yield f"{plural(worst.most_pending, 'pod')} would stay Pending if zone {one_line(worst.zone)} failed"


def above_text(of: ActualSkew) -> str:
    """``uneven by zone: skew 3, maxSkew allows 1``, and how many of the counted pods are not its own."""
    whose = f" ({text})" if (text := whose_text(of)) else ""
    return f"uneven by {constraint_name(of.topology_key, None)}: skew {of.skew}, maxSkew allows {of.max_skew}{whose}"


def counted_findings(of: ScannedWorkload) -> list[Judged]:
    """The findings that somebody should act on, the most severe first: neither waived nor mere notes."""
    counted = (each for each in of.findings if not each.waived and each.configured in _TOLD)
    return sorted(counted, key=lambda each: each.severity.rank)


def excess(of: ActualSkew) -> int:
    """How far above its maxSkew. Unit: pods; negative below it."""
    return (of.skew or 0) - of.max_skew


def worst_loss(losses: tuple[ZoneLoss, ...]) -> ZoneLoss | None:
    """The zone whose failure costs most."""
    return max(losses, key=lambda each: each.most_pending, default=None)


def zone_cells(of: ScannedWorkload, shorts: Mapping[str, str]) -> tuple[ZoneCell, ...]:
    """Its pods in each zone, by name; nothing where they cannot be told from others, or there is one zone."""
    above = [each for each in of.skews if each.topology_key == ZONE and each.above]
    full = max(of.zones.values(), default=0)
    cells = []
    for name, pods in sorted(of.zones.items()):
        # The limit holds for all counted pods, those of other workloads too.
        counted = any(each.domains.get(name, 0) > each.max_skew + (each.global_minimum or 0) for each in above)
        high = counted and pods > 0
        picture = pictures.column(pods, full=full, high=high)
        cells.append(ZoneCell(one_line(name), one_line(shorts.get(name, name), 32), pods, high, picture))
    return tuple(cells)
