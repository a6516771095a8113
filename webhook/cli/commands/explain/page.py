"""The text page of ``evenspread explain`` for one pod: the scheduler's message, constraints, nodes and fixes.

Names are shortened. With names of usual length, tables fit 80 columns.
"""

import textwrap
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from webhook.answers.explained import AnsweredQuestion
from webhook.cli.output.page import BOLD, DIM, GREEN, RED, WIDTH, YELLOW, paint, wrapped
from webhook.core.api.selector_text import requirement_in_words
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
from webhook.core.pods_to_remove.past_scale_ins import PastScaleIn
from webhook.core.scheduler.plugins.node_resources_fit import NODE_RESOURCES_FIT
from webhook.core.scheduler.plugins.status import Code, Status
from webhook.core.scheduler.problem import may_preempt
from webhook.core.text import agree, listed, one_line, plural
from webhook.core.what_if.pods_to_explain import PodToExplain
from webhook.core.what_if.refused import Refused

PREEMPTION = "preemption is not simulated: the scheduler may evict pods of lower priority for this pod"
_MAX_DOMAIN_LINES = 6  # with more domains, equal ones share a line
_MAX_TABLE_LINES = 20  # with its heading, a table fits a terminal of 24 lines
_MAX_PARTS = 8  # of the nodes that a filter rejects, by their other obstacles
_MAX_FIX_WIDTH = 68  # columns; with the number of nodes, a fix fits the page
_MIN_FIX_WIDTH = 52  # keeps the numbers of nodes in one column on most pages
_NAME = 40  # characters of a name in a table
_TEXT = 200  # characters of an obstacle
_DOMAIN_TEXT = 96  # characters of an obstacle in a line of domains
_REFUSAL = 1024  # characters of an error of kube-apiserver
_SENTENCE = 4096  # characters of the scheduler's message, or of a command
_COUNT = 7  # columns of the number of nodes


def render(answer: AnsweredQuestion) -> Iterator[str]:
    """Render the page, piece by piece."""
    question, explanation = answer.question, answer.explanation
    yield from _refused(question.refused, exists=question.exists)
    if question.settled:
        yield f"{paint(question.title, BOLD)}: {question.settled}\n"
        return
    if question.bound:
        yield f"{paint(question.title, BOLD)}: bound to {one_line(question.pod.pod_spec.node_name or '', _NAME)}\n"
        return
    yield from _headline(answer)
    for note in (*question.notes, *([PREEMPTION] if _may_preempt(explanation) else [])):
        yield from wrapped(f"note: {note}", YELLOW)
    for balance, cause in zip_longest(explanation.balances, answer.causes):
        yield "\n"
        yield from _constraint(balance, explanation, question, cause)
    yield "\n"
    yield from _nodes(explanation)
    fixes = [*_fixes(answer)] if explanation.cause is not None else []
    yield "".join(["\n"] * bool(fixes) + fixes) + "\n"
    yield from wrapped(f"not evaluated: {'; '.join(answer.not_evaluated)}", DIM)


def _refused(refusals: Sequence[Refused], *, exists: bool) -> Iterator[str]:
    """Yield kube-apiserver's errors. If the pod ``exists``, they are about the next pods of its workload."""
    for refusal in refusals:
        text = f"{refusal.title}: {one_line(refusal.message, _REFUSAL)}"
        for line in textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False):
            yield paint(line, RED) + "\n"
        yield f"  at {one_line(refusal.path)}\n"
        if refusal.fix:
            yield f"  {paint('fix', GREEN)}: {one_line(refusal.fix, 500)}\n"
    if refusals:
        yield ("" if exists else "below: the scheduler's answer once the pod can be created\n") + "\n"


def _may_preempt(explanation: Explanation) -> bool:
    """Whether preemption could help: a node is Unschedulable, not UnschedulableAndUnresolvable.

    Source: preemption.go.
    """
    codes = {status.code for status, members in explanation.verdict.failed if members}
    return explanation.cause is not None and may_preempt(explanation.problem.pod) and Code.UNSCHEDULABLE in codes


def _headline(answer: AnsweredQuestion) -> Iterator[str]:
    explanation, title = answer.explanation, paint(answer.question.title, BOLD)
    if explanation.cause is None:
        feasible, nodes = explanation.verdict.feasible.bit_count(), plural(len(explanation.verdict.nodes), "node")
        admitting = f"{feasible:,} of {nodes} {agree(feasible, 'admit')} it"
        yield f"{title}: {paint(admitting, GREEN)}\n"
        return
    yield f"{title}: {paint('no node admits it', RED)}\n"
    if explanation.verdict.sentence:
        yield one_line(explanation.verdict.sentence, _SENTENCE) + "\n"
    yield paint(cause_summary(explanation), RED) + "\n"
    if line := obstacle_text(explanation):
        yield from wrapped(line)


