"""The text page of ``evenspread simulate``.

Sections: verdict, pending pods, an order of placement with these pods pending, domains, fixes.

Names are shortened. With names of usual length, tables fit 80 columns.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction

from webhook.answers.simulated import doubt, not_evaluated, placed_pods_text, verdict_text
from webhook.cli.commands.simulate.scale_in_page import scale_in_section
from webhook.cli.output.page import BOLD, DIM, GREEN, RED, YELLOW, paint, wrapped
from webhook.core.explain.cause_text import cause_summary, obstacle_text
from webhook.core.explain.explanation import Balance, Explanation
from webhook.core.placement.placement_verdict import PlacementVerdict
from webhook.core.text import listed, one_line, plural, segment_of, together
from webhook.core.what_if.ending import Ending, PodMove
from webhook.core.what_if.joint_simulation import JointVerdict
from webhook.core.what_if.run import SimulationAnswer
from webhook.core.what_if.suggestions import SuggestedChange
from webhook.core.what_if.workloads import SimulatedWorkload

# Lines of each list. With all of them, the page still fits two screens.
_MAX_WORKLOADS = 12
_MAX_MOVES = 12
_MAX_DOMAINS = 12  # those with the fewest pods
_MAX_BAR = 24  # columns
_MAX_NODES = 6
_MAX_DENOMINATOR = 20  # of a probability printed as a fraction
_ROUNDING = 1e-9  # of a probability
_NAME = 40  # characters of a name in a table
_COLORS = {
    PlacementVerdict.FITS: GREEN,
    PlacementVerdict.STUCK: YELLOW,
    PlacementVerdict.NO_FIT: RED,
    PlacementVerdict.UNKNOWN: YELLOW,
}


def render(answer: SimulationAnswer) -> Iterator[str]:
    """Yield the text of a simulation's result page, piece by piece."""
    joint = answer.joint
    if answer.event:
        yield paint(f"if {one_line(answer.event, 200)}:", BOLD) + "\n"
    yield from wrapped(verdict_text(joint), _COLORS[joint.whole.verdict])
    for line in (doubt(joint), _odds(joint), _likely(answer), _scaled(answer)):
        if line:
            yield from wrapped(line)
    for note in answer.notes:
        yield from wrapped(f"note: {note}", YELLOW)
    for scale_in in answer.scale_ins:
        yield from scale_in_section(scale_in)
    if len(joint.workloads) > 1:
        yield from _workloads(answer)
    for end, changes in answer.ends if len(answer.ends) == 1 and not joint.alone else ():
        yield from ["\n"] * (len(joint.workloads) > 1 and bool(end.waiting))
        yield from _ending(end, changes, answer)
    for line in _room(answer):
        yield "\n"
        yield from wrapped(f"or {line}", GREEN)
    lines = not_evaluated(answer)
    if lines:
        yield "\n"
        yield from wrapped(f"not evaluated: {'; '.join(lines)}", DIM)


def _room(answer: SimulationAnswer) -> Iterator[str]:
    """Yield the nodes to add, as in ``add 2 empty nodes like worker-a1 in zone a``, and the pods to preempt."""
    texts = []
    for added in answer.added:
        where = [f"{segment_of(key)} {one_line(value, _NAME)}" for key, value in added.labels.items()]
        nodes = f"{plural(added.nodes, 'empty node')} like {one_line(added.like, _NAME)}"
        texts.append(f"{nodes}{f' in {together(where)}' if where else ''}")
    if texts:
        capacity = " (this cluster can add nodes, so the pods wait for capacity only)" if answer.grows else ""
        yield f"add {together(texts)}{capacity}"
    if answer.preempts is not None:
        yield f"preempt {plural(answer.preempts, 'pod')} of lower priority (the scheduler does this itself)"


