"""``evenspread plan``: fields that keep the caps of a group of workloads, in every order, with a proof."""

import sys

import click
from msgspec import structs

from webhook.cli.checking.frame import Frame
from webhook.cli.cluster_source import cluster_with_pods, known_namespace
from webhook.cli.commands.explain.as_json import render
from webhook.cli.commands.plan.as_json import patches, shape
from webhook.cli.commands.plan.manifests import manifests
from webhook.cli.commands.plan.page import render as page
from webhook.cli.commands.plan.run import Answer, answer
from webhook.cli.commands.plan.targets import asked, is_group, no_shard, objects_in
from webhook.cli.exit_codes import Exit
from webhook.cli.live_cluster import Given
from webhook.cli.options import current_cluster_options, frame_options
from webhook.cli.terminal import collect_rarely, colored, print_results, say
from webhook.core.api.well_known import DEFAULT_NAMESPACE
from webhook.core.text import one_line
from webhook.core.workloads.reading import has_template

_PRINTED = {"patch": patches, "manifest": manifests}


def _say_what_lacks(of: Answer, output: str) -> None:
    """What somebody who only reads the patches or the manifests would not see."""
    for name in of.asked.taken if output == "manifest" else ():
        say(no_shard(name))
    if not of.fits:
        why = "no fields can do" if of.derived.plan is None else "the plan is not proven to place all pods"
        say(f"group {one_line(of.group.name, 63)}: {why}; -o text says more")
    elif output == "patch" and len(of.asked.written) < of.group.shards:
        say("there is no patch for shards that nobody has written; -o manifest prints them")


@click.command(
    short_help="Derive the fields that keep the caps of a group, as the shards of a database.",
    epilog="Exit code: 0 the plan is proven to place all pods within the caps, 1 it is not or there is none, 2 usage "
    "or configuration, 3 input that could not be read, 4 the cluster could not be read.",
)
@click.argument("files", nargs=-1, metavar="[FILE...]")
@click.option("--group", "name", default="", metavar="NAME", help="Of several groups this one.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "yaml", "patch", "manifest"]),
    default="text",
    show_default=True,
    help="Format; patch prints commands of kubectl, manifest what there is to apply.",
)
@current_cluster_options
@frame_options
def plan(*, files: tuple[str, ...], name: str, output: str, given: Given, frame: Frame) -> None:
    """Derive the fields that keep the caps of a group of workloads, in whatever order its pods are placed.

    FILE has a SpreadGroup, or a ConfigMap with cluster-size, max-pod-on-node, max-pod-in-zone and available-zones; and
    the workloads of the group, as far as the cluster does not have them. Without FILE, the SpreadGroups of the
    namespace are planned. Without --snapshot the kubeconfig's current cluster is asked. Nothing is changed in it.

    Fields that the controller has stored for a group stay as long as they keep the caps and are proven to place all
    pods; a note says so.

      kubectl evenspread plan cache.yaml -n shop
    """
    collect_rarely()
    # Before the cluster is read: else a typing error in a file's name is answered by what is wrong with the kubeconfig.
    objects = objects_in(files)
    known = cluster_with_pods(
        given,
        frame.policy,
        frame.asked_version,
        lambda item: (
            is_group(item) or has_template(item.of.api_version or "", item.of.kind or "", frame.policy.workloads)
        ),
        lost="there is nothing to plan for without them",
    )
    known_namespace(known, frame.namespace)
    namespace = frame.namespace or known.namespace or DEFAULT_NAMESPACE
    frame = structs.replace(frame, index=known.index, cluster_version=known.version, namespace=namespace)
    answers = [answer(each, frame.policy) for each in asked(files, objects, name, known, frame)]
    if output == "text":
        for number, each in enumerate(answers):
            print_results(["\n"] * bool(number))
            print_results(page(each, color=colored(sys.stdout)))
    elif output in {"patch", "manifest"}:
        print_results(part for each in answers for part in _PRINTED[output](each))
        for each in answers:
            _say_what_lacks(each, output)
    else:
        shapes = [shape(each) for each in answers]
        print_results(render(shapes[0] if len(shapes) == 1 else shapes, "json" if output == "json" else "yaml"))
    click.get_current_context().exit(Exit.FINE if all(each.fits for each in answers) else Exit.FINDINGS)
