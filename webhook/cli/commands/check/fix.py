"""``check --fix``: print the fixes of findings as a diff, or write them.

Fixes of the same field are applied in separate rounds. After each round, the files are examined again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import replace

from webhook.cli.checking.finding_text import fix, message
from webhook.cli.checking.ignores import may_have_ignores, removal
from webhook.cli.checking.levels import Level, Levels, exit_code, hidden_lines, level_of, selected
from webhook.cli.checking.results import Row, RunResult, print_failures
from webhook.cli.checking.run import CheckRun, examine_files, with_input_objects
from webhook.cli.exit_codes import Exit
from webhook.cli.frame import Frame
from webhook.cli.terminal import disarm, print_faults, print_message, print_results
from webhook.core.json_edits import marked, without_gone
from webhook.core.rules.frame.rule import Finding
from webhook.core.text import one_line, plural
from webhook.manifests.editing.atomic_write import written
from webhook.manifests.editing.document_text import UneditableError
from webhook.manifests.editing.proven_edits import ObjectChange, Pieces, edited, in_text_order, proven, value_of
from webhook.manifests.editing.rewriting import rewritten
from webhook.manifests.editing.unified_diff import line_diff
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.files import File
from webhook.manifests.reading.manifest import Manifest, read_manifests

Json = Any  # unchecked JSON; core.apiserver.decoding checks types

# As in eslint: with more rounds than this, fixes undo each other.
_MAX_FIX_ROUNDS = 10


class Mended(Struct, frozen=True):
    """A file before and after its fixes, the fixed findings, and the removed ignore comments."""

    file: File
    after: bytes
    pieces: Pieces
    rows: tuple[Row, ...]
    unused: tuple[InputFault, ...] = ()


class Mending(Struct, frozen=True):
    """The fixes of a run of ``check --fix``.

    Attributes:
        files: All files, including unchanged ones.
        refused: Findings whose fix cannot be written into the manifest's text, each with the reason.
    """

    files: tuple[Mended, ...]
    refused: tuple[tuple[Row, str], ...]


def mend(files: Iterable[File], frame: Frame, *, lowest: Level) -> Mending:
    """Fix the findings of the requested rules from this level, except exempted ones."""
    refused: list[tuple[Row, str]] = []
    read = [*files]
    frame = with_input_objects(frame, read)
    return Mending(tuple(_mended(file, frame, lowest, refused) for file in read), tuple(refused))


def _mended(file: File, frame: Frame, lowest: Level, refused: list[tuple[Row, str]]) -> Mended:
    data, pieces, fixed = file.data, Pieces.of(file.data), list[Row]()
    for _ in range(_MAX_FIX_ROUNDS):
        content = [*read_manifests(file.name, data)]
        left: list[tuple[Row, str]] = []
        offers = [
            offer
            for number, item in enumerate(content)
            if isinstance(item, Manifest) and (offer := _offer(number, item, data, _fixable(item, frame, lowest), left))
        ]
        changes = proven(File(file.name, data), content, [offer.change for offer in offers])
        kept = {change.number for change in changes}
        reason = "the edited file would differ in more than the fix"
        left += ((row, reason) for offer in offers if offer.change.number not in kept for row in offer.rows)
        if not changes:
            break
        fixed += (row for offer in offers if offer.change.number in kept for row in offer.rows)
        pieces = pieces.edited(in_text_order(changes))
        data = edited(data, changes)
    refused += left
    removals, notes = _unused_ignores(file, data, frame)
    for change in removals:
        pieces, data = pieces.edited(in_text_order([change])), edited(data, [change])
    return Mended(file, data, pieces, tuple(fixed), notes)


def _unused_ignores(file: File, data: bytes, frame: Frame) -> tuple[list[ObjectChange], tuple[InputFault, ...]]:
    """Return the edits that remove unused ignore comments, with a note a comment.

    Both are empty if the edits cannot be made safely.
    """
    if not may_have_ignores(data):
        return [], ()
    run, content = CheckRun(), [*read_manifests(file.name, data)]
    for item in content:
        if isinstance(item, Manifest):
            run.examine(item, frame)
    unused = [*run.ignores.unused()]
    if not unused:
        return [], ()
    # Comments belong to no object. The proof compares all objects, whichever has the edits.
    number, first = next((number, item) for number, item in enumerate(content) if isinstance(item, Manifest))
    edits = tuple(removal(data, ignore, rules) for ignore, rules in unused)
    changes = proven(File(file.name, data), content, [ObjectChange(number, value_of(first), edits)])
    return changes, tuple(ignore.unused(rules) for ignore, rules in unused) if changes else ()


class _Offer(Struct, frozen=True):
    """The change of an object, and the findings it fixes."""

    change: ObjectChange
    rows: tuple[Row, ...]


def _fixable(manifest: Manifest, frame: Frame, lowest: Level) -> list[Row]:
    """Return the object's findings that have edits, with at least the ``lowest`` level."""
    run = CheckRun()
    run.examine(manifest, frame)
    offered = [row for row in run.rows if row.judged.finding.edits and not row.waived]
    return [row for row in offered if level_of(row).rank <= lowest.rank]


