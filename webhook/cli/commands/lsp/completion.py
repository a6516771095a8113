"""Complete the label keys of nodes and of a workload's own pods while typing.

A YAML parser cannot read an unfinished document. So the fields around the cursor are found by lines and indentation.
"""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from webhook.cli.commands.lsp.open_file import workloads
from webhook.cli.frame import Frame
from webhook.core.api.well_known import HOSTNAME, REGION, ZONE
from webhook.core.index.nodes import NodeView
from webhook.core.text import plural
from webhook.core.workloads.workload import Workload
from webhook.core.yaml_text import flow_scalar
from webhook.manifests.reading.files import File

_BEFORE_A_WORD = " \t\"',{}[]"
_KEY = re.compile(r"""((?:- +)*)["']?([\w./-]+)["']?:(?:\s|\Z)""")
_TOKEN = re.compile(r"""(?<![\w./-])(?P<key>[\w./-]+)["']?:|(?P<open>[{\[])|(?P<close>[}\]])|(?P<next>,)""")
_USUAL_KEYS = (ZONE, HOSTNAME, REGION)
_OF_NODES = frozenset({"nodeSelectorTerms", "preference"})


class Suggestion(Struct, frozen=True):
    """A suggested completion of the word at the cursor, and a short description of it for the editor."""

    text: str
    detail: str


class Completion(Struct, frozen=True):
    """The suggestions for the word from the character ``start`` of the line to the cursor, the best first."""

    start: int
    suggestions: tuple[Suggestion, ...] = ()


def complete(file: File, line: int, character: int, frame: Frame) -> Completion:
    """Return completions for the word at this line and character. Both count from 0."""
    lines = file.data.decode("utf-8", "replace").split("\n")
    before = lines[line][:character] if line < len(lines) else ""
    start = 1 + max(before.rfind(each) for each in _BEFORE_A_WORD)
    around = [*_fields(lines[:line], before[:start]), "", "", ""]
    return Completion(start, tuple(_suggestions(file, line, around, frame)))


def _suggestions(file: File, line: int, around: Sequence[str], frame: Frame) -> Iterator[Suggestion]:
    """Yield the suggestions for a line. ``around`` are the keys of the fields around it, innermost first."""
    field, outer, third = around[:3]
    is_key = field == "key" and outer == "matchExpressions"
    if field == "topologyKey" or (is_key and third in _OF_NODES):
        yield from _node_keys(frame)
    elif field in {"matchLabels", "matchLabelKeys"} or outer == "matchLabels" or (is_key and third == "labelSelector"):
        workload = _workload_at(file, line, frame)
        labels = {} if workload is None else _labels(workload)
        if outer == "matchLabels":
            yield from (
                Suggestion(flow_scalar(value), "label of the pods") for key, value in labels.items() if key == field
            )
        elif field == "matchLabels":
            yield from (
                Suggestion(f"{key}: {flow_scalar(value)}", "label of the pods") for key, value in labels.items()
            )
        else:
            yield from (Suggestion(key, f"label of the pods: {value}") for key, value in labels.items())
        if field == "matchLabelKeys" and workload is not None and workload.traits.revision:
            yield Suggestion(workload.traits.revision, "the revision of the template")


def _node_keys(frame: Frame) -> Iterator[Suggestion]:
    """Yield the nodes' label keys: zone, hostname and region, then others by name. Without nodes, only the three."""
    view = None if frame.index is None else frame.index.nodes.view()
    if view is None or not view.keys:
        yield from (Suggestion(key, "well-known label of nodes") for key in _USUAL_KEYS)
        return
    usual = [key for key in _USUAL_KEYS if key in view.keys]
    for key in (*usual, *sorted(view.keys.difference(usual))):
        yield Suggestion(key, _domains(view, key))


def _domains(view: NodeView, key: str) -> str:
    column = view.column(key)
    return f"{plural(len(column.values), 'domain')} on {plural(column.present.bit_count(), 'node')}"


def _labels(workload: Workload) -> dict[str, str]:
    return {key: value for template in workload.templates for key, value in template.pod.labels.items()}


def _workload_at(file: File, line: int, frame: Frame) -> Workload | None:
    """Return the workload at a line, which counts from 0. None without such a workload.

    This is the last workload of the line's YAML document that begins at or above the line. If none is found, for
    example because the file cannot be parsed, the file is parsed again with this line blank.
    """
    lines = file.data.split(b"\n")
    without = b"\n".join((*lines[:line], b"", *lines[line + 1 :]))
    for data in (file.data, without):
        above = [
            workload
            for manifest, workload in workloads(File(file.name, data), frame)
            if manifest.locate("").line <= line + 1 < manifest.document.line + manifest.document.text.count(b"\n") + 1
        ]
        if above:
            return above[-1]
    return None


def _fields(above: Sequence[str], before: str) -> Iterator[str]:
    """Yield the keys of the fields around a position, the innermost first. ``before`` is its line up to it."""
    yield from (key for key in reversed(_in_line(before)) if key)
    margin, is_item = _indent(before)
    for line in reversed(above):
        key, (dash, item) = _KEY.match(line.lstrip(" ")), _indent(line)
        if key is None:
            continue
        column = dash + len(key[1])
        # A list can have the same indentation as its key.
        if column < margin or (is_item and column == margin):
            yield key[2]
            margin, is_item = (dash, True) if item else (column, False)


def _indent(line: str) -> tuple[int, bool]:
    """The number of leading spaces, and whether a dash follows, which starts a list item."""
    text = line.lstrip(" ")
    return len(line) - len(text), text.startswith("-")


def _in_line(before: str) -> list[str]:
    """The keys of the brackets still open at the end of a line, outermost first.

    Brackets are flow mappings or lists. The last entry is the current key. A mapping inside a list has the key ``""``.

    Example:
        ``_in_line("topologySpreadConstraints: [{maxSkew: ")`` is ``["topologySpreadConstraints", "", "maxSkew"]``.
    """
    opened, key = list[str](), ""
    for token in _TOKEN.finditer(before):
        if token["key"]:
            key = token["key"]
        elif token["open"]:
            opened.append(key)
            key = ""
        elif token["close"]:
            key = opened.pop() if opened else ""
        else:
            key = ""
    return [*opened, key]
