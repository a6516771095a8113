"""``evenspread skew``: the actual skew of running pods next to maxSkew."""

import time
from collections.abc import Iterator, Sequence
from functools import partial

import click
from msgspec import UNSET, Struct, structs, to_builtins

from webhook.answers.repaired import CausedSkew
from webhook.answers.scanned import NamedWorkload, skew_document
from webhook.cli.commands.skew.fix import documents, is_budget, repairs
from webhook.cli.commands.skew.fix import page as fix_page
from webhook.cli.commands.skew.workloads import ScannedCluster, ScannedObject, read_objects
from webhook.cli.exit_codes import Exit
from webhook.cli.frame import Frame
from webhook.cli.live_cluster import ClusterSelection
from webhook.cli.options import current_cluster_options, frame_options, output_option
from webhook.cli.output.long_runs import collect_rarely
from webhook.cli.output.page import BOLD, GREEN, RED, YELLOW, paint, table_lines
from webhook.cli.output.terminal import Json, print_results, print_values
from webhook.cli.scale_in_events import ScaleInEvents
from webhook.cli.target import NamedObject, parse_object
from webhook.core.api.well_known import DEFAULT_NAMESPACE
from webhook.core.explain.explanation import balances_of
from webhook.core.pods_to_remove.past_scale_ins import PastScaleIn
from webhook.core.scan.actual_skew import domain_text, skews_of_templates
from webhook.core.scan.scan_context import ScanContext
from webhook.core.scan.scan_results import ActualSkew, Origin
from webhook.core.scheduler.cycle import Cycle
from webhook.core.text import one_line, plural

_NAME = 60  # characters of a name in the table
_FROM = {Origin.DECLARED: "template", Origin.INJECTED: "injected", Origin.DEFAULT: "scheduler"}
# --watch lists again instead of watching. It needs no watch permission, and works for custom resources.
_EVERY_SECONDS = 10


class _WorkloadSkew(Struct, frozen=True, kw_only=True):
    """The skew of a workload's constraint, and the scale-in that left it above maxSkew, if known."""

    workload: NamedWorkload
    skew: ActualSkew
    cause: PastScaleIn | None


@click.command(
    short_help="Show how uneven running pods are, compared with maxSkew.",
    epilog="Exit code: 0 no hard constraint is above its maxSkew, 1 at least one is, 2 usage or configuration, "
    "3 unreadable input, 4 cluster not readable.",
)
@click.argument("words", nargs=-1, metavar="[KIND/NAME]")
@click.option("-A", "--all-namespaces", is_flag=True, help="All namespaces.")
@click.option(
    "--fix",
    is_flag=True,
    help="Print the fewest evictions that repair each hard constraint above maxSkew, as kubectl commands.",
)
@click.option(
    "-w",
    "--watch",
    is_flag=True,
    help=f"List the cluster every {_EVERY_SECONDS} s, and print the table when it changes. The policy is read once.",
)
@output_option("text", "json", "yaml")
@current_cluster_options
@frame_options
def skew(  # noqa: PLR0913 one parameter an option
    *,
    words: tuple[str, ...],
    all_namespaces: bool,
    fix: bool,
    watch: bool,
    output: str,
    selection: ClusterSelection,
    frame: Frame,
) -> Exit:
    """Show how uneven the running pods of each workload are, next to the maxSkew of each constraint.

      kubectl evenspread skew -A

    The scheduler keeps maxSkew only when it places a pod. After a scale-down or a failed node, nothing moves the
    remaining pods, so the skew can be higher. The table marks such values with !.

    skew uses the constraints of each template. Templates without any have the constraints that the configuration
    injects, else the scheduler's own defaults.

    With --fix, each replacement gets a node, and all hard constraints are within maxSkew at the end, whatever nodes the
    scheduler chooses. The evictions respect PodDisruptionBudgets. skew runs none of the commands.
    """
    named = _named(words, frame, everywhere=all_namespaces)
    if watch and selection.snapshot is not None:
        raise click.UsageError("--watch needs a live cluster: remove --snapshot")
    if watch and output != "text":
        raise click.UsageError("--watch prints text only: remove -o")
    if watch and fix:
        raise click.UsageError("--watch prints no evictions: remove --fix")
    collect_rarely()
    read = partial(read_objects, frame=frame, named=named, everywhere=all_namespaces)
    if fix:
        cluster = read(selection, keep_too=is_budget)
        found, options = repairs(cluster), selection.as_options if cluster.known.server is not None else ""
        if output == "text":
            print_results(fix_page(found, cluster.namespace, options))
        else:
            print_values(documents(found, options), output)
        return Exit.FINDINGS if any(repair.hard for repair in found) else Exit.FINE
    cluster = read(selection)
    skews = _skews_of(cluster)
    if output == "text":
        page = [*_render(skews, cluster.namespace)]
        print_results(page)
        while watch:
            time.sleep(_EVERY_SECONDS)
            selection = structs.replace(selection, opened=None)  # credentials may have changed
            skews = _skews_of(read(selection))
            before, page = page, [*_render(skews, cluster.namespace)]
            print_results(["\n", *page] if page != before else [])
    else:
        print_values([*map(_document, skews)], output)
    return Exit.FINDINGS if any(map(_is_broken, skews)) else Exit.FINE