def _constraint(
    balance: Balance, explanation: Explanation, question: PodToExplain, cause: PastScaleIn | None
) -> Iterator[str]:
    parsed = balance.domains.constraint
    kind = "DoNotSchedule" if balance.hard else "ScheduleAnyway"
    where = "one of the cluster's defaults"
    if balance.index is not None:
        where = f"{question.path}spec.topologySpreadConstraints[{balance.index}]"
    name = paint(one_line(balance.name, 60), BOLD)
    yield f"{name}  {kind}, maxSkew {parsed.max_skew}  {paint(one_line(where), DIM)}\n"
    # The API server and the scheduler both add matchLabelKeys to the selector.
    counted = ", ".join(dict.fromkeys(map(requirement_in_words, parsed.selector.requirements)))
    yield f"  counts {one_line(counted, 70) or ('nothing: no selector' if parsed.selector.nothing else 'every pod')}\n"
    if others := counted_pods_text(balance):
        yield from wrapped(f"  {others}", YELLOW)
    if cause is not None:
        yield from wrapped(f"  above maxSkew: {cause.text}", YELLOW)
    counts = balance.domains.counts
    if not counts:
        missing = not balance.domains.column.present
        key = one_line(parsed.topology_key, 64)
        yield f"  no node has the key {key}{meant_key_text(balance)}\n" if missing else "  no node is eligible\n"
        return
    yield from _limit(balance, len(counts))
    yield from _domains(balance, explanation)


def _limit(balance: Balance, number: int) -> Iterator[str]:
    """Yield the most pods of an admitting domain, with the scheduler's formula, or that no node is rejected."""
    domains = balance.domains
    minimum = f"minimum {domains.global_minimum}"
    if balance.domains.too_few:
        minimum = f"minimum 0 ({plural(number, 'domain')}, minDomains {domains.constraint.min_domains})"
    if not balance.hard:
        yield f"  a preference that rejects no node; {minimum}\n"
        return
    own = " - 1 for this pod" if domains.self_match else ", which does not count this pod"
    formula = f"{minimum} + maxSkew {domains.constraint.max_skew}{own}"
    if domains.limit < 0:
        yield f"  no domain admits the pod: {formula} is below 0\n"
    elif domains.limit:
        yield f"  a domain with at most {plural(domains.limit, 'pod')} admits it: {formula}\n"
    else:
        yield f"  only an empty domain admits it: {formula}\n"


def _domains(balance: Balance, explanation: Explanation) -> Iterator[str]:
    """Yield a table with a line for each domain, fewest pods first. In a long table, equal domains share a line."""
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
        is_minimum = low and not (balance.domains.too_few and pods)  # with too few domains, the minimum is 0
        mark = "minimum" if is_minimum else "too many" if _exceeds(balance, pods) else ""
        color = (YELLOW,) if low and not balance.domains.too_few else ()
        yield (f"  {name:{width}}  {pods:4,}  {paint(f'{mark:8}', *color)}  {why}".rstrip() + "\n")
    if len(lines) > _MAX_TABLE_LINES:
        yield f"  and {plural(len(lines) - _MAX_TABLE_LINES, 'more line')}\n"


def _exceeds(balance: Balance, pods: int) -> bool:
    return balance.hard and pods > balance.domains.limit


def _named(values: Sequence[str]) -> str:
    return listed([one_line(values[0], _NAME), *values[1:]], 1)


def _why(balance: Balance, value: str, explanation: Explanation) -> str:
    """Return a short text with the obstacles of the domain's nodes."""
    nodes = balance.domains.column.with_value(value)
    admitting = (nodes & explanation.verdict.feasible).bit_count()
    own = f"over the limit of {balance.name}"
    parts = [
        f"{part.bit_count():,} "
        f"{one_line(closed_node_text([text if text != own else 'over the limit' for text in texts]), _DOMAIN_TEXT)}"
        for texts, part in grouped(explanation.obstacles, nodes & ~explanation.verdict.feasible)
    ]
    return ", ".join([f"{admitting:,} {agree(admitting, 'admit')} it"] * bool(admitting) + parts)


