"""One workload in a line: name, address, pods in each zone, problems and their severity."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from markupsafe import Markup
from msgspec import Struct

from webhook.console.pages import pictures
from webhook.console.query import link
from webhook.console.words import age
from webhook.core.api.well_known import ZONE
from webhook.core.policy.policy import Mode
from webhook.core.review.judging import JudgedFinding
from webhook.core.scan.actual_skew import ownership_text
from webhook.core.scan.scan_results import ActualSkew, PendingCause, ScannedWorkload, SmallestFix, ZoneLoss
from webhook.core.text import constraint_name, one_line, plural

_TOLD = frozenset({Mode.WARN, Mode.DENY})
_NO_FIX = SmallestFix(of="", text="")
_LONGEST = 400  # characters of a sentence with names from outside


class _ZoneCell(Struct, frozen=True):
    """The pods in a zone. ``high`` means more than maxSkew allows."""

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
        """The URL of the workload's page."""
        return link("/workload", dict(self.identity))

    @property
    def anchor(self) -> str:
        """The HTML anchor of the workload, for a console saved as a single file."""
        return link("", dict(self.identity)).removeprefix("?")


def summary(workload: ScannedWorkload, moment: datetime | None, shorts: Mapping[str, str]) -> _Summary:
    """Return a workload's row of the console: its problems, zones and fix.

    ``moment`` is the time of the scan. ``shorts`` maps each zone of the cluster to its short name.
    """
    reasons = [*wrongs(workload, moment)]
    rest, fix = len(reasons) - 1, workload.fix or _NO_FIX
    return _Summary(
        name=one_line(workload.name),
        kind=one_line(workload.kind),
        namespace=one_line(workload.namespace),
        identity=(
            ("apiVersion", workload.api_version),
            ("kind", workload.kind),
            ("namespace", workload.namespace),
            ("name", workload.name),
        ),
        zones=_zone_cells(workload, shorts),
        why=reasons[0] if reasons else "",
        more=f"and {rest:,} more" if rest > 0 else "",
        fix=fix.text,
        yaml=fix.yaml,
    )


def wrongs(workload: ScannedWorkload, moment: datetime | None) -> Iterator[str]:
    """Yield every problem of a workload as text, worst first."""
    for failure in workload.failures:
        yield one_line(f"a bug stopped evenspread's check, in {failure.part}: {failure.error}", _LONGEST)
    waiting = workload.pending.get(PendingCause.SPREAD, 0)
    if waiting:
        oldest = workload.oldest_for_spread
        since = age(oldest.since, moment) if oldest is not None else ""
        oldest_text = f", the oldest for {since}" if since else ""
        yield f"{plural(waiting, 'pod')} Pending because of spread{oldest_text}"
    for uneven in sorted(workload.skews, key=lambda skew: -excess(skew)):
        if uneven.above:
            yield above_text(uneven)
    for judged in counted_findings(workload):
        yield one_line(judged.finding.summary, _LONGEST)
    worst = worst_loss(workload.losses)
    if worst is not None and worst.most_pending:
        yield f"{plural(worst.most_pending, 'pod')} would stay Pending if zone {one_line(worst.zone)} failed"


def above_text(skew: ActualSkew) -> str:
    """Return ``uneven by zone: skew 3, maxSkew allows 1``, with the number of counted pods of other workloads."""
    whose = f" ({text})" if (text := ownership_text(skew)) else ""
    return (
        f"uneven by {constraint_name(skew.topology_key, None)}: skew {skew.skew}, maxSkew allows {skew.max_skew}{whose}"
    )


def counted_findings(workload: ScannedWorkload) -> list[JudgedFinding]:
    """Return the findings in mode warn or deny, most severe first, without exempted findings."""
    counted = (finding for finding in workload.findings if not finding.waived and finding.configured in _TOLD)
    return sorted(counted, key=lambda judged: judged.severity.rank)


def excess(skew: ActualSkew) -> int:
    """Return the skew minus maxSkew. Negative below maxSkew."""
    return (skew.skew or 0) - skew.max_skew


def worst_loss(losses: tuple[ZoneLoss, ...]) -> ZoneLoss | None:
    """Return the zone whose failure leaves most pods Pending. None without zones."""
    return max(losses, key=lambda loss: loss.most_pending, default=None)


def _zone_cells(workload: ScannedWorkload, shorts: Mapping[str, str]) -> tuple[_ZoneCell, ...]:
    """Return the workload's pods in each zone, sorted by zone. Empty without data about zones."""
    above = [skew for skew in workload.skews if skew.topology_key == ZONE and skew.above]
    full = max(workload.zones.values(), default=0)
    cells = []
    for name, pods in sorted(workload.zones.items()):
        # The limit covers all counted pods, including those of other workloads.
        counted = any(skew.domains.get(name, 0) > skew.max_skew + (skew.global_minimum or 0) for skew in above)
        high = counted and pods > 0
        picture = pictures.column(pods, full=full, high=high)
        cells.append(_ZoneCell(one_line(name), one_line(shorts.get(name, name), 32), pods, high, picture))
    return tuple(cells)
