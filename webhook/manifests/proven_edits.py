"""Nothing about an edited text is taken on trust: read again, it must hold the same objects but for what was to change.

Of changes that do not hold together, those are kept that do.
"""

import json
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from webhook.manifests.documents import Fault
from webhook.manifests.files import File
from webhook.manifests.insertion import Edit
from webhook.manifests.manifest import Manifest, read_manifests

Json = Any  # raw JSON from outside: core.apiserver.decoding gives it types

Found = Sequence[Manifest | Fault]


class Change(Struct, frozen=True):
    """What one object of a file becomes: ``number`` is its place among what the file holds."""

    number: int
    after: Json
    edits: tuple[Edit, ...]


def proven(file: File, found: Found, changes: Sequence[Change]) -> list[Change]:
    """The changes after which the file holds what it should; none, if they only do apart."""
    kept = _holding(file, found, changes)
    return kept if len(kept) == len(changes) or _holds(file, found, kept) else []


def edited(data: bytes, changes: Sequence[Change]) -> bytes:
    """The file with all edits."""
    pieces, at = [], 0
    for edit in in_order(changes):
        pieces += [data[at : edit.start], edit.text]
        at = edit.end
    return b"".join((*pieces, data[at:]))


def in_order(changes: Sequence[Change]) -> list[Edit]:
    """The edits in the order of the text."""
    return sorted((edit for each in changes for edit in each.edits), key=lambda edit: edit.start)


def json_of(manifest: Manifest) -> bytes:
    """An object as JSON text."""
    return manifest.value if isinstance(manifest.value, bytes) else json.dumps(manifest.value).encode()


def value_of(manifest: Manifest) -> Json:
    """An object as parsed JSON."""
    return msgspec.json.decode(manifest.value) if isinstance(manifest.value, bytes) else manifest.value


def _holding(file: File, found: Found, changes: Sequence[Change]) -> list[Change]:
    """All changes if they hold, else what holds of either half: one that does not is found in few readings."""
    if not changes or _holds(file, found, changes):
        return [*changes]
    half = len(changes) // 2
    return [*_holding(file, found, changes[:half]), *_holding(file, found, changes[half:])] if half else []


def _holds(file: File, found: Found, changes: Sequence[Change]) -> bool:
    """Whether the edited text, read again, holds the same objects and faults, but for the changes."""
    given = {each.number: each for each in changes}
    again = [*read_manifests(file.name, edited(file.data, changes))]
    if len(again) != len(found):
        return False
    return all(
        _same(before, after, given.get(number)) for number, (before, after) in enumerate(zip(found, again, strict=True))
    )


def _same(before: Manifest | Fault, after: Manifest | Fault, change: Change | None) -> bool:
    if isinstance(before, Fault) or isinstance(after, Fault):
        return isinstance(before, Fault) and isinstance(after, Fault) and before.message == after.message
    value = value_of(before) if change is None else change.after
    # As text: to Python true is 1, and 1.0 too.
    return json.dumps(value, sort_keys=True) == json.dumps(msgspec.json.decode(json_of(after)), sort_keys=True)