def _nodes(explanation: Explanation) -> Iterator[str]:
    """Yield the nodes by the first failing filter, with their names and all obstacles."""
    verdict = explanation.verdict
    groups: list[tuple[Status | None, int]] = [(None, verdict.feasible)] if verdict.feasible else []
    for status in rejections(verdict, verdict.nodes.live):
        members = 0
        for failed, nodes in verdict.failed:
            members |= nodes if failed == status else 0
        groups.append((status, members))
    yield paint("NODES  FIRST FAILING FILTER", DIM) + "\n"
    for first, members in groups[:_MAX_TABLE_LINES]:
        text = f"none: {'this node admits' if members.bit_count() == 1 else 'these nodes admit'} the pod"
        if first is not None:
            text = f"{first.plugin}: {', '.join(one_line(reason) for reason in first.reasons)}".removeprefix(": ")
        lines = textwrap.wrap(text, WIDTH - _COUNT)
        yield f"{members.bit_count():5,}  {lines[0]}\n"
        yield from (f"       {line}\n" for line in lines[1:])
        for line in _alike(first, members, explanation):
            yield paint(f"       {line}", DIM) + "\n"
    if len(groups) > _MAX_TABLE_LINES:
        yield f"       and {plural(len(groups) - _MAX_TABLE_LINES, 'more reason')}\n"


def _alike(first: Status | None, members: int, explanation: Explanation) -> Iterator[str]:
    """Yield lines about nodes with the same first failing filter: node names, obstacles and missing resources."""
    if first is None:
        yield _names(explanation, members)
        return
    parts = grouped(explanation.obstacles, members)
    for texts, part in parts[:_MAX_PARTS]:
        text = one_line(closed_node_text(texts), _TEXT)
        if text in first.reasons:  # the filter's line has this text already
            yield _names(explanation, part)
        else:
            yield from textwrap.wrap(f"{_names(explanation, part)}: {text}", WIDTH - _COUNT, subsequent_indent="  ")
    if len(parts) > _MAX_PARTS:
        yield f"and {plural(sum(part.bit_count() for _, part in parts[_MAX_PARTS:]), 'more node')}"
    if first.plugin == NODE_RESOURCES_FIT:
        for shortage in shortages(explanation.problem, members):
            yield from textwrap.wrap(shortage_text(shortage), WIDTH - _COUNT, subsequent_indent="  ")


def _names(explanation: Explanation, members: int) -> str:
    """Return the names of the nodes in ``members``, shortened to one line. Further nodes are only counted."""
    total, shown, room = members.bit_count(), list[str](), WIDTH - _COUNT - len(" and 99,999 more")
    for full_name in explanation.verdict.nodes.names_of(members):
        name = one_line(full_name, _NAME)
        room -= len(name) + 2
        if room < 0 and shown:
            break
        shown.append(name)
    return ", ".join(shown) + (f" and {total - len(shown):,} more" if total > len(shown) else "")


def _fixes(answer: AnsweredQuestion) -> Iterator[str]:
    """Yield the fixes of the pod, the command for the first or the object to edit, and changes of the cluster."""
    explanation = answer.explanation
    lines = [
        (one_line(explanation.in_words(fix), 200), fix.nodes, all_pods.text if all_pods else "")
        for fix, all_pods in zip_longest(explanation.fixes, answer.replicas)
    ]
    tolerations = [relief for relief in explanation.reliefs if relief.what == "toleration"]
    lines += [(one_line(relief_text(relief, explanation), 400), relief.nodes.bit_count(), "") for relief in tolerations]
    if not explanation.fixes and any(balance.hard for balance in explanation.balances):
        yield "changing only the pod's spread constraints does not help\n"
    if lines:
        yield f"{paint('fixes', GREEN)}, smallest first; with each of them, a node admits this pod:\n"
        width = max(_MIN_FIX_WIDTH, *(len(text) for text, _, _ in lines if len(text) <= _MAX_FIX_WIDTH), 0)
        for text, nodes, all_pods in lines:
            yield f"  {text:{width}}  {plural(nodes, 'node')}\n"
            yield f"    {all_pods}\n" * bool(all_pods)
    yield from _edit(answer)
    others = [relief_text(relief, explanation) for relief in explanation.reliefs if relief.what != "toleration"]
    if others:
        yield f"{'or change' if lines else 'change'} the cluster:\n"
        for text in others:
            yield from wrapped(text, indent="  ")


def _edit(answer: AnsweredQuestion) -> Iterator[str]:
    """Yield the command for the first fix, or the object to edit."""
    target, fixes = answer.question.target, answer.explanation.fixes
    if target is None or not fixes:
        return
    command = answer.command(fixes[0])
    fix = "the first fix" if len(fixes) > 1 else "the fix"
    if command is not None:
        yield f"to apply {fix} to {paint(one_line(target.title), BOLD)}:\n  {one_line(command, _SENTENCE)}\n"
        yield from wrapped(target.note, indent="  ") if target.note else ()
    else:
        yield from wrapped(f"apply {fix} to {target.title}: {target.note}")
