"""``evenspread doctor``: find faults of an installation, and commands that fix them."""

from collections.abc import Iterator, Sequence

import click
from msgspec.structs import replace

from webhook.cli.commands.doctor.admission import WriteOutcome, admission, write_outcome
from webhook.cli.commands.doctor.certificates import certificates
from webhook.cli.commands.doctor.controller import controller, health
from webhook.cli.commands.doctor.diagnosis import Diagnosis, DiagnosisState
from webhook.cli.commands.doctor.endpoints import endpoints
from webhook.cli.commands.doctor.permissions import permissions
from webhook.cli.commands.doctor.policy_drift import policy_drift
from webhook.cli.commands.doctor.read_facts import read_facts
from webhook.cli.commands.doctor.registration import registration
from webhook.cli.commands.doctor.versions import policy, reports, versions
from webhook.cli.exit_codes import CommandError, Exit
from webhook.cli.frame import today
from webhook.cli.live_cluster import ClusterSelection, open_cluster
from webhook.cli.options import cluster_options, output_option
from webhook.cli.output.page import BLUE, BOLD, DIM, GREEN, RED, YELLOW, paint
from webhook.cli.output.terminal import print_results, print_values
from webhook.config import ConfigError, load_policy
from webhook.core.policy.policy import Policy

# In the order of the page: prerequisites first.
_CHECKS = (
    versions,
    registration,
    admission,
    certificates,
    endpoints,
    controller,
    health,
    permissions,
    policy,
    policy_drift,
    reports,
)
_COLORS = {
    DiagnosisState.OK: GREEN,
    DiagnosisState.NOTE: BLUE,
    DiagnosisState.PROBLEM: RED,
    DiagnosisState.UNKNOWN: YELLOW,
}


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
@click.option(
    "--config",
    metavar="FILE",
    type=click.Path(),
    help="Compare admission policies with this SpreadPolicy.  [default: the policy of the installation]",
)
@output_option("text", "json", text="Format of the results.")
def doctor(*, selection: ClusterSelection, namespace: str, config: str | None, output: str) -> Exit:
    """Check an installation: webhook configurations, certificates, endpoints, controller and policy.

    Each line names a check and an object. A problem comes with its reason and a command to copy. Objects that you
    may not read are unknown. For all checks, use an account that may read Secrets and webhook configurations.

    doctor reads the kubeconfig's current cluster unless you select another. It only uses get and list, and creates
    one Deployment by dry run. The API server stores nothing.
    """
    if selection.snapshot is not None:
        raise click.UsageError("doctor needs a live cluster: a snapshot contains no installation. Remove --snapshot")
    given = None if config is None else _loaded(config)
    facts = read_facts(open_cluster(selection), namespace=namespace, today=today())
    facts = replace(facts, given_policy=given, given_file=config or "")
    diagnoses = [diagnosis for check in _CHECKS for diagnosis in check(facts)]
    if output == "json":
        print_values(diagnoses, output)
    else:
        print_results(_render(diagnoses, write_outcome(facts)))
    problems = any(diagnosis.state is DiagnosisState.PROBLEM for diagnosis in diagnoses)
    return Exit.FINDINGS if problems else Exit.FINE


def _loaded(config: str) -> Policy:
    try:
        return load_policy(config, today=today()).policy
    except ConfigError as error:
        raise CommandError(error.render(), Exit.USAGE) from error


def _render(diagnoses: Sequence[Diagnosis], outcome: WriteOutcome) -> Iterator[str]:
    """Render each diagnosis with its reason and commands, then the totals and how writes are treated."""
    width = max(len(diagnosis.check) for diagnosis in diagnoses)
    for diagnosis in diagnoses:
        state = paint(f"{diagnosis.state:8}", _COLORS[diagnosis.state])
        yield f"{state} {paint(diagnosis.check.ljust(width), BOLD)}  {diagnosis.where}: {diagnosis.what}\n"
        if diagnosis.why:
            yield f"         {' ' * width}  {paint(diagnosis.why, DIM)}\n"
        for line in diagnosis.fix.splitlines():
            yield f"         {' ' * width}  {'' if line.startswith('#') else '$ '}{line}\n"
    counts = {state: sum(diagnosis.state is state for diagnosis in diagnoses) for state in DiagnosisState}
    yield f"\n{', '.join(f'{count} {state}' for state, count in counts.items() if count)}: {outcome}\n"
