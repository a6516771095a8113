"""The text page of ``evenspread audit`` about several clusters: totals, the same workloads side by side, findings."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from webhook.answers.fleet import FleetCluster, FleetWorkload
from webhook.cli.checking.finding_text import fix, message
from webhook.cli.checking.fleet import Fleet
from webhook.cli.checking.results import Row
from webhook.cli.commands.audit.page import finding_lines, table
from webhook.cli.formats.text import gap_lines
from webhook.cli.output.page import BOLD, DIM, GREEN, RED, YELLOW, paint
from webhook.core.text import agree, listed, one_line, plural

_MAX_COLUMNS = 8  # clusters side by side, the worst; -o json has all
_MAX_ROWS = 20  # workloads, so that people read the whole table
_MAX_NAMES = 8  # clusters of a finding
_NAME = 60  # characters of a workload's name, and
_CLUSTER = 32  # of a cluster's
_ENDINGS = (".gz", ".jsonl", ".json", ".yaml", ".yml")


def render(fleet: Fleet, *, findings: bool = True, verbose: bool = False) -> Iterator[str]:
    """Render the summary, then the ``findings``. ``verbose`` lists skipped rules."""
    names = _short_names([cluster.cluster for cluster in fleet.clusters])
    yield from _clusters(fleet, names)
    yield from _workloads(fleet, names)
    if findings:
        yield from _findings(fleet, names)
    yield from _gaps(fleet, names, verbose=verbose)


def _short_names(names: Sequence[str]) -> dict[str, str]:
    """Return a short name for each file, without folder and ending. Equal short names stay long."""
    short = list[str]()
    for name in names:
        stem = PurePath(name).name
        for ending in _ENDINGS:
            stem = stem.removesuffix(ending)
        short.append(one_line(stem, _CLUSTER))
    return dict(zip(names, short if len({*short}) == len(names) else [one_line(name) for name in names], strict=True))


def _clusters(fleet: Fleet, names: dict[str, str]) -> Iterator[str]:
    read = [cluster for cluster in fleet.clusters if isinstance(cluster, FleetCluster)]
    unread = len(fleet.clusters) - len(read)
    suffix = f", {unread:,} not read" if unread else ""
    yield f"{paint(plural(len(fleet.clusters), 'cluster'), BOLD)}{paint(suffix, RED)}\n\n"
    if read:
        head = (
            "CLUSTERS",
            "NODES",
            "PODS",
            "WORKLOADS",
            "HIGH",
            "MEDIUM",
            "LOW",
            "WOULD DENY",
            "PENDING",
            "ABOVE MAXSKEW",
        )
        yield from table(head, [(names[cluster.cluster], *_figures(cluster)) for cluster in read], 0)
    for cluster in fleet.clusters:
        if cluster.fault:
            yield paint(f"{names[cluster.cluster]} {cluster.fault}", RED) + "\n"


def _figures(cluster: FleetCluster) -> tuple[str, ...]:
    found = cluster.findings
    numbers = (cluster.nodes, cluster.pods, cluster.workloads, found.high, found.medium, found.low, cluster.would_deny)
    return *(f"{number:,}" for number in numbers), f"{sum(cluster.pending.values()):,}", f"{cluster.above_max_skew:,}"


def _workloads(fleet: Fleet, names: dict[str, str]) -> Iterator[str]:
    """Yield the table of faulty workloads with a column for each cluster."""
    columns = [cluster.cluster for cluster in fleet.clusters if isinstance(cluster, FleetCluster)]
    if not columns:
        return
    if not fleet.workloads:
        yield f"\n{paint('no findings', GREEN)}\n"
        return
    shown = columns[:_MAX_COLUMNS]
    head = ("WORST WORKLOADS: high/medium/low", *(names[cluster] for cluster in shown))
    yield "\n"
    yield from table(head, [_row(workload, shown) for workload in fleet.workloads[:_MAX_ROWS]], 0)
    cut = ((len(fleet.workloads) - _MAX_ROWS, "workload"), (len(columns) - _MAX_COLUMNS, "cluster"))
    if hidden := [plural(count, noun) for count, noun in cut if count > 0]:
        yield paint(f"and {' and '.join(hidden)} more; -o json has all", DIM) + "\n"
    if differing := sum(workload.differs for workload in fleet.workloads):
        verb = agree(differing, "break")
        text = f"{plural(differing, 'workload')} {verb} different rules in different clusters"
        yield paint(text, YELLOW) + "\n"


def _row(workload: FleetWorkload, clusters: Sequence[str]) -> tuple[str, ...]:
    states = {state.cluster: state.text for state in workload.clusters}
    return one_line(workload.workload, _NAME), *(states.get(cluster, "-") for cluster in clusters)


def _findings(fleet: Fleet, names: dict[str, str]) -> Iterator[str]:
    """Yield each finding under its workload, once for all clusters with the same message."""
    grouped = defaultdict[str, defaultdict[tuple[str, ...], dict[str, Row]]](lambda: defaultdict(dict))
    for audit in fleet.audits:
        for row in audit.result.rows if audit.result is not None else ():
            if not row.waived:
                key = (row.judged.finding.rule, row.judged.mode, message(row), fix(row))
                grouped[row.manifest.title][key][names[audit.name]] = row
    if grouped:
        yield f"\n{paint('FINDINGS', BOLD)}\n"
    for workload in fleet.workloads:
        if own := grouped.get(workload.workload):
            yield f"\n{paint(one_line(workload.workload), BOLD)}\n"
            for clusters in sorted(own.values(), key=lambda rows: next(iter(rows.values())).severity.rank):
                yield from finding_lines(next(iter(clusters.values())))
                yield paint(f"          in: {listed([*clusters], _MAX_NAMES)}", DIM) + "\n"


def _gaps(fleet: Fleet, names: dict[str, str], *, verbose: bool) -> Iterator[str]:
    """Yield a line for each rule that was not evaluated. Clusters with equal lines share a line."""
    lines = defaultdict[str, list[str]](list)
    for audit in fleet.audits:
        for line in gap_lines(audit.result, verbose=verbose) if audit.result is not None else ():
            lines[line].append(names[audit.name])
    if lines:
        yield f"\n{paint('NOT EVALUATED', BOLD)}\n"
        yield from (paint(f"{listed(clusters, _MAX_NAMES)}: {line}", DIM) + "\n" for line, clusters in lines.items())