def _named(words: Sequence[str], frame: Frame, *, everywhere: bool) -> NamedObject | None:
    """Return the named workload. Raises click.UsageError."""
    if not words:
        return None
    named = parse_object("/".join(words), frame.namespace or DEFAULT_NAMESPACE, frame.policy.workloads)
    if named is None:
        raise click.UsageError(f"{'/'.join(words)[:64]!r} is no workload such as deployment/web")
    if everywhere:
        raise click.UsageError(f"{named.kind}/{named.name} is in one namespace: remove -A")
    return named


def _skews_of(cluster: ScannedCluster) -> list[_WorkloadSkew]:
    """Return the skews of the workloads, those above maxSkew first."""
    events = ScaleInEvents(cluster.known)
    skews = [row for scanned in cluster.objects for row in _rows(scanned, cluster.within, events)]
    return sorted(
        skews, key=lambda skew: (not skew.skew.above, skew.workload.namespace, skew.workload.kind, skew.workload.name)
    )


def _rows(scanned: ScannedObject, within: ScanContext, events: ScaleInEvents) -> Iterator[_WorkloadSkew]:
    for next_pod, _, skews in skews_of_templates(scanned.workload, within, stand_in=scanned.stand_in):
        causes: Sequence[PastScaleIn | None] = [None] * len(skews)
        if any(skew.above for skew in skews):
            balances = [*balances_of(Cycle(next_pod.problem), soft_defaults=True)]
            causes = events.causes(scanned.workload, scanned.named.namespace, balances)
        for skew, cause in zip(skews, causes, strict=True):
            yield _WorkloadSkew(workload=scanned.named, skew=skew, cause=cause)


def _is_broken(workload: _WorkloadSkew) -> bool:
    """Whether a hard constraint is above its maxSkew."""
    return workload.skew.above and workload.skew.hard


def _render(skews: Sequence[_WorkloadSkew], where: str) -> Iterator[str]:
    """Yield the lines of the skew table and its summary. ``where`` is a namespace, or empty for all namespaces."""
    if not skews:
        yield paint(f"no workload with running pods in {where or 'any namespace'}", GREEN) + "\n"
        return
    rows = [("NAMESPACE", "WORKLOAD", "CONSTRAINT", "MAXSKEW", "SKEW", "WHEN", "FROM", "PODS"), *map(_row, skews)]
    for number, line in enumerate(table_lines(rows)):
        yield paint(line, *_colour(skews[number - 1] if number else None)) + "\n"
    above = [skew for skew in skews if skew.skew.above]
    hard = sum(map(_is_broken, above))
    summary = f"{len(above)} of {plural(len(skews), 'constraint')} above maxSkew"
    yield "\n" + paint(f"{summary}, {hard} of them DoNotSchedule" if above else summary, RED if hard else GREEN) + "\n"


def _colour(row: _WorkloadSkew | None) -> Sequence[str]:
    if row is None:
        return (BOLD,)
    return () if not row.skew.above else (RED,) if _is_broken(row) else (YELLOW,)


def _row(row: _WorkloadSkew) -> tuple[str, ...]:
    workload, skew = row.workload, row.skew
    return (
        one_line(workload.namespace, _NAME),
        one_line(f"{workload.kind}/{workload.name}", _NAME),
        one_line(skew.name, _NAME),
        str(skew.max_skew),
        "?" if skew.skew is None else f"{skew.skew}{'!' if skew.above else ''}",
        skew.when_unsatisfiable,
        _FROM[skew.origin],
        "; ".join([domain_text(skew), *([row.cause.text] if row.cause else [])]),
    )


def _document(row: _WorkloadSkew) -> Json:
    parts = row.workload, skew_document(row.skew), CausedSkew(left_by_scale_in=row.cause or UNSET)
    return {name: value for part in parts for name, value in to_builtins(part).items()}
