"""``evenspread test``: test a configuration on manifests with expected findings.

Comments above a document list its expected findings:

    # expect: selector-not-self
    # expect: deny max-skew at spec.template.spec.topologySpreadConstraints[0].maxSkew
    # expect: nothing
"""

import re
from collections.abc import Iterator, Sequence

import click
from msgspec import Struct

from webhook.cli.checking.finding_text import message
from webhook.cli.checking.results import Row
from webhook.cli.checking.run import CheckRun
from webhook.cli.exit_codes import Exit
from webhook.cli.frame import Frame
from webhook.cli.options import output_option, review_options
from webhook.cli.output.page import DIM, GREEN, RED, paint
from webhook.cli.output.terminal import Json, print_faults, print_results, print_values
from webhook.core.policy.policy import Mode
from webhook.core.rules.rule_set import BY_ID
from webhook.core.spelling import did_you_mean
from webhook.core.text import one_line, plural
from webhook.core.workloads.kind_fields import has_template
from webhook.manifests.reading.documents import InputDocument, InputFault
from webhook.manifests.reading.files import read_files

EXPECT_NOTHING = "nothing"

_LINE = re.compile(rb"^[ \t]*#[ \t]*expect:[ \t]*([^\r\n]*)", re.MULTILINE)
_ONE = re.compile(r"(?:(deny|warn|audit)\s+)?([a-z0-9-]+)(?:\s+at\s+(\S+))?")


class ExpectedFinding(Struct, frozen=True):
    """An expected finding. Empty fields match any value."""

    rule: str
    mode: str = ""
    path: str = ""

    def __str__(self) -> str:
        """The expectation as written."""
        return f"{self.mode} {self.rule}".strip() + (f" at {self.path}" if self.path else "")

    def fits(self, row: Row) -> bool:
        """Whether a finding matches."""
        finding = row.judged.finding
        return finding.rule == self.rule and self.mode in {"", row.judged.mode} and self.path in {"", finding.path}


class Case(Struct, frozen=True, kw_only=True):
    """A test document, and the difference between found and expected findings.

    ``unstated`` is true for a document without expectations.
    """

    document: InputDocument
    titles: tuple[str, ...]
    missing: tuple[ExpectedFinding, ...] = ()
    unexpected: tuple[Row, ...] = ()
    unstated: bool = False

    @property
    def passed(self) -> bool:
        """Whether the document has exactly the expected findings."""
        return not (self.missing or self.unexpected or self.unstated)


@click.command(
    short_help="Test a configuration on manifests with expected findings.",
    help="""Test a configuration: each manifest in DIR must have exactly the findings in its comments.

\b
  # expect: selector-not-self
  # expect: deny max-skew at spec.template.spec.topologySpreadConstraints[0].maxSkew
  # expect: nothing

Write one finding a line, or several with commas. The mode and the path are optional.""",
    epilog="Exit code: 0 all findings as expected, 1 differences, 2 usage or configuration, 3 unreadable input.",
)
@click.argument("paths", nargs=-1, required=True, metavar="DIR...")
@output_option("text", "json")
@click.option("-v", "--verbose", is_flag=True, help="List passing documents too.")
@review_options
def test(*, paths: tuple[str, ...], output: str, verbose: bool, frame: Frame) -> Exit:
    """Run the tests in these directories."""
    cases, faults = _run_cases(paths, frame)
    print_faults(faults)
    if output == "json":
        print_values([*map(_values, cases)], output)
    else:
        print_results(_text(cases, verbose=verbose))
    # A run without cases fails.
    unreadable = any(fault.fatal for fault in faults) or not cases
    failed = any(not case.passed for case in cases)
    return Exit.UNREADABLE if unreadable else Exit.FINDINGS if failed else Exit.FINE


