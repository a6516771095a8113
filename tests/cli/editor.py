"""An editor for tests: pygls' client, and ``evenspread lsp`` in a process of its own."""

import asyncio
import sys
from itertools import count
from pathlib import Path

from lsprotocol import types
from pygls.lsp.client import LanguageClient

_LONG_ENOUGH = 60  # seconds, on a busy machine


class Editor:
    """Open files of a language server. `open` and `type` return the diagnostics of the new text."""

    def __init__(self, directory, *options, encoding=None):
        self.directory = directory
        self._loop = asyncio.new_event_loop()
        self._versions, self._version = count(1), 0
        self._published = asyncio.Queue()
        self._client = LanguageClient("editor", "1")
        self._client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: self._published.put_nowait(params))  # noqa: PLW0108 pygls marks it
        self.server = self.wait(self._start(options, encoding))

    async def _start(self, options, encoding):
        command = ["-m", "evenspread", "lsp", "--stdio", "--no-config", *options]
        await self._client.start_io(sys.executable, *command)
        general = None if encoding is None else types.GeneralClientCapabilities(position_encodings=[encoding])
        capabilities = types.ClientCapabilities(general=general)
        started = await self._client.initialize_async(types.InitializeParams(capabilities=capabilities))
        self._client.initialized(types.InitializedParams())
        return started

    def wait(self, coroutine):
        return self._loop.run_until_complete(asyncio.wait_for(coroutine, _LONG_ENOUGH))

    def uri(self, name):
        return (Path(self.directory) / name).as_uri()

    def open(self, text, name="web.yaml"):
        self._version = next(self._versions)
        document = types.TextDocumentItem(self.uri(name), "yaml", self._version, text)
        self._client.text_document_did_open(types.DidOpenTextDocumentParams(document))
        return self._diagnostics(document.uri, document.version)

    def type(self, text, name="web.yaml"):
        self._version = next(self._versions)
        document = types.VersionedTextDocumentIdentifier(self._version, self.uri(name))
        change = types.TextDocumentContentChangeWholeDocument(text)
        self._client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))
        return self._diagnostics(document.uri, document.version)

    def pause(self, name="web.yaml"):
        """The diagnostics that follow for the same text, once nobody types."""
        return self._diagnostics(self.uri(name), self._version)

    def close(self, name="web.yaml"):
        document = types.TextDocumentIdentifier(self.uri(name))
        self._client.text_document_did_close(types.DidCloseTextDocumentParams(document))
        return self._diagnostics(document.uri, None)

    def _diagnostics(self, uri, version):
        while True:
            published = self.wait(self._published.get())
            if (published.uri, published.version) == (uri, version):
                return published.diagnostics

    def actions(self, text, first, last=None, *, diagnostics=(), only=None, name="web.yaml"):
        """The code actions for lines from 0: each title with the text after it."""
        area = types.Range(types.Position(first, 0), types.Position(first if last is None else last, 0))
        params = types.CodeActionParams(
            types.TextDocumentIdentifier(self.uri(name)), area, types.CodeActionContext([*diagnostics], only)
        )
        self.offered = self.wait(self._client.text_document_code_action_async(params))
        return {action.title: _after(text, action.edit.document_changes[0].edits) for action in self.offered}

    def hover(self, line, character, name="web.yaml"):
        document, place = types.TextDocumentIdentifier(self.uri(name)), types.Position(line, character)
        return self.wait(self._client.text_document_hover_async(types.HoverParams(document, place)))

    def complete(self, line, character, name="web.yaml"):
        document, place = types.TextDocumentIdentifier(self.uri(name)), types.Position(line, character)
        return self.wait(self._client.text_document_completion_async(types.CompletionParams(document, place)))

    def quit(self):
        """End the server. Returns its exit code."""

        async def end():
            await self._client.shutdown_async(None)
            self._client.exit(None)
            code = await self._client._server.wait()
            await self._client.stop()
            return code

        try:
            return self.wait(end())
        finally:
            self._loop.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.quit()


def _after(text, edits):
    """The text after the edits, whose positions count characters."""
    lines = [*text.splitlines(keepends=True), ""]
    starts = [sum(map(len, lines[:number])) for number in range(len(lines))]
    for edit in sorted(edits, key=lambda edit: edit.range.start, reverse=True):
        start, end = (starts[place.line] + place.character for place in (edit.range.start, edit.range.end))
        text = text[:start] + edit.new_text + text[end:]
    return text
