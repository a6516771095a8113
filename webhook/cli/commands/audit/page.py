"""The text page of ``evenspread audit``: totals, denials, worst workloads, pods, and each finding."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from webhook.answers.audited import CAUSES
from webhook.cli.checking.finding_text import fix, message
from webhook.cli.checking.results import Row, RunResult
from webhook.cli.formats.text import COLORS, gap_lines, unread
from webhook.cli.output.page import BOLD, DIM, GREEN, RED, YELLOW, counted_kinds, paint, table_lines
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.rule import Severity
from webhook.core.rules.rule_set import BY_ID
from webhook.core.scan.actual_skew import domain_text
from webhook.core.scan.scan_results import ClusterScan, PendingCause, ScannedWorkload
from webhook.core.text import listed, one_line, plural

_MAX_KINDS = 8  # in a line, and
_MAX_ROWS = 10  # in a table, so that people read the whole page; -o json has everything
_NAME = 60  # characters of a name
_FIX_CHARS = 100  # with its prefix, two lines of a usual terminal
_SEVERITIES = tuple(reversed(Severity))
# Measured by bench/memory.py: the program, and each object in the index. Other kinds are few.
_BASE_MIB = 115
_OBJECT_KIB = {"Pod": 0.57, "ReplicaSet": 1.03, "Node": 1.0}
_ROUND_MIB = 10  # as exact as the measured figures
_VISIBLE_MODES = frozenset({Mode.WARN, Mode.DENY})


def render(result: RunResult, *, findings: bool = True, places: bool = True, verbose: bool = False) -> Iterator[str]:
    """Render the summary, then the ``findings``. ``places`` adds files and lines, ``verbose`` skipped rules."""
    counted = [row for row in result.rows if not row.waived]
    if result.objects:
        yield from _object_counts(result)
        yield from _totals(result, counted)
    else:
        yield "nothing to check\n"
    if counted:
        yield from _by_rule(counted)
        yield from _worst("workload", counted, lambda row: row.manifest.title)
        yield from _worst("namespace", counted, lambda row: one_line(row.manifest.namespace or "(none)"))
    if result.scan is not None:
        yield from pod_tables(result.scan)
    if findings and counted:
        yield f"\n{paint('FINDINGS', BOLD)}\n"
        yield from _findings(counted, places=places)
    if gaps := [*gap_lines(result, verbose=verbose)]:
        yield f"\n{paint('NOT EVALUATED', BOLD)}\n" + "".join(paint(line, DIM) + "\n" for line in gaps)
    if incomplete := unread(result):
        yield f"\n{paint(incomplete, RED)}\n"


def _object_counts(result: RunResult) -> Iterator[str]:
    yield f"{plural(result.objects, 'object')}: {counted_kinds(result.kinds, _MAX_KINDS)}\n"
    owned = f", with {plural(result.owned, 'object')} that they own" if result.owned else ""
    yield f"{plural(result.workloads, 'workload')} checked{owned}\n"
    if result.whole:
        yield f"a webhook replica needs about {_replica_mib(result.kinds)} MiB of memory for this cluster\n"
    yield "\n"


def _replica_mib(kinds: Mapping[str, int]) -> int:
    """Estimate the memory of a webhook replica for these objects, without peaks. Rounded up to tens."""
    total = _BASE_MIB + sum(kinds.get(kind, 0) * kib for kind, kib in _OBJECT_KIB.items()) / 1024
    return math.ceil(total / _ROUND_MIB) * _ROUND_MIB


def _totals(result: RunResult, counted: Sequence[Row]) -> Iterator[str]:
    if counted:
        severities = Counter(row.severity for row in counted)
        parts = ", ".join(
            paint(f"{severities[severity]:,} {severity}", COLORS[severity])
            for severity in _SEVERITIES
            if severities[severity]
        )
        yield f"{paint(plural(len(counted), 'finding'), BOLD)} in {plural(len(_titles(counted)), 'workload')}: {parts}"
    else:
        yield paint("no findings", GREEN)
    exempted = len(result.rows) - len(counted)
    yield f"; {exempted:,} exempted\n" if exempted else "\n"
    now = _titles(row for row in counted if row.judged.mode is Mode.DENY)
    later = _titles(row for row in counted if row.judged.configured is Mode.DENY)
    if now:
        yield paint(f"the webhook would deny {plural(len(now), 'workload')}", RED) + f": {listed(now, _MAX_ROWS)}\n"
    elif later:
        text = f"with --ceiling deny, the webhook would deny {plural(len(later), 'workload')}"
        yield f"{paint(text, YELLOW)}: {listed(later, _MAX_ROWS)}\n"
    elif counted:
        yield "the webhook would deny no workload, even with --ceiling deny\n"


def _titles(rows: Iterable[Row]) -> list[str]:
    """The sorted titles of the rows' workloads. Two API versions can have the same title."""
    return sorted(title for title, _ in {(row.manifest.title, row.manifest.api_version) for row in rows})


