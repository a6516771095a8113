"""The page of ``evenspread explain`` for one pod: the scheduler's sentence, domains of each constraint, nodes, fixes.

Names from outside are bounded; tables fit 80 columns while names are of the usual length.
"""

import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from webhook.cli.formats.as_text import BOLD, DIM, GREEN, RED, YELLOW, Paint
from webhook.cli.questions import Question
from webhook.cli.refused import render as render_refused
from webhook.core import bits
from webhook.core.explain import Balance, Cause, Explanation, fix_text, in_short, rejections, standstill, too_small
from webhook.core.keys import near
from webhook.core.rules.finding import one_line, plural
from webhook.core.selectors import IN, Requirement
from webhook.core.status import UNSCHEDULABLE, Status
from webhook.core.verdict import NOT_EVALUATED

WIDTH = 80
PREEMPTION = "preemption is not tried: the pod has a priority, and pods of a lower one may make room for it"
_MOST_DOMAINS = 6  # a line each; beyond, domains that are alike share a line
_MOST_LINES = 20
_NAME = 40  # characters of a name in a table
_CAUSES: Mapping[Cause | None, str] = {
    Cause.SPREAD: "without its hard constraints {} would admit it",
    Cause.CAPACITY: "with room {} would admit it",
    Cause.OTHER: "without its hard constraints and with room {} would admit it",
}


_RELIEFS = {"room": "room on", "size": "a larger node than", "uncordon": "an uncordon of"}


class Answer(Struct, frozen=True):
    """A question and what there is to say; ``missing`` has a line for what of the cluster could not be read."""

    question: Question
    explanation: Explanation
    missing: tuple[str, ...] = ()


def render(answer: Answer, *, color: bool) -> Iterator[str]:
    """The page, piece by piece."""
    paint, question, found = Paint(color=color), answer.question, answer.explanation
    yield from render_refused(question.refused, paint, exists=question.exists)
    if question.bound:
        yield f"{paint(question.title, BOLD)}: bound to {one_line(question.pod.pod_spec.node_name or '', _NAME)}\n"
        return
    yield from _headline(answer, paint)
    for note in (*question.notes, *([PREEMPTION] if _may_preempt(found) else [])):
        yield from _wrapped(f"note: {note}", paint, YELLOW)
    for balance in found.balances:
        yield "\n"
        yield from _constraint(balance, found, question, paint)
    yield "\n"
    yield from _nodes(found, paint)
    helping = [*_help(found, paint)] if found.cause is not None else []
    yield "".join(["\n"] * bool(helping) + helping) + "\n"
    yield from _wrapped(f"not evaluated: {'; '.join(not_evaluated(answer))}", paint, DIM)


def _may_preempt(found: Explanation) -> bool:
    """Source: preemption.go looks at nodes that are Unschedulable, and not at those where no pod that leaves helps."""
    codes = {status.code for status, members in found.verdict.failed if members}
    return found.cause is not None and (found.problem.pod.pod_spec.priority or 0) > 0 and UNSCHEDULABLE in codes


def not_evaluated(answer: Answer) -> list[str]:
    """What could change the answer and is not looked at, a line each."""
    named = [f"{name}: {NOT_EVALUATED[name]}" for name in answer.explanation.not_evaluated]
    made = [] if answer.question.exists else [f"AdmissionPlugins: {NOT_EVALUATED['AdmissionPlugins']}"]
    return [*named, *made, *(one_line(line) for line in answer.missing)]


def summary(found: Explanation) -> str:
    """What is in the way, in one line: ``cause: spread (…)``; for a pod that no node admits."""
    nodes = found.otherwise.bit_count()
    if found.cause is Cause.CAPACITY and not found.otherwise & ~too_small(found.verdict):
        return f"cause: {found.cause} (no node that it may use has so much, even empty)"
    return f"cause: {found.cause} ({_CAUSES[found.cause].format(plural(nodes, 'node') if nodes else 'no node')})"


def in_the_way(balance: Balance, found: Explanation) -> str:
    """What a hard constraint waits for, in one line: ``zone[0]: zone c (1 node, cordoned) stays at 0``."""
    return one_line(f"{balance.name}: {standstill(balance, found.verdict)}{_instead(balance, found)}", 200)


