"""``evenspread plan``: fields that keep the caps of a group of workloads, in every order, with a proof."""

import sys
from functools import partial

import click
from msgspec.structs import replace

from webhook.answers.planned import planned
from webhook.cli.cluster_source import cluster_with_pods
from webhook.cli.commands.plan.manifests import PlannedGroup, manifests, patches
from webhook.cli.commands.plan.page import render as page
from webhook.cli.commands.plan.targets import is_group, no_shard, objects_in, planned_groups
from webhook.cli.exit_codes import Exit
from webhook.cli.frame import Frame
from webhook.cli.live_cluster import Given
from webhook.cli.options import current_cluster_options, frame_options, output_option
from webhook.cli.terminal import collect_rarely, colored, one_or_all, pages, print_results, print_values, say
from webhook.core.api.well_known import DEFAULT_NAMESPACE
from webhook.core.text import one_line
from webhook.core.workloads.kind_fields import has_template

_PRINTED = {"patch": patches, "manifest": manifests}


def _say_what_lacks(of: PlannedGroup, output: str) -> None:
    """Print what the patches or manifests do not show."""
    for name in of.taken if output == "manifest" else ():
        say(no_shard(name))
    if not of.answer.derived.fits:
        why = "no fields can do" if of.answer.derived.plan is None else "the plan is not proven to place all pods"
        say(f"group {one_line(of.answer.group.name, 63)}: {why}; -o text says more")
    elif output == "patch" and len(of.written) < of.answer.group.shards:
        say("there is no patch for shards that nobody has written; -o manifest prints them")


@click.command(
    short_help="Derive the fields that keep the caps of a group, as the shards of a database.",
    epilog="Exit code: 0 the plan is proven to place all pods within the caps, 1 it is not or there is none, 2 usage "
    "or configuration, 3 input that could not be read, 4 the cluster could not be read.",
)
@click.argument("files", nargs=-1, metavar="[FILE...]")
@click.option("--group", "name", default="", metavar="NAME", help="Plan only this group.")
@output_option(
    *("text", "json", "yaml", "patch", "manifest"),
    text="Format; patch prints commands of kubectl, manifest what there is to apply.",
)
@current_cluster_options
@frame_options
def plan(*, files: tuple[str, ...], name: str, output: str, given: Given, frame: Frame) -> None:
    """Derive the fields that keep the caps of a group of workloads, in any placing order.

    FILE has a SpreadGroup, or a ConfigMap with cluster-size, max-pod-on-node, max-pod-in-zone and available-zones. It
    also has the group's workloads that the cluster lacks. Without FILE, plan uses the SpreadGroups of the namespace.
    Without --snapshot, it reads the kubeconfig's current cluster. It changes nothing there.

    Fields that the controller has stored for a group stay while they provably keep the caps and place all pods. A note
    reports it.

      kubectl evenspread plan cache.yaml -n shop
    """
    collect_rarely()
    # Before the cluster is read: else a typing error in a file's name is answered by what is wrong with the kubeconfig.
    objects = objects_in(files)
    known, within = cluster_with_pods(
        given,
        frame,
        lambda item: (
            is_group(item) or has_template(item.of.api_version or "", item.of.kind or "", frame.policy.workloads)
        ),
        lost="there is nothing to plan for without them",
    )
    within = replace(within, namespace=within.namespace or DEFAULT_NAMESPACE)
    answers = planned_groups(files, objects, name, known, within)
    if output == "text":
        print_results(pages(answers, partial(page, color=colored(sys.stdout))))
    elif output in {"patch", "manifest"}:
        print_results(part for each in answers for part in _PRINTED[output](each))
        for each in answers:
            _say_what_lacks(each, output)
    else:
        print_values(one_or_all([planned(each.answer) for each in answers]), output)
    click.get_current_context().exit(Exit.FINE if all(each.answer.derived.fits for each in answers) else Exit.FINDINGS)
