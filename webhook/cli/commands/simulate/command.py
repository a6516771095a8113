"""``evenspread simulate``: check whether all pods of workloads get a node, also after an event."""

from collections.abc import Sequence

import click
from msgspec import Struct
from msgspec.structs import replace

from webhook.answers.simulated import simulated
from webhook.cli.cluster_source import cluster_with_pods
from webhook.cli.commands.simulate.page import render as page
from webhook.cli.commands.simulate.targets import at_minimum, is_kept, targets
from webhook.cli.exit_codes import CommandError, Exit
from webhook.cli.frame import Frame
from webhook.cli.live_cluster import ClusterSelection, open_cluster
from webhook.cli.options import current_cluster_options, frame_options, output_option
from webhook.cli.output.long_runs import Progress, collect_rarely
from webhook.cli.output.page import joined_pages
from webhook.cli.output.terminal import print_results, print_values
from webhook.cli.parameters import Parsed
from webhook.cli.target import read_target
from webhook.cluster.live import LiveCluster
from webhook.core.api.types import Taint
from webhook.core.api.well_known import DEFAULT_NAMESPACE
from webhook.core.placement.placement_verdict import Effort
from webhook.core.what_if.events import (
    LabelledNodes,
    NotInClusterError,
    WhatIf,
    parse_added_nodes,
    parse_labelled_nodes,
    parse_taint,
)
from webhook.core.what_if.run import Run, SimulationAnswer

_STATES = 50_000  # a search of some seconds
_LOST = "simulate needs them"


class SimulationRequest(Struct, frozen=True, kw_only=True):
    """The arguments of a run of `simulate`.

    Attributes:
        words: Files, or KIND/NAME.
        what_if: Events in the cluster.
        everything: Whether to simulate all workloads.
        replicas: Replicas of each workload. None for its own number.
        scale_in: Whether to simulate the minimum of each workload's autoscaler.
        rollout: Whether to simulate a rolling update.
        states: The number of pod distributions after which the search stops.
    """

    words: tuple[str, ...]
    what_if: WhatIf
    everything: bool = False
    replicas: int | None = None
    scale_in: bool = False
    rollout: bool = False
    states: int


@click.command(
    short_help="Check whether all replicas fit, even if a zone fails.",
    epilog="Exit code: 0 all pods get a node in any order, 1 some may stay Pending or the answer is unknown, "
    "2 usage or configuration, 3 unreadable input, 4 cluster not readable, 5 a bug of evenspread.",
)
@click.argument("words", nargs=-1, metavar="[FILE...|KIND/NAME]")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Simulate every workload with missing pods, in the cluster or in the namespace of -n.",
)
@click.option(
    "--replicas",
    type=click.IntRange(0),
    metavar="N",
    help="Simulate N replicas. Below the running pods, forecast the domains of the remaining pods.",
)
@click.option("--scale-in", is_flag=True, help="Forecast a scale-in to the minimum of the workload's autoscaler.")
@click.option("--rollout", is_flag=True, help="Simulate a rolling update of the running pods.")
@click.option(
    "--drain", multiple=True, metavar="NODE", help="Simulate a drain of this node. You can repeat all event options."
)
@click.option("--delete-node", "delete", multiple=True, metavar="NODE", help="Simulate the deletion of this node.")
@click.option(
    "--lose",
    multiple=True,
    type=Parsed("part", parse_labelled_nodes),
    metavar="KEY=VALUE",
    help="Simulate the failure of all nodes with this label, as in zone=b: first unreachable, then deleted.",
)
@click.option(
    "--taint",
    "taints",
    multiple=True,
    type=Parsed("taint", parse_taint),
    metavar="NODE=KEY=VALUE:EFFECT",
    help="Simulate this taint.",
)
@click.option(
    "--add-nodes",
    "added",
    multiple=True,
    type=Parsed("nodes", parse_added_nodes),
    metavar="KEY=VALUE:N",
    help="Simulate N more empty nodes, each a copy of a node with this label. Example: zone=b:3.",
)
@click.option(
    "--states",
    type=click.IntRange(1),
    metavar="N",
    default=_STATES,
    show_default=True,
    help="Stop the search after N states. A state is one distribution of pods over nodes. "
    "Raise it if the answer is unknown.",
)
@output_option("text", "json", "yaml")
@current_cluster_options
@frame_options
def simulate(  # noqa: PLR0913 one parameter an option
    *,
    words: tuple[str, ...],
    everything: bool,
    replicas: int | None,
    scale_in: bool,
    rollout: bool,
    drain: tuple[str, ...],
    delete: tuple[str, ...],
    lose: tuple[LabelledNodes, ...],
    taints: tuple[tuple[str, Taint], ...],
    added: tuple[tuple[LabelledNodes, int], ...],
    states: int,
    output: str,
    selection: ClusterSelection,
    frame: Frame,
) -> Exit:
    """Check whether all pods of workloads get a node, in any order of placing them.

      kubectl evenspread simulate web.yaml -n shop

      kubectl evenspread simulate deployment/web --replicas 9

      kubectl evenspread simulate deployment/web --scale-in

      kubectl evenspread simulate --all --lose zone=b

    FILE is a manifest, or - for the standard input. All workloads in the files are simulated together. KIND/NAME is a
    workload of the cluster. With --all, or with only an event such as --drain, simulate takes
    every workload with missing pods after the event.

    simulate changes nothing in the cluster.
    """
    request = SimulationRequest(
        words=words,
        what_if=WhatIf(drain=drain, delete=delete, lose=lose, taints=taints, added=added),
        everything=everything,
        replicas=replicas,
        scale_in=scale_in,
        rollout=rollout,
        states=states,
    )
    answers, incomplete = answer_request(request, selection, frame)
    if output == "text":
        print_results(joined_pages(answers, page))
    else:
        print_values(simulated(answers), output)
    return _exit_code(answers, incomplete=incomplete)


