"""``-o junit``: JUnit XML, for the test results of CI servers.

Each object is a test case. Each finding is a failure.

Source: junit-10.xsd of Jenkins' xunit plugin.
"""

from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

import msgspec

from webhook.answers.scanned import scan_numbers
from webhook.cli.checking.finding_text import fix, message
from webhook.cli.checking.levels import hidden_lines
from webhook.cli.checking.results import Row, RunResult
from webhook.core.text import one_line


def render(result: RunResult) -> Iterator[str]:
    """Render a suite. Clean workloads pass, findings fail, exempted findings are skipped.

    Hidden findings and rules that were not evaluated are in the suite's output.
    """
    cases = [
        *(_case(file, name, "") for file, name in result.clean),
        *(_finding(row) for row in result.rows),
        *(
            _case(fault.file, "readable", f"<error message={_attribute(str(fault))}/>")
            for fault in result.faults
            if fault.fatal
        ),
    ]
    counts = (
        f'tests="{len(cases)}" failures="{sum(not row.waived for row in result.rows)}" '
        f'errors="{sum(fault.fatal for fault in result.faults)}"'
    )
    skipped = sum(row.waived for row in result.rows)
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield f'<testsuites {counts}>\n<testsuite name="evenspread" {counts} skipped="{skipped}">\n'
    yield from _properties(result)
    yield from cases
    lines = [
        *hidden_lines(result),
        *(one_line(f"{gap.rule}: not evaluated, {gap.not_evaluated}", 1024) for gap in result.gaps),
    ]
    if lines:
        text = _text("\n".join(lines))
        yield f"<system-out>{text}</system-out>\n"
    yield "</testsuite>\n</testsuites>\n"


def _properties(result: RunResult) -> Iterator[str]:
    """The totals of the cluster."""
    if result.scan is None:
        return
    values: dict[str, object] = msgspec.to_builtins(scan_numbers(result.scan))
    yield "<properties>\n"
    for name, value in values.items():
        text = str(value) if isinstance(value, int) else msgspec.json.encode(value).decode()
        yield f"<property name={_attribute(name)} value={_attribute(text)}/>\n"
    yield "</properties>\n"


def _finding(row: Row) -> str:
    finding, place = row.judged.finding, row.place
    name = f"{row.manifest.title} {finding.rule}"
    if row.waived:
        return _case(row.manifest.file, name, f"<skipped message={_attribute(row.judged.waived)}/>")
    where = f"{row.manifest.file}:{place.line}:{place.column} {finding.path}"
    body = "\n".join(one_line(line, 4096) for line in (where, message(row), f"fix: {fix(row)}", f"see: {row.url}"))
    failure = f'<failure type="{row.severity}" message={_attribute(message(row))}>{_text(body)}</failure>'
    return _case(row.manifest.file, name, failure)


def _case(file: str, name: str, body: str) -> str:
    return f"<testcase classname={_attribute(file)} name={_attribute(name)}>{body}</testcase>\n"


def _attribute(text: str) -> str:
    return quoteattr(_printable(one_line(text, 1024)))


def _text(text: str) -> str:
    return escape(_printable(text))


def _printable(text: str) -> str:
    """Replace each character forbidden in XML (surrogates, U+FFFE and U+FFFF) by U+FFFD."""
    return "".join("\ufffd" if "\ud800" <= char <= "\udfff" or char in "\ufffe\uffff" else char for char in text)
