"""The page of ``evenspread audit``: the objects, what would be refused, the worst, how pods stand, each finding."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from webhook.cli.checking.results import Row, RunResult, fix, message
from webhook.cli.formats.text import COLORS, gap_lines, unread
from webhook.cli.terminal import BOLD, DIM, GREEN, RED, YELLOW, Paint, columns
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.rule import Severity
from webhook.core.rules.rule_set import BY_ID
from webhook.core.scan.actual_skew import domain_text
from webhook.core.scan.scanned import ClusterScan, PendingCause, ScannedWorkload
from webhook.core.text import one_line, plural

# Kinds in a line, names in a table: the page is to be read whole, and -o json has everything.
_MAX_KINDS_NAMED = 8
_MAX_ROWS = 10
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
_SEVERITIES = tuple(reversed(Severity))
# As measured by bench/memory.py: the program, and what it keeps of an object. Of other kinds there are few.
_BASE_MIB = 80
_OBJECT_KIB = {"Pod": 0.51, "ReplicaSet": 1.06, "Node": 1.47}
_TOLD = frozenset({Mode.WARN, Mode.DENY})


def render(
    result: RunResult, *, color: bool, findings: bool = True, places: bool = True, verbose: bool = False
) -> Iterator[str]:
    """The page, piece by piece; without ``findings`` the summary alone, without ``places`` no files and lines."""
    paint = Paint(color=color)
    counted = [row for row in result.rows if not row.waived]
    if result.objects:
        yield from _looked_at(result)
        yield from _totals(result, counted, paint)
    else:
        yield "nothing to check\n"
    if counted:
        yield from _by_rule(counted, paint)
        yield from _worst("workload", counted, lambda row: row.manifest.title, paint)
        yield from _worst("namespace", counted, lambda row: one_line(row.manifest.namespace or "(none)"), paint)
    if result.scan is not None:
        yield from standing(result.scan, paint)
    if findings and counted:
        yield f"\n{paint('FINDINGS', BOLD)}\n"
        yield from _findings(counted, paint, places=places)
    if gaps := [*gap_lines(result, verbose=verbose)]:
        yield f"\n{paint('NOT LOOKED AT', BOLD)}\n" + "".join(paint(line, DIM) + "\n" for line in gaps)
    if incomplete := unread(result):
        yield f"\n{paint(incomplete, RED)}\n"


def _looked_at(result: RunResult) -> Iterator[str]:
    kinds = Counter(result.kinds).most_common()
    shown = ", ".join(f"{count:,} {kind}" for kind, count in kinds[:_MAX_KINDS_NAMED])
    rest = sum(count for _, count in kinds[_MAX_KINDS_NAMED:])
    yield f"{plural(result.objects, 'object')}: {shown}{f', {rest:,} of other kinds' if rest else ''}\n"
    owned = f", and with them {plural(result.owned, 'object')} that they made" if result.owned else ""
    yield f"{plural(result.workloads, 'workload')} looked at{owned}\n"
    if result.whole:
        yield f"a replica of the webhook takes about {_replica_mib(result.kinds)} MiB beside this cluster\n"
    yield "\n"


def _replica_mib(kinds: Mapping[str, int]) -> int:
    """MiB of memory, but for what lists and requests take for a moment; rounded up to the next ten."""
    total = _BASE_MIB + sum(kinds.get(kind, 0) * kib for kind, kib in _OBJECT_KIB.items()) / 1024
    return math.ceil(total / 10) * 10


def _totals(result: RunResult, counted: Sequence[Row], paint: Paint) -> Iterator[str]:
    if counted:
        severities = Counter(row.severity for row in counted)
        parts = ", ".join(
            paint(f"{severities[each]:,} {each}", COLORS[each]) for each in _SEVERITIES if severities[each]
        )
        objects = _objects(counted)
        yield f"{paint(plural(len(counted), 'finding'), BOLD)} in {plural(len(objects), 'workload')}: {parts}"
    else:
        yield paint("no findings", GREEN)
    exempted = len(result.rows) - len(counted)
    yield f"; {exempted:,} exempted\n" if exempted else "\n"
    now = _objects(row for row in counted if row.judged.mode is Mode.DENY)
    later = _objects(row for row in counted if row.judged.configured is Mode.DENY)
    if now:
        yield paint(f"{plural(len(now), 'workload')} would be refused", RED) + f": {_names(now)}\n"
    elif later:
        told = f"{plural(len(later), 'workload')} would be refused under --ceiling deny"
        yield f"{paint(told, YELLOW)}: {_names(later)}\n"
    elif counted:
        yield "nothing would be refused, not even with --ceiling deny\n"


def _objects(rows: Iterable[Row]) -> dict[tuple[str, str], str]:
    """The workloads of the rows: apiVersion and title -> title."""
    return {(row.manifest.api_version, row.manifest.title): row.manifest.title for row in rows}


def _names(objects: dict[tuple[str, str], str]) -> str:
    names = sorted(objects.values())
    return ", ".join(names[:_MAX_ROWS]) + (f" and {len(names) - _MAX_ROWS:,} more" if len(names) > _MAX_ROWS else "")


def _by_rule(rows: Sequence[Row], paint: Paint) -> Iterator[str]:
    rules: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        rules[row.judged.finding.rule].append(row)
    modes = {rule: "/".join(sorted({str(row.judged.mode) for row in found})) for rule, found in rules.items()}
    width, broad = max(map(len, rules)), max(4, *map(len, modes.values()))
    head = f"{'RULE':{width}}  SEVERITY  {'MODE':{broad}}  FINDINGS  WORKLOADS  WHAT IS WRONG"
    yield "\n" + paint(head, BOLD) + "\n"
    order = sorted(rules.items(), key=lambda entry: (_SEVERITIES.index(entry[1][0].severity), -len(entry[1]), entry[0]))
    for rule, found in order:
        severity = found[0].severity
        yield (
            f"{rule:{width}}  {paint(f'{severity:8}', COLORS[severity])}  {modes[rule]:{broad}}  "
            f"{len(found):8,}  {len(_objects(found)):9,}  {BY_ID[rule].title}\n"
        )


def _worst(noun: str, rows: Sequence[Row], name: Callable[[Row], str], paint: Paint) -> Iterator[str]:
    """The names with most findings, the most severe first."""
    grouped: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[name(row)].append(row)
    worst = [
        (each, Counter(row.severity for row in found))
        for each, found in sorted(grouped.items(), key=lambda entry: (_badness(entry[1]), entry[0]))
    ]
    width = max(len(entry[0]) for entry in worst[:_MAX_ROWS])
    title = f"WORST {noun.upper()}S"
    width = max(width, len(title))
    yield "\n" + paint(f"{title:{width}}  " + "  ".join(f"{each.upper():>6}" for each in _SEVERITIES), BOLD) + "\n"
    for entry, counts in worst[:_MAX_ROWS]:
        yield f"{entry:{width}}  " + "  ".join(f"{counts[each]:6,}" for each in _SEVERITIES) + "\n"
    if len(worst) > _MAX_ROWS:
        yield paint(f"and {len(worst) - _MAX_ROWS:,} more", DIM) + "\n"


def _badness(rows: Iterable[Row]) -> tuple[int, ...]:
    """What puts the worst first: the number of findings of each severity."""
    counts = Counter(row.severity for row in rows)
    return tuple(-counts[each] for each in _SEVERITIES)


def _findings(rows: Sequence[Row], paint: Paint, *, places: bool) -> Iterator[str]:
    """Each finding in one line or two under its workload; the worst workload and its worst finding first."""
    grouped: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row.manifest.namespace, row.manifest.title, row.manifest.api_version].append(row)
    for (_, title, _), found in sorted(grouped.items(), key=lambda entry: (_badness(entry[1]), entry[0])):
        place = f"  {one_line(found[0].manifest.file)}:{found[0].place.line}" if places else ""
        yield f"\n{paint(title, BOLD)}{paint(place, DIM)}\n"
        for row in sorted(found, key=lambda row: _SEVERITIES.index(row.severity)):
            severity = paint(f"{row.severity:6}", COLORS[row.severity])
            told = "" if row.judged.mode in _TOLD else paint(" (only recorded)", DIM)
            yield f"  {severity}  {row.judged.finding.rule}{told}: {message(row)}\n"
            if fix(row):
                yield f"          {paint('fix:', GREEN)} {fix(row)}\n"


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