def answer_request(
    request: SimulationRequest, selection: ClusterSelection, frame: Frame
) -> tuple[Sequence[SimulationAnswer], bool]:
    """Simulate the request in a cluster.

    Returns:
        One result for each event, and whether a part of the input was unreadable.

    Raises:
        click.UsageError: The options contradict each other.
        CommandError: The cluster or the object cannot be read, or an event names a node or label without a match.
    """
    _check_usage(request)
    collect_rarely()
    what_if, embedded = request.what_if, frame.policy.workloads
    if selection.live:
        selection = replace(selection, opened=open_cluster(selection))
    opened = selection.opened
    namespace = opened.namespace if isinstance(opened, LiveCluster) else DEFAULT_NAMESPACE
    target = read_target(request.words, frame.namespace or namespace, embedded)
    known, context = cluster_with_pods(
        selection, frame, lambda item: is_kept(item, target, what_if, embedded), lost=_LOST
    )
    context = replace(context, namespace=context.namespace or DEFAULT_NAMESPACE)
    target = target.in_namespace(context.namespace)
    workloads, incomplete = targets(
        target, known, context, what_if, replicas=request.replicas, everywhere=not frame.namespace
    )
    if request.scale_in:
        workloads = at_minimum(workloads, known.index)
    if request.rollout and len(workloads.sources) > 1:
        raise CommandError(f"--rollout takes one workload, but there are {len(workloads.sources)}: name one")
    progress = Progress("states")
    effort = Effort(states=request.states)
    run = Run(
        index=known.index, targets=workloads, context=context, effort=effort, rollout=request.rollout, tick=progress
    )
    try:
        answers = [*run.answers(what_if)]
    except NotInClusterError as error:
        raise CommandError(str(error)) from error
    progress.close()
    return answers, incomplete


def _check_usage(request: SimulationRequest) -> None:
    """Raise click.UsageError if the options contradict each other."""
    if request.words and request.everything:
        raise click.UsageError("use only one of FILE, KIND/NAME and --all")
    if not request.words and not request.everything and request.what_if == WhatIf():
        raise click.UsageError("add FILE, KIND/NAME, --all, or an event such as --drain NODE")
    if not request.words and (request.replicas is not None or request.rollout):
        raise click.UsageError("--replicas and --rollout need FILE or KIND/NAME")
    if not request.words and request.scale_in:
        raise click.UsageError("--scale-in needs FILE or KIND/NAME")
    if request.scale_in and (request.replicas is not None or request.rollout):
        raise click.UsageError("use only one of --scale-in, --replicas and --rollout")
    if request.rollout and request.what_if.lose:
        raise click.UsageError("--rollout and --lose exclude each other: run simulate once for each")


def _exit_code(answers: Sequence[SimulationAnswer], *, incomplete: bool) -> Exit:
    if any(answer.joint.interrupted for answer in answers):
        return Exit.INTERRUPTED
    if incomplete:
        return Exit.UNREADABLE
    return Exit.FINE if all(answer.fits for answer in answers) else Exit.FINDINGS
