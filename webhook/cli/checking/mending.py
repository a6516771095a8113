"""Fix findings in the text of files.

Fixes of the same field are applied in separate rounds. After each round, the files are examined again.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from webhook.cli.checking.ignores import may_have_ignores, removal
from webhook.cli.checking.levels import Level, level_of
from webhook.cli.checking.results import Row
from webhook.cli.checking.run import CheckRun, with_input_objects
from webhook.cli.frame import Frame
from webhook.core.json_edits import marked, without_gone
from webhook.core.rules.frame.rule import Finding
from webhook.manifests.editing.document_text import TextEdit, UneditableError
from webhook.manifests.editing.proven_edits import ObjectChange, Pieces, edited, in_text_order, proven, value_of
from webhook.manifests.editing.rewriting import rewritten
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


def single_fixes(file: File, rows: Sequence[Row]) -> Iterator[tuple[Row, tuple[TextEdit, ...]]]:
    """Yield each of these findings that an edit of the file can fix, with its edits.

    The file has exactly the text of the findings. Edits without a proven result are skipped.
    """
    if not rows:
        return
    content = [*read_manifests(file.name, file.data)]
    for number, item in enumerate(content):
        if not isinstance(item, Manifest):
            continue
        for row in rows:
            if not row.judged.finding.edits or _start(row.manifest) != _start(item):
                continue
            try:
                change = _change(number, item, file.data, value_of(item), [row])
            except (UneditableError, LookupError):
                continue
            if proven(file, content, [change]):
                yield row, change.edits


def _start(manifest: Manifest) -> tuple[int, int, str]:
    """The position of an object in its file. Two objects of a file can have the same title."""
    return manifest.document.line, manifest.document.column, manifest.prefix


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
    """Return the edits that remove unused ignore comments, and a note each. Empty if they are not safe."""
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
    """Return the applicable fixes of an object. Conflicts wait for the next round, other failures go to ``left``."""
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
    """Return the change of an object after applying these findings' fixes. Raises UneditableError and LookupError."""
    edits = list({(edit.path, repr(edit.value)): edit for row in rows for edit in row.judged.finding.edits}.values())
    after = marked(before, edits)
    return ObjectChange(number, without_gone(after), tuple(rewritten(data, manifest, before, after)))


def _conflict(one: Finding, other: Finding) -> bool:
    """Whether two fixes set the same field to different values."""
    return any(a != b and (_within(a.path, b.path) or _within(b.path, a.path)) for a in one.edits for b in other.edits)


def _within(path: str, other: str) -> bool:
    return path == other or path.startswith((f"{other}.", f"{other}[")) or not other
