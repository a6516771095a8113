"""``evenspread audit``: check a whole cluster, live or from a file."""

from collections.abc import Iterable
from itertools import chain

import click
from msgspec import structs

from webhook.cli.checking.fleet import ClusterAudit, compared
from webhook.cli.checking.levels import exit_code
from webhook.cli.checking.results import RunResult, print_failures
from webhook.cli.checking.whole_cluster import examine_cluster, stated_moment, stated_version
from webhook.cli.commands.audit.inputs import ClusterInput, Content, Settings, cluster_inputs, settings_options
from webhook.cli.exit_codes import CommandError, Exit
from webhook.cli.formats import fleet_renderer, renderer
from webhook.cli.frame import Frame
from webhook.cli.options import ResultOptions, result_options
from webhook.cli.output.long_runs import Progress, collect_rarely
from webhook.cli.output.terminal import disarm, print_faults, print_message, print_results
from webhook.core.text import listed, one_line
from webhook.manifests.reading.files import File

_HTML = "html"
_REPORT = "report"
_MAX_FILES = 3  # named on the page
_MAX_ERROR_CHARS = 400  # five lines of a usual terminal


@click.command(
    short_help="Check all workloads of a cluster.",
    epilog="Exit code: 0 no findings at or above --fail-on, 1 findings at or above it, 2 usage or configuration, "
    "3 unreadable input, 4 cluster not readable, 5 a bug of evenspread.",
)
@click.argument("files", nargs=-1, metavar="[FILE|-]...")
@result_options(_HTML)
@click.option("--summary", is_flag=True, help="In text, print only the summary.")
@settings_options
def audit(
    *, files: tuple[str, ...], results: ResultOptions, summary: bool, contexts: tuple[str, ...], settings: Settings
) -> Exit:
    """Check all workloads of a cluster. The page starts with a summary. Each finding follows.

      evenspread audit --cluster

      kubectl get nodes,namespaces,deployments,statefulsets,daemonsets,cronjobs,pods -A -o json | evenspread audit -

    --cluster, --kubeconfig and --context select a live cluster. audit reads it with get and list. FILE is a snapshot or
    output of kubectl, also compressed (.gz), or - for the standard input. Several contexts or snapshots are compared.

    audit checks the pods of a controller once, in the controller. With --ceiling deny, the summary shows which
    workloads a webhook would deny. -o html writes the console's overview as a single page.
    """
    collect_rarely()
    progress = Progress()
    clusters = cluster_inputs(files, contexts, settings, progress)
    first, second = next(clusters), next(clusters, None)
    if second is None:
        return _audit_one(first, results, progress, summary=summary)
    return _audit_fleet(chain((first, second), clusters), results, progress, summary=summary)


def _audit_one(cluster: ClusterInput, results: ResultOptions, progress: Progress, *, summary: bool) -> Exit:
    frame, content = cluster.open()
    result = _examined(frame, content, progress)
    progress.close()
    print_faults(result.faults)
    if results.output == _HTML:
        from webhook.cli.console_sources import page  # noqa: PLC0415 other formats do without

        print_results(page(result, frame.policy, _source(content), stated_moment(content)))
    elif results.output == "text":
        from webhook.cli.commands.audit.page import render  # noqa: PLC0415 other formats do without

        paged = render(result, findings=not summary, places=not cluster.live, verbose=results.verbose)
        print_results(map(disarm, paged))
    else:
        print_results(renderer(results.output, results.report_api)(result))
    print_failures(result.failures)
    return exit_code(result, results.fail_on)


def _audit_fleet(
    clusters: Iterable[ClusterInput], results: ResultOptions, progress: Progress, *, summary: bool
) -> Exit:
    if results.output == _REPORT:
        raise click.UsageError("-o report is for a single cluster: run audit for each")
    fleet = compared(_audited(cluster, progress) for cluster in clusters)
    progress.close()
    for audit in fleet.audits:
        if audit.result is not None:
            print_faults(audit.result.faults)
    if results.output == "text":
        from webhook.cli.commands.audit.fleet_page import render  # noqa: PLC0415 other formats do without

        paged = render(fleet, findings=not summary, verbose=results.verbose)
        print_results(map(disarm, paged))
    elif results.output == _HTML:
        from webhook.console.rendering import fleet_file  # noqa: PLC0415 other formats do without

        print_results([fleet_file(fleet.clusters, fleet.workloads)])
    else:
        print_results(fleet_renderer(results.output, results.report_api)(fleet))
    print_failures([failure for audit in fleet.audits if audit.result for failure in audit.result.failures])
    return fleet.exit_code(results.fail_on)


def _audited(cluster: ClusterInput, progress: Progress) -> ClusterAudit:
    """Audit one of several clusters. The error of an unreadable cluster is printed, and the audit continues."""
    try:
        frame, content = cluster.open()
        result = _examined(frame, content, progress)
    except CommandError as error:
        why = _reason(str(error), cluster.name)
        print_message(f"evenspread: {cluster.name}: {why}")
        first = one_line(why.partition("\n")[0], _MAX_ERROR_CHARS)
        return ClusterAudit(name=cluster.name, error=first, code=Exit(error.code))
    # The comparison needs no index, the largest part of the memory.
    return ClusterAudit(name=cluster.name, result=structs.replace(result, index=None))


def _reason(error: str, name: str) -> str:
    """The error without the cluster's name."""
    for source in ("the input", name, f"cluster {name}", f"cluster {name} cannot be read"):
        error = error.removeprefix(f"{source}: ")
    return error


def _examined(frame: Frame, content: Content, progress: Progress) -> RunResult:
    return examine_cluster(content, structs.replace(frame, cluster_version=stated_version(content)), progress=progress)


def _source(content: Content) -> str:
    """The names of the audited files, as shown on the page."""
    return listed([file.name for file in content if isinstance(file, File)], _MAX_FILES)
