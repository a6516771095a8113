"""``evenspread plan``: fields that keep the caps of a group in every order, with a proof."""

import click
from msgspec.structs import replace

from webhook.answers.planned import planned
from webhook.cli.cluster_source import cluster_with_pods
from webhook.cli.commands.plan.manifests import PlannedGroup, manifests, patches
from webhook.cli.commands.plan.page import render as page
from webhook.cli.commands.plan.targets import foreign_name, is_group, objects_in, planned_groups
from webhook.cli.exit_codes import Exit
from webhook.cli.frame import Frame
from webhook.cli.live_cluster import ClusterSelection
from webhook.cli.options import current_cluster_options, frame_options, output_option
from webhook.cli.output.long_runs import collect_rarely
from webhook.cli.output.page import joined_pages
from webhook.cli.output.terminal import one_or_all, print_message, print_results, print_values
from webhook.core.api.well_known import DEFAULT_NAMESPACE
from webhook.core.text import one_line
from webhook.core.workloads.kind_fields import has_template

_MAX_NAME = 63  # characters, as in Kubernetes
_PRINTED = {"patch": patches, "manifest": manifests}


def _print_gaps(planned_group: PlannedGroup, output: str) -> None:
    """Print messages about shards and proofs that the patches or manifests lack."""
    for name in planned_group.taken if output == "manifest" else ():
        print_message(foreign_name(name))
    derived, group = planned_group.answer.derived, planned_group.answer.group
    if not derived.fits:
        why = "no fields keep the caps" if derived.plan is None else "the plan is not proven to place all pods"
        print_message(f"group {one_line(group.name, _MAX_NAME)}: {why} (-o text prints the reasons)")
    elif output == "patch" and len(planned_group.written) < group.shards:
        print_message("shards without a manifest have no patch; use -o manifest for them")


@click.command(
    short_help="Compute pod template fields that limit the pods of a group of workloads on a node or in a zone.",
    epilog="Exit code: 0 the plan is proven to place all pods within the caps, 1 no plan or no proof, 2 usage "
    "or configuration, 3 unreadable input, 4 cluster not readable.",
)
@click.argument("files", nargs=-1, metavar="[FILE...]")
@click.option("--group", "name", default="", metavar="NAME", help="Plan only this group.")
@output_option(
    *("text", "json", "yaml", "patch", "manifest"),
    text="Format. patch prints kubectl commands, manifest prints objects to apply.",
)
@current_cluster_options
@frame_options
def plan(*, files: tuple[str, ...], name: str, output: str, selection: ClusterSelection, frame: Frame) -> Exit:
    """Compute pod template fields that limit the pods of a group of workloads on a node or in a zone.

      kubectl evenspread plan cache.yaml -n shop

    FILE contains a SpreadGroup, or a ConfigMap with cluster-size, max-pod-on-node, max-pod-in-zone and available-zones.
    If workloads of the group are not in the cluster, add their manifests. Without FILE, plan uses the SpreadGroups of
    the namespace.

    The controller stores fields for each group. plan keeps stored fields while they provably keep the caps and place
    all pods, and prints a note. plan changes nothing in the cluster.
    """
    collect_rarely()
    # First the files, so that a mistyped file name is not reported as a fault of the kubeconfig.
    objects = objects_in(files)
    known, context = cluster_with_pods(
        selection,
        frame,
        lambda item: is_group(item.of) or has_template(*item.type_names, frame.policy.workloads),
        lost="plan needs them",
    )
    context = replace(context, namespace=context.namespace or DEFAULT_NAMESPACE)
    answers = planned_groups(files, objects, name, known, context)
    if output == "text":
        print_results(joined_pages(answers, page))
    elif output in {"patch", "manifest"}:
        print_results(part for group in answers for part in _PRINTED[output](group))
        for group in answers:
            _print_gaps(group, output)
    else:
        print_values(one_or_all([planned(group.answer) for group in answers]), output)
    fits = all(group.answer.derived.fits for group in answers)
    return Exit.FINE if fits else Exit.FINDINGS
