"""``check --fix``: the findings' own fixes, printed as a diff or written."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import click
from msgspec.structs import replace

from webhook.cli.checking.failures import print_failures
from webhook.cli.checking.results import Row, RunResult, exit_code, rank
from webhook.cli.checking.row_text import fix, message
from webhook.cli.checking.run import look
from webhook.cli.commands.check.fixed_files import Mended, mend
from webhook.cli.exit_codes import Exit
from webhook.cli.frame import Frame
from webhook.cli.terminal import harmless, print_faults, print_results, say
from webhook.core.rules.frame.rule import Severity
from webhook.core.text import one_line, plural
from webhook.manifests.editing.atomic_write import written
from webhook.manifests.editing.unified_diff import line_diff
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.files import File

_DEFAULT_REASON = "more than one change would do, and the choice is yours"
_UNDONE = "other fixes change the same place"


def fix_files(files: Iterable[File | InputFault], frame: Frame, *, lowest: Severity, write: bool, fail_on: str) -> Exit:
    """Print the fixes as a diff, or write them; then list the findings that are left."""
    read = [*files]
    mending = mend((each for each in read if isinstance(each, File)), frame, lowest=lowest)
    changed = [each for each in mending.files if each.after != each.file.data]
    unwritten: list[InputFault] = []
    if write:
        print_results(map(harmless, _written(changed, unwritten)))
    else:
        print_results(
            line for each in changed for line in line_diff(each.file.name, each.file.data, each.pieces.edits())
        )
    failed = {fault.file for fault in unwritten}
    after: list[File | InputFault] = [
        *(each for each in read if isinstance(each, InputFault)),
        *(each.file if each.file.name in failed else replace(each.file, data=each.after) for each in mending.files),
    ]
    # Looked at anew, as the files will be: a fix may have brought out what it had hidden.
    left = look(after, frame)
    print_faults([*left.faults, *unwritten])
    reasons = {_told(row): reason for row, reason in mending.refused} | {
        _told(row): "the file is not written" for each in changed if each.file.name in failed for row in each.rows
    }
    for line in _left(left, reasons, lowest):
        say(line)
    done = [each for each in changed if each.file.name not in failed]
    click.echo(_summary(done, left, write=write), err=True)
    print_failures(left.failures)
    code = exit_code(left, fail_on)
    if code == Exit.FINE and (unwritten or (changed and not write)):
        return Exit.FINDINGS
    return code


def _written(files: Iterable[Mended], unwritten: list[InputFault]) -> Iterator[str]:
    """Write each file, and say what was fixed where; positions are those in the file before."""
    for mended in files:
        if fault := written(mended.file, mended.after):
            unwritten.append(fault)
            continue
        for row in mended.rows:
            yield f"{_place(row)}: fixed {row.judged.finding.rule}: {row.manifest.title}: {fix(row)}\n"


def _left(result: RunResult, reasons: Mapping[tuple[str, str, str, str], str], lowest: Severity) -> Iterator[str]:
    """The findings that are left, each with what to do and why it was not fixed."""
    for row in result.rows:
        if row.waived:
            continue
        finding = row.judged.finding
        if not finding.edits:
            reason = f"by hand: {finding.by_hand or _DEFAULT_REASON}"
        elif rank(row.severity) < rank(lowest):
            reason = f"severity {row.severity}: --fix=all applies it"
        else:
            reason = f"by hand: {reasons.get(_told(row), _UNDONE)}"
        todo = f"; fix ({reason}): {fix(row)}" if fix(row) else ""
        yield f"{_place(row)}: left {finding.rule}: {row.manifest.title}: {message(row)}{todo}"


def _told(row: Row) -> tuple[str, str, str, str]:
    """What identifies a finding within the run."""
    return row.manifest.file, row.manifest.title, row.judged.finding.rule, row.judged.finding.path


def _place(row: Row) -> str:
    return f"{one_line(row.manifest.file)}:{row.place.line}:{row.place.column}"


def _summary(changed: Sequence[Mended], left: RunResult, *, write: bool) -> str:
    fixed = sum(len(each.rows) for each in changed)
    stay = sum(not row.waived for row in left.rows)
    told = f"{plural(fixed, 'finding')} {'fixed' if write else 'would be fixed'} in {plural(len(changed), 'file')}"
    return f"{told}, {stay} left"
