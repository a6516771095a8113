"""``evenspread explain``: why no node admits a pod, and which changes help."""

from collections.abc import Iterator, Sequence

import click
from msgspec.structs import replace

from webhook.answers.explained import AnsweredQuestion, explained
from webhook.cli.checking.run import CheckRun
from webhook.cli.cluster_source import ClusterSource, cluster_with_pods
from webhook.cli.commands.explain import pending
from webhook.cli.commands.explain.page import render as render_page
from webhook.cli.exit_codes import CommandError, Exit
from webhook.cli.frame import Frame
from webhook.cli.live_cluster import ClusterSelection
from webhook.cli.options import current_cluster_options, frame_options, output_option
from webhook.cli.output.long_runs import collect_rarely
from webhook.cli.output.page import joined_pages
from webhook.cli.output.terminal import one_or_all, print_faults, print_results, print_values
from webhook.cli.scale_in_events import ScaleInEvents
from webhook.cli.target import NamedObject, find_object, read_target
from webhook.core.api.well_known import DEFAULT_NAMESPACE
from webhook.core.apiserver.decoding import DecodeError
from webhook.core.context import Context, problem_of
from webhook.core.explain.explanation import explain_pod
from webhook.core.what_if.pods_to_explain import (
    PodToExplain,
    pod_to_explain,
    pods_of_object,
    waiting_pods,
    waiting_pods_of,
    with_siblings,
)
from webhook.core.what_if.refused import refused_of
from webhook.core.what_if.suggestions import replicas_after
from webhook.core.workloads.reading import stated_type
from webhook.manifests.reading.files import read_files


@click.command(
    short_help="Explain why a pod is Pending, with the smallest fix.",
    epilog="Exit code: 0 a node admits each pod, 1 a pod has no admitting node or kube-apiserver refuses it, 2 usage "
    "or configuration, 3 unreadable input, 4 cluster not readable, 5 a bug of evenspread.",
)
@click.argument("words", nargs=-1, metavar="[FILE|KIND/NAME]")
@click.option("--pending", "all_pending", is_flag=True, help="Explain all Pending pods, grouped by cause.")
@click.option("-A", "--all-namespaces", is_flag=True, help="With --pending: all namespaces.")
@output_option("text", "json", "yaml")
@current_cluster_options
@frame_options
def explain(  # noqa: PLR0913 one parameter an option
    *,
    words: tuple[str, ...],
    all_pending: bool,
    all_namespaces: bool,
    output: str,
    selection: ClusterSelection,
    frame: Frame,
) -> Exit:
    """Explain why no node admits a pod: by domain, by node, and with the smallest change that helps.

      kubectl evenspread explain deployment/web -n shop

      kubectl evenspread explain --pending -A

    KIND/NAME is an object of the cluster, such as pod/web-0 or deployment/web. FILE is a manifest of a pod or a
    workload, or - for the standard input. For a workload, explain takes its oldest Pending pod, else its next pod.

    The answer is kube-scheduler's own, for one pod at this moment. The last line lists the parts that explain does not
    evaluate.
    """
    _check_usage(words, all_pending=all_pending, all_namespaces=all_namespaces)
    collect_rarely()
    # First the target, so that a mistyped file name is not reported as a fault of the kubeconfig.
    path = ["/".join(words)] if words else []
    target = read_target(path, frame.namespace or DEFAULT_NAMESPACE, frame.policy.workloads)
    named = target.named
    known, context = cluster_with_pods(
        selection, frame, lambda item: named is not None and named.is_in(item), lost="explain needs them"
    )
    options = selection.as_options if known.server is not None else ""
    if all_pending:
        return _pending(known, selection, context, output, everywhere=all_namespaces)
    questions, incomplete = _file_questions(target.files, known, context) if target.files else ([], False)
    if named is not None:
        named = replace(named, namespace=context.namespace or DEFAULT_NAMESPACE)
        questions = [*_cluster_questions(named, known, context, guessed=not frame.namespace)]
    events = ScaleInEvents(known)
    answers = [_answer(question, known, events, context, options) for question in questions]
    if output == "text":
        print_results(joined_pages(answers, render_page))
    elif answers:
        print_values(one_or_all([*map(explained, answers)]), output)
    if incomplete or not answers:
        return Exit.UNREADABLE
    stuck = any(
        answer.question.refused or (answer.explanation.cause and not answer.question.bound) for answer in answers
    )
    return Exit.FINDINGS if stuck else Exit.FINE


