"""``evenspread explain --pending``: all pending pods, grouped by what keeps them from being placed."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from webhook.answers.explained import AnsweredQuestion
from webhook.cli.terminal import BOLD, DIM, GREEN, RED, YELLOW, Paint
from webhook.core.api.types import Pod
from webhook.core.coming_pods.next_pod import problem_of
from webhook.core.context import Context
from webhook.core.explain.cause_text import cause_summary, obstacle_text
from webhook.core.explain.edit_target import object_title
from webhook.core.explain.explanation import explain_pod
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.owners import controllers
from webhook.core.scan.scanned import PendingCause
from webhook.core.scan.waiting_pods import pending_cause
from webhook.core.text import one_line, plural
from webhook.core.what_if.pods_to_explain import pod_to_explain

_ORDER = tuple(PendingCause)
# What a group waits for, for one pod and for several.
_WAITS = {
    PendingCause.SPREAD: ("waits for its spread constraints", "wait for their spread constraints"),
    PendingCause.CAPACITY: ("waits for room", "wait for room"),
    PendingCause.OTHER: ("is kept out by something else", "are kept out by something else"),
    PendingCause.FITS: ("has a node that would take it", "have nodes that would take them"),
    PendingCause.GATED: ("is held back by scheduling gates", "are held back by scheduling gates"),
    PendingCause.FOREIGN: ("waits for another scheduler", "wait for another scheduler"),
}
_COLORS = {PendingCause.SPREAD: RED, PendingCause.CAPACITY: YELLOW, PendingCause.OTHER: YELLOW}
_MAX_GROUPS = 12  # of some five lines: a screen
_MAX_WORKLOADS = 3  # named in a group, those with most pods first


class WaitingPods(Struct, frozen=True, kw_only=True):
    """Pods that wait for the same thing: its kind, the answer for the oldest pod, and all pods, oldest first."""

    kind: PendingCause
    answer: AnsweredQuestion
    pods: tuple[Pod, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The pods as ``namespace/name``."""
        return tuple(f"{pod.meta.namespace}/{pod.meta.name}" for pod in self.pods)


def group(pods: Iterable[Pod], within: Context, missing: tuple[str, ...] = (), options: str = "") -> list[WaitingPods]:
    """Group the pods by kind of cause and by the scheduler's sentence; the worst kind and the largest group come first.

    ``options`` are those with which kubectl reaches the live cluster.
    """
    alike_pods: dict[tuple[PendingCause, str], list[Pod]] = defaultdict(list)
    for pod in pods:
        seen = explain_pod(problem_of(pod, within), brief=True)
        alike_pods[pending_cause(pod, seen, within.policy), seen.verdict.sentence].append(pod)
    groups = [
        WaitingPods(
            kind=kind,
            answer=AnsweredQuestion(
                question=pod_to_explain(alike[0], within, within.cluster),
                explanation=explain_pod(problem_of(alike[0], within), within.cluster),
                missing=missing,
                options=options,
            ),
            pods=tuple(alike),
        )
        for (kind, _), alike in alike_pods.items()
    ]
    return sorted(groups, key=lambda each: (_ORDER.index(each.kind), -len(each.pods)))


def render(
    groups: Sequence[WaitingPods], index: ClusterIndex, namespace: str, *, color: bool, options: str = ""
) -> Iterator[str]:
    """The screen, for one ``namespace`` or all if empty. ``options`` name the cluster, as `` --context prod``."""
    paint = Paint(color=color)
    total = sum(len(each.pods) for each in groups)
    if not total:
        yield paint(f"no pod is Pending in {namespace or 'any namespace'}", GREEN) + "\n"
        return
    kinds = Counter[PendingCause]()
    for each in groups:
        kinds[each.kind] += len(each.pods)
    told = ", ".join(f"{count:,} {_WAITS[kind][count > 1]}" for kind, count in kinds.items())
    yield f"{paint(plural(total, 'Pending pod'), BOLD)} in {namespace or 'all namespaces'}: {told}\n"
    for each in groups[:_MAX_GROUPS]:
        yield "\n"
        yield from _block(each, index, paint)
    if len(groups) > _MAX_GROUPS:
        rest = sum(len(each.pods) for each in groups[_MAX_GROUPS:])
        yield f"\nand {plural(rest, 'pod')} in {plural(len(groups) - _MAX_GROUPS, 'more group')}: -o json has all\n"
    first = groups[0].answer.question.pod.meta
    command = f"evenspread explain pod/{one_line(first.name)} -n {one_line(first.namespace)}{options}"
    yield "\n" + paint(f"all there is to say of one pod: {command}", DIM) + "\n"


def _block(each: WaitingPods, index: ClusterIndex, paint: Paint) -> Iterator[str]:
    explanation, oldest = each.answer.explanation, each.pods[0]
    color = _COLORS.get(each.kind, GREEN)
    waits = paint(_WAITS[each.kind][len(each.pods) > 1], color, BOLD)
    yield f"{plural(len(each.pods), 'pod')} {waits}: {_owners(each, index)}\n"
    since = f", since {one_line(oldest.meta.creation_timestamp, 32)}" if oldest.meta.creation_timestamp else ""
    yield f"  oldest: {one_line(oldest.meta.namespace)}/{one_line(oldest.meta.name)}{since}\n"
    if each.kind is PendingCause.FITS:
        nodes = plural(explanation.verdict.feasible.bit_count(), "node")
        yield f"  {nodes} would take it: the scheduler has not come to it yet, or preemption has made room for it\n"
        return
    if each.kind in (PendingCause.GATED, PendingCause.FOREIGN):
        yield "".join(f"  {one_line(note)}\n" for note in each.answer.question.notes)
        return
    yield f"  {one_line(explanation.verdict.sentence, 4096)}\n"
    if explanation.blocking is None:
        yield f"  {cause_summary(explanation)}\n"
    if line := obstacle_text(explanation):
        yield f"  {line}\n"
    for fix in explanation.fixes[:1]:
        text = one_line(explanation.in_words(fix), 200)
        yield f"  {paint('fix', GREEN)}: {text}  ({plural(fix.nodes, 'node')} then)\n"


def _owners(each: WaitingPods, index: ClusterIndex) -> str:
    """The topmost controllers of the pods, those with most pods first."""
    found: Counter[str] = Counter()
    for pod in each.pods:
        chain = controllers(pod, index)
        kind, name = (chain[-1].kind, chain[-1].name) if chain else ("Pod", pod.meta.name)
        found[one_line(object_title(kind, pod.meta.namespace, name), 80)] += 1
    named = [name if len(found) == 1 else f"{name} ({count:,})" for name, count in found.most_common(_MAX_WORKLOADS)]
    rest = len(found) - len(named)
    return ", ".join(named) + (f" and {plural(rest, 'more workload')}" if rest else "")
