"""``evenspread audit``: the rules over a whole cluster, from what kubectl prints or a snapshot file."""

import sys
from collections.abc import Sequence

import click
from msgspec import structs

from webhook.cli.checking.results import exit_code, print_failures
from webhook.cli.checking.whole_cluster import examine_cluster, stated_moment, stated_version
from webhook.cli.formats import renderer
from webhook.cli.frame import Frame
from webhook.cli.live_cluster import Given
from webhook.cli.options import Results, cluster_options, looking_options, result_options
from webhook.cli.terminal import Progress, collect_rarely, colored, harmless, print_faults, print_results, say
from webhook.core.text import listed
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.files import File, read_files

_HTML = "html"


@click.command(
    short_help="Check the workloads of a cluster: a summary, then each finding.",
    epilog="Exit code: 0 fine, 1 findings, 2 usage or configuration, 3 unreadable input, 4 no cluster, "
    "5 a fault of evenspread.",
)
@click.argument("files", nargs=-1, metavar="[FILE|-]...")
@result_options(_HTML)
@click.option("--summary", is_flag=True, help="With text: only the summary, not the findings.")
@cluster_options
@looking_options
def audit(
    *,
    files: tuple[str, ...],
    results: Results,
    summary: bool,
    frame: Frame,
    given: Given,
) -> None:
    """Check the workloads of a cluster: a summary of all findings first, then each finding.

    With --cluster, --kubeconfig or --context, audit reads a live cluster by get and list. FILE is a snapshot or output
    of kubectl, also packed (.gz), or - for the standard input:

      kubectl get nodes,namespaces,deployments,statefulsets,daemonsets,cronjobs,pods -A -o json | evenspread audit -

    audit checks the objects of a controller once, in the controller. With --ceiling deny, the summary shows the denials
    of a webhook with this ceiling. -o html writes one page with pictures: the first screen of the console, and the
    worst workloads.
    """
    collect_rarely()
    progress = Progress()
    if given.live and files:
        raise click.UsageError("a live cluster, or files; not both")
    if sys.stdin.isatty() and not (files or given.live or given.snapshot):
        raise click.UsageError("name a cluster with --cluster, or files; - is the standard input")
    read = _read_live(given, frame, progress) if given.live else _read_files(files, given)
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
            color=colored(sys.stdout),
            findings=not summary,
            places=not given.live,
            verbose=results.verbose,
        )
        print_results(map(harmless, paged))
    else:
        print_results(renderer(results.output, results.report_api)(result, color=False))
    print_failures(result.failures)
    click.get_current_context().exit(exit_code(result, results.fail_on))


def _read_files(files: tuple[str, ...], given: Given) -> Sequence[File | InputFault]:
    named = (*files, given.snapshot) if given.snapshot else files
    return [*read_files(named or ("-",), unpack=True)]


def _source(read: Sequence[File | InputFault]) -> str:
    """What people call the input."""
    return listed([each.name for each in read if isinstance(each, File)], 3)


def _read_live(given: Given, frame: Frame, progress: Progress) -> Sequence[File | InputFault]:
    """The cluster as the snapshot that could be taken of it, so that both give the same findings."""
    from webhook.cli.live_cluster import open_cluster, reading  # noqa: PLC0415 offline work does without
    from webhook.snapshot.capture import capture  # noqa: PLC0415 as above

    live = open_cluster(given)
    with reading():
        taken = capture(live, frame.policy, progress)
    for line in taken.missing:
        say(f"{live.source}: note: {line}")
    return [File(live.source, b"".join(taken.lines()))]
