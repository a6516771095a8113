"""``evenspread audit``: check a whole cluster, live or from a file."""

import sys
from collections.abc import Sequence
from functools import partial

import click
from msgspec import structs

from webhook.cli.checking.levels import exit_code
from webhook.cli.checking.results import print_failures
from webhook.cli.checking.whole_cluster import examine_cluster, stated_moment, stated_version
from webhook.cli.color import has_color
from webhook.cli.formats import renderer
from webhook.cli.frame import Frame
from webhook.cli.live_cluster import ClusterSelection
from webhook.cli.long_runs import Progress, collect_rarely
from webhook.cli.options import ResultOptions, cluster_options, result_options, review_options
from webhook.cli.terminal import disarm, print_faults, print_message, print_results
from webhook.core.text import listed
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.files import File, read_files

_HTML = "html"
_MAX_FILES = 3  # named on the page


@click.command(
    short_help="Check all workloads of a cluster.",
    epilog="Exit code: 0 no findings at or above --fail-on, 1 findings at or above it, 2 usage or configuration, "
    "3 unreadable input, 4 cluster not readable, 5 a bug of evenspread.",
)
@click.argument("files", nargs=-1, metavar="[FILE|-]...")
@result_options(_HTML)
@click.option("--summary", is_flag=True, help="In text, print only the summary.")
@cluster_options
@partial(review_options, namespace_help="Check only this namespace. Also the namespace of objects without one.")
def audit(
    *,
    files: tuple[str, ...],
    results: ResultOptions,
    summary: bool,
    frame: Frame,
    selection: ClusterSelection,
) -> None:
    """Check all workloads of a cluster. The page starts with a summary. Each finding follows.

      evenspread audit --cluster

      kubectl get nodes,namespaces,deployments,statefulsets,daemonsets,cronjobs,pods -A -o json | evenspread audit -

    --cluster, --kubeconfig and --context select a live cluster. audit reads it with get and list. FILE is a snapshot or
    output of kubectl, also compressed (.gz), or - for the standard input.

    audit checks the pods of a controller once, in the controller. With --ceiling deny, the summary shows which
    workloads a webhook would deny. -o html writes the console's overview as a single page.
    """
    collect_rarely()
    progress = Progress()
    if selection.live and files:
        raise click.UsageError("files and a live cluster exclude each other: remove one of them")
    if sys.stdin.isatty() and not (files or selection.live or selection.snapshot):
        raise click.UsageError("add --cluster, or FILE (- for the standard input)")
    read = _read_live(selection, frame, progress) if selection.live else _read_files(files, selection)
    result = examine_cluster(read, structs.replace(frame, cluster_version=stated_version(read)), progress=progress)
    progress.close()
    print_faults(result.faults)
    if results.output == _HTML:
        from webhook.cli.console_sources import page  # noqa: PLC0415 other formats do without

        print_results(page(result, frame.policy, _source(read), stated_moment(read)))
    elif results.output == "text":
        from webhook.cli.commands.audit.page import render  # noqa: PLC0415 other formats do without

        paged = render(
            result,
            color=has_color(sys.stdout),
            findings=not summary,
            places=not selection.live,
            verbose=results.verbose,
        )
        print_results(map(disarm, paged))
    else:
        print_results(renderer(results.output, results.report_api)(result, color=False))
    print_failures(result.failures)
    click.get_current_context().exit(exit_code(result, results.fail_on))


def _read_files(files: tuple[str, ...], selection: ClusterSelection) -> Sequence[File | InputFault]:
    named = (*files, selection.snapshot) if selection.snapshot else files
    return [*read_files(named or ("-",), unpack=True)]


def _source(read: Sequence[File | InputFault]) -> str:
    """The names of the audited files, as shown on the page."""
    return listed([file.name for file in read if isinstance(file, File)], _MAX_FILES)


def _read_live(selection: ClusterSelection, frame: Frame, progress: Progress) -> Sequence[File | InputFault]:
    """Read a live cluster as a snapshot. So an audit has the same findings for a cluster and its snapshot."""
    from webhook.cli.live_cluster import open_cluster, reading  # noqa: PLC0415 offline work does without
    from webhook.snapshot.capture import capture  # noqa: PLC0415 as above

    live = open_cluster(selection)
    with reading():
        taken = capture(live, frame.policy, progress)
    for line in taken.missing:
        print_message(f"{live.source}: note: {line}")
    return [File(live.source, b"".join(taken.lines()))]
