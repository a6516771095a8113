"""Insert constraints into the text of a manifest without changing any other byte.

An insertion is whole lines (YAML in block style) or a member between two others (JSON). Anything else is refused with
the reason. Callers read the result again (`proven_edits`), so a missing refusal cannot break a file.
"""

import json
import re
from collections.abc import Mapping, Sequence

from webhook.core.yaml_text import block_lines
from webhook.manifests.editing.document_text import (
    TextEdit,
    UneditableError,
    line_break,
    line_end,
    list_indent,
    text_of,
)
from webhook.manifests.reading.manifest import Manifest
from webhook.manifests.reading.positions import Span, ValuePosition, follow

FIELD = "topologySpreadConstraints"

# What may follow the key if there are no constraints: an empty list or null, and a comment.
_NOTHING = re.compile(
    r"(?P<sign>[ \t]*:)(?:[ \t]*(?:\[[ \t]*\]|null|Null|NULL|~))?(?P<rest>[ \t]*|[ \t]+#[^\r\n]*)(?=\r?\n|$)"
)


def insertion(data: bytes, manifest: Manifest, path: str, constraints: Sequence[Mapping[str, object]]) -> TextEdit:
    """Return the edit of the file ``data`` that adds constraints to the pod spec at this path of an object.

    Raises:
        UneditableError: The edit would touch other bytes.
    """
    text = text_of(data, manifest)
    key, spec = _spec(text.text, text.root, manifest.prefix + path)
    if text.json:
        return text.edit(*_in_json(text.text, spec, constraints))
    return text.edit(*_in_block_style(text.text, key, spec, constraints))


def _in_block_style(
    text: str, key: Span, spec: ValuePosition, constraints: Sequence[Mapping[str, object]]
) -> tuple[int, int, str]:
    """Return the insertion into a pod spec in block style: start and end of the replaced text, and the new text."""
    if text[spec.start] == "{":
        raise UneditableError("the pod spec is written in flow style ({…})")
    if text[spec.start] == "!":
        raise UneditableError("the pod spec has a tag")
    line = text.rfind("\n", 0, spec.start) + 1
    margin = text[line : spec.start]
    if margin.strip(" "):
        raise UneditableError("the pod spec does not start on its own line")
    lines = block_lines({FIELD: constraints}, indent=list_indent(text, spec))
    own = (spec.fields or {}).get(FIELD)
    # A field merged into the spec is written in another place.
    if own is None or not spec.start <= own[0].start < spec.end:
        end = line_end(text, key.end)
        break_ = line_break(text, end)
        return end, end, "".join(f"{break_}{margin}{added}" for added in lines)
    empty = _NOTHING.match(text, own[0].end)
    if empty is None:
        raise UneditableError(f"{FIELD} exists and is empty, in a form that evenspread cannot edit")
    next(lines)
    break_ = line_break(text, empty.end())
    items = "".join(f"{break_}{margin}{added}" for added in lines)
    return empty.start(), empty.end(), f"{empty['sign']}{empty['rest'].rstrip() and empty['rest']}{items}"


def _spec(text: str, root: ValuePosition, path: str) -> tuple[Span, ValuePosition]:
    """The key of the pod spec, and the pod spec. Raises UneditableError for an alias or a merge key."""
    way = [*follow(root, path)]
    if not way or way[-1][2] or not way[-1][1].fields:
        raise UneditableError("the object has no pod spec")
    parent = root
    for key, node, _ in way:
        if "&" in (text[parent.start], text[node.start]):
            raise UneditableError("the pod spec has an anchor: the addition would appear at every alias")
        if not (parent.start <= key.start and key.end <= node.start and node.end <= parent.end):
            raise UneditableError("the pod spec comes from an alias or a merge key")
        parent = node
    return way[-1][0], parent


def _in_json(text: str, spec: ValuePosition, constraints: Sequence[Mapping[str, object]]) -> tuple[int, int, str]:
    fields = spec.fields or {}
    # The first member shows how its author writes: margin, colon, line breaks.
    key, value = next(iter(fields.values()))
    margin = text[spec.start + 1 : key.start]
    colon = text[key.end : value.start]
    own = fields.get(FIELD)
    written = _json_text(constraints, margin, text, spec, spaced=colon.endswith(" "))
    if own is not None:
        return own[1].start, own[1].end, written
    added = f'"{FIELD}"{colon}{written},{margin or (" " if colon.endswith(" ") else "")}'
    return key.start, key.start, added


def _json_text(
    constraints: Sequence[Mapping[str, object]], margin: str, text: str, spec: ValuePosition, *, spaced: bool
) -> str:
    """Return the constraints as JSON text, formatted like the neighbouring fields.

    ``margin`` is the white space before the first field of the pod spec. If it contains a line break, the JSON has
    several lines. Otherwise, ``spaced`` adds spaces after ``,`` and ``:``.
    """
    if "\n" not in margin:
        return json.dumps(constraints, separators=(", ", ": ") if spaced else (",", ":"))
    line = text.rfind("\n", 0, spec.start) + 1
    outer = re.compile(r"[ \t]*").match(text, line)
    inner = margin.rpartition("\n")[2]
    unit = inner.removeprefix(outer[0]) if outer else ""
    lines = json.dumps(constraints, indent=unit or "  ").split("\n")
    return (("\r\n" if "\r\n" in margin else "\n") + inner).join(lines)