def _workloads(answer: SimulationAnswer) -> Iterator[str]:
    """Yield each workload that may not fit, with its obstacle and first fix."""
    joint = answer.joint
    ends = {end.workload.title: (end, changes) for end, changes in answer.ends}
    bad = [
        (workload, placed)
        for workload, placed in zip(joint.workloads, joint.each, strict=True)
        if placed.verdict is not PlacementVerdict.FITS
    ]
    for workload, placed in bad[:_MAX_WORKLOADS]:
        end, changes = ends.get(workload.title, (None, ()))
        has_details = end is not None and (bool(joint.alone) or len(ends) > 1)
        yield from ["\n"] * has_details
        indent = "" if has_details else "  "
        yield from wrapped(f"{workload.title} {placed_pods_text(placed)}", _COLORS[placed.verdict], indent=indent)
        if end is not None and has_details:
            yield from (f"  {line}" for line in _obstacle(end, grown=answer.grown))
            yield from wrapped(f"fix: {changes[0].text}", indent="  ") if changes else ()
    if len(bad) > _MAX_WORKLOADS:
        yield f"\nand {plural(len(bad) - _MAX_WORKLOADS, 'more workload')} (-o json lists all)\n"
    if bad and len(bad) < len(joint.workloads):
        rest = len(joint.workloads) - len(bad)
        others = f"{plural(rest, 'workload')} fit" if rest > 1 else "one fits"
        yield f"\nthe other {others}{' alone' * bool(joint.alone)}\n"


def _ending(end: Ending, changes: Sequence[SuggestedChange], answer: SimulationAnswer) -> Iterator[str]:
    """Yield the lines about a final placement: the obstacle, the moves, the domains and the fixes."""
    yield from _obstacle(end, grown=answer.grown)
    yield from _moves(end, answer.joint)
    for balance in end.after.balances:
        yield "\n"
        yield from _picture(balance, end)
    yield from _fixes(changes, end.workload)


def _obstacle(end: Ending, *, grown: bool) -> Iterator[str]:
    """Yield why the first pending pod does not fit. With ``grown``, new nodes may change it: ``cause today``."""
    if not end.waiting:
        return
    after = end.after
    if after.cause is None:
        nodes = listed([one_line(node, _NAME) for node in end.pinned], 3)
        yield from wrapped(f"{end.waiting} waits: {f'only {nodes}' if nodes else 'no node'} can use its volumes")
        return
    summary = cause_summary(after)
    cause = summary.replace("cause: ", "cause today: ", 1) if grown else summary
    yield from wrapped(f"{end.waiting} waits, {cause}", RED)
    if line := obstacle_text(after):
        yield from wrapped(line)


def _moves(end: Ending, joint: JointVerdict) -> Iterator[str]:
    """Yield lines with one placement order that leads to this result. Nothing if every order places all pods."""
    moves = end.moves
    if joint.whole.verdict is PlacementVerdict.FITS or not moves or not end.waiting:
        return
    simulation = joint.simulation
    shortest = simulation is not None and bool(simulation.witness) and not simulation.sampled
    if shortest and simulation is not None and end.workload.rollout is None:
        # With only a bound known, another order may be shorter.
        shortest = len(simulation.witness) == simulation.fewest
    sequence = "the shortest sequence" if shortest else "one sequence"
    yield "\n" + paint(f"{sequence} to this result", DIM) + "\n"
    width = max(len(one_line(move.pod, _NAME)) for move in moves)
    hidden = max(0, len(moves) - _MAX_MOVES)
    if hidden:
        yield f"  after {plural(hidden, 'other pod')}:\n"
    for move in moves[hidden:]:
        yield f"  {_move(move, width, end.after)}\n"


def _move(move: PodMove, width: int, after: Explanation) -> str:
    where = one_line(move.node, _NAME)
    slot = after.problem.nodes.slots.get(move.node)
    labels = (after.problem.nodes.labels[slot] or {}) if slot is not None else {}
    keys = [balance.domains.constraint.topology_key for balance in after.balances]
    domains = [
        f"{segment_of(key)} {one_line(labels[key], _NAME)}" for key in keys if labels.get(key, move.node) != move.node
    ]
    suffix = f" ({', '.join(domains)})" if domains else ""
    return f"{one_line(move.pod, _NAME):{width}}  {'deleted on' if move.gone else '->'} {where}{suffix}"