def _instead(balance: Balance, found: Explanation) -> str:
    """The key that was probably meant, where no node has the constraint's own."""
    missing = not balance.domains.column.present
    meant = near(balance.domains.constraint.topology_key, found.verdict.nodes) if missing else None
    return f"; nodes have {one_line(meant, 64)}" if meant else ""


def _headline(answer: Answer, paint: Paint) -> Iterator[str]:
    found, title = answer.explanation, paint(answer.question.title, BOLD)
    if found.cause is None:
        feasible, nodes = found.verdict.feasible.bit_count(), plural(len(found.verdict.nodes), "node")
        yield f"{title}: {paint(f'{feasible:,} of {nodes} {_admit(feasible)} it', GREEN)}\n"
        return
    yield f"{title}: {paint('no node admits it', RED)}\n"
    if found.verdict.sentence:
        yield one_line(found.verdict.sentence, 4096) + "\n"
    yield paint(summary(found), RED) + "\n"
    if found.blocking is not None:
        yield in_the_way(found.blocking, found) + "\n"


def _constraint(balance: Balance, found: Explanation, question: Question, paint: Paint) -> Iterator[str]:
    parsed = balance.domains.constraint
    kind = "DoNotSchedule" if balance.hard else "ScheduleAnyway"
    where = "one of the cluster's defaults"
    if balance.index is not None:
        where = f"{question.path}spec.topologySpreadConstraints[{balance.index}]"
    name = paint(one_line(balance.name, 60), BOLD)
    yield f"{name}  {kind}, maxSkew {parsed.max_skew}  {paint(one_line(where), DIM)}\n"
    # The API server has merged matchLabelKeys into the selector, and the scheduler adds them once more.
    counted = ", ".join(dict.fromkeys(_requirement(each) for each in parsed.selector.requirements))
    yield f"  counts {one_line(counted, 70) or ('nothing: no selector' if parsed.selector.nothing else 'every pod')}\n"
    counts = balance.domains.counts
    if not counts:
        missing = not balance.domains.column.present
        told = (
            f"has the key {one_line(parsed.topology_key, 64)}{_instead(balance, found)}" if missing else "counts for it"
        )
        yield f"  no node {told}\n"
        return
    yield from _rule(balance, len(counts))
    yield from _domains(balance, found, paint)


def _requirement(requirement: Requirement) -> str:
    only = requirement.operator == IN and len(requirement.values) == 1
    return f"{requirement.key}={requirement.values[0]}" if only else requirement.text


def _rule(balance: Balance, domains: int) -> Iterator[str]:
    """The scheduler's formula with the numbers."""
    each = balance.domains
    least = f"minimum {each.global_minimum}"
    if balance.too_few:
        least = f"minimum 0 ({plural(domains, 'domain')}, minDomains {each.constraint.min_domains})"
    if not balance.hard:
        yield f"  it scores and keeps no node away; {least}\n"
        return
    own = " - 1 for this pod" if each.self_match else ", which does not count this pod"
    if each.limit < 0:
        yield f"  no domain admits the pod: {least} + maxSkew {each.constraint.max_skew}{own} is below 0\n"
    else:
        most = f"a domain with at most {each.limit} admits it" if each.limit else "only an empty domain admits it"
        yield f"  {most}: {least} + maxSkew {each.constraint.max_skew}{own}\n"


def _domains(balance: Balance, found: Explanation, paint: Paint) -> Iterator[str]:
    """A line for each domain, fewest pods first; where they are many, one for those that are alike."""
    counts = balance.domains.counts
    lowest = set(balance.lowest)
    alike: dict[tuple[int, bool, str], list[str]] = defaultdict(list)
    for value, pods in sorted(counts.items(), key=lambda entry: (entry[1], entry[0])):
        key = (pods, value in lowest, _why(balance, value, found))
        alike[key if len(counts) > _MOST_DOMAINS else (*key[:2], f"{key[2]}\0{value}")].append(value)
    lines = [(_named(values), pods, low, why.partition("\0")[0]) for (pods, low, why), values in alike.items()]
    width = max(len("DOMAIN"), *(len(line[0]) for line in lines[:_MOST_LINES]))
    yield paint(f"  {'DOMAIN':{width}}  PODS           ITS NODES", DIM) + "\n"
    for name, pods, low, why in lines[:_MOST_LINES]:
        holds = low and not (balance.too_few and pods)  # minDomains makes the minimum 0
        mark = "minimum" if holds else "too many" if _beyond(balance, pods) else ""
        color = (YELLOW,) if low and not balance.too_few else ()
        yield (
            f"  {name:{width}}  {pods:4,}  {paint(f'{mark:8}', *color) if color else f'{mark:8}'}  {why}".rstrip()
            + "\n"
        )
    if len(lines) > _MOST_LINES:
        yield f"  and {len(lines) - _MOST_LINES:,} more lines like these\n"


