"""``evenspread audit``: the rules over a whole cluster, from what kubectl prints or a snapshot file."""

import sys

import click
from msgspec import structs

from webhook.cli.console import Progress, collect_rarely, colored, print_faults, print_results
from webhook.cli.formats import renderer
from webhook.cli.looking import Frame
from webhook.cli.options import Results, looking_options, result_options
from webhook.cli.outcome import exit_code
from webhook.cli.sources import read_files
from webhook.cli.survey import stated_version, survey


@click.command(epilog="Exit code: 0 fine, 1 findings, 2 usage or configuration, 3 input that could not be read.")
@click.argument("files", nargs=-1, metavar="[FILE|-]...")
@result_options
@click.option("--summary", is_flag=True, help="With text: only the summary, not the findings.")
@looking_options
def audit(
    *,
    files: tuple[str, ...],
    results: Results,
    summary: bool,
    frame: Frame,
) -> None:
    """Check what runs in a cluster: a summary of all findings first, then each of them.

    FILE is what kubectl printed, or a snapshot (JSON Lines); .gz too, and - for the standard input:

      kubectl get deployments,statefulsets,daemonsets,cronjobs -A -o json | evenspread audit -

    Objects that a controller in the same input made are looked at once, in the controller. With --ceiling deny the
    modes are those of a webhook that denies: the summary says what would be refused.
    """
    collect_rarely()
    progress = Progress()
    read = [*read_files(files or ("-",), unpack=True)]
    outcome = survey(read, structs.replace(frame, cluster_version=stated_version(read)), progress=progress)
    progress.close()
    print_faults(outcome.faults)
    if results.output == "text":
        from webhook.cli.formats.audit_page import render  # noqa: PLC0415 other formats do without

        print_results(render(outcome, color=colored(sys.stdout), findings=not summary))
    else:
        print_results(renderer(results.output, results.report_api)(outcome, color=False))
    click.get_current_context().exit(exit_code(outcome, results.fail_on))
