"""``evenspread doctor``: find faults of an installation, and commands against them."""

import sys

import click

from webhook.cli.color import has_color
from webhook.cli.commands.doctor.diagnosis import DiagnosisState
from webhook.cli.commands.doctor.judge import judge, write_outcome
from webhook.cli.commands.doctor.page import render
from webhook.cli.commands.doctor.read_facts import read_facts
from webhook.cli.exit_codes import Exit
from webhook.cli.frame import today
from webhook.cli.live_cluster import ClusterSelection, open_cluster
from webhook.cli.options import cluster_options, output_option
from webhook.cli.terminal import print_results, print_values


@click.command(
    short_help="Check an installation of evenspread.",
    epilog="Exit code: 0 no problems found, 1 problems, 2 usage, 4 cluster not reachable, 5 a bug of evenspread.",
)
@cluster_options
@click.option(
    "-n",
    "--namespace",
    metavar="NAME",
    default="",
    help="Namespace of the installation. Used if no webhook configuration names it.",
)
@output_option("text", "json", text="Format of the results.")
def doctor(*, selection: ClusterSelection, namespace: str, output: str) -> None:
    """Check an installation: webhook configurations, certificates, endpoints, controller and policy.

    Each line names a check and an object. A problem comes with its reason and a command to copy. Objects that you
    may not read are unknown. For all checks, use an account that may read Secrets and webhook configurations.

    doctor reads the kubeconfig's current cluster unless you select another. It only uses get and list, and creates
    one Deployment by dry run. The API server stores nothing.
    """
    if selection.snapshot is not None:
        raise click.UsageError("doctor needs a live cluster: a snapshot contains no installation. Remove --snapshot")
    facts = read_facts(open_cluster(selection), namespace=namespace, today=today())
    diagnoses = [*judge(facts)]
    if output == "json":
        print_values(diagnoses, output)
    else:
        print_results(render(diagnoses, write_outcome(facts), color=has_color(sys.stdout)))
    problems = any(diagnosis.state is DiagnosisState.PROBLEM for diagnosis in diagnoses)
    click.get_current_context().exit(Exit.FINDINGS if problems else Exit.FINE)
