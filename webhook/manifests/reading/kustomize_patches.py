"""Patches that are no objects: lists of JSON 6902 operations, and patches in the text of a kustomization.

Source: kustomize api/types/kustomization.go ``Kustomization``; RFC 6901 (pointers) and 6902 (operations).
"""

import re
from collections.abc import Iterator
from pathlib import PurePath

from msgspec import structs

from webhook.core.api.types import TypeMeta
from webhook.manifests.reading.documents import InputDocument, InputFault
from webhook.manifests.reading.files import File
from webhook.manifests.reading.go_scalars import UnreadableDocumentError
from webhook.manifests.reading.go_yaml import read_document
from webhook.manifests.reading.kustomizations import NAMES, target_of
from webhook.manifests.reading.manifest import FieldPosition, Manifest, read_manifests
from webhook.manifests.reading.positions import ValuePosition, follow, yaml_tree

# Each patch is read beside a blanked copy of its file; in a longer file its findings are at its first line.
_MAX_BLANKED_CHARS = 2**16
_FIELDS = ("patches", "patchesJson6902", "patchesStrategicMerge")


def is_kustomization(name: str) -> bool:
    """Whether a file is a kustomization by its name, as kustomize looks for it."""
    return PurePath(name).name in NAMES


def inline_patches(file: File) -> Iterator[tuple[Manifest | InputFault, TypeMeta | None]]:
    """Each patch in the text of a kustomization, at its place in the file, with the type of its target if stated."""
    if not is_kustomization(file.name) or not any(field.encode() in file.data for field in _FIELDS):
        return
    try:
        value = read_document(file.data).value
    except UnreadableDocumentError:
        return
    document = InputDocument(file=file.name, text=file.data)
    tree, text = yaml_tree(file.data), file.data.decode("utf-8", "replace").removeprefix("\ufeff")
    for field in _FIELDS:
        entries = value.get(field) if isinstance(value, dict) else None
        for number, entry in enumerate(entries if isinstance(entries, list) else ()):
            is_text = isinstance(entry, str)
            patch = entry.get("patch") if isinstance(entry, dict) else entry
            if not isinstance(patch, str) or (is_text and "\n" not in patch):
                continue
            *_, (_, node, _) = follow(tree, f"{field}[{number}]{'' if is_text else '.patch'}")
            alone = _alone(text, node, patch) if len(text) <= _MAX_BLANKED_CHARS else ""
            for found in read_manifests(file.name, (alone or patch).encode(), is_patch=True):
                placed = found if alone else _at(found, document, node.start)
                yield placed, None if is_text else target_of(entry)


def _alone(text: str, node: ValuePosition, value: str) -> str:
    """The file with all but one scalar blanked out, so that places in it stay. Empty if the scalar has escapes."""
    start, end = node.start, node.end
    if text[start : start + 1] in {"|", ">"}:
        start = text.find("\n", start) + 1
    elif (start := text.find(value, start, end)) >= 0:
        end = start + len(value)
    else:
        return ""
    return re.sub(r"[^\n]", " ", text[:start]) + text[start:end]


def _at(found: Manifest | InputFault, document: InputDocument, index: int) -> Manifest | InputFault:
    """The manifest or fault with all its fields at one place of the file."""
    line, column = document.place(index)
    if isinstance(found, InputFault):
        return structs.replace(found, line=line, column=column)
    text = document.text.decode("utf-8", "replace").removeprefix("\ufeff").split("\n")[line - 1]
    place = FieldPosition(line=line, column=column, text=text, caret=column - 1, width=max(len(text) - column + 1, 1))
    return structs.replace(found, locate=lambda _path: place)
