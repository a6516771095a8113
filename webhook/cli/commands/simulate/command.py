"""``evenspread simulate``: will all pods of workloads get a node, can they get stuck, and what if a node fails."""

import sys
from collections.abc import Sequence
from functools import partial

import click
from msgspec import Struct
from msgspec.structs import replace

from webhook.answers.simulated import simulated
from webhook.cli.cluster_source import cluster_with_pods
from webhook.cli.commands.simulate.page import render as page
from webhook.cli.commands.simulate.targets import is_kept, targets
from webhook.cli.exit_codes import CommandError, Exit
from webhook.cli.frame import Frame
from webhook.cli.live_cluster import Given
from webhook.cli.options import current_cluster_options, frame_options, output_option
from webhook.cli.parameters import Parsed
from webhook.cli.target import read_target
from webhook.cli.terminal import Progress, collect_rarely, colored, pages, print_results, print_values
from webhook.core.api.types import Taint
from webhook.core.api.well_known import DEFAULT_NAMESPACE
from webhook.core.placement.outcome import Effort
from webhook.core.what_if.events import (
    LabelledNodes,
    NotInClusterError,
    WhatIf,
    parse_added_nodes,
    parse_labelled_nodes,
    parse_taint,
)
from webhook.core.what_if.run import Run, SimulationAnswer

_STATES = 50_000  # some seconds
_LOST = "no verdict without them"


class Question(Struct, frozen=True, kw_only=True):
    """What happens, and to which workloads: ``words`` are files or KIND/NAME."""

    words: tuple[str, ...]
    what_if: WhatIf
    everything: bool = False
    replicas: int | None = None
    rollout: bool = False
    states: int


@click.command(
    short_help="Say whether all pods of workloads will get a node, or can get stuck.",
    epilog="Exit code: 0 all pods get a node in whatever order, 1 some may stay Pending or it is not decided, "
    "2 usage or configuration, 3 input that could not be read, 4 the cluster could not be read.",
)
@click.argument("words", nargs=-1, metavar="[FILE...|KIND/NAME]")
@click.option("--all", "everything", is_flag=True, help="All workloads of the cluster; of the namespace of -n.")
@click.option("--replicas", type=click.IntRange(0), metavar="N", help="With so many replicas.")
@click.option("--rollout", is_flag=True, help="While a new revision replaces the pods that run, step by step.")
@click.option(
    "--drain", multiple=True, metavar="NODE", help="After this node was drained; may be repeated, as all below."
)
@click.option("--delete-node", "delete", multiple=True, metavar="NODE", help="After this node was deleted.")
@click.option(
    "--lose",
    multiple=True,
    type=Parsed("part", parse_labelled_nodes),
    metavar="KEY=VALUE",
    help="After all nodes with this label failed, as zone=b: first out of reach, then gone.",
)
@click.option(
    "--taint",
    "taints",
    multiple=True,
    type=Parsed("taint", parse_taint),
    metavar="NODE=KEY=VALUE:EFFECT",
    help="After this node was tainted.",
)
@click.option(
    "--add-nodes",
    "more",
    multiple=True,
    type=Parsed("nodes", parse_added_nodes),
    metavar="KEY=VALUE:N",
    help="After so many nodes were added, like one with this label: zone=b:3.",
)
@click.option("--states", type=click.IntRange(1), default=_STATES, show_default=True, help="How long to search.")
@output_option("text", "json", "yaml")
@current_cluster_options
@frame_options
def simulate(  # noqa: PLR0913 one parameter an option
    *,
    words: tuple[str, ...],
    everything: bool,
    replicas: int | None,
    rollout: bool,
    drain: tuple[str, ...],
    delete: tuple[str, ...],
    lose: tuple[LabelledNodes, ...],
    taints: tuple[tuple[str, Taint], ...],
    more: tuple[tuple[LabelledNodes, int], ...],
    states: int,
    output: str,
    given: Given,
    frame: Frame,
) -> None:
    """Say whether all pods of workloads will get a node, wherever the scheduler puts them.

    FILE is a manifest, - the standard input; everything in the files is looked at together. KIND/NAME is a workload of
    the cluster: deployment/web. With neither, all workloads of the cluster that lack pods are. Without --snapshot the
    kubeconfig's current cluster is asked. Nothing is changed in it.

      kubectl evenspread simulate web.yaml -n shop

      kubectl evenspread simulate --all --lose zone=b
    """
    question = Question(
        words=words,
        what_if=WhatIf(drain=drain, delete=delete, lose=lose, taints=taints, added=more),
        everything=everything,
        replicas=replicas,
        rollout=rollout,
        states=states,
    )
    answers, holes = answered(question, given, frame)
    if output == "text":
        print_results(pages(answers, partial(page, color=colored(sys.stdout))))
    else:
        print_values(simulated(answers), output)
    click.get_current_context().exit(_code(answers, holes=holes))


def answered(question: Question, given: Given, frame: Frame) -> tuple[Sequence[SimulationAnswer], bool]:
    """The answers about a cluster, one for each event, and whether a part of the input could not be read.

    Raises:
        click.UsageError: Parts of the question contradict each other.
        CommandError: The cluster or the object cannot be read, or the cluster does not have what an event names.
    """
    _refuse(question)
    collect_rarely()
    what_if, embedded = question.what_if, frame.policy.workloads
    of = read_target(question.words, frame.namespace or DEFAULT_NAMESPACE, embedded)
    known, within = cluster_with_pods(given, frame, lambda item: is_kept(item, of, what_if, embedded), lost=_LOST)
    within = replace(within, namespace=within.namespace or DEFAULT_NAMESPACE)
    of = of.in_namespace(within.namespace)
    found, holes = targets(of, known, within, replicas=question.replicas, everywhere=not frame.namespace)
    if question.rollout and len(found.sources) > 1:
        raise CommandError(f"--rollout is for one workload, and here are {len(found.sources)}")
    progress = Progress("states")
    effort = Effort(states=question.states)
    run = Run(index=known.index, targets=found, within=within, effort=effort, rollout=question.rollout, tick=progress)
    try:
        answers = [*run.answers(what_if)]
    except NotInClusterError as error:
        raise CommandError(str(error)) from error
    progress.close()
    return answers, holes


def _refuse(of: Question) -> None:
    """Options that contradict each other. Errors: a usage error."""
    if of.words and of.everything:
        raise click.UsageError("give only one of them: FILE, KIND/NAME or --all")
    if not of.words and not of.everything and of.what_if == WhatIf():
        raise click.UsageError("give one of them: FILE, KIND/NAME, --all, or what happens to the cluster")
    if not of.words and (of.replicas is not None or of.rollout):
        raise click.UsageError("--replicas and --rollout go with FILE or KIND/NAME")
    if of.rollout and of.what_if.lose:
        raise click.UsageError("--rollout does not go with --lose: ask about one after the other")


def _code(answers: Sequence[SimulationAnswer], *, holes: bool) -> Exit:
    if any(each.outcomes.interrupted for each in answers):
        return Exit.INTERRUPTED
    if holes:
        return Exit.UNREADABLE
    return Exit.FINE if all(each.fits for each in answers) else Exit.FINDINGS