def _check_usage(words: Sequence[str], *, all_pending: bool, all_namespaces: bool) -> None:
    """Raise click.UsageError if the arguments contradict each other."""
    if bool(words) == all_pending:
        raise click.UsageError(f"use {'only ' * all_pending}one of FILE, KIND/NAME and --pending")
    if words[2:]:
        raise click.UsageError("explain takes one object at a time: KIND/NAME")
    if all_namespaces and not all_pending:
        raise click.UsageError("-A needs --pending")


def _answer(
    question: PodToExplain, known: ClusterSource, events: ScaleInEvents, context: Context, options: str
) -> AnsweredQuestion:
    explanation = explain_pod(problem_of(question.pod, context), context.cluster)
    replicas = replicas_after(explanation.fixes, question.pod, question.maker, context)
    causes = events.causes(question.maker, question.pod.meta.namespace, explanation.balances)
    return AnsweredQuestion(question, explanation, known.missing, options, replicas, causes)


def _file_questions(files: Sequence[str], known: ClusterSource, context: Context) -> tuple[list[PodToExplain], bool]:
    """Return the pods of the files to explain, and whether a part of the input was unreadable."""
    run, questions = CheckRun(), list[PodToExplain]()
    for manifest in run.manifests(read_files(files, unpack=True), duplicates=False):
        try:
            questions += pods_of_object(
                manifest.value, stated_type(manifest.value), context, known.index, applied=False
            )
        except DecodeError as error:
            run.faults.append(manifest.document.fault(f"{manifest.title}: {error.message}"))
    print_faults(run.faults)
    incomplete = any(fault.fatal for fault in run.faults)
    if not questions and not incomplete:
        click.echo(f"{files[0]}: error: no pod and no workload in this file", err=True)
    return questions, incomplete


def _cluster_questions(
    named: NamedObject, known: ClusterSource, context: Context, *, guessed: bool
) -> Iterator[PodToExplain]:
    """Yield the Pod itself, or a workload's oldest Pending pod, else its next pods. Raises CommandError."""
    index = known.index
    if named.kind == "Pod":
        mine = [pod for pod in index.pods.waiting(named.namespace) if pod.meta.name == named.name]
    else:
        mine = [*waiting_pods_of(named.kind, named.name, named.namespace, index)]
    if mine and named.kind == "Pod":
        yield pod_to_explain(mine[0], context, index)
        return
    target = None
    try:
        target = find_object(named, known, guessed=guessed)
    except CommandError:
        if not mine:
            raise
    # A readable DaemonSet gets a question for each node.
    if mine and (target is None or named.kind != "DaemonSet"):
        question = with_siblings(pod_to_explain(mine[0], context, index), len(mine), named.title)
        yield replace(question, refused=() if target is None else refused_of(*target, context))
        return
    if target is None:
        return
    try:
        yield from pods_of_object(*target, context, index, applied=True)
    except DecodeError as error:
        raise CommandError(f"{known.source}: {named.title}: {error.message}", Exit.UNREADABLE) from error


def _pending(
    known: ClusterSource, selection: ClusterSelection, context: Context, output: str, *, everywhere: bool
) -> Exit:
    index = known.index
    namespaces = (context.namespace,) if context.namespace and not everywhere else index.known_namespaces()
    where = "" if everywhere or not context.namespace else f"namespace {context.namespace}"
    options = selection.as_options if known.server else ""
    groups = pending.group(waiting_pods(index, namespaces), context, known.missing, options)
    if output == "text":
        print_results(pending.render(groups, index, where, options=selection.as_options))
    else:
        print_values([explained(group.answer, group.names) for group in groups], output)
    return Exit.FINDINGS if any(group.answer.explanation.cause for group in groups) else Exit.FINE
