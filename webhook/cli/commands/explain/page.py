"""The page of ``evenspread explain`` for one pod: the scheduler's sentence, domains of each constraint, nodes, fixes.

Names from outside are bounded; tables fit 80 columns while names are of the usual length.
"""

import textwrap
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from webhook.answers.explained import AnsweredQuestion
from webhook.cli.terminal import BOLD, DIM, GREEN, RED, WIDTH, YELLOW, Paint, wrapped
from webhook.core.api.written_selector import requirement_in_words
from webhook.core.explain.cause_text import (
    cause_summary,
    counted_pods_text,
    meant_key_text,
    obstacle_text,
    relief_text,
    shortage_text,
)
from webhook.core.explain.explanation import Balance, Explanation, closed_node_text, rejections
from webhook.core.explain.obstacles import grouped
from webhook.core.explain.reliefs import shortages
from webhook.core.scheduler.plugins.node_resources_fit import NODE_RESOURCES_FIT
from webhook.core.scheduler.plugins.status import UNSCHEDULABLE, Status
from webhook.core.scheduler.problem import may_preempt
from webhook.core.text import one_line, plural
from webhook.core.what_if.pods_to_explain import PodToExplain
from webhook.core.what_if.refused import Refused

PREEMPTION = "preemption is not tried: the pod has a priority, and pods of a lower one may make room for it"
_MAX_DOMAIN_LINES = 6  # a line each; beyond, domains that are alike share a line
_MAX_TABLE_LINES = 20  # of one table: with its heading it fits a terminal of 24 lines
_MAX_PARTS_TOLD = 8  # of nodes that one filter rejects, by what else keeps them out
_WIDEST = 68  # column of fixes: with the number of nodes it fits the page
_NAME = 40  # characters of a name in a table
_TEXT = 200  # characters of what keeps nodes out


def render(answer: AnsweredQuestion, *, color: bool) -> Iterator[str]:
    """The page, piece by piece."""
    paint, question, explanation = Paint(color=color), answer.question, answer.explanation
    yield from _refused(question.refused, paint, exists=question.exists)
    if question.settled:
        yield f"{paint(question.title, BOLD)}: {question.settled}\n"
        return
    if question.bound:
        yield f"{paint(question.title, BOLD)}: bound to {one_line(question.pod.pod_spec.node_name or '', _NAME)}\n"
        return
    yield from _headline(answer, paint)
    for note in (*question.notes, *([PREEMPTION] if _may_preempt(explanation) else [])):
        yield from wrapped(f"note: {note}", paint, YELLOW)
    for balance in explanation.balances:
        yield "\n"
        yield from _constraint(balance, explanation, question, paint)
    yield "\n"
    yield from _nodes(explanation, paint)
    helping = [*_help(answer, paint)] if explanation.cause is not None else []
    yield "".join(["\n"] * bool(helping) + helping) + "\n"
    yield from wrapped(f"not evaluated: {'; '.join(answer.not_evaluated)}", paint, DIM)


def _refused(found: Sequence[Refused], paint: Paint, *, exists: bool) -> Iterator[str]:
    """kube-apiserver's errors. If ``exists``, the rest is about another pod."""
    for each in found:
        text = f"{each.title}: {one_line(each.message, 1024)}"
        for line in textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False):
            yield paint(line, RED) + "\n"
        yield f"  at {one_line(each.path)}\n"
        if each.fix:
            yield f"  {paint('fix', GREEN)}: {one_line(each.fix, 500)}\n"
    if found:
        yield ("" if exists else "below: what the scheduler would say of it, once it can be created\n") + "\n"


def _may_preempt(explanation: Explanation) -> bool:
    """Whether preemption could help: some node is Unschedulable, and not UnschedulableAndUnresolvable.

    Source: preemption.go.
    """
    codes = {status.code for status, members in explanation.verdict.failed if members}
    return explanation.cause is not None and may_preempt(explanation.problem.pod) and UNSCHEDULABLE in codes


def _headline(answer: AnsweredQuestion, paint: Paint) -> Iterator[str]:
    explanation, title = answer.explanation, paint(answer.question.title, BOLD)
    if explanation.cause is None:
        feasible, nodes = explanation.verdict.feasible.bit_count(), plural(len(explanation.verdict.nodes), "node")
        yield f"{title}: {paint(f'{feasible:,} of {nodes} {_admit(feasible)} it', GREEN)}\n"
        return
    yield f"{title}: {paint('no node admits it', RED)}\n"
    if explanation.verdict.sentence:
        yield one_line(explanation.verdict.sentence, 4096) + "\n"
    yield paint(cause_summary(explanation), RED) + "\n"
    if line := obstacle_text(explanation):
        yield from wrapped(line, paint)


