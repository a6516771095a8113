"""The findings of a file in the editor, and their code actions. The text in the editor can be unsaved or incomplete."""

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from webhook.cli.checking.finding_text import fix
from webhook.cli.checking.ignores import insertion
from webhook.cli.checking.levels import Level, selected
from webhook.cli.checking.mending import mend, single_fixes
from webhook.cli.checking.results import Row, RunResult
from webhook.cli.checking.run import examine_within, with_input_objects
from webhook.cli.commands.lsp.memory import Memory
from webhook.cli.frame import Frame
from webhook.core.apiserver.decoding import DecodeError
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


class OpenFile:
    """A file in the editor.

    Attributes:
        file: The checked text.
        result: The findings and faults of this text. A file without any object has no notes.
    """

    def __init__(self, frame: Frame, shown: Level) -> None:
        self._frame, self._shown = frame, shown
        self.file, self._within = File("", b""), frame
        self._memory = Memory()
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
