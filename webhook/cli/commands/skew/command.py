"""``evenspread skew``: the actual skew of running pods next to maxSkew."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import click
from msgspec import Struct, structs, to_builtins

from webhook.answers.scanned import NamedWorkload, skew_document
from webhook.cli.cluster_source import ClusterSource, cluster_with_pods
from webhook.cli.exit_codes import Exit
from webhook.cli.frame import Frame
from webhook.cli.live_cluster import ClusterSelection
from webhook.cli.options import current_cluster_options, frame_options, output_option
from webhook.cli.output.color import BOLD, GREEN, RED, YELLOW, Paint, has_color
from webhook.cli.output.layout import table_lines
from webhook.cli.output.long_runs import collect_rarely
from webhook.cli.output.terminal import Json, print_message, print_results, print_values
from webhook.core.api.types import ObjectMeta
from webhook.core.api.well_known import DEFAULT_NAMESPACE
from webhook.core.apiserver.decoding import DecodeError
from webhook.core.context import Context
from webhook.core.scan.actual_skew import domain_text, workload_skews
from webhook.core.scan.scan_context import Representatives, ScanContext, key_of, scan_context, stands_for
from webhook.core.scan.scan_results import ActualSkew, Origin
from webhook.core.text import one_line, plural
from webhook.core.workloads.custom_kinds import EmbeddedKind
from webhook.core.workloads.kind_fields import has_template
from webhook.core.workloads.kinds import POD, group_kind
from webhook.core.workloads.reading import read_exactly, read_meta, read_workload
from webhook.snapshot.load import Item

_NAME = 60  # characters of a name in the table
_FROM = {Origin.DECLARED: "template", Origin.INJECTED: "injected", Origin.DEFAULT: "scheduler"}
# --watch lists again instead of watching. It needs no watch permission, and works for custom resources.
_EVERY_SECONDS = 10


class _WorkloadSkew(Struct, frozen=True, kw_only=True):
    """The skew of a workload's constraint."""

    workload: NamedWorkload
    skew: ActualSkew


@click.command(
    short_help="Show how uneven running pods are, compared with maxSkew.",
    epilog="Exit code: 0 no hard constraint is above its maxSkew, 1 at least one is, 2 usage or configuration, "
    "3 unreadable input, 4 cluster not readable.",
)
@click.option("-A", "--all-namespaces", is_flag=True, help="All namespaces.")
@click.option(
    "-w",
    "--watch",
    is_flag=True,
    help=f"List the cluster every {_EVERY_SECONDS} s, and print the table when it changes. The policy is read once.",
)
@output_option("text", "json", "yaml")
@current_cluster_options
@frame_options
def skew(*, all_namespaces: bool, watch: bool, output: str, selection: ClusterSelection, frame: Frame) -> None:
    """Show how uneven the running pods of each workload are, next to the maxSkew of each constraint.

      kubectl evenspread skew -A

    The scheduler keeps maxSkew only when it places a pod. After a scale-down or a failed node, nothing moves the
    remaining pods, so the skew can be higher. The table marks such values with !.

    skew uses the constraints of each template. Templates without any have the constraints that the configuration
    injects, else the scheduler's own defaults.
    """
    if watch and selection.snapshot is not None:
        raise click.UsageError("--watch needs a live cluster: remove --snapshot")
    if watch and output != "text":
        raise click.UsageError("--watch prints text only: remove -o")
    collect_rarely()
    skews, where = _read_skews(selection, frame, everywhere=all_namespaces)
    if output == "text":
        page = [*_render(skews, where, color=has_color(sys.stdout))]
        print_results(page)
        while watch:
            time.sleep(_EVERY_SECONDS)
            selection = structs.replace(selection, opened=None)  # credentials may have changed
            skews, _ = _read_skews(selection, frame, everywhere=all_namespaces)
            before, page = page, [*_render(skews, where, color=has_color(sys.stdout))]
            print_results(["\n", *page] if page != before else [])
    else:
        print_values([*map(_document, skews)], output)
    click.get_current_context().exit(Exit.FINDINGS if any(map(_is_broken, skews)) else Exit.FINE)


def _read_skews(selection: ClusterSelection, frame: Frame, *, everywhere: bool) -> tuple[Sequence[_WorkloadSkew], str]:
    """Return the skews of the cluster's workloads, and the namespace of the workloads.

    With ``everywhere``, the workloads are from all namespaces and the returned namespace is empty. Raises CommandError
    if pods or nodes could not be read.
    """
    keep = _keeping(frame.policy.workloads)
    known, here = cluster_with_pods(selection, frame, keep, lost="skew needs them")
    where = "" if everywhere else here.namespace or DEFAULT_NAMESPACE
    return _workload_skews(known, here, where), where


def _keeping(embedded: tuple[EmbeddedKind, ...]) -> Callable[[Item], bool]:
    """Return a filter for the raw objects needed: workloads, and the first pod of each controller."""
    first = Representatives((), embedded)

    def keep(item: Item) -> bool:
        api_version, kind = _type(item)
        if not has_template(api_version, kind, embedded):
            return False
        if kind != POD[1]:
            return True
        meta = read_meta(item.raw)
        return meta.controller is not None and first.takes(api_version, kind, meta)

    return keep


def _workload_skews(known: ClusterSource, context: Context, namespace: str) -> list[_WorkloadSkew]:
    """Return the skews of the scanned workloads in the namespace, those above maxSkew first."""
    within = scan_context(context)
    objects = [(item, read_meta(item.raw)) for item in known.kept]
    present = {key_of(meta.namespace, *_type(item), meta.name) for item, meta in objects}
    chosen = Representatives(present, context.policy.workloads)
    mine = [
        (item, meta) for item, meta in objects if namespace in {"", meta.namespace} and chosen.takes(*_type(item), meta)
    ]
    skews = [skew for item, meta in mine for skew in _object_skews(item, meta, within, known.source)]
    return sorted(
        skews, key=lambda skew: (not skew.skew.above, skew.workload.namespace, skew.workload.kind, skew.workload.name)
    )


def _type(item: Item) -> tuple[str, str]:
    return item.of.api_version or "", item.of.kind or ""


def _object_skews(item: Item, meta: ObjectMeta, within: ScanContext, source: str) -> Iterable[_WorkloadSkew]:
    (api_version, kind), embedded = _type(item), within.context.policy.workloads
    stand_in = stands_for(group_kind(api_version, kind), api_version, meta, embedded) is not None
    try:
        value, _ = read_exactly(item.raw, item.of)
        workload = read_workload(value, embedded, api_version=api_version, kind=kind)
    except DecodeError as error:
        print_message(
            f"{source}: note: {one_line(f'{kind} {meta.namespace}/{meta.name}')}: {error.message}: not counted"
        )
        return ()
    skews = () if workload is None else workload_skews(workload, within, stand_in=stand_in)
    named = NamedWorkload(namespace=meta.namespace, kind=kind, api_version=api_version, name=meta.name)
    return tuple(_WorkloadSkew(workload=named, skew=skew) for skew in skews)


def _is_broken(workload: _WorkloadSkew) -> bool:
    """Whether a hard constraint is above its maxSkew."""
    return workload.skew.above and workload.skew.hard


def _render(skews: Sequence[_WorkloadSkew], where: str, *, color: bool) -> Iterator[str]:
    """Yield the lines of the skew table and its summary. ``where`` is a namespace, or empty for all namespaces."""
    paint = Paint(color=color)
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
        domain_text(skew),
    )


def _document(row: _WorkloadSkew) -> Json:
    return {**to_builtins(row.workload), **to_builtins(skew_document(row.skew))}
