"""The part of the text page of ``evenspread simulate`` about a scale-in."""

from collections.abc import Iterator

from webhook.cli.output.page import BOLD, DIM, GREEN, RED, YELLOW, paint, wrapped
from webhook.core.api.well_known import SCALE_IN_ANNOTATION
from webhook.core.explain.explanation import Balance
from webhook.core.pods_to_remove.scale_in import Distribution, ScaleIn
from webhook.core.text import agree, one_line, plural, together
from webhook.core.what_if.scale_in import WorkloadScaleIn

_MOST_DOMAINS = 6  # With more, a line has the extremes only.
_NAME = 40  # characters of a domain
_HELP = (
    "if another order keeps maxSkew, evenspread can choose it: set the annotation "
    f"{SCALE_IN_ANNOTATION}: guard on the workload, and controller.scaleIn.guard in the chart"
)


def scale_in_section(scale_in: WorkloadScaleIn) -> Iterator[str]:
    """Yield the distributions of each constraint: today's, then those after the scale-in."""
    if scale_in.unknown:
        return
    yield "\n"
    title = f"scale-in of {one_line(scale_in.title, 80)} from {scale_in.pods:,} to {plural(scale_in.replicas, 'pod')}"
    yield from wrapped(title, BOLD)
    if not scale_in.constraints:
        yield "  its pods have no spread constraints\n"
    for balance, bounds in scale_in.constraints:
        yield from _constraint(balance, bounds, scale_in)
    if scale_in.guardable and any(_can_exceed(balance, bounds) for balance, bounds in scale_in.constraints):
        yield from wrapped(_HELP, GREEN)


def _constraint(balance: Balance, bounds: ScaleIn, scale_in: WorkloadScaleIn) -> Iterator[str]:
    most = balance.domains.constraint.max_skew
    yield paint(f"{balance.name}  {balance.written.when_unsatisfiable}, maxSkew {most}", DIM) + "\n"
    color = RED if _can_exceed(balance, bounds) else YELLOW if bounds.emptied else GREEN
    for name, distribution in (("today", bounds.today), ("best", bounds.best), ("likely", bounds.likely)):
        yield from wrapped(f"{name:6}  {_text(distribution)}", indent="  ")
    yield from wrapped(f"{'worst':6}  {_text(bounds.worst)}", color, indent="  ")
    if bounds.stop is not None and scale_in.pods - scale_in.replicas > 1:
        at = f"at most, with {plural(bounds.stop.replicas, 'pod')}, if the scale-in can stop anywhere"
        yield from wrapped(f"{'range':6}  skew {bounds.stop.skew:,}  {at}", color, indent="  ")
    for line in _consequences(bounds, most, scale_in.pods - scale_in.replicas):
        yield from wrapped(line, indent="  ")


def _can_exceed(balance: Balance, bounds: ScaleIn) -> bool:
    worst = max(bounds.worst.skew or 0, bounds.stop.skew if bounds.stop is not None else 0)
    return worst > balance.domains.constraint.max_skew


def _text(distribution: Distribution) -> str:
    counts, skew = distribution.counts, distribution.skew
    if skew is None:
        return "no eligible domain"
    text = ", ".join(f"{one_line(value, _NAME)} {pods:,}" for value, pods in counts.items())
    if len(counts) > _MOST_DOMAINS:
        pods = [*counts.values()]
        empty = f", {pods.count(0):,} of them empty" if 0 in pods else ""
        text = f"{min(pods):,} to {max(pods):,} pods in {len(pods):,} domains{empty}"
    return f"skew {skew:,}  {text}"


def _consequences(bounds: ScaleIn, max_skew: int, removed: int) -> Iterator[str]:
    worst, best = bounds.worst.skew or 0, bounds.best.skew or 0
    if bounds.emptied and len(bounds.worst.counts) <= _MOST_DOMAINS:
        yield f"the worst case leaves no pod in {together(one_line(name, _NAME) for name in bounds.emptied)}"
    if worst <= max_skew:
        end = "" if bounds.stop is None or bounds.stop.skew <= max_skew else " at the end, but may exceed it before"
        yield f"the controller keeps maxSkew {max_skew} in every order{end}"
        return
    if best > max_skew:
        yield f"the controller exceeds maxSkew {max_skew} in every order"
    if bounds.repair is None:
        yield "new pods do not repair the worst case, because the global minimum stays"
    elif bounds.repair > removed:
        yield f"scaling out by {plural(removed, 'pod')} does not repair the worst case, which needs {bounds.repair:,}"
    else:
        repairs = f"{agree(bounds.repair, 'repair')} the worst case"
        yield f"{plural(bounds.repair, 'new pod')} {repairs}, if each gets a node in the domain with the fewest pods"
