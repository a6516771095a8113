"""``evenspread compile``: the rules about the object alone, as policies that the API server evaluates itself."""

import sys
from collections.abc import Iterator

import click

from webhook.cli.frame import today
from webhook.cli.live_cluster import ClusterSelection, open_cluster
from webhook.cli.options import cluster_options, kube_version_option, policy_option
from webhook.cli.output.color import BOLD, Paint, has_color
from webhook.cli.output.terminal import print_results
from webhook.core.admission_policies.coverage import coverage
from webhook.core.admission_policies.policies import admission_policies
from webhook.core.admission_policies.policy_objects import STATIC_SUFFIX
from webhook.core.api.version import RECORDED, KubernetesVersion
from webhook.core.policy.policy import Policy
from webhook.core.yaml_text import block

_OBJECTS, _MANIFESTS = "vap", "manifests"


@click.command(
    short_help="Compile rules into ValidatingAdmissionPolicies.",
    epilog="Exit code: 0, 2 for wrong usage or configuration, or 4 if the cluster is not reachable.",
)
@click.option(
    "--target",
    type=click.Choice([_OBJECTS, _MANIFESTS]),
    default=_OBJECTS,
    show_default=True,
    help="vap prints objects for kubectl apply. manifests prints a file for the API server's staticManifestsDir.",
)
@click.option("--explain", is_flag=True, help="Print which rules are compiled, and why not the others.")
@kube_version_option
@cluster_options
@policy_option
def compile(  # noqa: A001 the name of the command
    *, target: str, explain: bool, kube_version: KubernetesVersion | None, selection: ClusterSelection, policy: Policy
) -> None:
    """Print the rules about the object alone as ValidatingAdmissionPolicies, with their bindings.

      evenspread compile | kubectl apply -f -

    The API server evaluates them itself, without a webhook. Modes, ceilings, exemptions and messages are those of the
    policy. Print and apply them again after each change of the policy.

    With --cluster, policy and Kubernetes release are those of the cluster.
    """
    if selection.snapshot is not None:
        raise click.UsageError("compile reads no snapshot: use --cluster, or --config and --kube-version")
    version = kube_version or (open_cluster(selection).version if selection.live else None) or RECORDED
    if explain:
        print_results(_explained(policy, version))
        return
    suffix = STATIC_SUFFIX if target == _MANIFESTS else ""
    print_results("---\n" + block(each) for each in admission_policies(policy, version, today(), suffix=suffix))


def _explained(policy: Policy, version: KubernetesVersion) -> Iterator[str]:
    paint = Paint(color=has_color(sys.stdout))
    rows = [*coverage(policy, version)]
    width = max(len(each.rule.id) for each in rows)
    for each in rows:
        yield f"{paint(each.rule.id.ljust(width), BOLD)}  {each.share:4}  {each.why}".rstrip() + "\n"
