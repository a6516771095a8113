"""``-o text``: one block a finding, with the line that it is about, and a summary at the end."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from webhook.cli.formats.shape import MOST_CHARS, fix, message, plural
from webhook.cli.manifests import Place
from webhook.cli.outcome import Note, Outcome, Row
from webhook.core.rules.finding import NO_CLUSTER, Severity, one_line

BOLD, DIM, RED, YELLOW, BLUE, GREEN = "1", "2", "31", "33", "34", "32"
COLORS = {Severity.HIGH: RED, Severity.MEDIUM: YELLOW, Severity.LOW: BLUE}
_MOST_QUOTED = 100  # characters of a line; beyond, it is cut around the field
_MOST_NAMED = 6


class Paint:
    """Terminal colours, or none."""

    def __init__(self, *, color: bool) -> None:
        self._color = color

    def __call__(self, text: str, *codes: str) -> str:
        """The text in colours, where they are allowed."""
        return f"\033[{';'.join(codes)}m{text}\033[0m" if self._color and text else text


def render(outcome: Outcome, *, color: bool) -> Iterator[str]:
    """Blocks in the order of the input, exempted findings as one line each, then the summary."""
    paint = Paint(color=color)
    for row in outcome.rows:
        yield from waived(row, paint) if row.waived else block(row, paint)
    for note in outcome.notes:
        yield from _note(note, paint)
    yield summary(outcome, paint)


def block(row: Row, paint: Paint) -> Iterator[str]:
    """One finding in full."""
    judged, place = row.judged, row.place
    head = f"{one_line(row.manifest.file)}:{place.line}:{place.column}:"
    severity = paint(row.severity, COLORS[row.severity], BOLD)
    yield f"{paint(head, BOLD)} {severity} {paint(judged.finding.rule, BOLD)}\n"
    source = f"  ({one_line(row.manifest.source)})" if row.manifest.source else ""
    yield f"  {row.manifest.title}{paint(source, DIM)}  {paint(one_line(judged.finding.path), DIM)}\n"
    yield from _quote(place, paint, COLORS[row.severity])
    yield f"  {message(row)}\n"
    if fix(row):
        yield f"  {paint('fix:', GREEN)} {fix(row)}\n"
    yield "\n"


def waived(row: Row, paint: Paint) -> Iterator[str]:
    """One finding that the policy exempts."""
    place = f"{one_line(row.manifest.file)}:{row.place.line}:{row.place.column}:"
    yield paint(f"{place} {row.judged.finding.rule} {row.manifest.title}: {one_line(row.judged.waived)}", DIM) + "\n\n"


def _note(note: Note, paint: Paint) -> Iterator[str]:
    head = f"{one_line(note.manifest.file)}:{note.place.line}:{note.place.column}:"
    yield f"{paint(head, BOLD)} {paint('warning', YELLOW, BOLD)} {paint('kube-apiserver', BOLD)}\n"
    yield f"  {note.manifest.title}\n"
    yield from _quote(note.place, paint, YELLOW)
    yield f"  {one_line(note.text, MOST_CHARS)}: kube-apiserver drops it, kubectl refuses it\n"
    if note.fix:
        yield f"  {paint('fix:', GREEN)} {note.fix}\n"
    yield "\n"


def _quote(place: Place, paint: Paint, code: str) -> Iterator[str]:
    """The line of the manifest and a caret under the field."""
    text, caret, width = place.text, place.caret, place.width
    if len(text) > _MOST_QUOTED:
        start = max(min(caret - 20, len(text) - _MOST_QUOTED), 0)
        text, caret = text[start : start + _MOST_QUOTED], caret - start
        width = min(width, _MOST_QUOTED - caret)
    text = one_line(text.replace("\t", " "), _MOST_QUOTED)
    gutter = f"{place.line:5} |"
    yield f"{paint(gutter, DIM)} {text}\n"
    yield f"{paint(' ' * 6 + '|', DIM)} {' ' * caret}{paint('^' + '~' * (width - 1), code)}\n"


def summary(outcome: Outcome, paint: Paint) -> str:
    """What was looked at, what was found, what was not looked at; always the last lines."""
    counted = [row for row in outcome.rows if not row.waived]
    severities = Counter(row.severity for row in counted)
    looked = (
        f"{plural(outcome.files, 'file')}, {plural(outcome.objects, 'object')}, {plural(outcome.workloads, 'workload')}"
    )
    if not outcome.objects:
        found = paint("nothing was checked", RED)
    elif counted:
        parts = ", ".join(f"{severities[each]} {each}" for each in reversed(Severity) if severities[each])
        found = paint(f"{plural(len(counted), 'finding')} ({parts})", RED if severities[Severity.HIGH] else YELLOW)
    else:
        found = paint("no findings", GREEN)
    exempted = len(outcome.rows) - len(counted)
    more = f", {plural(len(outcome.notes), 'unknown field')}" if outcome.notes else ""
    lines = [f"{looked}: {found}{more}" + (f", {exempted} exempted" if exempted else "")]
    lines += [paint(line, DIM) for line in not_evaluated(outcome)]
    if unread := sum(fault.fatal for fault in outcome.faults):
        lines.append(paint(f"{plural(unread, 'fault')} in the input: see above; this answer has holes", RED))
    return "\n".join(lines) + "\n"


def not_evaluated(outcome: Outcome) -> Iterator[str]:
    """One line a missing fact: how many rules lacked it, and which."""
    rules: dict[str, set[str]] = defaultdict(set)
    for gap in outcome.gaps:
        rules[gap.missing].add(gap.rule)
    for missing, names in sorted(rules.items(), key=lambda entry: (-len(entry[1]), entry[0])):
        shown = ", ".join(sorted(names)[:_MOST_NAMED]) + (", …" if len(names) > _MOST_NAMED else "")
        told = f"{missing}, see --cluster and --snapshot" if missing == NO_CLUSTER else one_line(missing)
        yield f"{plural(len(names), 'rule')} not evaluated: {told} ({shown})"
