"""Turn new values of an object into edits of its YAML text.

Every other byte stays: comments, order and quotes. A value is replaced in place. A field or item is added after the
last one, or removed with its line. Fields can be renamed. The module refuses edits of anchors, aliases, tags, and
comments inside removed text, with the reason. Callers check each edited file again (`proven_edits`), so a wrong edit
cannot break a file.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from webhook.core.json_edits import GONE, without_gone
from webhook.core.yaml_text import block_lines, flow, flow_scalar, one_field
from webhook.manifests.editing.document_text import (
    Text,
    TextEdit,
    UneditableError,
    column,
    line_break,
    line_end,
    list_indent,
    text_of,
)
from webhook.manifests.reading.go_yaml import Json
from webhook.manifests.reading.manifest import Manifest
from webhook.manifests.reading.positions import Span, ValuePosition, follow

_COLON = re.compile(r"[ \t]*:")
_SHARED = re.compile(r"(?:^|[\s,{\[:-])[&*!]\S")
_COMMENT = re.compile(r"(?:^|\s)#", re.MULTILINE)


class _Replacement(Struct, frozen=True):
    """The characters from ``start`` to before ``end`` are replaced by ``text``."""

    start: int
    end: int
    text: str


class _Member(Struct, frozen=True):
    """A field of a YAML mapping, with its position in the text. ``end`` is the end of its value."""

    name: str
    key: Span
    node: ValuePosition
    end: int


def rewritten(data: bytes, manifest: Manifest, before: Json, after: Json) -> list[TextEdit]:
    """Return the edits of the file ``data`` that change an object from ``before`` to ``after``.

    ``after`` is a value of `core.json_edits.marked`.

    Raises:
        UneditableError: The edit would touch other bytes.
    """
    text = text_of(data, manifest)
    root = text.root
    for key, node, _ in follow(root, manifest.prefix.removesuffix(".")):
        _check_own(text.text, root, key, node)
        root = node
    changes = _joined(text.text, sorted(_changes(text, root, before, after), key=lambda change: change.start))
    for one, other in pairwise(changes):
        if other.start < one.end:
            raise UneditableError("the changes overlap")
    edits = [text.edit(change.start, change.end, change.text) for change in changes]
    # The document's text ends with a line break even if the file does not.
    return [TextEdit(min(edit.start, len(data)), min(edit.end, len(data)), edit.text) for edit in edits]


def _joined(text: str, changes: Sequence[_Replacement]) -> list[_Replacement]:
    """Sort the replacements by position. Merge an inserted line with the removal of the line right before it."""
    joined: list[_Replacement] = []
    for change in changes:
        last = joined[-1] if joined else None
        if (
            last is not None
            and not last.text
            and change.start == change.end
            and last.start < change.start <= last.end
            and text[change.start : last.end] in {"\n", "\r\n"}
        ):
            joined[-1] = _Replacement(last.start, last.end, change.text.lstrip("\r\n") + text[change.start : last.end])
        else:
            joined.append(change)
    return joined


def _changes(page: Text, node: ValuePosition, before: Json, after: Json) -> Iterator[_Replacement]:
    """Yield the text replacements that turn the value ``before`` into ``after``."""
    if _alike(before, after):
        return
    if isinstance(before, Mapping) and _has_place_for(after, node, before):
        yield from _in_mapping(page, node, before, after)
    elif isinstance(before, list) and _has_place_for(after, node, before):
        yield from _in_list(page, node, before, after)
    else:
        yield _replaced(page, node, after)


def _has_place_for(after: Json, node: ValuePosition, before: Json) -> bool:
    """Whether the mapping or list can be edited entry by entry instead of replaced as a whole."""
    if isinstance(before, Mapping):
        return isinstance(after, Mapping) and node.fields is not None
    if isinstance(before, list):
        return isinstance(after, list) and node.items is not None and len(before) <= len(after)
    return False


def _in_mapping(
    page: Text, node: ValuePosition, before: Mapping[str, Json], after: Mapping[str, Json]
) -> Iterator[_Replacement]:
    members = {member.name: member for member in _members(page, node)}
    gone = [name for name in before if _goes(before[name], after.get(name, GONE))]
    new = [name for name in after if name not in before]
    for name in before:
        if name not in gone and not _alike(before[name], after[name]):
            yield from _in_member(page, node, _member(members, name), before[name], after[name])
    for name in [*new]:
        # A removed and an added field with equal values are a corrected spelling: only the name changes.
        old = next((old for old in gone if _alike(before[old], after[name])), None)
        if old is not None:
            new.remove(name)
            gone.remove(old)
            key = _member(members, old).key
            yield _Replacement(key.start, key.end, json.dumps(name) if page.json else flow_scalar(name))
    if not gone and not new:
        return
    # Fields are added or removed below. Their neighbours decide which text may change.
    order = [*members.values()]
    removed = {order.index(_member(members, name)) for name in gone}
    fields = {name: without_gone(after[name]) for name in new}
    if len(removed) == len(order) and (not fields or _is_flow(page, node)):
        yield _replaced(page, node, fields)
    elif len(removed) == len(order):
        whole = _replaced(page, node, fields)
        margin = " " * column(page.text, node.start)
        break_ = line_break(page.text, line_end(page.text, node.start))
        yield _Replacement(
            whole.start, whole.end, f"{break_}{margin}".join(one_field(*item) for item in fields.items())
        )
    elif _is_flow(page, node):
        added = "".join(
            _separator(page, node, order[0].key.start) + _written_member(page, *item, node) for item in fields.items()
        )
        yield from _in_brackets(page, [(member.key.start, member.end) for member in order], removed, added)
    else:
        yield from _on_lines(page, node, order, removed, fields)


def _goes(before: Json, after: Json) -> bool:
    """Whether an edit removes the whole value, or removes every item of a list."""
    return after is GONE or (isinstance(after, list) and bool(before) and all(item is GONE for item in after))


def _in_member(page: Text, node: ValuePosition, member: _Member, before: Json, after: Json) -> Iterator[_Replacement]:
    """Yield the text replacements that change the value of a field."""
    _check_own(page.text, node, member.key, member.node)
    beside = "\n" not in page.text[member.key.end : member.node.start]
    if member.node.start < member.node.end and (beside or page.json or _has_place_for(after, member.node, before)):
        yield from _changes(page, member.node, before, after)
        return
    # The value is absent, or on lines of its own: the new value goes on the key's line.
    colon = _COLON.match(page.text, member.key.end)
    if colon is None:
        raise UneditableError("a key is not followed by a colon")
    end = max(member.end, colon.end())
    _check_plain(page.text[colon.end() : end])
    whole = without_gone(after)
    if _is_list_of_mappings(whole) and not _is_flow(page, node):
        margin = line_break(page.text, line_end(page.text, end)) + " " * column(page.text, member.key.start)
        lines = _field_lines(page, node, member.name, whole)[1:]
        yield _Replacement(colon.end(), end, "".join(f"{margin}{line}" for line in lines))
    else:
        yield _Replacement(colon.end(), end, f" {flow(whole)}")


def _is_list_of_mappings(value: Json) -> bool:
    return isinstance(value, list) and any(isinstance(item, Mapping) for item in value)


def _field_lines(page: Text, node: ValuePosition, name: str, value: Json) -> list[str]:
    """Return the lines of a new field: a line for each field of a list of mappings, else a single line."""
    if _is_list_of_mappings(value):
        return [*block_lines({name: value}, indent=list_indent(page.text, node))]
    return [one_field(name, value)]


def _members(page: Text, node: ValuePosition) -> list[_Member]:
    """Return the fields of a YAML mapping in the order of the text, without fields of aliases and ``<<`` keys."""
    own = []
    for name, (key, child) in (node.fields or {}).items():
        if node.start <= key.start < node.end and key.end <= child.start <= node.end:
            colon = _COLON.match(page.text, key.end)
            end = _end(page, child) if child.start < child.end else colon.end() if colon else key.end
            own.append(_Member(name, key, child, end))
    return sorted(own, key=lambda member: member.key.start)


def _member(members: Mapping[str, _Member], name: str) -> _Member:
    if name not in members:
        raise UneditableError("the value comes from an alias or a merge key")
    return members[name]


def _check_own(text: str, parent: ValuePosition, key: Span, node: ValuePosition) -> None:
    """Raise UneditableError for a value of an alias or merge key, or with an anchor, a tag or a block scalar."""
    if not (parent.start <= key.start and key.end <= node.start and node.end <= parent.end):
        raise UneditableError("the value comes from an alias or a merge key")
    for place in (parent, node):
        if place.start < place.end and text[place.start] in "&!*|>":
            raise UneditableError("the value has an anchor, a tag or a block of text")


def _end(page: Text, node: ValuePosition) -> int:
    """Return the end of a YAML value. libyaml's end of a block is the start of the next token, which is too late."""
    if node.start == node.end or _is_flow(page, node) or (node.fields is None and node.items is None):
        text = page.text[node.start : node.end]
        # With ``+``, the empty lines at the end of a block of text are part of it.
        own = text.removesuffix("\n").removesuffix("\r") if "+" in text.partition("\n")[0] else text.rstrip()
        return node.start + len(own)
    if node.fields is not None:
        return max((member.end for member in _members(page, node)), default=node.end)
    return max((_end(page, item) for item in node.items or ()), default=node.end)


