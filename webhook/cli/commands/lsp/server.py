"""The language server: translates the protocol's messages to calls of `open_file`, and the results back."""

import asyncio
import time
from collections.abc import Iterator
from functools import partial

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.workspace import PositionCodec, TextDocument

from webhook import __version__
from webhook.cli.checking.finding_text import fix, message
from webhook.cli.checking.levels import Level, level_of
from webhook.cli.checking.results import Row, RunResult, print_failures
from webhook.cli.commands.lsp.completion import Suggestion, complete
from webhook.cli.commands.lsp.open_file import Action, OpenFile, actions, fix_all
from webhook.cli.commands.lsp.topology import topology_at
from webhook.cli.frame import Frame
from webhook.cli.output.terminal import print_message
from webhook.core.text import one_line
from webhook.manifests.editing.document_text import TextEdit
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.files import File
from webhook.manifests.reading.manifest import FieldPosition

_SOURCE = "evenspread"
_FIX_ALL = f"{types.CodeActionKind.SourceFixAll.value}.{_SOURCE}"
# From one keystroke to the next: 0.1 s at 120 words of 5 letters a minute, 0.3 s at 40 words. A check of 25 Deployments
# takes less, 0.038 s (docs/performance.md).
_LONG_CHECK_SECONDS, _PAUSE_SECONDS = 0.1, 0.3
_SEVERITIES = {
    Level.HIGH: types.DiagnosticSeverity.Error,
    Level.MEDIUM: types.DiagnosticSeverity.Warning,
    Level.LOW: types.DiagnosticSeverity.Information,
    Level.AUDIT: types.DiagnosticSeverity.Hint,
}


def create_server(frame: Frame, shown: Level) -> LanguageServer:
    """Create the server. Start it with ``start_io``."""
    # Editors send the whole text. pygls would apply parts of it by Python's line ends, and the protocol has fewer.
    server = LanguageServer(_SOURCE, __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full)
    session = _Session(server, frame, shown)
    for event in (types.TEXT_DOCUMENT_DID_OPEN, types.TEXT_DOCUMENT_DID_CHANGE):
        server.feature(event)(partial(session.check))
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(partial(session.close))
    kinds = types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix, _FIX_ALL])
    server.feature(types.TEXT_DOCUMENT_CODE_ACTION, kinds)(partial(session.code_actions))
    server.feature(types.TEXT_DOCUMENT_HOVER)(partial(session.hover))
    triggers = types.CompletionOptions(trigger_characters=[" ", "/", "."])
    server.feature(types.TEXT_DOCUMENT_COMPLETION, triggers)(partial(session.complete))
    return server


class _Session:
    """The open files of an editor, each with the task that checks it."""

    def __init__(self, server: LanguageServer, frame: Frame, shown: Level) -> None:
        self._server, self._frame, self._shown = server, frame, shown
        self._files: dict[str, OpenFile] = {}
        self._seconds: dict[str, float] = {}  # of processor time, for the last check after a change
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def check(self, params: types.DidOpenTextDocumentParams | types.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        if (task := self._tasks.get(uri)) is not None:
            task.cancel()
        self._tasks[uri] = asyncio.get_running_loop().create_task(self._check(uri))

    def close(self, params: types.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        self._files.pop(uri, None)
        self._seconds.pop(uri, None)
        if (task := self._tasks.pop(uri, None)) is not None:
            task.cancel()
        self._server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri=uri, diagnostics=[]))

    def code_actions(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        document = self._document(params.text_document.uri)
        only, file = params.context.only or (), _file(document)
        if _FIX_ALL in only or types.CodeActionKind.SourceFixAll in only:
            whole = fix_all(file, self._frame)
            return [] if whole is None else [_code_action(whole, document, _ranges(document), params)]
        if only and types.CodeActionKind.QuickFix not in only:
            return []
        first, last = params.range.start.line + 1, params.range.end.line + 1
        opened = self._opened(document.uri)
        if opened.file != file:
            opened.check(file)
        rows = [row for row in opened.result.rows if first <= row.place.line <= last]
        ranges = _ranges(document)
        return [_code_action(action, document, ranges, params) for action in actions(file, self._frame, rows)]

    def hover(self, params: types.HoverParams) -> types.Hover | None:
        document, line = self._document(params.text_document.uri), params.position.line
        ranges = _ranges(document)
        found = topology_at(_file(document), line, ranges.character(params.position), self._frame)
        if found is None:
            return None
        place, text = found
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text), ranges.of_place(place))

    def complete(self, params: types.CompletionParams) -> list[types.CompletionItem]:
        document, line = self._document(params.text_document.uri), params.position.line
        ranges = _ranges(document)
        character = ranges.character(params.position)
        completion = complete(_file(document), line, character, self._frame)
        word = ranges.between(line, completion.start, character)
        return [_item(number, each, word) for number, each in enumerate(completion.suggestions)]

    async def _check(self, uri: str) -> None:
        """Check a file and publish its findings. After a pause in typing, examine its unchanged objects too."""
        seconds = self._seconds.get(uri, 0.0)
        # During a long check the editor sends several changes. Wait for the last change.
        await asyncio.sleep(seconds if seconds > _LONG_CHECK_SECONDS else 0)
        document, opened, start = self._document(uri), self._opened(uri), time.process_time()
        try:
            opened.check(_file(document))
            # The first check examines every object, so it takes longer than the checks of changes.
            self._seconds[uri] = time.process_time() - start if uri in self._seconds else 0.0
            first = opened.result
            shown = [*_diagnostics(document, first)]
            self._publish(document, first, shown)
            await asyncio.sleep(_PAUSE_SECONDS)
            for _ in opened.renew():
                await asyncio.sleep(0)
            if opened.result is not first and (found := [*_diagnostics(document, opened.result)]) != shown:
                self._publish(document, opened.result, found)
        except Exception as error:  # noqa: BLE001 the editor keeps the last diagnostics
            print_message(f"evenspread lsp: {document.path}: {type(error).__name__}: {one_line(str(error))}")

    def _publish(self, document: TextDocument, result: RunResult, found: list[types.Diagnostic]) -> None:
        print_failures(result.failures)
        self._server.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri=document.uri, version=document.version, diagnostics=found)
        )

    def _opened(self, uri: str) -> OpenFile:
        return self._files.setdefault(uri, OpenFile(self._frame, self._shown))

    def _document(self, uri: str) -> TextDocument:
        return self._server.workspace.get_text_document(uri)


