"""The findings of a file in the editor, and their code actions. The text in the editor can be unsaved or incomplete."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from webhook.cli.checking.finding_text import fix
from webhook.cli.checking.ignores import insertion
from webhook.cli.checking.levels import Level, selected
from webhook.cli.checking.mending import mend, single_fixes
from webhook.cli.checking.results import Row, RunResult
from webhook.cli.checking.run import examine_within, with_input_objects
from webhook.cli.frame import Frame
from webhook.core.apiserver.decoding import DecodeError
from webhook.core.context import Context
from webhook.core.review.decision import Examination
from webhook.core.review.examination import examine
from webhook.core.workloads.reading import read_workload
from webhook.core.workloads.workload import Workload
from webhook.manifests.editing.document_text import TextEdit
from webhook.manifests.reading.files import File
from webhook.manifests.reading.manifest import Manifest, read_manifests


class Action(Struct, frozen=True):
    """A change offered for a finding. ``row`` is None for a change of the whole file."""

    title: str
    edits: tuple[TextEdit, ...]
    row: Row | None
    is_fix: bool = True


class _Known(Struct, frozen=True):
    """An examination and its input. ``raw`` stays alive, so that its identity belongs to no other object."""

    raw: bytes | Mapping[str, object]
    context: Context
    examination: Examination


class _Memory:
    """Stores the examinations of a file's objects.

    After an edit, only the changed objects are examined. The examination of an unchanged object can depend on other
    objects of the file. If these change, the stored examination is returned, and a function to examine the object again
    is added to ``outdated``.
    """

    def __init__(self) -> None:
        self._known: dict[int | bytes, _Known] = {}
        self._seen: dict[int | bytes, _Known] = {}
        self.outdated: list[Callable[[], None]] = []

    def begin(self) -> None:
        """Start a new check of the file. Forget the examinations of all objects absent from the previous check."""
        self._known, self._seen, self.outdated = self._seen, {}, []

    def examine(
        self, raw: bytes | Mapping[str, object], context: Context, *, as_written: Callable[[str], str]
    ) -> Examination:
        """Return the remembered examination of an object, or examine it."""
        key = raw if isinstance(raw, bytes) else id(raw)
        known = self._known.get(key)
        if known is None:
            self._renew(key, raw, context, as_written)
        else:
            self._seen[key] = known
            if known.context != context:
                self.outdated.append(partial(self._renew, key, raw, context, as_written))
        return self._seen[key].examination

    def _renew(
        self, key: int | bytes, raw: bytes | Mapping[str, object], context: Context, as_written: Callable[[str], str]
    ) -> None:
        self._seen[key] = _Known(raw, context, examine(raw, context, as_written=as_written))


class OpenFile:
    """A file in the editor.

    Attributes:
        file: The checked text.
        result: The findings and faults of this text. A file without any object has no notes.
    """

    def __init__(self, frame: Frame, shown: Level) -> None:
        self._frame, self._shown = frame, shown
        self.file, self._within = File("", b""), frame
        self._memory = _Memory()
        self.result = RunResult()

    def check(self, file: File) -> None:
        """Check the text like ``evenspread check FILE``, but examine only changed objects."""
        self.file, self._within = file, with_input_objects(self._frame, [file])
        self._run()

    def renew(self) -> Iterator[None]:
        """Examine again all objects with an outdated examination.

        Changed objects can affect the findings of unchanged objects. Yields after each object.
        """
        outdated = self._memory.outdated
        for examine_again in outdated:
            examine_again()
            yield
        if outdated:
            self._run()

    def _run(self) -> None:
        self._memory.begin()
        result = selected(examine_within([self.file], self._within, examine=self._memory.examine), self._shown)
        faults = result.faults if result.objects else tuple(fault for fault in result.faults if fault.fatal)
        self.result = replace(result, rows=tuple(row for row in result.rows if not row.waived), faults=faults)


def actions(file: File, frame: Frame, rows: Sequence[Row]) -> Iterator[Action]:
    """Yield the fixes of these findings, then the ignore comments."""
    for row, edits in single_fixes(file, rows):
        yield Action(f"Fix {row.judged.finding.rule}: {fix(row)}", edits, row)
    for row in rows:
        if (edit := insertion(file.data, row, frame.policy.annotations.exempt)) is not None:
            yield Action(f"Ignore {row.judged.finding.rule} here", (edit,), row, is_fix=False)


def fix_all(file: File, frame: Frame) -> Action | None:
    """The fixes of ``evenspread check --fix``, as one action. None without a fix."""
    [mended] = mend([file], frame, lowest=Level.MEDIUM).files
    edits = tuple(mended.pieces.edits())
    return Action("Fix all findings of evenspread", edits, None) if edits else None


def workloads(file: File, frame: Frame) -> Iterator[tuple[Manifest, Workload]]:
    """Yield the readable workloads of a file, in the order of the text."""
    for item in read_manifests(file.name, file.data):
        if isinstance(item, Manifest):
            try:
                workload = read_workload(item.value, frame.policy.workloads)
            except DecodeError:
                continue
            if workload is not None:
                yield item, workload
