"""``-o junit``: JUnit XML, which CI servers show as test results: a case an object, a failure a finding.

Source: the schema that Jenkins' xunit plugin accepts.
"""

from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

import msgspec

from webhook.answers.scanned import scan_numbers
from webhook.cli.checking.results import Row, RunResult, fix, message
from webhook.core.text import one_line


def render(result: RunResult, *, color: bool) -> Iterator[str]:  # noqa: ARG001 every format has this signature
    """One suite: clean workloads pass, findings fail, and exempted ones are skipped.

    Rules that could not look are no tests: they are in the suite's output.
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
        f'errors="{sum(fault.fatal for fault in result.faults)}" '
        f'skipped="{sum(row.waived for row in result.rows)}"'
    )
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield f'<testsuites {counts}>\n<testsuite name="evenspread" {counts}>\n'
    yield from _properties(result)
    yield from cases
    if result.gaps:
        lines = (one_line(f"{gap.rule}: not evaluated, {gap.missing}", 1024) for gap in result.gaps)
        text = _text("\n".join(lines))
        yield f"<system-out>{text}</system-out>\n"
    yield "</testsuite>\n</testsuites>\n"


def _properties(result: RunResult) -> Iterator[str]:
    """Numbers of the whole cluster, which belong to no case."""
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
    body = "\n".join(one_line(line, 4096) for line in (where, message(row), f"fix: {fix(row)}"))
    failure = f'<failure type="{row.severity}" message={_attribute(message(row))}>{_text(body)}</failure>'
    return _case(row.manifest.file, name, failure)


def _case(file: str, name: str, body: str) -> str:
    return f"<testcase classname={_attribute(file)} name={_attribute(name)}>{body}</testcase>\n"


def _attribute(text: str) -> str:
    return quoteattr(_printable(one_line(text, 1024)))


def _text(text: str) -> str:
    return escape(_printable(text))


def _printable(text: str) -> str:
    """XML has no place for surrogates and two more characters."""
    return "".join("\ufffd" if "\ud800" <= each <= "\udfff" or each in "\ufffe\uffff" else each for each in text)