class _Ranges:
    """Converts positions in a file into ranges of the editor.

    A finding of `check` has lines and characters from 1. An edit has offsets in bytes.
    """

    def __init__(self, text: str, codec: PositionCodec) -> None:
        self._lines = text.split("\n")
        self._data = text.encode("utf-8", "replace")
        self._codec = codec

    def of_place(self, place: FieldPosition) -> types.Range:
        """Return the editor's range of a field, without the field's lines after the first."""
        return self.between(place.line - 1, place.column - 1, place.column - 1 + place.width)

    def of_fault(self, fault: InputFault) -> types.Range:
        """Return the range from a fault to the end of the fault's line."""
        line, column = max(fault.line - 1, 0), max(fault.column - 1, 0)
        text = self._lines[line].rstrip() if line < len(self._lines) else ""
        return self.between(line, min(column, max(len(text) - 1, 0)), len(text))

    def of_edit(self, edit: TextEdit) -> types.TextEdit:
        """The edit in the units of the editor."""
        return types.TextEdit(types.Range(self._at(edit.start), self._at(edit.end)), edit.text.decode())

    def between(self, line: int, start: int, end: int) -> types.Range:
        """The LSP range of the characters ``start`` to ``end`` in a line. Lines and characters are numbered from 0."""
        return types.Range(self._position(line, start), self._position(line, end))

    def character(self, position: types.Position) -> int:
        """The index of a position in its line, in characters."""
        return self._codec.position_from_client_units(self._lines, position).character

    def _position(self, line: int, character: int) -> types.Position:
        text = self._lines[line] if line < len(self._lines) else ""
        return types.Position(line, self._codec.client_num_units(text[:character]))

    def _at(self, index: int) -> types.Position:
        before = self._data[:index].decode("utf-8", "replace")
        return self._position(before.count("\n"), len(before) - before.rfind("\n") - 1)


def _file(document: TextDocument) -> File:
    return File(document.path, document.source.encode("utf-8", "replace"))


def _ranges(document: TextDocument) -> _Ranges:
    return _Ranges(document.source, document.position_codec)


def _diagnostics(document: TextDocument, result: RunResult) -> Iterator[types.Diagnostic]:
    ranges = _ranges(document)
    yield from (_diagnostic_of_fault(fault, ranges) for fault in result.faults)
    yield from (_diagnostic(row, ranges) for row in result.rows)


def _diagnostic(row: Row, ranges: _Ranges) -> types.Diagnostic:
    return types.Diagnostic(
        range=ranges.of_place(row.place),
        message=message(row) + (f"\nfix: {fix(row)}" if fix(row) else ""),
        severity=_SEVERITIES[level_of(row)],
        code=row.judged.finding.rule,
        code_description=types.CodeDescription(row.url),
        source=_SOURCE,
    )


def _diagnostic_of_fault(fault: InputFault, ranges: _Ranges) -> types.Diagnostic:
    severity = types.DiagnosticSeverity.Error if fault.fatal else types.DiagnosticSeverity.Information
    return types.Diagnostic(range=ranges.of_fault(fault), message=fault.message, severity=severity, source=_SOURCE)


def _item(number: int, suggestion: Suggestion, word: types.Range) -> types.CompletionItem:
    return types.CompletionItem(
        label=suggestion.text,
        kind=types.CompletionItemKind.Value,
        detail=suggestion.detail,
        sort_text=f"{number:04}",
        filter_text=suggestion.text,
        text_edit=types.TextEdit(word, suggestion.text),
    )


def _code_action(
    action: Action, document: TextDocument, ranges: _Ranges, params: types.CodeActionParams
) -> types.CodeAction:
    edits = [ranges.of_edit(edit) for edit in action.edits]
    versioned = types.OptionalVersionedTextDocumentIdentifier(uri=document.uri, version=document.version)
    row = action.row
    return types.CodeAction(
        title=action.title,
        kind=types.CodeActionKind.QuickFix if row is not None else _FIX_ALL,
        diagnostics=None
        if row is None
        else [
            shown
            for shown in params.context.diagnostics
            if (shown.code, shown.range) == (row.judged.finding.rule, ranges.of_place(row.place))
        ],
        is_preferred=True if action.is_fix else None,
        edit=types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(versioned, edits)]),
    )
