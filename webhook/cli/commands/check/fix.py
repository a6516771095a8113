"""``check --fix``: the findings' own fixes, printed as a diff or written.

Fixes that change the same place are applied in different rounds; after each, the files are read and examined again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import replace

from webhook.cli.checking.results import Row, RunResult, exit_code, fix, message, print_failures, rank
from webhook.cli.checking.run import CheckRun, look, of_input
from webhook.cli.exit_codes import Exit
from webhook.cli.frame import Frame
from webhook.cli.terminal import harmless, print_faults, print_results, say
from webhook.core.json_edits import marked, without_gone
from webhook.core.rules.frame.rule import Finding, Severity
from webhook.core.text import one_line, plural
from webhook.manifests.editing.atomic_write import written
from webhook.manifests.editing.insertion import UneditableError
from webhook.manifests.editing.proven_edits import ObjectChange, Pieces, edited, in_text_order, proven, value_of
from webhook.manifests.editing.rewriting import rewritten
from webhook.manifests.editing.unified_diff import line_diff
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.files import File
from webhook.manifests.reading.manifest import Manifest, read_manifests

Json = Any  # raw JSON from outside: core.apiserver.decoding gives it types

# As in eslint: fixes that need more rounds than this undo each other.
_MAX_FIX_ROUNDS = 10


class Mended(Struct, frozen=True):
    """One file before and after, and the findings that were fixed in it."""

    file: File
    after: bytes
    pieces: Pieces
    rows: tuple[Row, ...]


class Mending(Struct, frozen=True):
    """The result of a run.

    Attributes:
        files: All files, also unchanged ones.
        refused: Findings of the last round whose fix cannot be written into the text, each with the reason.
    """

    files: tuple[Mended, ...]
    refused: tuple[tuple[Row, str], ...]


def mend(files: Iterable[File], frame: Frame, *, lowest: Severity) -> Mending:
    """Fix all findings of this severity or a higher one, except exempted ones and those of rules not requested."""
    refused: list[tuple[Row, str]] = []
    given = [*files]
    frame = of_input(frame, given)
    return Mending(tuple(_mended(file, frame, lowest, refused) for file in given), tuple(refused))


def _mended(file: File, frame: Frame, lowest: Severity, refused: list[tuple[Row, str]]) -> Mended:
    data, pieces, fixed = file.data, Pieces.of(file.data), list[Row]()
    for _ in range(_MAX_FIX_ROUNDS):
        content = [*read_manifests(file.name, data)]
        left: list[tuple[Row, str]] = []
        offers = [
            offer
            for number, each in enumerate(content)
            if isinstance(each, Manifest) and (offer := _offer(number, each, data, _fixable(each, frame, lowest), left))
        ]
        changes = proven(File(file.name, data), content, [each.change for each in offers])
        kept = {each.number for each in changes}
        reason = "read again, the file would differ in more than the fix"
        left += ((row, reason) for each in offers if each.change.number not in kept for row in each.rows)
        if not changes:
            break
        fixed += (row for each in offers if each.change.number in kept for row in each.rows)
        pieces = pieces.edited(in_text_order(changes))
        data = edited(data, changes)
    refused += left
    return Mended(file, data, pieces, tuple(fixed))


class _Offer(Struct, frozen=True):
    """The change of one object, and the findings it fixes."""

    change: ObjectChange
    rows: tuple[Row, ...]


def _fixable(manifest: Manifest, frame: Frame, lowest: Severity) -> list[Row]:
    """The findings of one object that have edits."""
    seen = CheckRun()
    seen.examine(manifest, frame)
    offered = [each for each in seen.rows if each.judged.finding.edits and not each.waived]
    return [each for each in offered if rank(each.severity) >= rank(lowest)]


def _offer(
    number: int, manifest: Manifest, data: bytes, rows: Sequence[Row], left: list[tuple[Row, str]]
) -> _Offer | None:
    """The fixes of one object that are compatible and can be written into its text."""
    if not rows:
        return None
    before = value_of(manifest)
    kept: list[Row] = []
    for row in rows:
        if any(_meet(row.judged.finding, each.judged.finding) for each in kept):
            continue
        try:
            _change(number, manifest, data, before, [row])
        except (UneditableError, LookupError) as error:
            left.append((row, str(error)))
        else:
            kept.append(row)
    while kept:
        try:
            return _Offer(_change(number, manifest, data, before, kept), tuple(kept))
        except (UneditableError, LookupError):
            kept.pop()  # it waits for the next round
    return None


def _change(number: int, manifest: Manifest, data: bytes, before: Json, rows: Sequence[Row]) -> ObjectChange:
    """The change that the fixes make to an object. Errors: UneditableError, LookupError."""
    edits = list({(each.path, repr(each.value)): each for row in rows for each in row.judged.finding.edits}.values())
    after = marked(before, edits)
    return ObjectChange(number, without_gone(after), tuple(rewritten(data, manifest, before, after)))


def _meet(one: Finding, other: Finding) -> bool:
    """Whether two fixes change the same place to different values."""
    return any(a != b and (_within(a.path, b.path) or _within(b.path, a.path)) for a in one.edits for b in other.edits)


def _within(path: str, other: str) -> bool:
    return path == other or path.startswith((f"{other}.", f"{other}[")) or not other


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
    reasons = {_identity(row): reason for row, reason in mending.refused} | {
        _identity(row): "the file is not written" for each in changed if each.file.name in failed for row in each.rows
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
    """Write each file, and yield a line per fix with its position before."""
    for mended in files:
        if fault := written(mended.file, mended.after):
            unwritten.append(fault)
            continue
        for row in mended.rows:
            yield f"{_place(row)}: fixed {row.judged.finding.rule}: {row.manifest.title}: {fix(row)}\n"


def _left(result: RunResult, reasons: Mapping[tuple[str, str, str, str], str], lowest: Severity) -> Iterator[str]:
    """A line for each remaining finding: what to do, and why it was not fixed."""
    for row in result.rows:
        if row.waived:
            continue
        finding = row.judged.finding
        if not finding.edits:
            reason = f"by hand: {finding.by_hand or _DEFAULT_REASON}"
        elif rank(row.severity) < rank(lowest):
            reason = f"severity {row.severity}: --fix=all applies it"
        else:
            reason = f"by hand: {reasons.get(_identity(row), _UNDONE)}"
        todo = f"; fix ({reason}): {fix(row)}" if fix(row) else ""
        yield f"{_place(row)}: left {finding.rule}: {row.manifest.title}: {message(row)}{todo}"


def _identity(row: Row) -> tuple[str, str, str, str]:
    """What identifies a finding within the run."""
    return row.manifest.file, row.manifest.title, row.judged.finding.rule, row.judged.finding.path


def _place(row: Row) -> str:
    return f"{one_line(row.manifest.file)}:{row.place.line}:{row.place.column}"


def _summary(changed: Sequence[Mended], left: RunResult, *, write: bool) -> str:
    fixed = sum(len(each.rows) for each in changed)
    stay = sum(not row.waived for row in left.rows)
    summary = f"{plural(fixed, 'finding')} {'fixed' if write else 'would be fixed'} in {plural(len(changed), 'file')}"
    return f"{summary}, {stay} left"
