"""``evenspread explain``: why no node admits a pod, by domain and by node, and what would help."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import click
from msgspec import Raw, Struct, structs

from webhook.answers.explained import AnsweredQuestion, explained
from webhook.cli import find_object
from webhook.cli.checking.run import CheckRun
from webhook.cli.cluster_source import ClusterSource, cluster_with_pods
from webhook.cli.commands.explain import pending
from webhook.cli.commands.explain.page import render as render_page
from webhook.cli.exit_codes import CommandError, Exit
from webhook.cli.frame import Frame
from webhook.cli.live_cluster import Given
from webhook.cli.options import current_cluster_options, frame_options, output_option
from webhook.cli.terminal import (
    collect_rarely,
    colored,
    one_or_all,
    pages,
    print_faults,
    print_results,
    print_values,
)
from webhook.core.api.well_known import DEFAULT_NAMESPACE
from webhook.core.apiserver.decoding import DecodeError
from webhook.core.coming_pods.next_pod import problem_of
from webhook.core.context import Context
from webhook.core.explain.explanation import explain_pod
from webhook.core.what_if.questions import Question, of_object, of_pod, waiting, waiting_of, with_siblings
from webhook.core.what_if.refused import Refused, refused_of
from webhook.core.what_if.suggestions import replicas_after
from webhook.manifests.reading.files import STDIN, read_files


class _Asked(Struct, frozen=True):
    """The questions; ``holes`` says that a part of the input could not be read."""

    questions: Sequence[Question]
    holes: bool = False


@click.command(
    short_help="Say why no node admits a pod, and what would help.",
    epilog="Exit code: 0 a node admits it, 1 none does (of several pods: of one) or it is refused, 2 usage or "
    "configuration, 3 input that could not be read, 4 the cluster could not be read.",
)
@click.argument("words", nargs=-1, metavar="[FILE|KIND/NAME]")
@click.option("--pending", "all_pending", is_flag=True, help="All Pending pods, grouped by what is in the way.")
@click.option("-A", "--all-namespaces", is_flag=True, help="With --pending: of every namespace.")
@output_option("text", "json", "yaml")
@current_cluster_options
@frame_options
def explain(  # noqa: PLR0913 one parameter an option
    *,
    words: tuple[str, ...],
    all_pending: bool,
    all_namespaces: bool,
    output: str,
    given: Given,
    frame: Frame,
) -> None:
    """Say why no node admits a pod: per domain, per node, and the smallest change that helps.

    FILE is a pod or a workload, whose next pod is judged; - is the standard input. KIND/NAME is an object of the
    cluster: pod/web-0, deployment/web. Without --snapshot the kubeconfig's current cluster is asked.

      kubectl evenspread explain deployment/web -n shop

    The answer is kube-scheduler's own, for this moment and one pod: what else it depends on is listed as not evaluated.
    """
    what = "/".join(words[:2]) if words else None  # people write KIND NAME too, as for kubectl
    if (what is None) != all_pending:
        raise click.UsageError(f"give {'only ' * all_pending}one of them: FILE, KIND/NAME or --pending")
    if words[2:]:
        raise click.UsageError("explain takes one object at a time: KIND/NAME")
    if all_namespaces and not all_pending:
        raise click.UsageError("-A goes with --pending")
    collect_rarely()
    # Before the cluster is read: else a typing error in a file's name is answered by what is wrong with the kubeconfig.
    wanted = None if what is None else _wanted(what, frame)
    known, frame = cluster_with_pods(
        given,
        frame,
        lambda item: wanted is not None and find_object.is_wanted(wanted, item),
        lost="no verdict without them",
    )
    context = click.get_current_context()
    if what is None:
        context.exit(_pending(known, given, frame, output, everywhere=all_namespaces))
    within = frame.context(frame.namespace)
    asked = _asked(what, known, frame)
    options = given.words if known.server is not None else ""
    answers = [_answer(each, known, within, options) for each in asked.questions]
    if output == "text":
        print_results(pages(answers, partial(render_page, color=colored(sys.stdout))))
    elif answers:
        print_values(one_or_all([*map(explained, answers)]), output)
    if asked.holes or not answers:
        context.exit(Exit.UNREADABLE)
    nowhere = any(each.question.refused or (each.explanation.cause and not each.question.bound) for each in answers)
    context.exit(Exit.FINDINGS if nowhere else Exit.FINE)


def _answer(question: Question, known: ClusterSource, within: Context, options: str) -> AnsweredQuestion:
    explanation = explain_pod(problem_of(question.pod, within), within.cluster)
    replicas = replicas_after(explanation.fixes, question.pod, question.maker, within)
    return AnsweredQuestion(question, explanation, known.missing, options, replicas)


def _wanted(what: str, frame: Frame) -> find_object.Wanted | None:
    """The object of the cluster that is asked about; None for a file, if there is one of that name.

    Errors: a usage error for what is neither.
    """
    if what == STDIN or Path(what).exists():
        return None
    wanted = find_object.parse(what, frame.namespace or DEFAULT_NAMESPACE, frame.policy.workloads)
    if wanted is None:
        raise click.UsageError(
            f"{what[:64]!r} is neither a file nor KIND/NAME of a kind that has pods, as deployment/web"
        )
    return wanted


def _asked(what: str, known: ClusterSource, frame: Frame) -> _Asked:
    """What to judge, in the namespace that is known by now."""
    wanted = _wanted(what, frame)
    return _in_files(what, known, frame) if wanted is None else _Asked([*_of_cluster(wanted, known, frame)])


def _in_files(what: str, known: ClusterSource, frame: Frame) -> _Asked:
    seen, questions = CheckRun(), list[Question]()
    for manifest in seen.manifests(read_files([what], unpack=True), duplicates=False):
        try:
            questions += of_object(manifest.value, frame.context(frame.namespace), known.index, applied=False)
        except DecodeError as error:
            seen.faults.append(manifest.document.fault(f"{manifest.title}: {error.message}"))
    print_faults(seen.faults)
    if not questions and not any(fault.fatal for fault in seen.faults):
        click.echo(f"{what}: error: no pod and no workload in it", err=True)
    return _Asked(questions, holes=any(fault.fatal for fault in seen.faults))


def _of_cluster(wanted: find_object.Wanted, known: ClusterSource, frame: Frame) -> Iterator[Question]:
    """The pod; of a workload its oldest Pending pod, and where none waits the next one.

    Errors: CommandError if the object does not exist.
    """
    index, within = known.index, frame.context(frame.namespace)
    if wanted.kind == "Pod":
        mine = [pod for pod in index.pods.waiting(wanted.namespace) if pod.meta.name == wanted.name]
    else:
        mine = [*waiting_of(wanted.kind, wanted.name, wanted.namespace, index)]
    if mine and wanted.kind == "Pod":
        yield of_pod(mine[0], within, index)
        return
    # A DaemonSet is asked for its nodes, where it can be read.
    found = _looked_up(wanted, known) if wanted.kind == "DaemonSet" or not mine else None
    if found is None and mine:
        question = with_siblings(of_pod(mine[0], within, index), len(mine), wanted.title)
        yield structs.replace(question, refused=_refused_beside(wanted, known, frame))
        return
    if found is None:
        hint = "; -n names the namespace" if frame.namespace == known.namespace else ""  # nobody named one
        raise CommandError(f"{known.source}: no {wanted.title}{hint}", Exit.UNREADABLE)
    try:
        yield from of_object(found, within, index, applied=True)
    except DecodeError as error:
        raise CommandError(f"{known.source}: {wanted.title}: {error.message}", Exit.UNREADABLE) from error


def _looked_up(wanted: find_object.Wanted, known: ClusterSource) -> Raw | Mapping[str, object] | None:
    """The object on the API server or in the snapshot. Errors: CommandError if it cannot be read."""
    if known.server is None:
        return known.kept[0].raw if known.kept else None
    return find_object.in_cluster(wanted, known.server, known.source)


def _refused_beside(wanted: find_object.Wanted, known: ClusterSource, frame: Frame) -> tuple[Refused, ...]:
    """Why the next pods of a workload are refused, while others of it wait."""
    try:
        found = _looked_up(wanted, known)
    except CommandError:  # the pod that waits can be explained without
        return ()
    return () if found is None else refused_of(found, frame.context())


def _pending(known: ClusterSource, given: Given, frame: Frame, output: str, *, everywhere: bool) -> Exit:
    index = known.index
    namespaces = (frame.namespace,) if frame.namespace and not everywhere else index.known_namespaces()
    where = "" if everywhere or not frame.namespace else f"namespace {frame.namespace}"
    options = given.words if known.server else ""
    groups = pending.group(waiting(index, namespaces), frame.context(), known.missing, options)
    if output == "text":
        print_results(pending.render(groups, index, where, color=colored(sys.stdout), options=given.words))
    else:
        print_values([explained(each.answer, each.names) for each in groups], output)
    return Exit.FINDINGS if any(each.answer.explanation.cause for each in groups) else Exit.FINE