def _by_rule(rows: Sequence[Row]) -> Iterator[str]:
    rules: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        rules[row.judged.finding.rule].append(row)
    modes = {rule: "/".join(sorted({str(row.judged.mode) for row in own})) for rule, own in rules.items()}
    width, mode_width = max(map(len, rules)), max(len("MODE"), *map(len, modes.values()))
    head = f"{'RULE':{width}}  SEVERITY  {'MODE':{mode_width}}  FINDINGS  WORKLOADS  FAULT"
    yield "\n" + paint(head, BOLD) + "\n"
    order = sorted(rules.items(), key=lambda entry: (_SEVERITIES.index(entry[1][0].severity), -len(entry[1]), entry[0]))
    for rule, own in order:
        severity = own[0].severity
        yield (
            f"{rule:{width}}  {paint(f'{severity:8}', COLORS[severity])}  {modes[rule]:{mode_width}}  "
            f"{len(own):8,}  {len(_titles(own)):9,}  {BY_ID[rule].title}\n"
        )


def _worst(noun: str, rows: Sequence[Row], name: Callable[[Row], str]) -> Iterator[str]:
    """Yield a table of the workloads or namespaces with the most findings of the highest severity."""
    grouped: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[name(row)].append(row)
    worst = [
        (title, Counter(row.severity for row in own))
        for title, own in sorted(grouped.items(), key=lambda entry: (_badness(entry[1]), entry[0]))
    ]
    head = f"WORST {noun.upper()}S"
    width = max(len(head), *(len(title) for title, _ in worst[:_MAX_ROWS]))
    severities = "  ".join(f"{severity.upper():>6}" for severity in _SEVERITIES)
    yield "\n" + paint(f"{head:{width}}  {severities}", BOLD) + "\n"
    for title, counts in worst[:_MAX_ROWS]:
        yield f"{title:{width}}  " + "  ".join(f"{counts[severity]:6,}" for severity in _SEVERITIES) + "\n"
    if len(worst) > _MAX_ROWS:
        yield paint(f"and {len(worst) - _MAX_ROWS:,} more", DIM) + "\n"


def _badness(rows: Iterable[Row]) -> tuple[int, ...]:
    """Return a sort key: the negated numbers of findings, most severe first. The worst workload sorts first."""
    counts = Counter(row.severity for row in rows)
    return tuple(-counts[severity] for severity in _SEVERITIES)


def _findings(rows: Sequence[Row], *, places: bool) -> Iterator[str]:
    """Yield each finding under its workload. The worst workload and its worst finding come first."""
    grouped: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row.manifest.namespace, row.manifest.title, row.manifest.api_version].append(row)
    for (_, title, _), own in sorted(grouped.items(), key=lambda entry: (_badness(entry[1]), entry[0])):
        place = f"  {one_line(own[0].manifest.file)}:{own[0].place.line}" if places else ""
        yield f"\n{paint(title, BOLD)}{paint(place, DIM)}\n"
        for row in sorted(own, key=lambda row: row.severity.rank):
            yield from finding_lines(row)


def finding_lines(row: Row) -> Iterator[str]:
    """Render a finding below the name of its workload."""
    severity = paint(f"{row.severity:6}", COLORS[row.severity])
    mode = "" if row.judged.mode in _VISIBLE_MODES else paint(" (audit only)", DIM)
    yield f"  {severity}  {row.judged.finding.rule}{mode}: {message(row)}\n"
    if fix(row):
        yield f"          {paint('fix:', GREEN)} {fix(row)}\n"


def pod_tables(scan: ClusterScan) -> Iterator[str]:
    """Render the tables about pods, skew, defaults and zones. Empty tables are skipped."""
    yield from _pending(scan)
    yield from _skews(scan)
    yield from _defaults(scan)
    if scan.zones:
        yield from _losses(scan)


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]], more: int) -> Iterator[str]:
    """Render a table, and the number of skipped rows (``more``)."""
    first, *lines = (line.rstrip() for line in table_lines([head, *rows]))
    yield paint(first, BOLD) + "\n"
    yield from (f"{line}\n" for line in lines)
    if more > 0:
        yield paint(f"and {more:,} more", DIM) + "\n"


