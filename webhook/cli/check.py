"""``evenspread check``: the rules over manifests."""

import sys

import click

from webhook.cli.console import Progress, collect_rarely, colored, print_faults, print_results
from webhook.cli.formats import renderer
from webhook.cli.looking import look
from webhook.cli.options import fail_on_option, frame, looking_options, output_option, report_api_option
from webhook.cli.outcome import exit_code
from webhook.cli.sources import read_files
from webhook.core.version import KubernetesVersion


@click.command(epilog="Exit code: 0 fine, 1 findings, 2 usage or configuration, 3 input that could not be read.")
@click.argument("paths", nargs=-1, metavar="PATH...|-")
@click.option(
    "-f", "--filename", "files", multiple=True, metavar="PATH", help="The same as an argument, as in kubectl."
)
@click.option(
    "--ignore", multiple=True, metavar="PATTERN", help="Leave out files and directories whose path or name matches."
)
@output_option
@report_api_option
@fail_on_option
@looking_options
def check(  # noqa: PLR0913 one parameter an option
    *,
    paths: tuple[str, ...],
    files: tuple[str, ...],
    ignore: tuple[str, ...],
    output: str,
    report_api: str,
    fail_on: str,
    config: str | None,
    kube_version: KubernetesVersion | None,
    namespace: str,
    rules: tuple[str, ...],
    ceiling: str | None,
) -> None:
    """Check manifests: what kube-apiserver would say of their spread constraints, and what is legal but wrong.

    PATH is a file, a directory (all .yaml, .yml and .json files below it), a pattern, or - for the standard input:

      helm template CHART | evenspread check -
    """
    given = (*paths, *files)
    if not given:
        raise click.UsageError("name the manifests to check: files, directories, patterns, or - for the standard input")
    collect_rarely()
    progress = Progress()
    looked = frame(config=config, kube_version=kube_version, namespace=namespace, rules=rules, ceiling=ceiling)
    outcome = look(read_files(given, ignore), looked, progress=progress)
    progress.close()
    print_faults(outcome.faults)
    print_results(renderer(output, report_api)(outcome, color=colored(sys.stdout)))
    click.get_current_context().exit(exit_code(outcome, fail_on))