def _replaced(page: Text, node: ValuePosition, after: Json) -> _Replacement:
    if page.text[node.start : node.start + 1] in {"&", "!", "*", "|", ">"} and not page.json:
        raise UneditableError("the value has an anchor, a tag or a block of text")
    if node.start == node.end:
        raise UneditableError("the value is empty")
    end = _end(page, node)
    if not page.json and (node.fields is not None or node.items is not None):
        _check_plain(page.text[node.start : end])
    return _Replacement(node.start, end, _written(page, without_gone(after), node))


def _separator(page: Text, node: ValuePosition, first: int) -> str:
    """Return the text between two entries in brackets. JSON repeats the white space before the first entry."""
    margin = page.text[node.start + 1 : first] if page.json else ""
    return f",{margin}" if "\n" in margin or (page.json and not margin and ": " not in page.text) else ", "


def _check_plain(text: str) -> None:
    """Raise UneditableError if the replaced text has a comment, an anchor, an alias or a tag."""
    if _COMMENT.search(text):
        raise UneditableError("the replaced text contains a comment")
    if _SHARED.search(text):
        raise UneditableError("the replaced text contains an anchor, an alias or a tag")


def _in_brackets(
    page: Text, spans: Sequence[tuple[int, int]], removed: Collection[int], added: str
) -> Iterator[_Replacement]:
    """Yield the replacements in brackets: removed entries with their commas, ``added`` after the last that stays."""
    last = len(spans) - 1
    # Entries after the last remaining one take their commas along.
    while last in removed:
        last -= 1
    for place, (start, _) in enumerate(spans[:last]):
        if place in removed:
            _check_no_comment(page.text[start : spans[place + 1][0]])
            yield _Replacement(start, spans[place + 1][0], "")
    _check_no_comment(page.text[spans[last][1] : spans[-1][1]])
    if last < len(spans) - 1 or added:
        yield _Replacement(spans[last][1], spans[-1][1], added)


