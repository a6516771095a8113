"""``evenspread skew``: how uneven the pods of workloads stand now, beside what their constraints allow."""

import sys
import time
from collections.abc import Sequence

import click
from msgspec import structs

from webhook.cli import skewing
from webhook.cli.checking.frame import Frame
from webhook.cli.cluster_source import cluster_with_pods, known_namespace
from webhook.cli.commands.options import current_cluster_options, frame_options
from webhook.cli.exit_codes import Exit
from webhook.cli.explaining.as_json import render
from webhook.cli.live_cluster import Given
from webhook.cli.terminal import collect_rarely, colored, print_results
from webhook.core.api.well_known import DEFAULT_NAMESPACE

# Listed anew each time: the command needs no right to watch, works on the kinds that operators bring, and keeps of the
# pods nothing but counts.
_EVERY_SECONDS = 10


@click.command(
    short_help="Show how uneven the pods of workloads stand, beside their maxSkew.",
    epilog="Exit code: 0 no hard constraint is above its maxSkew, 1 one is, 2 usage or configuration, 3 input that "
    "could not be read, 4 the cluster could not be read.",
)
@click.option("-A", "--all-namespaces", is_flag=True, help="Workloads of every namespace.")
@click.option(
    "-w",
    "--watch",
    is_flag=True,
    help=f"List the cluster again every {_EVERY_SECONDS} s, and print the table when it has changed. Needs no right to "
    "watch. The policy is the one of the start.",
)
@click.option(
    "-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True, help="Format."
)
@current_cluster_options
@frame_options
def skew(*, all_namespaces: bool, watch: bool, output: str, given: Given, frame: Frame) -> None:
    """Show how uneven the pods of workloads stand now, by each of their constraints, beside its maxSkew.

    Constraints are those of the templates; of a template that has none, those that the configuration injects, else the
    scheduler's own defaults. A scheduler keeps maxSkew when it places a pod: when pods or nodes go, nobody moves the
    rest. Without --snapshot the kubeconfig's current cluster is asked.

      kubectl evenspread skew -A
    """
    if watch and given.snapshot is not None:
        raise click.UsageError("--watch is for a live cluster, and --snapshot is a file")
    if watch and output != "text":
        raise click.UsageError("--watch prints text")
    collect_rarely()
    found, where = _look(given, frame, everywhere=all_namespaces)
    if output == "text":
        shown = [*skewing.render(found, where, color=colored(sys.stdout))]
        print_results(shown)
        while watch:
            time.sleep(_EVERY_SECONDS)
            given = structs.replace(given, opened=None)  # credentials may have changed
            found, _ = _look(given, frame, everywhere=all_namespaces)
            before, shown = shown, [*skewing.render(found, where, color=colored(sys.stdout))]
            print_results(["\n", *shown] if shown != before else [])
    else:
        print_results(render([skewing.shape(each) for each in found], "json" if output == "json" else "yaml"))
    click.get_current_context().exit(Exit.FINDINGS if any(map(skewing.is_broken, found)) else Exit.FINE)


def _look(given: Given, frame: Frame, *, everywhere: bool) -> tuple[Sequence[skewing.Standing], str]:
    """The constraints of the cluster as it is now, and the namespace that was looked at; empty for all.

    Errors: CommandError where pods or nodes could not be read.
    """
    known = cluster_with_pods(
        given,
        frame.policy,
        frame.asked_version,
        skewing.keeping(frame.policy.workloads),
        lost="there is nothing to count without them",
    )
    known_namespace(known, frame.namespace)
    where = "" if everywhere else frame.namespace or known.namespace or DEFAULT_NAMESPACE
    here = structs.replace(frame, index=known.index, cluster_version=known.version)
    return skewing.standings(known, here, where), where