def _run_cases(paths: Sequence[str], frame: Frame) -> tuple[list[Case], list[InputFault]]:
    """Return a case for each document with a workload or an expectation, and the faults of the input."""
    documents: dict[tuple[str, int, int], tuple[InputDocument, list[str], CheckRun, bool]] = {}
    reading = CheckRun()
    for manifest in reading.manifests(read_files(paths), duplicates=True):
        document = manifest.document
        key = (document.file, document.line, document.column)
        _, titles, run, has_workload = documents.setdefault(key, (document, [], CheckRun(), False))
        run.examine(manifest, frame)
        titles.append(manifest.title)
        is_workload = has_template(manifest.api_version, manifest.kind, frame.policy.workloads)
        documents[key] = (document, titles, run, has_workload or is_workload)
    faults, cases = [*reading.faults], []
    for document, titles, run, has_workload in documents.values():
        try:
            expected = _expectations(document)
        except ValueError as error:
            faults.append(document.fault(str(error)))
            continue
        if expected is not None or has_workload:
            cases.append(_compared(document, titles, expected, run.rows))
    if not cases:
        faults.append(InputFault(file="evenspread", message="nothing to test: no document with a workload"))
    return cases, faults


def _expectations(document: InputDocument) -> tuple[ExpectedFinding, ...] | None:
    """The expectations above a document. None without any. Raises ValueError if a line is invalid."""
    lines = [line.decode("utf-8", "replace").strip() for line in _LINE.findall(document.comments)]
    if not lines:
        return None
    parts = [part.strip() for line in lines for part in line.split(",")]
    return tuple(_expected(part) for part in parts if part != EXPECT_NOTHING)


def _expected(text: str) -> ExpectedFinding:
    match = _ONE.fullmatch(text)
    if match is None:
        raise ValueError(f"invalid expectation {text[:64]!r}; write it as # expect: [deny|warn|audit] RULE [at PATH]")
    mode, rule, path = match.groups(default="")
    if rule not in BY_ID:
        raise ValueError(f"no rule {rule[:64]!r}{did_you_mean(rule, [*BY_ID, EXPECT_NOTHING])}")
    return ExpectedFinding(rule, str(Mode(mode)) if mode else "", path)


def _compared(
    document: InputDocument, titles: Sequence[str], expected: tuple[ExpectedFinding, ...] | None, rows: Sequence[Row]
) -> Case:
    left = [row for row in rows if not row.waived]
    missing = []
    # Exact expectations first, so that a general one does not take their finding.
    for expectation in sorted(expected or (), key=lambda entry: (not entry.path, not entry.mode)):
        match = next((row for row in left if expectation.fits(row)), None)
        if match is None:
            missing.append(expectation)
        else:
            left.remove(match)
    return Case(
        document=document,
        titles=tuple(titles),
        missing=tuple(missing),
        unexpected=tuple(left),
        unstated=expected is None,
    )


def _text(cases: Sequence[Case], *, verbose: bool) -> Iterator[str]:
    for case in cases:
        if case.passed and not verbose:
            continue
        word = paint("ok  ", GREEN) if case.passed else paint("FAIL", RED)
        yield f"{word} {one_line(case.document.file)}:{case.document.line}: {', '.join(case.titles[:5])}\n"
        if case.unstated:
            rules = ", ".join(sorted({row.judged.finding.rule for row in case.unexpected})) or EXPECT_NOTHING
            yield f"  no expectation; add this comment above the document: # expect: {rules}\n"
        for expectation in case.missing:
            yield paint(f"  - {expectation}", RED) + "\n"
        for row in case.unexpected:
            finding = row.judged.finding
            configured = row.judged.configured
            is_capped = any((entry.rule, entry.mode) == (finding.rule, configured) for entry in case.missing)
            capped = f"  (configured as {configured}, but a ceiling lowers it)" if is_capped else ""
            yield paint(f"  + {row.judged.mode} {finding.rule} at {one_line(finding.path)}", GREEN) + f"{capped}\n"
            yield paint(f"      {message(row)}", DIM) + "\n"
    failed = sum(not case.passed for case in cases)
    if failed:
        yield "(- expected, not found; + found, not expected)\n"
    yield f"{plural(len(cases), 'document')}: {len(cases) - failed} as expected, {failed} not\n"


def _values(case: Case) -> Json:
    return {
        "file": case.document.file,
        "line": case.document.line,
        "objects": case.titles,
        "passed": case.passed,
        "stated": not case.unstated,
        "missing": [str(expectation) for expectation in case.missing],
        "unexpected": [
            {"rule": row.judged.finding.rule, "mode": str(row.judged.mode), "path": row.judged.finding.path}
            for row in case.unexpected
        ],
    }