def _offer(
    number: int, manifest: Manifest, data: bytes, rows: Sequence[Row], left: list[tuple[Row, str]]
) -> _Offer | None:
    """Return the applicable fixes of an object, without conflicts between them.

    Unwritable fixes are added to ``left``. Conflicting fixes wait for the next round.
    """
    if not rows:
        return None
    before = value_of(manifest)
    kept: list[Row] = []
    for row in rows:
        if any(_conflict(row.judged.finding, other.judged.finding) for other in kept):
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
            kept.pop()  # to be tried in the next round
    return None


def _change(number: int, manifest: Manifest, data: bytes, before: Json, rows: Sequence[Row]) -> ObjectChange:
    """Return the change of an object after applying the fixes of these findings.

    Raises:
        UneditableError: The text cannot be edited.
        LookupError: A field does not exist.
    """
    edits = list({(edit.path, repr(edit.value)): edit for row in rows for edit in row.judged.finding.edits}.values())
    after = marked(before, edits)
    return ObjectChange(number, without_gone(after), tuple(rewritten(data, manifest, before, after)))


def _conflict(one: Finding, other: Finding) -> bool:
    """Whether two fixes set the same field to different values."""
    return any(a != b and (_within(a.path, b.path) or _within(b.path, a.path)) for a in one.edits for b in other.edits)


def _within(path: str, other: str) -> bool:
    return path == other or path.startswith((f"{other}.", f"{other}[")) or not other


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
    reasons = {_identity(row): reason for row, reason in mending.refused} | {
        _identity(row): "the file was not written"
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
            reason = f"by hand: {reasons.get(_identity(row), _UNDONE)}"
        todo = f"; fix ({reason}): {fix(row)}" if fix(row) else ""
        yield f"{_place(row)}: left {finding.rule}: {row.manifest.title}: {message(row)}{todo}"


def _identity(row: Row) -> tuple[str, str, str, str]:
    """Return the key of a finding, unique in a run: file, object title, rule and path."""
    return row.manifest.file, row.manifest.title, row.judged.finding.rule, row.judged.finding.path


def _place(row: Row) -> str:
    return f"{one_line(row.manifest.file)}:{row.place.line}:{row.place.column}"


def _summary(changed: Sequence[Mended], left: RunResult, *, write: bool) -> str:
    fixed = sum(len(mended.rows) for mended in changed)
    remaining = sum(not row.waived for row in left.rows)
    verb = "fixed" if write else "can be fixed"
    unused = sum(len(mended.unused) for mended in changed)
    suffix = f", {plural(unused, 'unused ignore comment')} {'' if write else 'can be '}removed" if unused else ""
    return f"{plural(fixed, 'finding')} {verb} in {plural(len(changed), 'file')}, {remaining} left{suffix}"
