"""``evenspread explain --pending``: all Pending pods, grouped by cause."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from webhook.answers.audited import CAUSES
from webhook.answers.explained import AnsweredQuestion
from webhook.cli.output.page import BOLD, DIM, GREEN, RED, YELLOW, paint
from webhook.core.api.types import Pod
from webhook.core.context import Context, problem_of
from webhook.core.explain.cause_text import cause_summary, obstacle_text
from webhook.core.explain.explanation import explain_pod
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.owners import controllers
from webhook.core.scan.scan_results import PendingCause
from webhook.core.scan.waiting_pods import pending_cause
from webhook.core.text import agree, object_title, one_line, plural
from webhook.core.what_if.pods_to_explain import pod_to_explain

_ORDER = tuple(PendingCause)
_COLORS = {PendingCause.SPREAD: RED, PendingCause.CAPACITY: YELLOW, PendingCause.OTHER: YELLOW}
_SENTENCE = 4096  # characters of the scheduler's message
_MAX_GROUPS = 12  # of about five lines each: a large terminal
_MAX_WORKLOADS = 3  # of a group, by their pods


class PendingGroup(Struct, frozen=True, kw_only=True):
    """Pending pods with the same cause and scheduler message, oldest first. ``answer`` explains the oldest pod."""

    kind: PendingCause
    answer: AnsweredQuestion
    pods: tuple[Pod, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The pods as ``namespace/name``."""
        return tuple(f"{pod.meta.namespace}/{pod.meta.name}" for pod in self.pods)


def group(
    pods: Iterable[Pod], context: Context, missing: tuple[str, ...] = (), options: str = ""
) -> list[PendingGroup]:
    """Group the pods by cause and scheduler message. The worst cause and the largest group come first."""
    alike_pods: dict[tuple[PendingCause, str], list[Pod]] = defaultdict(list)
    for pod in pods:
        explanation = explain_pod(problem_of(pod, context), brief=True)
        alike_pods[pending_cause(pod, explanation, context.policy), explanation.verdict.sentence].append(pod)
    groups = [
        PendingGroup(
            kind=kind,
            answer=AnsweredQuestion(
                question=pod_to_explain(alike[0], context, context.cluster),
                explanation=explain_pod(problem_of(alike[0], context), context.cluster),
                missing=missing,
                options=options,
            ),
            pods=tuple(alike),
        )
        for (kind, _), alike in alike_pods.items()
    ]
    return sorted(groups, key=lambda waiting: (_ORDER.index(waiting.kind), -len(waiting.pods)))


def render(groups: Sequence[PendingGroup], index: ClusterIndex, namespace: str, *, options: str = "") -> Iterator[str]:
    """Render the list of Pending pods for the terminal.

    ``namespace`` is for the headline, and empty for all namespaces. The printed command has the ``options`` that select
    the cluster, such as `` --context prod``.
    """
    total = sum(len(waiting.pods) for waiting in groups)
    if not total:
        yield paint(f"no pod is Pending in {namespace or 'any namespace'}", GREEN) + "\n"
        return
    kinds = Counter[PendingCause]()
    for waiting in groups:
        kinds[waiting.kind] += len(waiting.pods)
    causes = ", ".join(f"{count:,} {CAUSES[kind]}" for kind, count in kinds.items())
    yield f"{paint(plural(total, 'Pending pod'), BOLD)} in {namespace or 'all namespaces'}: {causes}\n"
    for waiting in groups[:_MAX_GROUPS]:
        yield "\n"
        yield from _block(waiting, index)
    if len(groups) > _MAX_GROUPS:
        rest = sum(len(waiting.pods) for waiting in groups[_MAX_GROUPS:])
        yield f"\nand {plural(rest, 'pod')} in {plural(len(groups) - _MAX_GROUPS, 'more group')} (-o json lists all)\n"
    first = groups[0].answer.question.pod.meta
    command = f"evenspread explain pod/{one_line(first.name)} -n {one_line(first.namespace)}{options}"
    yield "\n" + paint(f"details of a pod: {command}", DIM) + "\n"


def _block(waiting: PendingGroup, index: ClusterIndex) -> Iterator[str]:
    explanation, oldest = waiting.answer.explanation, waiting.pods[0]
    cause = paint(CAUSES[waiting.kind], _COLORS.get(waiting.kind, GREEN), BOLD)
    yield f"{plural(len(waiting.pods), 'pod')} {cause}: {_owners(waiting, index)}\n"
    since = f", since {one_line(oldest.meta.creation_timestamp, 32)}" if oldest.meta.creation_timestamp else ""
    yield f"  oldest: {one_line(oldest.meta.namespace)}/{one_line(oldest.meta.name)}{since}\n"
    if waiting.kind is PendingCause.FITS:
        nodes = plural(explanation.verdict.feasible.bit_count(), "node")
        yield f"  fits {nodes}: the scheduler has not tried the pods yet, or preemption freed capacity\n"
        return
    if waiting.kind in (PendingCause.GATED, PendingCause.FOREIGN):
        yield "".join(f"  {one_line(note)}\n" for note in waiting.answer.question.notes)
        return
    yield f"  {one_line(explanation.verdict.sentence, _SENTENCE)}\n"
    if explanation.blocking is None:
        yield f"  {cause_summary(explanation)}\n"
    if line := obstacle_text(explanation):
        yield f"  {line}\n"
    for fix in explanation.fixes[:1]:
        text = one_line(explanation.in_words(fix), 200)
        then = f"{plural(fix.nodes, 'node')} {agree(fix.nodes, 'admit')} the pod"
        yield f"  {paint('fix', GREEN)}: {text}  (then {then})\n"


def _owners(waiting: PendingGroup, index: ClusterIndex) -> str:
    """The topmost controllers of the pods, those with most pods first."""
    owners: Counter[str] = Counter()
    for pod in waiting.pods:
        chain = controllers(pod, index)
        kind, name = (chain[-1].kind, chain[-1].name) if chain else ("Pod", pod.meta.name)
        owners[one_line(object_title(kind, pod.meta.namespace, name), 80)] += 1
    named = [name if len(owners) == 1 else f"{name} ({count:,})" for name, count in owners.most_common(_MAX_WORKLOADS)]
    rest = len(owners) - len(named)
    return ", ".join(named) + (f" and {plural(rest, 'more workload')}" if rest else "")
