"""``-o text``: one block a finding, with the line that it is about, and a summary at the end."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from webhook.cli.formats.shape import MOST_CHARS, fix, message, object_name, plural
from webhook.cli.outcome import Outcome, Row
from webhook.core.rules.finding import Severity, one_line

_BOLD, _DIM, _RED, _YELLOW, _BLUE, _GREEN = "1", "2", "31", "33", "34", "32"
_COLORS = {Severity.HIGH: _RED, Severity.MEDIUM: _YELLOW, Severity.LOW: _BLUE}
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
    yield summary(outcome, paint)


def block(row: Row, paint: Paint) -> Iterator[str]:
    """One finding in full."""
    judged, place = row.judged, row.place
    head = f"{one_line(row.manifest.file)}:{place.line}:{place.column}:"
    severity = paint(row.severity, _COLORS[row.severity], _BOLD)
    yield f"{paint(head, _BOLD)} {severity} {paint(judged.finding.rule, _BOLD)}\n"
    source = f"  ({one_line(row.manifest.source)})" if row.manifest.source else ""
    yield f"  {object_name(row)}{paint(source, _DIM)}  {paint(one_line(judged.finding.path), _DIM)}\n"
    yield from _quote(row, paint)
    yield f"  {message(row)}\n"
    detail = one_line(judged.finding.detail, MOST_CHARS)
    if detail not in message(row):
        yield f"  {paint(detail, _DIM)}\n"
    if fix(row):
        yield f"  {paint('fix:', _GREEN)} {fix(row)}\n"
    yield "\n"


def waived(row: Row, paint: Paint) -> Iterator[str]:
    """One finding that the policy exempts."""
    place = f"{one_line(row.manifest.file)}:{row.place.line}:{row.place.column}:"
    yield paint(f"{place} {row.judged.finding.rule} {object_name(row)}: {one_line(row.judged.waived)}", _DIM) + "\n\n"


def _quote(row: Row, paint: Paint) -> Iterator[str]:
    """The line of the manifest and a caret under the field; nothing for a line that is all of the document."""
    place = row.place
    text, caret, width = place.text, place.caret, place.width
    if len(text) > _MOST_QUOTED:
        start = max(min(caret - 20, len(text) - _MOST_QUOTED), 0)
        text, caret = text[start : start + _MOST_QUOTED], caret - start
        width = min(width, _MOST_QUOTED - caret)
    text = one_line(text.replace("\t", " "), _MOST_QUOTED)
    gutter = f"{place.line:5} |"
    yield f"{paint(gutter, _DIM)} {text}\n"
    yield f"{paint(' ' * 6 + '|', _DIM)} {' ' * caret}{paint('^' + '~' * (width - 1), _COLORS[row.severity])}\n"


def summary(outcome: Outcome, paint: Paint) -> str:
    """What was looked at, what was found, what was not looked at; always the last lines."""
    counted = [row for row in outcome.rows if not row.waived]
    severities = Counter(row.severity for row in counted)
    looked = (
        f"{plural(outcome.files, 'file')}, {plural(outcome.objects, 'object')}, {plural(outcome.workloads, 'workload')}"
    )
    if counted:
        parts = ", ".join(f"{severities[each]} {each}" for each in reversed(Severity) if severities[each])
        found = paint(f"{plural(len(counted), 'finding')} ({parts})", _RED if severities[Severity.HIGH] else _YELLOW)
    else:
        found = paint("no findings", _GREEN)
    exempted = len(outcome.rows) - len(counted)
    lines = [f"{looked}: {found}" + (f", {exempted} exempted" if exempted else "")]
    lines += [paint(line, _DIM) for line in not_evaluated(outcome)]
    if unread := sum(fault.fatal for fault in outcome.faults):
        lines.append(paint(f"{plural(unread, 'fault')} in the input: see above; this answer has holes", _RED))
    return "\n".join(lines) + "\n"


def not_evaluated(outcome: Outcome) -> Iterator[str]:
    """One line a missing fact: how many rules lacked it, and which."""
    rules: dict[str, set[str]] = defaultdict(set)
    for gap in outcome.gaps:
        rules[gap.missing].add(gap.rule)
    for missing, names in sorted(rules.items(), key=lambda entry: (-len(entry[1]), entry[0])):
        shown = ", ".join(sorted(names)[:_MOST_NAMED]) + (", …" if len(names) > _MOST_NAMED else "")
        yield f"{plural(len(names), 'rule')} not evaluated: {one_line(missing)} ({shown})"