def _picture(balance: Balance, end: Ending) -> Iterator[str]:
    """Yield a table of a constraint's domains, with their pods before and after the simulation."""
    before = next((earlier for earlier in end.before.balances if earlier.index == balance.index), balance)
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
    scale = max(1, -(-max(counts.values(), default=1) // _MAX_BAR))
    one_of_many = "" if end.waiting else ", in one order"
    yield paint(f"  {'DOMAIN':{width}}  PODS before -> after{one_of_many}", DIM) + "\n"
    for value in shown[:_MAX_DOMAINS]:
        low = end.waiting and balance.hard and value in balance.lowest and not balance.domains.too_few
        row = _row(value, old.get(value), counts.get(value), width, scale)
        yield f"  {row}{paint('  minimum', YELLOW) if low else ''}".rstrip() + "\n"
    if len(shown) > _MAX_DOMAINS:
        rest = shown[_MAX_DOMAINS:]
        pods = sum(counts.get(value, 0) for value in rest)
        yield f"  and {plural(len(rest), 'more domain')} with {plural(pods, 'pod')} in total\n"


def _row(value: str, before: int | None, after: int | None, width: int, scale: int) -> str:
    """A line like ``b       2 -> 3  ##+``. Each sign is ``scale`` pods, and ``+`` marks new pods."""
    old, new = -(-min(before or 0, after or 0) // scale), -(-(after or 0) // scale)
    numbers = f"{'-' if before is None else before:>6} -> {'-' if after is None else after:<4}"
    return f"{one_line(value, _NAME):{width}} {numbers}  {'#' * old}{'+' * (new - old)}"


def _fixes(changes: Sequence[SuggestedChange], workload: SimulatedWorkload) -> Iterator[str]:
    if not changes:
        return
    fit = "all its pods fit in every order" if workload.wanted > 1 else "it fits"
    yield "\n"
    yield from wrapped(f"fixes for {one_line(workload.title, 80)}, smallest first; with each of them, {fit}:", GREEN)
    for change in changes:
        harms = f" (then {' and '.join(change.harms)})" if change.harms else ""
        yield from wrapped(f"{change.text}{harms}", indent="  ")


def _odds(joint: JointVerdict) -> str:
    """Return the share of orders that leave a pod without a node. Empty if it is unknown, none or all."""
    simulation = joint.simulation
    if simulation is None or simulation.verdict is not PlacementVerdict.STUCK or simulation.stuck is None:
        return ""
    if simulation.sampled:
        stuck = round(simulation.stuck * simulation.sampled)
        return f"{stuck:,} of {simulation.sampled:,} tried orders get stuck"
    exact = Fraction(simulation.stuck).limit_denominator(_MAX_DENOMINATOR)
    is_exact = abs(exact - simulation.stuck) < _ROUNDING
    share = f"{exact.numerator:,} in {exact.denominator:,}" if is_exact else f"{simulation.stuck * 100:.2g} %"
    return f"{share} of the placement orders get stuck, with pods and nodes chosen at random"


def _scaled(answer: SimulationAnswer) -> str:
    """Return a sentence about the autoscalers' maximum. Empty if no maximum exceeds the wanted pods."""
    scaled = answer.scaled
    if scaled is None:
        return ""
    several = len(answer.joint.workloads) > 1
    whose = "each autoscaler's" if several else "the autoscaler's"
    subject = "they" if several else "it"
    return f"at {whose} maximum ({plural(scaled.wanted, 'pod')}) {subject} {placed_pods_text(scaled, several=several)}"


def _likely(answer: SimulationAnswer) -> str:
    """The most likely nodes by the scheduler's scores. Empty if no pod fits."""
    likely = answer.likely
    if likely is None or not likely.placed or answer.joint.whole.verdict is PlacementVerdict.NO_FIT:
        return ""
    nodes = Counter(placed.node for placed in likely.placed)
    shown = listed([f"{pods:,} on {one_line(node, _NAME)}" for node, pods in sorted(nodes.items())], _MAX_NODES)
    text = f"by its scores, the scheduler most likely places {shown}"
    if any(placed.best > 1 for placed in likely.placed):
        text += " (other nodes tie)"
    return f"{text}; {likely.stuck:,} of {likely.runs:,} simulated runs get stuck" if likely.runs else text
