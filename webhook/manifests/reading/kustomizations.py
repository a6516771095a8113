"""Read kustomizations: patched files, inline patches, and local or remote builds.

Source: kustomize api/types/kustomization.go ``Kustomization``; api/loader/fileloader.go ``IsRemoteFile``; RFC 6901
    (pointers) and 6902 (operations).
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path, PurePath

from msgspec import structs

from webhook.core.api.types import TypeMeta
from webhook.manifests.reading.documents import InputDocument, InputFault
from webhook.manifests.reading.files import File, leads_out
from webhook.manifests.reading.go_yaml import Json, read_document
from webhook.manifests.reading.manifest import FieldPosition, Manifest, read_manifests
from webhook.manifests.reading.positions import ValuePosition, follow, yaml_tree
from webhook.manifests.reading.yaml_scalars import UnreadableDocumentError

NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
# Entries are files or directories, or text of their own where they have several lines.
_ENTRIES = ("resources", "bases", "components", "crds", "configurations", "generators", "transformers", "validators")
_HELM = ("helmCharts", "helmChartInflationGenerator")
_URL = re.compile(r"https?://", re.IGNORECASE)
# The most bases of one build. More than these refer to each other in circles.
_MAX_BASES = 256
_MAX_BYTES = 2**20  # of a kustomization


def _kustomization_in(directory: Path) -> Path | None:
    """The kustomization file of a directory, or None."""
    return next((directory / name for name in NAMES if (directory / name).is_file()), None)


def why_not_built(directory: Path) -> str:
    """Return why evenspread cannot build a kustomization. Empty if it can.

    A build may use only local files and kustomize's own generators.
    """
    pending, seen = [directory], set[str]()
    while pending:
        base = pending.pop()
        if (real := os.path.realpath(base)) in seen:
            continue
        seen.add(real)
        if len(seen) > _MAX_BASES:
            return f"{directory} has more than {_MAX_BASES} bases"
        if reason := next(_needs(base), ""):
            return reason
        entries = map(base.joinpath, _entries(_parsed((_kustomization_in(base) or base).absolute())))
        pending += (entry for entry in entries if entry.is_dir())
    return ""


def _needs(base: Path) -> Iterator[str]:
    file = _kustomization_in(base)
    if file is None:
        yield f"{base} has no {NAMES[0]}"
        return
    value = _parsed(file.absolute())
    if not value:
        yield f"{file} cannot be read, or is empty"
    if any(name in value for name in _HELM):
        yield f"{file} inflates a Helm chart"
    for entry in _entries(value):
        if _URL.match(entry) or not (base / entry).exists():
            yield f"{file} names {entry}, which is not a local file"
    yield from (f"{file} loads {text}" for text in _referenced_files(value) if _URL.match(text))


def patched_files(files: Iterable[str]) -> dict[str, TypeMeta | None]:
    """The patch files of kustomizations, by resolved path, with the stated type of the target.

    Kustomizations are searched for in the directories of the files and above.
    """
    directories = {above for file in files for above in Path(file).absolute().parents}
    return {path: kind for directory in sorted(directories) for path, kind in _patches_in(directory)}


@cache
def _patches_in(directory: Path) -> tuple[tuple[str, TypeMeta | None], ...]:
    file = _kustomization_in(directory)
    value = {} if file is None else _parsed(file)
    patches = (
        *(
            (entry.get("path"), _target_of(entry))
            for name in ("patches", "patchesJson6902")
            for entry in _dicts(value, name)
        ),
        *((entry, None) for entry in _list(value, "patchesStrategicMerge")),
    )
    return tuple(
        (str((directory / path).resolve()), kind)
        for path, kind in patches
        if isinstance(path, str) and "\n" not in path and (directory / path).is_file()
    )


def _target_of(patch: Mapping[str, Json]) -> TypeMeta | None:
    """Return the type of the patched objects in an entry of a kustomization's ``patches``."""
    target = patch.get("target")
    kind = target.get("kind") if isinstance(target, Mapping) else None
    if not isinstance(kind, str) or not isinstance(target, Mapping):
        return None
    version = "/".join(part for part in (target.get("group"), target.get("version")) if isinstance(part, str))
    return TypeMeta(api_version=version or None, kind=kind)


