"""One workload in a line: name, address, pods in each zone, problems and their severity."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from markupsafe import Markup
from msgspec import Struct

from webhook.console.pages import pictures
from webhook.console.query import link
from webhook.console.words import age
from webhook.core.api.well_known import ZONE
from webhook.core.constraint_names import constraint_name
from webhook.core.policy.policy import Mode
from webhook.core.review.judging import JudgedFinding
from webhook.core.scan.actual_skew import ownership_text
from webhook.core.scan.scanned import ActualSkew, PendingCause, ScannedWorkload, SmallestFix, ZoneLoss
from webhook.core.text import one_line, plural

_TOLD = frozenset({Mode.WARN, Mode.DENY})
_NO_FIX = SmallestFix(of="", text="")
_LONGEST = 400  # characters of a sentence with names from outside


class _ZoneCell(Struct, frozen=True):
    """The pods in one zone. ``high`` means more than maxSkew allows."""

    name: str
    short: str
    pods: int
    high: bool
    picture: Markup


class _Summary(Struct, frozen=True, kw_only=True):
    """A workload in a list. ``identity`` has the parameters of its URL."""

    name: str
    kind: str
    namespace: str
    identity: tuple[tuple[str, str], ...]
    zones: tuple[_ZoneCell, ...]
    why: str
    more: str
    fix: str
    yaml: str

    @property
    def address(self) -> str:
        """The URL of its page."""
        return link("/workload", dict(self.identity))

    @property
    def anchor(self) -> str:
        """Its anchor in this document."""
        return link("", dict(self.identity)).removeprefix("?")


def summary(of: ScannedWorkload, moment: datetime | None, shorts: Mapping[str, str]) -> _Summary:
    """Summarise a workload. ``shorts`` has the short names of the cluster's zones."""
    reasons = [*wrongs(of, moment)]
    rest, fix = len(reasons) - 1, of.fix or _NO_FIX
    return _Summary(
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
    """Every problem of a workload as a sentence, worst first."""
    for failure in of.failures:
        yield one_line(f"a bug stopped evenspread's check, in {failure.part}: {failure.error}", _LONGEST)
    waiting = of.pending.get(PendingCause.SPREAD, 0)
    if waiting:
        oldest = of.oldest_for_spread
        since = age(oldest.since, moment) if oldest is not None else ""
        oldest_text = f", the oldest for {since}" if since else ""
        yield f"{plural(waiting, 'pod')} Pending because of spread{oldest_text}"
    for uneven in sorted(of.skews, key=lambda skew: -excess(skew)):
        if uneven.above:
            yield above_text(uneven)
    for judged in counted_findings(of):
        yield one_line(judged.finding.summary, _LONGEST)
    worst = worst_loss(of.losses)
    if worst is not None and worst.most_pending:
        yield f"{plural(worst.most_pending, 'pod')} would stay Pending if zone {one_line(worst.zone)} failed"


def above_text(of: ActualSkew) -> str:
    """``uneven by zone: skew 3, maxSkew allows 1``, with the number of counted pods from other workloads."""
    whose = f" ({text})" if (text := ownership_text(of)) else ""
    return f"uneven by {constraint_name(of.topology_key, None)}: skew {of.skew}, maxSkew allows {of.max_skew}{whose}"


def counted_findings(of: ScannedWorkload) -> list[JudgedFinding]:
    """The findings that need action, most severe first: without waived findings and notes."""
    counted = (finding for finding in of.findings if not finding.waived and finding.configured in _TOLD)
    return sorted(counted, key=lambda judged: judged.severity.rank)


def excess(of: ActualSkew) -> int:
    """The excess over maxSkew in pods. Negative below it."""
    return (of.skew or 0) - of.max_skew


def worst_loss(losses: tuple[ZoneLoss, ...]) -> ZoneLoss | None:
    """The zone with the costliest failure."""
    return max(losses, key=lambda loss: loss.most_pending, default=None)


def zone_cells(of: ScannedWorkload, shorts: Mapping[str, str]) -> tuple[_ZoneCell, ...]:
    """The workload's pods in each zone, by name. Empty for a single zone, or if its pods are not distinguishable."""
    above = [skew for skew in of.skews if skew.topology_key == ZONE and skew.above]
    full = max(of.zones.values(), default=0)
    cells = []
    for name, pods in sorted(of.zones.items()):
        # The limit covers all counted pods, including those of other workloads.
        counted = any(skew.domains.get(name, 0) > skew.max_skew + (skew.global_minimum or 0) for skew in above)
        high = counted and pods > 0
        picture = pictures.column(pods, full=full, high=high)
        cells.append(_ZoneCell(one_line(name), one_line(shorts.get(name, name), 32), pods, high, picture))
    return tuple(cells)
