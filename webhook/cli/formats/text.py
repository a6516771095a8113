"""``-o text``: a block for each finding with its line of the manifest, and a summary."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from webhook.cli.checking.finding_text import consequence, fix, message
from webhook.cli.checking.levels import hidden_lines
from webhook.cli.checking.results import Row, RunResult
from webhook.cli.output.page import BLUE, BOLD, DIM, GREEN, RED, YELLOW, paint
from webhook.core.budget import Missing
from webhook.core.rules.frame.rule import Severity
from webhook.core.text import one_line, plural
from webhook.manifests.reading.manifest import FieldPosition

COLORS = {Severity.HIGH: RED, Severity.MEDIUM: YELLOW, Severity.LOW: BLUE}
_MAX_QUOTED_CHARS = 100  # of a line; longer lines are cut around the field
_CONTEXT_CHARS = 20  # of a cut line, before the field
_ON_A_SCREEN = 5  # findings of seven lines each


def render(result: RunResult, *, verbose: bool = False) -> Iterator[str]:
    """Render the findings in input order, then the summary. An exempted finding gets a single line."""
    for row in result.rows:
        yield from waived(row) if row.waived else block(row)
    yield run_summary(result, verbose=verbose)


def block(row: Row) -> Iterator[str]:
    """Render a finding in full."""
    judged, place = row.judged, row.place
    head = f"{one_line(row.manifest.file)}:{place.line}:{place.column}:"
    severity = paint(row.severity, COLORS[row.severity], BOLD)
    suffix = f" ({consequence(row)})"
    yield f"{paint(head, BOLD)} {severity} {paint(judged.finding.rule, BOLD)}{paint(suffix, DIM)}\n"
    source = f"  ({one_line(row.manifest.source)})" if row.manifest.source else ""
    yield f"  {row.manifest.title}{paint(source, DIM)}  {paint(one_line(judged.finding.path), DIM)}\n"
    yield from _quote(place, COLORS[row.severity])
    yield f"  {message(row)}\n"
    if fix(row):
        yield f"  {paint('fix:', GREEN)} {fix(row)}\n"
    yield f"  {paint(f'see: {row.url}', DIM)}\n\n"


def waived(row: Row) -> Iterator[str]:
    """Render an exempted finding."""
    place = f"{one_line(row.manifest.file)}:{row.place.line}:{row.place.column}:"
    yield paint(f"{place} {row.judged.finding.rule} {row.manifest.title}: {one_line(row.judged.waived)}", DIM) + "\n\n"


def _quote(place: FieldPosition, code: str) -> Iterator[str]:
    """Yield the line of the manifest, with a caret under the field."""
    text, caret, width = place.text, place.caret, place.width
    if len(text) > _MAX_QUOTED_CHARS:
        start = max(min(caret - _CONTEXT_CHARS, len(text) - _MAX_QUOTED_CHARS), 0)
        text, caret = text[start : start + _MAX_QUOTED_CHARS], caret - start
        width = min(width, _MAX_QUOTED_CHARS - caret)
    text = one_line(text.replace("\t", " "), _MAX_QUOTED_CHARS)
    gutter = f"{place.line:5} |"
    yield f"{paint(gutter, DIM)} {text}\n"
    yield f"{paint(' ' * 6 + '|', DIM)} {' ' * caret}{paint('^' + '~' * (width - 1), code)}\n"


def run_summary(result: RunResult, *, verbose: bool = False) -> str:
    """The last lines: totals, findings, and rules that were not evaluated."""
    counted = [row for row in result.rows if not row.waived]
    severities = Counter(row.severity for row in counted)
    totals = (
        f"{plural(result.files, 'file')}, {plural(result.objects, 'object')}, {plural(result.workloads, 'workload')}"
    )
    if counted:  # even without objects: values of a chart can have findings
        parts = ", ".join(
            f"{severities[severity]} {severity}" for severity in reversed(Severity) if severities[severity]
        )
        findings = paint(f"{plural(len(counted), 'finding')} ({parts})", RED if severities[Severity.HIGH] else YELLOW)
    elif not result.objects:
        findings = paint("nothing to check", YELLOW)
    else:
        findings = paint("no findings", GREEN)
    exempted = len(result.rows) - len(counted)
    lines = [f"{totals}: {findings}" + (f", {exempted} exempted" if exempted else "")]
    lines += hidden_lines(result)
    lines += [paint(line, DIM) for line in gap_lines(result, verbose=verbose)]
    if incomplete := unread(result):
        lines.append(paint(incomplete, RED))
    if len(counted) > _ON_A_SCREEN:
        lines.append(_first_step(counted))
    return "\n".join(lines) + "\n"


def _first_step(findings: Sequence[Row]) -> str:
    """What to do first with more findings than a screen: the most frequent rule of the highest severity."""
    worst = min((row.severity for row in findings), key=lambda severity: severity.rank)
    rules = Counter(row.judged.finding.rule for row in findings if row.severity is worst)
    [(rule, count)] = rules.most_common(1)
    named = f"--rule {rule} ({plural(count, 'finding')})"
    return f"start with {named}; --fix prints fixes, --write-baseline FILE accepts findings"


def unread(result: RunResult) -> str:
    """The warning about unreadable input. Empty if all input was read."""
    faults = sum(fault.fatal for fault in result.faults)
    return f"results are incomplete: {plural(faults, 'error')} in the input, see above" if faults else ""


def gap_lines(result: RunResult, *, verbose: bool) -> Iterator[str]:
    """Yield one line with the number of skipped rules and the missing facts.

    With ``verbose``, yield a line for each missing fact, with the names of its skipped rules.
    """
    rules: dict[str, set[str]] = defaultdict(set)
    for gap in result.gaps:
        rules[gap.not_evaluated].add(gap.rule)
    facts = sorted(rules.items(), key=lambda entry: (entry[0] != Missing.NO_CLUSTER.value, entry[0]))
    if verbose:
        for missing, names in facts:
            yield f"not evaluated, {_lacking(missing)}: {', '.join(sorted(names))}"
        return
    counted, parts, others = set[str](), list[str](), 0
    for missing, names in facts:
        more = len(names - counted)
        counted |= names
        if missing in _IN_SHORT and more:
            parts.append(f"{more} {_lacking(missing)}")
        else:
            others += more
    if others:
        parts.append(f"{others} for other reasons")
    if len(parts) == 1:
        parts = [parts[0].partition(" ")[2]]  # the total is stated already
    if parts:
        pronoun = "it" if len(counted) == 1 else "them"
        yield f"{plural(len(counted), 'rule')} not evaluated: {', '.join(parts)}; -v lists {pronoun}"


def _lacking(missing: str) -> str:
    return _IN_SHORT.get(missing, one_line(missing))


_IN_SHORT = {
    Missing.NO_CLUSTER.value: "without a cluster (add --cluster or --snapshot)",
    Missing.RULE_FAILED.value: "because of a bug in evenspread",
}