def _beyond(balance: Balance, pods: int) -> bool:
    """Whether the constraint itself keeps the pod out of a domain with so many."""
    return balance.hard and pods > balance.domains.limit


def _named(values: Sequence[str]) -> str:
    first = one_line(values[0], _NAME)
    return first if len(values) == 1 else f"{first} and {len(values) - 1:,} more"


def _admit(nodes: int) -> str:
    return "admits" if nodes == 1 else "admit"


def _why(balance: Balance, value: str, found: Explanation) -> str:
    """What its nodes say, in short."""
    nodes, within = balance.domains.column.with_value(value), not _beyond(balance, balance.domains.counts[value])
    rejected = rejections(found.verdict, nodes).items()
    parts = [f"{n:,} {one_line(in_short(status, within=within), 64)}" for status, n in rejected]
    admitting = (nodes & found.verdict.feasible).bit_count()
    return ", ".join([f"{admitting:,} {_admit(admitting)} it"] * bool(admitting) + parts)


def _nodes(found: Explanation, paint: Paint) -> Iterator[str]:
    """Nodes by the first filter that fails, each with some of their names."""
    verdict = found.verdict
    groups: list[tuple[Status | None, int]] = [(None, verdict.feasible)] if verdict.feasible else []
    for status in rejections(verdict, verdict.nodes.live):
        members = 0
        for each, nodes in verdict.failed:
            members |= nodes if each == status else 0
        groups.append((status, members))
    yield paint("NODES  FIRST FILTER THAT FAILS", DIM) + "\n"
    for first, members in groups[:_MOST_LINES]:
        text = f"none: {'this admits' if members.bit_count() == 1 else 'these admit'} it"
        if first is not None:
            text = f"{first.plugin}: {', '.join(one_line(reason) for reason in first.reasons)}".removeprefix(": ")
        lines = textwrap.wrap(text, WIDTH - 7)
        yield f"{members.bit_count():5,}  {lines[0]}\n"
        yield from (f"       {line}\n" for line in lines[1:])
        yield paint(f"       {_some(found, members)}", DIM) + "\n"
    if len(groups) > _MOST_LINES:
        yield f"       and {len(groups) - _MOST_LINES:,} more reasons\n"


def _some(found: Explanation, members: int, indent: int = 7) -> str:
    """As many names as a line holds."""
    total, shown, room = members.bit_count(), list[str](), WIDTH - indent - len(" and 99,999 more")
    for slot in bits.to_slots(members):
        name = one_line(found.verdict.nodes.names[slot], _NAME)
        room -= len(name) + 2
        if room < 0 and shown:
            break
        shown.append(name)
    return ", ".join(shown) + (f" and {total - len(shown):,} more" if total > len(shown) else "")


def _help(found: Explanation, paint: Paint) -> Iterator[str]:
    """What helps: changes of the pod, then of the cluster."""
    if found.fixes:
        yield f"{paint('fix', GREEN)}, smallest first; with each of them a node admits this pod:\n"
        lines = [(one_line(fix_text(fix, found.balances), 200), plural(fix.nodes, "node")) for fix in found.fixes]
        width = max(52, *(len(text) for text, _ in lines))
        yield from (f"  {text:{width}}  {nodes}\n" for text, nodes in lines)
    elif any(balance.hard for balance in found.balances):
        yield "no change of its spread constraints helps\n"
    for relief in found.reliefs:
        what = f"{_RELIEFS[relief.what]} {_some(found, relief.nodes, 30)}"
        yield f"  or {what}\n" if found.fixes else f"  {what} helps\n"


def _wrapped(text: str, paint: Paint, *codes: str) -> Iterator[str]:
    for line in textwrap.wrap(one_line(text, 4096), WIDTH, subsequent_indent="  "):
        yield paint(line, *codes) + "\n"