def _constraint(balance: Balance, explanation: Explanation, question: PodToExplain, paint: Paint) -> Iterator[str]:
    parsed = balance.domains.constraint
    kind = "DoNotSchedule" if balance.hard else "ScheduleAnyway"
    where = "one of the cluster's defaults"
    if balance.index is not None:
        where = f"{question.path}spec.topologySpreadConstraints[{balance.index}]"
    name = paint(one_line(balance.name, 60), BOLD)
    yield f"{name}  {kind}, maxSkew {parsed.max_skew}  {paint(one_line(where), DIM)}\n"
    # The API server has merged matchLabelKeys into the selector, and the scheduler adds them once more.
    counted = ", ".join(dict.fromkeys(map(requirement_in_words, parsed.selector.requirements)))
    yield f"  counts {one_line(counted, 70) or ('nothing: no selector' if parsed.selector.nothing else 'every pod')}\n"
    if others := counted_pods_text(balance):
        yield from wrapped(f"  {others}", paint, YELLOW)
    counts = balance.domains.counts
    if not counts:
        missing = not balance.domains.column.present
        told = (
            f"has the key {one_line(parsed.topology_key, 64)}{meant_key_text(balance)}" if missing else "counts for it"
        )
        yield f"  no node {told}\n"
        return
    yield from _rule(balance, len(counts))
    yield from _domains(balance, explanation, paint)


def _rule(balance: Balance, domains: int) -> Iterator[str]:
    """The scheduler's formula with the numbers."""
    each = balance.domains
    least = f"minimum {each.global_minimum}"
    if balance.too_few:
        least = f"minimum 0 ({plural(domains, 'domain')}, minDomains {each.constraint.min_domains})"
    if not balance.hard:
        yield f"  a preference, which keeps no node away; {least}\n"
        return
    own = " - 1 for this pod" if each.self_match else ", which does not count this pod"
    if each.limit < 0:
        yield f"  no domain admits the pod: {least} + maxSkew {each.constraint.max_skew}{own} is below 0\n"
    else:
        most = (
            f"a domain with at most {plural(each.limit, 'pod')} admits it"
            if each.limit
            else "only an empty domain admits it"
        )
        yield f"  {most}: {least} + maxSkew {each.constraint.max_skew}{own}\n"


def _domains(balance: Balance, explanation: Explanation, paint: Paint) -> Iterator[str]:
    """A line for each domain, fewest pods first; if they are many, equal ones share a line."""
    counts = balance.domains.counts
    lowest = set(balance.lowest)
    alike: dict[tuple[int, bool, str], list[str]] = defaultdict(list)
    for value, pods in sorted(counts.items(), key=lambda entry: (entry[1], entry[0])):
        key = (pods, value in lowest, _why(balance, value, explanation))
        alike[key if len(counts) > _MAX_DOMAIN_LINES else (*key[:2], f"{key[2]}\0{value}")].append(value)
    lines = [(_named(values), pods, low, why.partition("\0")[0]) for (pods, low, why), values in alike.items()]
    width = max(len("DOMAIN"), *(len(line[0]) for line in lines[:_MAX_TABLE_LINES]))
    yield paint(f"  {'DOMAIN':{width}}  PODS           ITS NODES", DIM) + "\n"
    for name, pods, low, why in lines[:_MAX_TABLE_LINES]:
        holds = low and not (balance.too_few and pods)  # minDomains makes the minimum 0
        mark = "minimum" if holds else "too many" if _beyond(balance, pods) else ""
        color = (YELLOW,) if low and not balance.too_few else ()
        yield (
            f"  {name:{width}}  {pods:4,}  {paint(f'{mark:8}', *color) if color else f'{mark:8}'}  {why}".rstrip()
            + "\n"
        )
    if len(lines) > _MAX_TABLE_LINES:
        yield f"  and {plural(len(lines) - _MAX_TABLE_LINES, 'more line')} like these\n"


def _beyond(balance: Balance, pods: int) -> bool:
    return balance.hard and pods > balance.domains.limit


def _named(values: Sequence[str]) -> str:
    first = one_line(values[0], _NAME)
    return first if len(values) == 1 else f"{first} and {len(values) - 1:,} more"


def _admit(nodes: int) -> str:
    return "admits" if nodes == 1 else "admit"


def _why(balance: Balance, value: str, explanation: Explanation) -> str:
    """Why the domain's nodes reject the pod, in short."""
    nodes = balance.domains.column.with_value(value)
    admitting = (nodes & explanation.verdict.feasible).bit_count()
    own = f"over the limit of {balance.name}"
    shorter = {own: "over the limit"}
    parts = [
        f"{part.bit_count():,} {one_line(closed_node_text([shorter.get(text, text) for text in texts]), 96)}"
        for texts, part in grouped(explanation.obstacles, nodes & ~explanation.verdict.feasible)
    ]
    return ", ".join([f"{admitting:,} {_admit(admitting)} it"] * bool(admitting) + parts)