@cache
def _parsed(file: Path) -> Mapping[str, Json]:
    try:
        is_read = not leads_out(str(file)) and file.stat().st_size <= _MAX_BYTES
        value = read_document(file.read_bytes()).value if is_read else None
    except (OSError, UnreadableDocumentError):
        return {}
    return value if isinstance(value, dict) else {}


def _list(value: Mapping[str, Json], name: str) -> list[Json]:
    entries = value.get(name)
    return entries if isinstance(entries, list) else []


def _dicts(value: Mapping[str, Json], name: str) -> Iterator[Mapping[str, Json]]:
    return (entry for entry in _list(value, name) if isinstance(entry, dict))


def _entries(value: Mapping[str, Json]) -> Iterator[str]:
    """Yield every path listed in a kustomization. Items with several lines are inline YAML and skipped."""
    for name in _ENTRIES:
        yield from (entry for entry in _list(value, name) if isinstance(entry, str) and "\n" not in entry)


def _referenced_files(value: Mapping[str, Json]) -> Iterator[str]:
    """Yield the paths and URLs in patches, replacements, generators and openapi."""
    yield from (entry for entry in _list(value, "patchesStrategicMerge") if isinstance(entry, str))
    for name in ("patches", "patchesJson6902", "replacements"):
        yield from (str(entry.get("path")) for entry in _dicts(value, name))
    for name in ("configMapGenerator", "secretGenerator"):
        for entry in _dicts(value, name):
            texts = (text for key in ("files", "envs") for text in _list(entry, key))
            yield from (str(text).rpartition("=")[2] for text in (*texts, entry.get("env")))
    openapi = value.get("openapi")
    yield str(openapi.get("path")) if isinstance(openapi, Mapping) else ""


# Each patch is read with a blanked copy of its file. In a longer file, its findings point to the patch's first line.
_MAX_BLANKED_CHARS = 2**16
_FIELDS = ("patches", "patchesJson6902", "patchesStrategicMerge")


def is_kustomization(name: str) -> bool:
    """Whether a file is a kustomization by its name, as kustomize looks for it."""
    return PurePath(name).name in NAMES


def inline_patches(file: File) -> Iterator[tuple[Manifest | InputFault, TypeMeta | None]]:
    """Yield each inline patch of a kustomization and the type of its target object.

    The patch is a manifest with its position in the file. The type is None if the kustomization does not state it.
    """
    if not is_kustomization(file.name) or not any(field.encode() in file.data for field in _FIELDS):
        return
    try:
        value = read_document(file.data).value
    except UnreadableDocumentError:
        return
    document = InputDocument(file=file.name, text=file.data)
    tree, text = yaml_tree(file.data), file.data.decode("utf-8", "replace").removeprefix("\ufeff")
    for field in _FIELDS:
        for number, entry in enumerate(_list(value, field) if isinstance(value, dict) else ()):
            is_text = isinstance(entry, str)
            patch = entry.get("patch") if isinstance(entry, dict) else entry
            if not isinstance(patch, str) or (is_text and "\n" not in patch):
                continue
            *_, (_, node, _) = follow(tree, f"{field}[{number}]{'' if is_text else '.patch'}")
            alone = _alone(text, node, patch) if len(text) <= _MAX_BLANKED_CHARS else ""
            for read in read_manifests(file.name, (alone or patch).encode(), is_patch=True):
                placed = read if alone else _placed_at(read, document, node.start)
                yield placed, None if is_text else _target_of(entry)


def _alone(text: str, node: ValuePosition, value: str) -> str:
    """Return the text up to a scalar's end, blanked before it to keep positions. Empty for YAML escapes."""
    start, end = node.start, node.end
    if text[start : start + 1] in {"|", ">"}:
        start = text.find("\n", start) + 1
    elif (start := text.find(value, start, end)) >= 0:
        end = start + len(value)
    else:
        return ""
    return re.sub(r"[^\n]", " ", text[:start]) + text[start:end]


def _placed_at(read: Manifest | InputFault, document: InputDocument, index: int) -> Manifest | InputFault:
    """Return a copy of a manifest or fault, with all its fields at the same character of the document."""
    line, column = document.place(index)
    if isinstance(read, InputFault):
        return structs.replace(read, line=line, column=column)
    text = document.text.decode("utf-8", "replace").removeprefix("\ufeff").split("\n")[line - 1]
    place = FieldPosition(line=line, column=column, text=text, caret=column - 1, width=max(len(text) - column + 1, 1))
    return structs.replace(read, locate=lambda _path: place)
