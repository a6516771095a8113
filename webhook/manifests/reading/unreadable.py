"""Explain why a document is neither JSON nor YAML.

An unreadable document with an apiVersion and a kind *claims* to be a Kubernetes object, so the fault is an error. Any
other unreadable document of a repository gets a note. A template also gets a note.
"""

import re

from webhook.manifests.reading.documents import NOT_JSON, InputDocument, InputFault
from webhook.manifests.reading.yaml_scalars import UnreadableDocumentError

TEMPLATE = "a template; check its output: helm template CHART | evenspread check -"
_TYPE_FIELD = re.compile(rb"""^["']?(apiVersion|kind)["']?[ \t]*:""", re.MULTILINE)
_TYPE_MEMBER = re.compile(rb'"(apiVersion|kind)"\s*:')
# An action of a template on its own line. Inside a block of text it does not break the YAML.
_ACTION_LINE = re.compile(r"^[ \t]*(?:-[ \t]+)?\{[{%]", re.MULTILINE)
# A key with a value printed by Go. Source: Go fmt ``printValue``, the verb %v.
_GO_VALUE = re.compile(r"^([ ]*(?:- )?)([\w-]+):\s*\[*map\[", re.MULTILINE)
_GO_MAP = re.compile(r"map\[[^\]\s:]+:")
_MOST_KEY_CHARS = 317  # of a label's key: a prefix of 253, a slash and 63
# msgspec's words for an invalid character in JSON, and the words of Go's decoder as printed by kubectl. Source:
# encoding/json/scanner.go ``stateBeginString``, ``stateEndValue``, ``stateBeginValue``.
_GO_WORDS = {
    "expected '\"'": "looking for beginning of object key string",
    "expected ':'": "after object key",
    "expected ',' or '}'": "after object key:value pair",
    "expected ',' or ']'": "after array element",
    "": "looking for beginning of value",
}


def unreadable(document: InputDocument, error: UnreadableDocumentError) -> InputFault:
    """The fault for an unreadable document."""
    foreign = not _claims_in_text(document.text)
    if document.malformed and document.text[document.malformed_at :].startswith((b"//", b"/*")):
        words = _GO_WORDS.get(document.malformed.removeprefix(NOT_JSON), _GO_WORDS[""])
        message = f"{NOT_JSON}invalid character '/' {words}; JSON has no comments: remove them"
        return document.fault(message, document.malformed_at, foreign=foreign)
    if document.malformed and document.text.lstrip()[1:].lstrip().startswith(b'"'):
        return document.fault(document.malformed, document.malformed_at, foreign=foreign)
    text = document.text.decode("utf-8", "replace").removeprefix("\ufeff")
    character = text[error.index : error.index + 1] if error.index is not None else ""
    message = error.message
    if _is_template(text, error.index):
        return document.fault(TEMPLATE, error.index, foreign=True)
    if character == "\t":
        message = "a tab character; YAML is indented with spaces"
    elif message.startswith("found character that"):
        message = f"a plain text cannot start with {character}; quote it"
    elif go_text := _as_go_prints(text, error.index or 0):
        message = go_text
    return document.fault(f"not YAML: {message}", error.index, foreign=foreign)


def _as_go_prints(text: str, index: int) -> str:
    """The message for a value printed by a Helm template without toYaml: ``[map[maxSkew:1]]``."""
    start = text.rfind("\n", 0, index) + 1
    if not _GO_MAP.search(text, start, index + _MOST_KEY_CHARS):
        return ""
    # The key is on this line or the line above.
    key = _GO_VALUE.search(text, text.rfind("\n", 0, max(start - 1, 0)) + 1, index + 1)
    column, name = (len(key[1]), key[2]) if key else (len(text[start:]) - len(text[start:].lstrip()), "x")
    return f"a Go value, not YAML; in a Helm template write {{{{- toYaml .Values.{name} | nindent {column + 2} }}}}"


def _claims_in_text(text: bytes) -> bool:
    """Whether an unparsable text has an apiVersion and a kind."""
    pattern = _TYPE_MEMBER if text.lstrip().startswith(b"{") else _TYPE_FIELD
    return len({*pattern.findall(text)}) > 1


def _is_template(text: str, index: int | None) -> bool:
    """Whether a template action, or a placeholder such as ``%s``, breaks the YAML at this index."""
    if _ACTION_LINE.search(text):
        return True
    at = index or 0
    line = text[text.rfind("\n", 0, at) + 1 :].partition("\n")[0]
    return "{{" in line or text[at : at + 1] == "%"
