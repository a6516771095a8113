"""``evenspread skew``: how uneven the pods of workloads stand now, beside what their constraints allow."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import click
from msgspec import Struct, structs, to_builtins

from webhook.answers.scanned import NamedWorkload, skew_document
from webhook.cli.cluster_source import ClusterSource, cluster_with_pods
from webhook.cli.exit_codes import Exit
from webhook.cli.frame import Frame
from webhook.cli.live_cluster import Given
from webhook.cli.options import current_cluster_options, frame_options, output_option
from webhook.cli.terminal import (
    BOLD,
    GREEN,
    RED,
    YELLOW,
    Json,
    Paint,
    collect_rarely,
    colored,
    columns,
    print_results,
    print_values,
    say,
)
from webhook.core.api.types import ObjectMeta
from webhook.core.api.well_known import DEFAULT_NAMESPACE
from webhook.core.apiserver.decoding import DecodeError
from webhook.core.context import Context
from webhook.core.scan.actual_skew import domain_text, workload_skews
from webhook.core.scan.scan_context import Representatives, ScanContext, key_of, scan_context, stands_for
from webhook.core.scan.scanned import ActualSkew, Origin
from webhook.core.text import one_line, plural
from webhook.core.workloads.custom_kinds import EmbeddedKind
from webhook.core.workloads.kind_fields import has_template
from webhook.core.workloads.kinds import POD, group_kind
from webhook.core.workloads.reading import read_exactly, read_meta, read_workload
from webhook.snapshot.load import Item

_NAME = 60
_FROM = {Origin.DECLARED: "template", Origin.INJECTED: "injected", Origin.DEFAULT: "scheduler"}
# Listed anew each time: the command needs no right to watch, works on the kinds that operators bring, and keeps of the
# pods nothing but counts.
_EVERY_SECONDS = 10


class _Standing(Struct, frozen=True, kw_only=True):
    """A workload and the skew of one of its constraints."""

    workload: NamedWorkload
    skew: ActualSkew


@click.command(
    short_help="Show how uneven the running pods of workloads are, next to maxSkew.",
    epilog="Exit code: 0 no hard constraint is above its maxSkew, 1 one is, 2 usage or configuration, 3 input that "
    "could not be read, 4 the cluster could not be read.",
)
@click.option("-A", "--all-namespaces", is_flag=True, help="All namespaces.")
@click.option(
    "-w",
    "--watch",
    is_flag=True,
    help=f"List the cluster again every {_EVERY_SECONDS} s, and print the table when it changes. Needs no right to "
    "watch. Keeps the policy of its start.",
)
@output_option("text", "json", "yaml")
@current_cluster_options
@frame_options
def skew(*, all_namespaces: bool, watch: bool, output: str, given: Given, frame: Frame) -> None:
    """Show how uneven the running pods of workloads are, by constraint, next to its maxSkew.

    skew uses the constraints of each template. For a template without any, it uses those that the configuration
    injects, else the scheduler's own defaults. A scheduler keeps maxSkew only when it places a pod. When pods or nodes
    go, nothing moves the rest. Without --snapshot, skew reads the kubeconfig's current cluster.

      kubectl evenspread skew -A
    """
    if watch and given.snapshot is not None:
        raise click.UsageError("--watch is for a live cluster, and --snapshot is a file")
    if watch and output != "text":
        raise click.UsageError("--watch prints text")
    collect_rarely()
    found, where = _look(given, frame, everywhere=all_namespaces)
    if output == "text":
        shown = [*_render(found, where, color=colored(sys.stdout))]
        print_results(shown)
        while watch:
            time.sleep(_EVERY_SECONDS)
            given = structs.replace(given, opened=None)  # credentials may have changed
            found, _ = _look(given, frame, everywhere=all_namespaces)
            before, shown = shown, [*_render(found, where, color=colored(sys.stdout))]
            print_results(["\n", *shown] if shown != before else [])
    else:
        print_values([*map(_document, found)], output)
    click.get_current_context().exit(Exit.FINDINGS if any(map(_is_broken, found)) else Exit.FINE)


def _look(given: Given, frame: Frame, *, everywhere: bool) -> tuple[Sequence[_Standing], str]:
    """The skews of the cluster now, and the namespace, empty for all.

    Errors: CommandError if pods or nodes could not be read.
    """
    keep = _keeping(frame.policy.workloads)
    known, here = cluster_with_pods(given, frame, keep, lost="there is nothing to count without them")
    where = "" if everywhere else here.namespace or DEFAULT_NAMESPACE
    return _standings(known, here, where), where


def _keeping(embedded: tuple[EmbeddedKind, ...]) -> Callable[[Item], bool]:
    """Which objects to keep while the cluster is read: workloads, and the first pod of each controller."""
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


def _standings(known: ClusterSource, context: Context, namespace: str) -> list[_Standing]:
    """The skews of the kept workloads, those above maxSkew first. An empty ``namespace`` stands for all."""
    within = scan_context(context)
    named = [(item, read_meta(item.raw)) for item in known.kept]
    present = {key_of(meta.namespace, *_type(item), meta.name) for item, meta in named}
    chosen = Representatives(present, context.policy.workloads)
    mine = [each for each in named if namespace in {"", each[1].namespace} and chosen.takes(*_type(each[0]), each[1])]
    found = [each for item, meta in mine for each in _of_item(item, meta, within, known.source)]
    return sorted(
        found, key=lambda each: (not each.skew.above, each.workload.namespace, each.workload.kind, each.workload.name)
    )


def _type(item: Item) -> tuple[str, str]:
    return item.of.api_version or "", item.of.kind or ""


def _of_item(item: Item, meta: ObjectMeta, within: ScanContext, source: str) -> Iterable[_Standing]:
    (api_version, kind), embedded = _type(item), within.context.policy.workloads
    stand_in = stands_for(group_kind(api_version, kind), api_version, meta, embedded) is not None
    try:
        value, _ = read_exactly(item.raw, item.of)
        workload = read_workload(value, embedded, api_version=api_version, kind=kind)
    except DecodeError as error:
        say(f"{source}: note: {one_line(f'{kind} {meta.namespace}/{meta.name}')}: {error.message}: not counted")
        return ()
    skews = () if workload is None else workload_skews(workload, within, stand_in=stand_in)
    named = NamedWorkload(namespace=meta.namespace, kind=kind, api_version=api_version, name=meta.name)
    return tuple(_Standing(workload=named, skew=each) for each in skews)


def _is_broken(of: _Standing) -> bool:
    """Whether a hard constraint is above its maxSkew."""
    return of.skew.above and of.skew.hard


def _render(found: Sequence[_Standing], where: str, *, color: bool) -> Iterator[str]:
    """The table and its summary. An empty ``where`` stands for all namespaces."""
    paint = Paint(color=color)
    if not found:
        yield paint(f"no workload with pods of its own in {where or 'any namespace'}", GREEN) + "\n"
        return
    rows = [("NAMESPACE", "WORKLOAD", "CONSTRAINT", "MAXSKEW", "SKEW", "WHEN", "FROM", "PODS"), *map(_row, found)]
    for number, line in enumerate(columns(rows)):
        yield paint(line, *_colour(found[number - 1] if number else None)) + "\n"
    above = [each for each in found if each.skew.above]
    hard = sum(map(_is_broken, above))
    ends = f"{len(above)} of {plural(len(found), 'constraint')} above maxSkew"
    yield "\n" + paint(f"{ends}, {hard} of them DoNotSchedule" if above else ends, RED if hard else GREEN) + "\n"


def _colour(of: _Standing | None) -> Sequence[str]:
    if of is None:
        return (BOLD,)
    return () if not of.skew.above else (RED,) if _is_broken(of) else (YELLOW,)


def _row(of: _Standing) -> tuple[str, ...]:
    workload, skew = of.workload, of.skew
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


def _document(of: _Standing) -> Json:
    return {**to_builtins(of.workload), **to_builtins(skew_document(of.skew))}
