"""``evenspread compile``: rules and defaults as policies that the API server evaluates itself."""

from collections.abc import Iterator, Sequence

import click

from webhook.cli.frame import today
from webhook.cli.live_cluster import ClusterSelection, open_cluster
from webhook.cli.options import cluster_options, kube_version_option, policy_option
from webhook.cli.output.page import BOLD, paint
from webhook.cli.output.terminal import print_results
from webhook.core.admission_policies.coverage import Coverage, coverage, defaults_coverage
from webhook.core.admission_policies.limits import why_refused
from webhook.core.admission_policies.mutating_policies import compiles_defaults, mutating_policies
from webhook.core.admission_policies.policies import admission_policies
from webhook.core.admission_policies.policy_objects import STATIC_SUFFIX
from webhook.core.api import gates
from webhook.core.api.version import RECORDED, KubernetesVersion
from webhook.core.policy.policy import Policy
from webhook.core.yaml_text import block

_VALIDATING, _MUTATING, _MANIFESTS, _MUTATING_MANIFESTS = "vap", "map", "manifests", "map-manifests"


@click.command(
    short_help="Compile rules and defaults into admission policies.",
    epilog="Exit code: 0, 2 for wrong usage or configuration, or 4 if the cluster is not reachable.",
)
@click.option(
    "--target",
    type=click.Choice([_VALIDATING, _MUTATING, _MANIFESTS, _MUTATING_MANIFESTS]),
    default=_VALIDATING,
    show_default=True,
    help="Objects for kubectl apply: vap (rules), map (defaults). A file for the API server's staticManifestsDir:"
    " manifests (rules), map-manifests (defaults).",
)
@click.option("--explain", is_flag=True, help="Print what is compiled, and why not the rest.")
@kube_version_option
@cluster_options
@policy_option
def compile(  # noqa: A001 the name of the command
    *, target: str, explain: bool, kube_version: KubernetesVersion | None, selection: ClusterSelection, policy: Policy
) -> None:
    """Print rules about the object alone as ValidatingAdmissionPolicies, or defaults as a MutatingAdmissionPolicy.

      evenspread compile | kubectl apply -f -

      evenspread compile --target map | kubectl apply -f -

    The API server evaluates them itself, without a webhook. Modes, ceilings, exemptions, messages and overrides are
    those of the policy. Print and apply them again after each change of the policy.

    With --cluster, policy and Kubernetes release are those of the cluster.
    """
    if selection.snapshot is not None:
        raise click.UsageError("compile reads no snapshot: use --cluster, or --config and --kube-version")
    version = kube_version or (open_cluster(selection).version if selection.live else None) or RECORDED
    defaults = target in {_MUTATING, _MUTATING_MANIFESTS}
    needed = gates.MUTATING_POLICIES_ARE_STABLE if target == _MUTATING_MANIFESTS else gates.HAS_MUTATING_POLICIES
    if defaults and not needed.holds(version):
        raise click.UsageError(f"--target {target} needs Kubernetes {needed.since} or later, not {version}")
    if explain:
        rows = defaults_coverage(policy) if defaults else coverage(policy, version)
        print_results(_explained([*rows]))
        return
    suffix = "" if target in {_VALIDATING, _MUTATING} else STATIC_SUFFIX
    if defaults:
        if not compiles_defaults(policy):
            click.echo("note: no defaults are compiled. Use --explain for the reasons", err=True)
        objects = [*mutating_policies(policy, version, suffix=suffix)]
    else:
        objects = [*admission_policies(policy, version, today(), suffix=suffix)]
    if refused := next(filter(None, map(why_refused, objects)), ""):
        raise click.UsageError(refused)
    print_results("---\n" + block(each) for each in objects)


def _explained(rows: Sequence[Coverage]) -> Iterator[str]:
    width = max(len(each.name) for each in rows)
    for each in rows:
        yield f"{paint(each.name.ljust(width), BOLD)}  {each.share:4}  {each.why}".rstrip() + "\n"
