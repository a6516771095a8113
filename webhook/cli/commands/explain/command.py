"""``evenspread explain``: why no node admits a pod, by domain and by node, and what would help."""

import sys
from collections.abc import Iterator, Sequence
from functools import partial

import click
from msgspec.structs import replace

from webhook.answers.explained import AnsweredQuestion, explained
from webhook.cli.checking.run import CheckRun
from webhook.cli.cluster_source import ClusterSource, cluster_with_pods
from webhook.cli.commands.explain import pending
from webhook.cli.commands.explain.page import render as render_page
from webhook.cli.exit_codes import CommandError, Exit
from webhook.cli.frame import Frame
from webhook.cli.live_cluster import Given
from webhook.cli.options import current_cluster_options, frame_options, output_option
from webhook.cli.target import NamedObject, find, read_target
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
    short_help="Explain why no node admits a pod, and what would help.",
    epilog="Exit code: 0 a node admits it, 1 none does (of several pods: of one) or it is refused, 2 usage or "
    "configuration, 3 input that could not be read, 4 the cluster could not be read.",
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
    given: Given,
    frame: Frame,
) -> None:
    """Explain why no node admits a pod: per domain, per node, and the smallest change that helps.

    FILE is a pod, or a workload for its next pod. - is the standard input. KIND/NAME is an object of the cluster:
    pod/web-0, deployment/web. Without --snapshot, explain reads the kubeconfig's current cluster.

      kubectl evenspread explain deployment/web -n shop

    The answer is kube-scheduler's own, for one pod at this moment. Other influences are listed as not evaluated.
    """
    if bool(words) == all_pending:
        raise click.UsageError(f"give {'only ' * all_pending}one of them: FILE, KIND/NAME or --pending")
    if words[2:]:
        raise click.UsageError("explain takes one object at a time: KIND/NAME")
    if all_namespaces and not all_pending:
        raise click.UsageError("-A goes with --pending")
    collect_rarely()
    # Before the cluster is read: else a typing error in a file's name is answered by what is wrong with the kubeconfig.
    what = ["/".join(words)] if words else []
    target = read_target(what, frame.namespace or DEFAULT_NAMESPACE, frame.policy.workloads)
    named = target.named
    known, within = cluster_with_pods(
        given, frame, lambda item: named is not None and named.is_in(item), lost="no verdict without them"
    )
    context, options = click.get_current_context(), given.words if known.server is not None else ""
    if all_pending:
        context.exit(_pending(known, given, within, output, everywhere=all_namespaces))
    questions, holes = _in_files(target.files, known, within) if target.files else ([], False)
    if named is not None:
        named = replace(named, namespace=within.namespace or DEFAULT_NAMESPACE)
        questions = [*_of_cluster(named, known, within, guessed=not frame.namespace)]
    answers = [_answer(each, known, within, options) for each in questions]
    if output == "text":
        print_results(pages(answers, partial(render_page, color=colored(sys.stdout))))
    elif answers:
        print_values(one_or_all([*map(explained, answers)]), output)
    if holes or not answers:
        context.exit(Exit.UNREADABLE)
    nowhere = any(each.question.refused or (each.explanation.cause and not each.question.bound) for each in answers)
    context.exit(Exit.FINDINGS if nowhere else Exit.FINE)


def _answer(question: PodToExplain, known: ClusterSource, within: Context, options: str) -> AnsweredQuestion:
    explanation = explain_pod(problem_of(question.pod, within), within.cluster)
    replicas = replicas_after(explanation.fixes, question.pod, question.maker, within)
    return AnsweredQuestion(question, explanation, known.missing, options, replicas)


def _in_files(files: Sequence[str], known: ClusterSource, within: Context) -> tuple[list[PodToExplain], bool]:
    """The questions, and whether a part of the input could not be read."""
    seen, questions = CheckRun(), list[PodToExplain]()
    for manifest in seen.manifests(read_files(files, unpack=True), duplicates=False):
        try:
            questions += pods_of_object(manifest.value, stated_type(manifest.value), within, known.index, applied=False)
        except DecodeError as error:
            seen.faults.append(manifest.document.fault(f"{manifest.title}: {error.message}"))
    print_faults(seen.faults)
    holes = any(fault.fatal for fault in seen.faults)
    if not questions and not holes:
        click.echo(f"{files[0]}: error: no pod and no workload in it", err=True)
    return questions, holes


def _of_cluster(named: NamedObject, known: ClusterSource, within: Context, *, guessed: bool) -> Iterator[PodToExplain]:
    """The pod; of a workload its oldest Pending pod, and if none waits the next one.

    Errors: CommandError if the object does not exist.
    """
    index = known.index
    if named.kind == "Pod":
        mine = [pod for pod in index.pods.waiting(named.namespace) if pod.meta.name == named.name]
    else:
        mine = [*waiting_pods_of(named.kind, named.name, named.namespace, index)]
    if mine and named.kind == "Pod":
        yield pod_to_explain(mine[0], within, index)
        return
    found = None
    try:
        found = find(named, known, guessed=guessed)
    except CommandError:
        if not mine:
            raise
    # A DaemonSet is asked for its nodes, if it can be read.
    if mine and (found is None or named.kind != "DaemonSet"):
        question = with_siblings(pod_to_explain(mine[0], within, index), len(mine), named.title)
        yield replace(question, refused=() if found is None else refused_of(*found, within))
        return
    if found is None:
        return
    try:
        yield from pods_of_object(*found, within, index, applied=True)
    except DecodeError as error:
        raise CommandError(f"{known.source}: {named.title}: {error.message}", Exit.UNREADABLE) from error


def _pending(known: ClusterSource, given: Given, within: Context, output: str, *, everywhere: bool) -> Exit:
    index = known.index
    namespaces = (within.namespace,) if within.namespace and not everywhere else index.known_namespaces()
    where = "" if everywhere or not within.namespace else f"namespace {within.namespace}"
    options = given.words if known.server else ""
    groups = pending.group(waiting_pods(index, namespaces), within, known.missing, options)
    if output == "text":
        print_results(pending.render(groups, index, where, color=colored(sys.stdout), options=given.words))
    else:
        print_values([explained(each.answer, each.names) for each in groups], output)
    return Exit.FINDINGS if any(each.answer.explanation.cause for each in groups) else Exit.FINE
