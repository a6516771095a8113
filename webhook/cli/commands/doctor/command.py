"""``evenspread doctor``: what is wrong with an installation, and the command that mends it."""

import sys

import click

from webhook.cli.commands.doctor.diagnosis import State
from webhook.cli.commands.doctor.judge import judge, outcome
from webhook.cli.commands.doctor.page import render
from webhook.cli.commands.doctor.read_facts import read_facts
from webhook.cli.exit_codes import Exit
from webhook.cli.frame import today
from webhook.cli.live_cluster import Given, open_cluster
from webhook.cli.options import cluster_options, output_option
from webhook.cli.terminal import colored, print_results, print_values


@click.command(
    short_help="Find faults of an installation in a cluster, and their repair.",
    epilog="Exit code: 0 nothing is wrong as far as could be seen, 1 problems, 2 usage, 4 no cluster, "
    "5 a fault of evenspread.",
)
@cluster_options
@click.option(
    "-n", "--namespace", metavar="NAME", default="", help="Where it is installed, if no webhook configuration says so."
)
@output_option("text", "json", text="Format of the results.")
def doctor(*, given: Given, namespace: str, output: str) -> None:
    """Diagnose an installation: webhook configurations, certificates, endpoints, controller and policy.

    doctor reads the kubeconfig's current cluster, or the selected one, by get and list. It creates one Deployment by
    dry run, which stores nothing, to test whether the API server sends reviews. Each line names a check and an object.
    A problem also has the reason and a command to copy. An object without read permission is `unknown`. For all checks,
    use an account that may read Secrets and webhook configurations.
    """
    if given.snapshot is not None:
        raise click.UsageError("a snapshot holds no installation; leave --snapshot out")
    facts = read_facts(open_cluster(given), namespace=namespace, today=today())
    diagnoses = [*judge(facts)]
    if output == "json":
        print_values(diagnoses, output)
    else:
        print_results(render(diagnoses, outcome(facts), color=colored(sys.stdout)))
    problems = any(each.state is State.PROBLEM for each in diagnoses)
    click.get_current_context().exit(Exit.FINDINGS if problems else Exit.FINE)
