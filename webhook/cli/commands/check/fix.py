"""``check --fix``: print the fixes of findings as a diff, or write them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import click
from msgspec.structs import replace

from webhook.cli.checking.finding_text import fix, message
from webhook.cli.checking.levels import Level, Levels, exit_code, hidden_lines, level_of, selected
from webhook.cli.checking.mending import Mended, mend
from webhook.cli.checking.results import Row, RunResult, print_failures
from webhook.cli.checking.run import examine_files
from webhook.cli.exit_codes import Exit
from webhook.cli.frame import Frame
from webhook.cli.output.terminal import disarm, print_faults, print_message, print_results
from webhook.core.text import one_line, plural
from webhook.manifests.editing.atomic_write import written
from webhook.manifests.editing.unified_diff import line_diff
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.files import File

_DEFAULT_REASON = "there are several possible changes"
_UNDONE = "another fix changes the same field"


def fix_files(files: Iterable[File | InputFault], frame: Frame, chosen: Levels, *, write: bool) -> Exit:
    """Print the fixes as a diff, or write them. Then list the remaining findings."""
    read = [*files]
    mending = mend((file for file in read if isinstance(file, File)), frame, lowest=chosen.fixed)
    changed = [mended for mended in mending.files if mended.after != mended.file.data]
    unwritten: list[InputFault] = []
    if write:
        print_results(map(disarm, _written(changed, unwritten)))
    else:
        print_results(
            line for mended in changed for line in line_diff(mended.file.name, mended.file.data, mended.pieces.edits())
        )
    failed = {fault.file for fault in unwritten}
    after: list[File | InputFault] = [
        *(file for file in read if isinstance(file, InputFault)),
        *(
            mended.file if mended.file.name in failed else replace(mended.file, data=mended.after)
            for mended in mending.files
        ),
    ]
    # Examine the fixed files: a fix can reveal another finding.
    left = selected(examine_files(after, frame), chosen.shown)
    print_faults([*left.faults, *unwritten])
    reasons = {row.identity: reason for row, reason in mending.refused} | {
        row.identity: "the file was not written"
        for mended in changed
        if mended.file.name in failed
        for row in mended.rows
    }
    for line in _left(left, reasons, chosen.fixed):
        print_message(line)
    done = [mended for mended in changed if mended.file.name not in failed]
    click.echo(_summary(done, left, write=write), err=True)
    for line in hidden_lines(left):
        click.echo(line, err=True)
    print_failures(left.failures)
    code = exit_code(left, chosen.fail_on)
    if code == Exit.FINE and (unwritten or (changed and not write)):
        return Exit.FINDINGS
    return code


def _written(files: Iterable[Mended], unwritten: list[InputFault]) -> Iterator[str]:
    """Write each file, and yield a line for each fix with its former position."""
    for mended in files:
        if fault := written(mended.file, mended.after):
            unwritten.append(fault)
            continue
        for row in mended.rows:
            yield f"{_place(row)}: fixed {row.judged.finding.rule}: {row.manifest.title}: {fix(row)}\n"
        for note in mended.unused:
            yield f"{one_line(note.file)}:{note.line}:{note.column}: removed an unused ignore comment\n"


def _left(result: RunResult, reasons: Mapping[tuple[str, str, str, str], str], lowest: Level) -> Iterator[str]:
    """Yield a line for each remaining finding, with its fix and why it was not applied."""
    for row in result.rows:
        if row.waived:
            continue
        finding = row.judged.finding
        if not finding.edits:
            reason = f"by hand: {finding.by_hand or _DEFAULT_REASON}"
        elif level_of(row).rank > lowest.rank:
            reason = f"level {level_of(row)}: use --fix=all"
        else:
            reason = f"by hand: {reasons.get(row.identity, _UNDONE)}"
        todo = f"; fix ({reason}): {fix(row)}" if fix(row) else ""
        yield f"{_place(row)}: left {finding.rule}: {row.manifest.title}: {message(row)}{todo}"


def _place(row: Row) -> str:
    return f"{one_line(row.manifest.file)}:{row.place.line}:{row.place.column}"


def _summary(changed: Sequence[Mended], left: RunResult, *, write: bool) -> str:
    fixed = sum(len(mended.rows) for mended in changed)
    remaining = sum(not row.waived for row in left.rows)
    verb = "fixed" if write else "can be fixed"
    unused = sum(len(mended.unused) for mended in changed)
    suffix = f", {plural(unused, 'unused ignore comment')} {'' if write else 'can be '}removed" if unused else ""
    return f"{plural(fixed, 'finding')} {verb} in {plural(len(changed), 'file')}, {remaining} left{suffix}"