def _on_lines(
    page: Text, node: ValuePosition, order: Sequence[_Member], removed: Collection[int], fields: Mapping[str, Json]
) -> Iterator[_Replacement]:
    """Yield the replacements that remove fields of a block mapping and add new fields.

    The removed fields lose their whole lines. New lines follow the last remaining field. ``order`` has the fields in
    file order, and ``removed`` the indexes of those to remove.
    """
    text = page.text
    if not all(_begins_line(text, item) for item in order[1:]):
        raise UneditableError("the fields of a mapping share a line")
    stays = min(place for place in range(len(order)) if place not in removed)
    for place in sorted(removed):
        end = _whole_lines(text, order[place].end)
        if place or _begins_line(text, order[0]):
            line = text.rfind("\n", 0, order[place].key.start) + 1
            if place > stays or _begins_line(text, order[0]):
                yield _removed_lines(text, line, end)
        else:
            # The first field shares a line with the item's hyphen. The next field moves up to it.
            _check_no_comment(text[end : order[stays].key.start])
            yield _Replacement(order[0].key.start, order[stays].key.start, "")
    if fields:
        behind = order[max(place for place in range(len(order)) if place not in removed)]
        margin = " " * column(text, order[0].key.start)
        end = line_end(text, behind.end)
        lines = (line for item in fields.items() for line in _field_lines(page, node, *item))
        added = "".join(f"{line_break(text, end)}{margin}{line}" for line in lines)
        yield _Replacement(end, end, added)