def _nodes(explanation: Explanation, paint: Paint) -> Iterator[str]:
    """Nodes by the first filter that fails, with their names and all obstacles."""
    verdict = explanation.verdict
    groups: list[tuple[Status | None, int]] = [(None, verdict.feasible)] if verdict.feasible else []
    for status in rejections(verdict, verdict.nodes.live):
        members = 0
        for each, nodes in verdict.failed:
            members |= nodes if each == status else 0
        groups.append((status, members))
    yield paint("NODES  FIRST FILTER THAT FAILS", DIM) + "\n"
    for first, members in groups[:_MAX_TABLE_LINES]:
        text = f"none: {'this admits' if members.bit_count() == 1 else 'these admit'} it"
        if first is not None:
            text = f"{first.plugin}: {', '.join(one_line(reason) for reason in first.reasons)}".removeprefix(": ")
        lines = textwrap.wrap(text, WIDTH - 7)
        yield f"{members.bit_count():5,}  {lines[0]}\n"
        yield from (f"       {line}\n" for line in lines[1:])
        for line in _alike(first, members, explanation):
            yield paint(f"       {line}", DIM) + "\n"
    if len(groups) > _MAX_TABLE_LINES:
        yield f"       and {plural(len(groups) - _MAX_TABLE_LINES, 'more reason')}\n"


def _alike(first: Status | None, members: int, explanation: Explanation) -> Iterator[str]:
    """Names of nodes with equal obstacles, the obstacles, and the missing resources."""
    if first is None:
        yield _some(explanation, members)
        return
    parts = grouped(explanation.obstacles, members)
    for texts, part in parts[:_MAX_PARTS_TOLD]:
        text = one_line(closed_node_text(texts), _TEXT)
        if text in first.reasons:  # there is no better name
            yield _some(explanation, part)
        else:
            yield from textwrap.wrap(f"{_some(explanation, part)}: {text}", WIDTH - 7, subsequent_indent="  ")
    if len(parts) > _MAX_PARTS_TOLD:
        yield f"and {plural(sum(part.bit_count() for _, part in parts[_MAX_PARTS_TOLD:]), 'more node')}"
    if first.plugin == NODE_RESOURCES_FIT:
        for shortage in shortages(explanation.problem, members):
            yield from textwrap.wrap(shortage_text(shortage), WIDTH - 7, subsequent_indent="  ")


def _some(explanation: Explanation, members: int) -> str:
    """As many names as fit a line."""
    total, shown, room = members.bit_count(), list[str](), WIDTH - 7 - len(" and 99,999 more")
    for each in explanation.verdict.nodes.names_of(members):
        name = one_line(each, _NAME)
        room -= len(name) + 2
        if room < 0 and shown:
            break
        shown.append(name)
    return ", ".join(shown) + (f" and {total - len(shown):,} more" if total > len(shown) else "")


def _help(answer: AnsweredQuestion, paint: Paint) -> Iterator[str]:
    """Fixes and where to write them, then changes of the cluster."""
    explanation = answer.explanation
    lines = [
        (one_line(explanation.in_words(fix), 200), fix.nodes, all_pods.text if all_pods else "")
        for fix, all_pods in zip_longest(explanation.fixes, answer.replicas)
    ]
    tolerations = [relief for relief in explanation.reliefs if relief.what == "toleration"]
    lines += [(one_line(relief_text(each, explanation), 400), each.nodes.bit_count(), "") for each in tolerations]
    if not explanation.fixes and any(balance.hard for balance in explanation.balances):
        yield "no change of its spread constraints alone helps\n"
    if lines:
        yield f"{paint('fix', GREEN)}, smallest first; with each of them a node admits this pod:\n"
        width = max(52, *(len(text) for text, _, _ in lines if len(text) <= _WIDEST), 0)
        for text, nodes, all_pods in lines:
            yield f"  {text:{width}}  {plural(nodes, 'node')}\n"
            yield f"    {all_pods}\n" * bool(all_pods)
    yield from _edit(answer, paint)
    others = [relief_text(relief, explanation) for relief in explanation.reliefs if relief.what != "toleration"]
    if others:
        yield f"{'or a' if lines else 'a'} change of the cluster that helps:\n"
        for text in others:
            yield from wrapped(text, paint, indent="  ")


def _edit(answer: AnsweredQuestion, paint: Paint) -> Iterator[str]:
    """Where to write the first fix."""
    target, fixes = answer.question.target, answer.explanation.fixes
    if target is None or not fixes:
        return
    command = answer.command(fixes[0])
    which = "the first" if len(fixes) > 1 else "it"
    if command is not None:
        yield f"{which}, written into {paint(one_line(target.title), BOLD)}:\n  {one_line(command, 4096)}\n"
        yield from wrapped(target.note, paint, indent="  ") if target.note else ()
    else:
        yield from wrapped(f"to be written into {target.title}: {target.note}", paint)
