"""Audit's page, about pods: which wait and why, where they stand too unevenly, what the loss of a zone costs."""

from collections.abc import Iterator, Sequence

from webhook.cli.terminal import BOLD, DIM, GREEN, RED, YELLOW, Paint, columns
from webhook.core.scan.actual_skew import domain_text
from webhook.core.scan.scanned import ClusterScan, PendingCause, ScannedWorkload
from webhook.core.text import one_line, plural

_MAX_ROWS = 10  # of a table: the page is to be read whole, and -o json has everything
_LONGEST = 60  # characters of a name
_FIX_CHARS = 100
_WAITS = {
    PendingCause.SPREAD: "for spread constraints",
    PendingCause.CAPACITY: "for room",
    PendingCause.OTHER: "for something else",
    PendingCause.FITS: "though a node would take them",
    PendingCause.GATED: "for scheduling gates",
    PendingCause.FOREIGN: "for another scheduler",
    PendingCause.UNKNOWN: "for reasons that were not looked at",
}


def standing(scan: ClusterScan, paint: Paint) -> Iterator[str]:
    """The tables that have anything in them."""
    yield from _pending(scan, paint)
    yield from _skews(scan, paint)
    yield from _defaults(scan, paint)
    if scan.zones:
        yield from _losses(scan, paint)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]], more: int, paint: Paint) -> Iterator[str]:
    """Columns as wide as they need be, the last as it is; ``more`` rows are left out."""
    first, *lines = (line.rstrip() for line in columns([head, *rows]))
    yield paint(first, BOLD) + "\n"
    yield from (f"{line}\n" for line in lines)
    if more > 0:
        yield paint(f"and {more:,} more", DIM) + "\n"


def _pending(scan: ClusterScan, paint: Paint) -> Iterator[str]:
    """How many pods wait for what, then the workloads with most of those that wait for their spread constraints."""
    waiting = [each for each in scan.workloads if each.pending]
    if not waiting:
        return
    told = ", ".join(f"{pods:,} {_WAITS[cause]}" for cause, pods in scan.pending.items())
    color = RED if PendingCause.SPREAD in scan.pending else YELLOW
    yield f"\n{paint(plural(sum(scan.pending.values()), 'Pending pod'), color, BOLD)}: {told}\n"
    rows = [(_name(each), f"{sum(each.pending.values()):,}", _causes(each), _since(each)) for each in waiting]
    head = ("PENDING NOW", "PODS", "CAUSE", "SINCE" if any(row[-1] for row in rows) else "")
    yield from _table(head, rows[:_MAX_ROWS], len(rows) - _MAX_ROWS, paint)
    for each in waiting[:_MAX_ROWS]:
        if each.pending_fix:
            yield f"  {paint('fix', GREEN)} of {_name(each)}: {one_line(each.pending_fix, _FIX_CHARS)}\n"


def _causes(of: ScannedWorkload) -> str:
    if len(of.pending) == 1:
        return str(next(iter(of.pending)))
    return ", ".join(f"{cause} {pods:,}" for cause, pods in of.pending.items())


def _since(of: ScannedWorkload) -> str:
    return one_line(of.pending_since, 32)


def _skews(scan: ClusterScan, paint: Paint) -> Iterator[str]:
    """The constraints above maxSkew, hard ones first, then by how far."""
    above = [(each, skew) for each in scan.workloads for skew in each.skews if skew.above]
    if not above:
        return
    ordered = sorted(above, key=lambda each: (not each[1].hard, each[1].max_skew - (each[1].skew or 0)))
    rows = [
        (
            f"{_name(each)} {one_line(skew.name, _LONGEST)}",
            f"{skew.skew:,} of {skew.max_skew:,}",
            skew.when_unsatisfiable,
            domain_text(skew),
        )
        for each, skew in ordered[:_MAX_ROWS]
    ]
    yield "\n"
    yield from _table(("ABOVE MAXSKEW", "SKEW", "WHEN", "PODS"), rows, len(above) - _MAX_ROWS, paint)


def _defaults(scan: ClusterScan, paint: Paint) -> Iterator[str]:
    """How many workloads get the configured defaults, and how many of their pods run without."""
    given = [each for each in scan.workloads if each.would_inject]
    lacking = sum(each.lacking for each in given)
    if given:
        text = f"{plural(len(given), 'workload')} without constraints would get the configured defaults"
        yield f"\n{paint(text, BOLD)}; {plural(lacking, 'running pod')} of them {_has(lacking)} none\n"


def _has(pods: int) -> str:
    return "has" if pods == 1 else "have"


def _name(of: ScannedWorkload) -> str:
    return one_line(of.title, _LONGEST)


def _losses(scan: ClusterScan, paint: Paint) -> Iterator[str]:
    """A line for each zone with its total, then the workloads that the failure of one costs most."""
    costly = [(each.title, loss) for each in scan.workloads for loss in each.losses if loss.costs]
    worst = sorted(costly, key=lambda each: (-each[1].most_pending, each[0], each[1].zone))
    named = [(f"{title} ({loss.zone})", loss) for title, loss in worst[:_MAX_ROWS]]
    rows = [*((total.zone, total) for total in scan.zones), *named]
    title = "PENDING IF ONE ZONE FAILS"
    width = max(len(title), *(len(one_line(name, _LONGEST)) for name, _ in rows))
    yield "\n" + paint(f"{title:{width}}  OUT OF REACH          GONE    OF PODS", BOLD) + "\n"
    for name, each in rows:
        pods = f"{each.unreachable.text('unknown'):>12}  {each.gone.text('unknown'):>12}  {each.wanted:9,}"
        yield f"{one_line(name, _LONGEST):{width}}  {pods}\n"
    if len(worst) > _MAX_ROWS:
        yield paint(f"and {len(worst) - _MAX_ROWS:,} more", DIM) + "\n"
