"""What ``evenspread doctor`` prints."""

from collections.abc import Iterator, Sequence

from webhook.cli.commands.doctor.admission import Outcome
from webhook.cli.commands.doctor.diagnosis import Diagnosis, State
from webhook.cli.terminal import BLUE, BOLD, DIM, GREEN, RED, YELLOW, Paint

_COLORS = {State.OK: GREEN, State.NOTE: BLUE, State.PROBLEM: RED, State.UNKNOWN: YELLOW}


def render(diagnoses: Sequence[Diagnosis], outcome: Outcome, *, color: bool) -> Iterator[str]:
    """A line each; below it why, and the command that mends it. The last line says what becomes of writes."""
    paint = Paint(color=color)
    width = max(len(each.check) for each in diagnoses)
    for each in diagnoses:
        state = paint(f"{each.state:8}", _COLORS[each.state])
        yield f"{state} {paint(each.check.ljust(width), BOLD)}  {each.where}: {each.what}\n"
        if each.why:
            yield f"         {' ' * width}  {paint(each.why, DIM)}\n"
        for line in each.fix.splitlines():
            yield f"         {' ' * width}  {'' if line.startswith('#') else '$ '}{line}\n"
    counts = {state: sum(each.state is state for each in diagnoses) for state in State}
    yield f"\n{', '.join(f'{count} {state}' for state, count in counts.items() if count)}: {outcome}\n"
