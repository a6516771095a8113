"""The text page of ``evenspread doctor``."""

from collections.abc import Iterator, Sequence

from webhook.cli.color import BLUE, BOLD, DIM, GREEN, RED, YELLOW, Paint
from webhook.cli.commands.doctor.admission import WriteOutcome
from webhook.cli.commands.doctor.diagnosis import Diagnosis, DiagnosisState

_COLORS = {
    DiagnosisState.OK: GREEN,
    DiagnosisState.NOTE: BLUE,
    DiagnosisState.PROBLEM: RED,
    DiagnosisState.UNKNOWN: YELLOW,
}


def render(diagnoses: Sequence[Diagnosis], write_outcome: WriteOutcome, *, color: bool) -> Iterator[str]:
    """Render each diagnosis with its reason and commands. The last line has the totals and the treatment of writes."""
    paint = Paint(color=color)
    width = max(len(diagnosis.check) for diagnosis in diagnoses)
    for diagnosis in diagnoses:
        state = paint(f"{diagnosis.state:8}", _COLORS[diagnosis.state])
        yield f"{state} {paint(diagnosis.check.ljust(width), BOLD)}  {diagnosis.where}: {diagnosis.what}\n"
        if diagnosis.why:
            yield f"         {' ' * width}  {paint(diagnosis.why, DIM)}\n"
        for line in diagnosis.fix.splitlines():
            yield f"         {' ' * width}  {'' if line.startswith('#') else '$ '}{line}\n"
    counts = {state: sum(diagnosis.state is state for diagnosis in diagnoses) for state in DiagnosisState}
    yield f"\n{', '.join(f'{count} {state}' for state, count in counts.items() if count)}: {write_outcome}\n"