def _pending(scan: ClusterScan) -> Iterator[str]:
    """Yield the Pending pods by cause, then by workload."""
    waiting = [workload for workload in scan.workloads if workload.pending]
    if not waiting:
        return
    causes = ", ".join(f"{pods:,} {CAUSES[cause]}" for cause, pods in scan.pending.items())
    color = RED if PendingCause.SPREAD in scan.pending else YELLOW
    yield f"\n{paint(plural(sum(scan.pending.values()), 'Pending pod'), color, BOLD)}: {causes}\n"
    rows = [
        (
            _name(workload),
            f"{sum(workload.pending.values()):,}",
            _causes(workload),
            one_line(workload.pending_since, 32),
        )
        for workload in waiting
    ]
    head = ("PENDING NOW", "PODS", "CAUSE", "SINCE" if any(row[-1] for row in rows) else "")
    yield from table(head, rows[:_MAX_ROWS], len(rows) - _MAX_ROWS)
    for workload in waiting[:_MAX_ROWS]:
        if workload.pending_fix:
            yield f"  {paint('fix', GREEN)} for {_name(workload)}: {one_line(workload.pending_fix, _FIX_CHARS)}\n"


def _causes(workload: ScannedWorkload) -> str:
    if len(workload.pending) == 1:
        return str(next(iter(workload.pending)))
    return ", ".join(f"{cause} {pods:,}" for cause, pods in workload.pending.items())


def _skews(scan: ClusterScan) -> Iterator[str]:
    """Yield the table of constraints above maxSkew, hard before soft, the most uneven first."""
    above = [(workload, skew) for workload in scan.workloads for skew in workload.skews if skew.above]
    if not above:
        return
    ordered = sorted(above, key=lambda entry: (not entry[1].hard, entry[1].max_skew - (entry[1].skew or 0)))
    rows = [
        (
            f"{_name(workload)} {one_line(skew.name, _NAME)}",
            f"{skew.skew:,} of {skew.max_skew:,}",
            skew.when_unsatisfiable,
            domain_text(skew),
        )
        for workload, skew in ordered[:_MAX_ROWS]
    ]
    yield "\n"
    yield from table(("ABOVE MAXSKEW", "SKEW", "WHEN", "PODS"), rows, len(above) - _MAX_ROWS)


def _defaults(scan: ClusterScan) -> Iterator[str]:
    """Yield how many workloads would get the configured defaults, and how many running pods lack them."""
    targets = [workload for workload in scan.workloads if workload.would_inject]
    lacking = sum(workload.lacking for workload in targets)
    if targets:
        text = f"{plural(len(targets), 'workload')} without constraints would get the configured defaults"
        yield f"\n{paint(text, BOLD)}; {plural(lacking, 'running pod')} without the defaults\n"


def _name(workload: ScannedWorkload) -> str:
    return one_line(workload.title, _NAME)


def _losses(scan: ClusterScan) -> Iterator[str]:
    """Yield how many pods the failure of each zone leaves Pending: in total, then for the worst workloads."""
    costly = [(workload.title, loss) for workload in scan.workloads for loss in workload.losses if loss.costs]
    worst = sorted(costly, key=lambda entry: (-entry[1].most_pending, entry[0], entry[1].zone))
    named = [(f"{title} ({loss.zone})", loss) for title, loss in worst[:_MAX_ROWS]]
    rows = [*((total.zone, total) for total in scan.zones), *named]
    head = "PENDING IF ONE ZONE FAILS"
    width = max(len(head), *(len(one_line(name, _NAME)) for name, _ in rows))
    yield "\n" + paint(f"{head:{width}}   UNREACHABLE          GONE    OF PODS", BOLD) + "\n"
    for name, loss in rows:
        pods = f"{loss.unreachable.text('unknown'):>12}  {loss.gone.text('unknown'):>12}  {loss.wanted:9,}"
        yield f"{one_line(name, _NAME):{width}}  {pods}\n"
    if len(worst) > _MAX_ROWS:
        yield paint(f"and {len(worst) - _MAX_ROWS:,} more", DIM) + "\n"
