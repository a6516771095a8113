"""The page of ``evenspread simulate``: the verdict first, what waits for what, how it came to it, and the domains.

Names from outside are bounded; tables fit 80 columns while names are of the usual length.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction

from webhook.answers.simulated import doubt, not_evaluated, outcome_text, verdict_text
from webhook.cli.terminal import BOLD, DIM, GREEN, RED, YELLOW, Paint, wrapped
from webhook.core.explain.cause_text import cause_summary, obstacle_text
from webhook.core.explain.explanation import Balance, Explanation
from webhook.core.placement.outcome import PlacementOutcome
from webhook.core.text import listed, one_line, plural, segment_of, together
from webhook.core.what_if.ending import Ending, PodMove
from webhook.core.what_if.joint_simulation import JointOutcome
from webhook.core.what_if.run import SimulationAnswer
from webhook.core.what_if.suggestions import SuggestedChange
from webhook.core.what_if.workloads import SimulatedWorkload

_MAX_WORKLOADS = 12  # named one by one
_MAX_MOVES = 12
_MAX_DOMAINS = 12  # drawn one by one; of more, those with the fewest pods
_WIDEST_BAR = 24
_MOST_NODES = 6
_SMALL = 20  # a probability with a denominator up to here is printed as a fraction
_NAME = 40  # characters of a name in a table
_COLORS = {
    PlacementOutcome.FITS: GREEN,
    PlacementOutcome.STUCK: YELLOW,
    PlacementOutcome.NO_FIT: RED,
    PlacementOutcome.UNKNOWN: YELLOW,
}


def render(answer: SimulationAnswer, *, color: bool) -> Iterator[str]:
    """The page, piece by piece."""
    paint, of = Paint(color=color), answer.outcomes
    if answer.event:
        yield paint(f"if {one_line(answer.event, 200)}:", BOLD) + "\n"
    yield from wrapped(verdict_text(of), paint, _COLORS[of.whole.outcome])
    for line in (doubt(of), _odds(of), _likely(answer), _scaled(answer)):
        if line:
            yield from wrapped(line, paint)
    for note in answer.notes:
        yield from wrapped(f"note: {note}", paint, YELLOW)
    if len(of.workloads) > 1:
        yield from _each(answer, paint)
    for end, found in answer.ends if len(answer.ends) == 1 and not of.alone else ():
        yield from ["\n"] * (len(of.workloads) > 1 and bool(end.waiting))
        yield from _ending(end, found, answer, paint)
    for line in _room(answer):
        yield "\n"
        yield from wrapped(f"or {line}", paint, GREEN)
    lines = not_evaluated(answer)
    if lines:
        yield "\n"
        yield from wrapped(f"not evaluated: {'; '.join(lines)}", paint, DIM)


def _room(answer: SimulationAnswer) -> Iterator[str]:
    """``add 2 empty nodes like worker-a1 in zone a``, and how many pods to preempt."""
    found = []
    for each in answer.added:
        where = [f"{segment_of(key)} {one_line(value, _NAME)}" for key, value in each.labels.items()]
        nodes = f"{plural(each.nodes, 'empty node')} like {one_line(each.like, _NAME)}"
        found.append(f"{nodes}{f' in {together(where)}' if where else ''}")
    if found:
        capacity = "; nodes can be added here, so that the cause is capacity" if answer.grows else ""
        yield f"add {together(found)}{capacity}"
    if answer.preempts is not None:
        yield f"preempt {plural(answer.preempts, 'pod')} of lower priority, which the scheduler does by itself"


def _each(answer: SimulationAnswer, paint: Paint) -> Iterator[str]:
    """The workloads that may not fit, each with its obstacle and first fix."""
    of = answer.outcomes
    ends = {end.workload.title: (end, found) for end, found in answer.ends}
    bad = [
        (workload, each)
        for workload, each in zip(of.workloads, of.each, strict=True)
        if each.outcome is not PlacementOutcome.FITS
    ]
    for workload, each in bad[:_MAX_WORKLOADS]:
        end, found = ends.get(workload.title, (None, ()))
        told_here = end is not None and (bool(of.alone) or len(ends) > 1)
        yield from ["\n"] * told_here
        indent = "" if told_here else "  "
        yield from wrapped(f"{workload.title} {outcome_text(each)}", paint, _COLORS[each.outcome], indent=indent)
        if end is not None and told_here:
            yield from (f"  {line}" for line in _waits(end, paint, grown=answer.grown))
            yield from wrapped(f"fix: {found[0].text}", paint, indent="  ") if found else ()
    if len(bad) > _MAX_WORKLOADS:
        yield f"\nand {plural(len(bad) - _MAX_WORKLOADS, 'more workload')}: -o json has all\n"
    if bad and len(bad) < len(of.workloads):
        rest = len(of.workloads) - len(bad)
        who = f"{plural(rest, 'workload')} fit" if rest > 1 else "one fits"
        yield f"\nthe other {who}{' alone' * bool(of.alone)}\n"


def _ending(end: Ending, found: Sequence[SuggestedChange], answer: SimulationAnswer, paint: Paint) -> Iterator[str]:
    """What waits, the way there, the domains, and the fixes."""
    yield from _waits(end, paint, grown=answer.grown)
    yield from _way(end, answer.outcomes, paint)
    for balance in end.after.balances:
        yield "\n"
        yield from _picture(balance, end, paint)
    yield from _help(found, end.workload, paint)


def _waits(end: Ending, paint: Paint, *, grown: bool) -> Iterator[str]:
    """What the first waiting pod waits for. If ``grown``, it waits until nodes are added."""
    if not end.waiting:
        return
    after = end.after
    if after.cause is None:
        nodes = listed([one_line(each, _NAME) for each in end.pinned], 3) or "no node"
        yield from wrapped(f"{end.waiting} waits: its volumes can be used on {nodes} only", paint)
        return
    summary = cause_summary(after)
    waits = summary.replace("cause: ", "cause today: ", 1) if grown else summary
    yield from wrapped(f"{end.waiting} waits, {waits}", paint, RED)
    if line := obstacle_text(after):
        yield from wrapped(line, paint)


def _way(end: Ending, of: JointOutcome, paint: Paint) -> Iterator[str]:
    """The moves to the end, unless every way is the same."""
    moves = end.moves
    if of.whole.outcome is PlacementOutcome.FITS or not moves or not end.waiting:
        return
    found = of.simulation
    shortest = found is not None and bool(found.witness) and not found.sampled
    if shortest and found is not None and end.workload.rollout is None:
        # Another order may end earlier where only a bound is known.
        shortest = len(found.witness) == found.fewest
    yield "\n" + paint("the shortest way there" if shortest else "one way there", DIM) + "\n"
    width = max(len(one_line(each.pod, _NAME)) for each in moves)
    hidden = max(0, len(moves) - _MAX_MOVES)
    if hidden:
        yield f"  first {plural(hidden, 'pod')} in order, then\n"
    for move in moves[hidden:]:
        yield f"  {_move(move, width, end.after)}\n"


def _move(move: PodMove, width: int, after: Explanation) -> str:
    where = one_line(move.node, _NAME)
    slot = after.problem.nodes.slots.get(move.node)
    labels = (after.problem.nodes.labels[slot] or {}) if slot is not None else {}
    keys = [each.domains.constraint.topology_key for each in after.balances]
    places = [
        f"{segment_of(key)} {one_line(labels[key], _NAME)}" for key in keys if labels.get(key, move.node) != move.node
    ]
    told = f" ({', '.join(places)})" if places else ""
    return f"{one_line(move.pod, _NAME):{width}}  {'deleted on' if move.gone else '->'} {where}{told}"


def _picture(balance: Balance, end: Ending, paint: Paint) -> Iterator[str]:
    """The domains of a constraint: pods before and after."""
    before = next((each for each in end.before.balances if each.index == balance.index), balance)
    counts, old = balance.domains.counts, before.domains.counts
    parsed = balance.domains.constraint
    kind = "DoNotSchedule" if balance.hard else "ScheduleAnyway"
    yield f"{paint(one_line(balance.name, 60), BOLD)}  {kind}, maxSkew {parsed.max_skew}\n"
    shown = sorted({*counts, *old})
    if len(shown) > _MAX_DOMAINS:
        shown.sort(key=lambda value: counts.get(value, 0))
    if not shown:
        yield f"  no node has the key {one_line(parsed.topology_key, 64)}\n"
        return
    width = max(len("DOMAIN"), *(len(one_line(value, _NAME)) for value in shown[:_MAX_DOMAINS]))
    scale = max(1, -(-max(counts.values(), default=1) // _WIDEST_BAR))
    one_of_many = "" if end.waiting else ", by one of the orders"
    yield paint(f"  {'DOMAIN':{width}}  PODS before -> after{one_of_many}", DIM) + "\n"
    for value in shown[:_MAX_DOMAINS]:
        low = end.waiting and balance.hard and value in balance.lowest and not balance.too_few
        row = _row(value, old.get(value), counts.get(value), width, scale)
        yield f"  {row}{paint('  minimum', YELLOW) if low else ''}".rstrip() + "\n"
    if len(shown) > _MAX_DOMAINS:
        rest = shown[_MAX_DOMAINS:]
        pods = sum(counts.get(value, 0) for value in rest)
        yield f"  and {plural(len(rest), 'more domain')} with {plural(pods, 'pod')}\n"


def _row(value: str, before: int | None, after: int | None, width: int, scale: int) -> str:
    """``b       2 -> 3  ##+``: a sign for each pod, or for so many. New pods are ``+``."""
    old, new = -(-min(before or 0, after or 0) // scale), -(-(after or 0) // scale)
    numbers = f"{'-' if before is None else before:>6} -> {'-' if after is None else after:<4}"
    return f"{one_line(value, _NAME):{width}} {numbers}  {'#' * old}{'+' * (new - old)}"


def _help(found: Sequence[SuggestedChange], workload: SimulatedWorkload, paint: Paint) -> Iterator[str]:
    if not found:
        return
    fit = "all its pods fit, in every order" if workload.wanted > 1 else "it fits"
    yield "\n"
    yield from wrapped(
        f"what would help {one_line(workload.title, 80)}, smallest first; with each of them {fit}:", paint, GREEN
    )
    for each in found:
        harms = f" (then {' and '.join(each.harms)})" if each.harms else ""
        yield from wrapped(f"{each.text}{harms}", paint, indent="  ")


def _odds(of: JointOutcome) -> str:
    """How often an order gets stuck. Empty if unknown or plain."""
    found = of.simulation
    if found is None or found.outcome is not PlacementOutcome.STUCK or found.stuck is None:
        return ""
    if found.sampled:
        return f"{round(found.stuck * found.sampled):,} of {found.sampled:,} single orders tried get stuck"
    exact = Fraction(found.stuck).limit_denominator(_SMALL)
    said = f"{exact.numerator:,} in {exact.denominator:,}" if abs(exact - found.stuck) < 1e-9 else ""
    share = said or f"{found.stuck * 100:.2g} %"
    return f"{share} of these orders get stuck, if every pod and every node is as likely as any other"


def _scaled(answer: SimulationAnswer) -> str:
    """What becomes of the autoscalers' maximum. Empty if none asks for more."""
    of, scaled = answer.outcomes, answer.scaled
    if scaled is None:
        return ""
    several = len(of.workloads) > 1
    whose = "each autoscaler's" if several else "the autoscaler's"
    subject = "they" if several else "it"
    return f"at {whose} maximum ({plural(scaled.wanted, 'pod')}) {subject} {outcome_text(scaled, several=several)}"


def _likely(answer: SimulationAnswer) -> str:
    """The most likely nodes by the scheduler's scores. Empty if no pod fits."""
    of, likely = answer.outcomes, answer.likely
    if likely is None or not likely.placed or of.whole.outcome is PlacementOutcome.NO_FIT:
        return ""
    nodes = Counter(each.node for each in likely.placed)
    shown = listed([f"{pods:,} on {one_line(node, 40)}" for node, pods in sorted(nodes.items())], _MOST_NODES)
    told = f"by its scores the scheduler would most likely put {shown}"
    if any(each.best > 1 for each in likely.placed):
        told += ", or nodes as good"
    return f"{told}; {likely.stuck:,} of {likely.runs:,} such runs get stuck" if likely.runs else told