def _begins_line(text: str, member: _Member) -> bool:
    return not text[text.rfind("\n", 0, member.key.start) + 1 : member.key.start].strip(" ")


def _check_no_comment(text: str) -> None:
    if _COMMENT.search(text):
        raise UneditableError("the removed text contains a comment")


def _whole_lines(text: str, end: int) -> int:
    """Return the start of the next line. Raises UneditableError for text after ``end`` other than a comment."""
    rest = re.compile(r"[ \t]*(?:[ \t]#[^\n]*)?\r?(?:\n|$)").match(text, end)
    if rest is None:
        raise UneditableError("the line contains other text")
    return rest.end()


def _in_list(page: Text, node: ValuePosition, before: Sequence[Json], after: Sequence[Json]) -> Iterator[_Replacement]:
    items = node.items or []
    gone = [place for place, each in enumerate(after[: len(before)]) if _goes(before[place], each)]
    new = [without_gone(item) for item in after[len(before) :]]
    if len(items) != len(before):
        raise UneditableError("the value comes from an alias or a merge key")
    for place, (one, other) in enumerate(zip(before, after, strict=False)):
        if place not in gone and not _alike(one, other):
            _check_own(page.text, node, Span(items[place].start, items[place].start), items[place])
            yield from _changes(page, items[place], one, other)
    if not gone and not new:
        return
    if not before or len(gone) == len(before):
        yield _replaced(page, node, new)
    elif _is_flow(page, node):
        added = "".join(_separator(page, node, items[0].start) + _written(page, item, node) for item in new)
        yield from _in_brackets(page, [(item.start, item.end) for item in items], gone, added)
    else:
        yield from (_without_item(page, node, place) for place in gone)
        if new:
            yield _with_items(page, node, new)


def _dash(page: Text, item: ValuePosition) -> int:
    """Return the position of a list item's hyphen. Raises UneditableError unless it begins its line."""
    dash = page.text.rfind("-", 0, item.start)
    line = page.text.rfind("\n", 0, dash) + 1
    if dash < 0 or page.text[dash + 1 : item.start].strip(" ") or page.text[line:dash].strip(" "):
        raise UneditableError("an item does not start on its own line")
    return dash


def _without_item(page: Text, node: ValuePosition, place: int) -> _Replacement:
    item = (node.items or [])[place]
    line = page.text.rfind("\n", 0, _dash(page, item)) + 1
    end = _whole_lines(page.text, _end(page, item))
    return _removed_lines(page.text, line, end)


def _removed_lines(text: str, line: int, end: int) -> _Replacement:
    """Remove whole lines. If the last lacks a line break, remove the break before the first."""
    return _Replacement(line if text[end - 1] == "\n" else line - 1, end, "")


def _with_items(page: Text, node: ValuePosition, new: Sequence[Json]) -> _Replacement:
    text, last = page.text, (node.items or [])[-1]
    dash = _dash(page, last)
    margin = " " * column(text, dash)
    end = line_end(text, _end(page, last))
    lines = (
        line for item in new for line in (block_lines([item]) if text[last.start] not in "{[" else [f"- {flow(item)}"])
    )
    return _Replacement(end, end, "".join(f"{line_break(text, end)}{margin}{line}" for line in lines))


def _written(page: Text, value: Json, near: ValuePosition) -> str:
    """Write a value on a single line. JSON uses the same spaces after colons and commas as the value at ``near``."""
    if not page.json:
        return flow(value)
    spaced = ": " in page.text[near.start : near.end] or "\n" in page.text[near.start : near.end]
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": ") if spaced else (",", ":"))


def _written_member(page: Text, name: str, value: Json, near: ValuePosition) -> str:
    return _written(page, {name: value}, near)[1:-1] if page.json else one_field(name, value)


def _is_flow(page: Text, node: ValuePosition) -> bool:
    """Whether a mapping or a list is written in brackets."""
    return page.json or page.text[node.start] in "{["


def _alike(one: Json, other: Json) -> bool:
    """Whether two values are the same JSON. Python's == also equates True, 1 and 1.0."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    return type(one) is type(other) and bool(one == other)
